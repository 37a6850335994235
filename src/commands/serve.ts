// Owns: `serve`: the banner or log lines at the start, and the order in which the service and its operations listener
// start and stop.

import { type OperationsListener, openOperations } from '../admin/listener.ts';
import { type Config, readConfig } from '../config.ts';
import { PortRefused } from '../listen.ts';
import { LogWriter, openLog } from '../log/destination.ts';
import { COUNTED, type Service, type StoreFound, startService } from '../service.ts';
import { counted } from '../terminal/counted.ts';
import { version } from '../version.ts';
import { isWorker, serveAsWorker, startWorkers } from '../workers.ts';
import type { CommandContext } from './command.ts';

export const HELP = `Usage: book-catalogue serve

Serves the catalogue until SIGTERM or SIGINT, then finishes requests in progress and exits with code 0 within
10 seconds. If it cannot serve, it exits with code 1 and one sentence. In a clone, \`npm start\` does the same.
`;

/** Serves, as one process or as one of several, until `stop` resolves. */
export async function run({ env, stdout, stop, times }: CommandContext): Promise<number> {
  if (!isWorker) {
    await serve(readConfig(env), { stdout, stop, times });
    return 0;
  }
  const lines = new LogWriter(stdout, true, times.log);
  try {
    await serveAsWorker(({ logLevel }) => openLog(logLevel, lines, stdout, times.log), stop, times);
    return 0;
  } finally {
    await lines.close();
  }
}

/**
 * Serves until `stop` resolves.
 * @param shownStore what the banner and the log say of the store; where it is, if absent.
 * @throws OperatorError if the start fails; nothing is left open then.
 */
export async function serve(
  config: Config,
  { stdout, stop, times }: Pick<CommandContext, 'stdout' | 'stop' | 'times'>,
  shownStore?: string,
): Promise<void> {
  const lines = new LogWriter(stdout, false, times.log);
  const log = openLog(config.logLevel, lines, stdout, times.log);
  let operations: OperationsListener | undefined;
  try {
    const opened = await openOperations(config, log, times);
    if (!(opened instanceof PortRefused)) operations = opened;
    const stopped = stop.then(() => undefined); // a start may wait for others
    const service =
      config.workers === 1
        ? await Promise.race([startService(config, log, operations?.port, times), stopped])
        : await startWorkers(config, log, operations?.port, times, stopped);
    if (service === undefined) return log.info({ signal: await stop }, 'stopped');
    operations?.serve(service);
    const { url, pageUrl: page, store } = service;
    if (opened instanceof PortRefused)
      log.warn(`${opened.message} The service runs without the operations listener.`);
    const contents = contentsOf(store);
    if (stdout.isTTY) {
      lines.write(banner(service, operations, shownStore ?? `${store.place} (${contents})`, config));
    } else {
      const shown = shownStore === undefined ? { store: store.place, contents } : { store: shownStore };
      log.info({ url, page, operations: operations?.url, ...shown, workers: config.workers }, 'listening');
    }
    for (const warning of config.warnings) log.warn(warning);

    log.info({ signal: await stop }, 'stopping');
    const overdue = setTimeout(() => process.kill(process.pid, 'SIGKILL'), times.commands.lastResort);
    operations?.drain();
    await service.close();
    clearTimeout(overdue);
    log.info('stopped');
  } finally {
    await operations?.close();
    await lines.close();
  }
}

/** A start in another folder than before is seen by it. */
function contentsOf({ isNew, books }: StoreFound): string {
  if (isNew) return 'new';
  if (books === undefined) return 'books that could not be counted';
  if (books === 0) return 'no books';
  return books > COUNTED ? `more than ${counted(COUNTED, 'book')}` : counted(books, 'book');
}

function banner(
  { url, pageUrl }: Service,
  operations: OperationsListener | undefined,
  store: string,
  { knownLogin, username, password }: Config,
): string {
  const pair = knownLogin
    ? `${username} / ${password}  (built in, for this machine only)`
    : `${username} and the password you set`;
  const login = knownLogin ? JSON.stringify(knownLogin) : '{"username":…,"password":…}';
  return `
Book catalogue ${version}

${pageUrl === undefined ? '' : `  Page       ${pageUrl}  (open it in a browser)\n`}  Address    ${url}
  Store      ${store}
${operations === undefined ? '' : `  Try it at  ${operations.url}/docs\n`}  Log in as  ${pair}

Next, get a token:

  curl -X POST ${url}/token -d '${login}'

`;
}
