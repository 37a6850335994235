// Owns: `serve`: the banner or log lines at the start, and the order in which the service and its operations listener
// start and stop.

import { type OperationsListener, openOperations } from '../admin/listener.ts';
import { type Config, readConfig } from '../config.ts';
import { LogWriter, openLog } from '../log/destination.ts';
import type { Log } from '../log/log.ts';
import { readSecretFile } from '../secret-file.ts';
import { type Service, startService } from '../service.ts';
import { describeStore } from '../stores/open.ts';
import { version } from '../version.ts';
import { isWorker, serveAsWorker, startWorkers } from '../workers.ts';
import type { CommandContext } from './command.ts';

/** Milliseconds after which the process ends even if a disk does not answer; normally it needs less (rule 27). */
const LAST_RESORT = 9500;

export const HELP = `Usage: book-catalogue serve

Serves the catalogue until SIGTERM or SIGINT, then finishes requests in progress and exits with code 0 within
10 seconds. If it cannot serve, it exits with code 1 and one sentence. \`npm start\` does the same.
`;

/** Serves, as one process or as one of several, until `stop` resolves. */
export async function run({ env, stdout, stop }: CommandContext): Promise<number> {
  const lines = new LogWriter(stdout, isWorker);
  try {
    const makeLog = ({ logLevel }: Config) => openLog(logLevel, lines, stdout);
    if (isWorker) {
      await serveAsWorker(makeLog, stop);
    } else {
      const config = readConfig(env, readSecretFile);
      await serve(config, makeLog(config), stdout.isTTY ? lines : undefined, stop);
    }
    return 0;
  } finally {
    await lines.close();
  }
}

/** @param terminal gets the banner; undefined if the output is not a terminal. */
async function serve(
  config: Config,
  log: Log,
  terminal: LogWriter | undefined,
  stop: Promise<unknown>,
): Promise<void> {
  const operations = await openOperations(config, log);
  try {
    const start = config.workers === 1 ? startService : startWorkers;
    const service = await start(config, log, operations?.port);
    operations?.serve(service);
    const store = describeStore(config.dbUrl);
    if (terminal !== undefined) terminal.write(banner(service, operations, store, config));
    else
      log.info(
        { url: service.url, operations: operations?.url, store, workers: config.workers },
        'listening',
      );
    for (const warning of config.warnings) log.warn(warning);

    log.info({ signal: await stop }, 'stopping');
    const overdue = setTimeout(() => process.kill(process.pid, 'SIGKILL'), LAST_RESORT);
    operations?.drain();
    await service.close();
    clearTimeout(overdue);
    log.info('stopped');
  } finally {
    await operations?.close();
  }
}

function banner(
  { url }: Service,
  operations: OperationsListener | undefined,
  store: string,
  config: Config,
): string {
  const pair = config.builtInCredentials
    ? `${config.username} / ${config.password}  (built in, for this machine only)`
    : `${config.username} and the password you set`;
  const login = config.builtInCredentials
    ? `{"username":"admin","password":"password"}`
    : '{"username":…,"password":…}';
  return `
Book catalogue ${version}

  Address    ${url}
  Store      ${store}
${operations === undefined ? '' : `  Try it at  ${operations.url}/docs\n`}  Log in as  ${pair}

Next, get a token:

  curl -X POST ${url}/token -d '${login}'

`;
}
