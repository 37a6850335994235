// Owns: the command. What it does with its arguments and environment, what it says, how it ends.

import { constants, openSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import pino, { type Logger } from 'pino';
import { type Config, type LogLevel, readConfig, StartupRefusal } from './config.ts';
import { createLog, readableLines } from './log.ts';
import { readSecretFile } from './secret-file.ts';
import { type Service, startService } from './service.ts';
import { describeStore } from './stores/open.ts';
import { isWorker, serveAsWorker, startWorkers } from './workers.ts';

const HELP = `Usage: npm start
       node src/main.js [--help | --version]

Serves a catalogue of books: JSON over HTTP.

Everything is set by environment variables; all of them may be left out.

  PORT                    port to listen on (8080)
  HOST                    address to listen on (this machine only, until AUTH_USERNAME,
                          AUTH_PASSWORD and SECRET_TOKEN are set; then every address)
  DB_URL                  sqlite:<path> or postgres://user:password@host:port/database, of
                          several hosts host:port,host:port (sqlite:data/books.db)
  SECRET_TOKEN            secret that signs tokens (random, new at every start)
  AUTH_USERNAME           the name and
  AUTH_PASSWORD           the password that log in (admin and password)
  WORKERS                 processes that serve together, at most one for each core (1)
  TRUST_PROXY             addresses or networks of proxies whose X-Forwarded-For is believed (none)
  LOG_LEVEL               fatal, error, warn, info, debug, trace or silent (info)
  BODY_LIMIT              bytes of one request's body (1048576)
  HEADER_LIMIT            bytes of one request's line and headers (16384)

DB_URL_FILE, SECRET_TOKEN_FILE and AUTH_PASSWORD_FILE name a file that holds the value instead.
`;

/** Bytes of log that may wait for a slow reader. */
const LOG_BACKLOG = 8 * 1024 * 1024;

/** Bytes that go into a pipe in one piece, so that the lines of several workers never mix. */
const PIPE_BUF = 4096;

/** Milliseconds that the last lines of the log have to leave. */
const LOG_FAREWELL = 1000;

type Lines = ReturnType<typeof pino.destination>;

interface Streams {
  readonly stdout: NodeJS.WriteStream & { readonly fd: number };
  readonly stderr: NodeJS.WriteStream;
}

/**
 * Runs the command until it is told to stop.
 * @param stop resolves when the service shall end.
 * @returns the exit code: 0 done, 1 refused to start, 2 called wrongly.
 */
export async function run(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  { stdout, stderr }: Streams,
  stop: Promise<unknown>,
): Promise<number> {
  if (args.length > 0) return answerArguments(args, { stdout, stderr });

  const lines = openLines(stdout);
  try {
    const makeLog = ({ logLevel }: Config) => openLog(logLevel, lines, stdout.isTTY);
    if (isWorker) {
      await serveAsWorker(makeLog, stop);
    } else {
      const config = readConfig(env, readSecretFile);
      await serve(config, makeLog(config), stdout.isTTY ? lines : undefined, stop);
    }
    return 0;
  } catch (error) {
    if (!(error instanceof StartupRefusal)) throw error;
    stderr.write(`${error.message.replace(/\s+/g, ' ')}\n`); // one line, whatever it quotes
    return 1;
  } finally {
    await closeLines(lines);
  }
}

/** @param terminal where people read, if they do. */
async function serve(
  config: Config,
  log: Logger,
  terminal: Lines | undefined,
  stop: Promise<unknown>,
): Promise<void> {
  const service = await (config.workers === 1 ? startService(config, log) : startWorkers(config, log));
  const store = describeStore(config.dbUrl);
  if (terminal !== undefined) terminal.write(banner(service, store, config));
  else log.info({ url: service.url, store, workers: config.workers }, 'listening');
  for (const warning of config.warnings) log.warn(warning);

  log.info({ signal: await stop }, 'stopping');
  await service.close();
  log.info('stopped');
}

/** Where the log goes. A reader that stalls or has gone loses lines and holds nobody up. */
function openLines({ fd, isTTY }: Streams['stdout']): Lines {
  const lines = pino.destination({
    fd: isTTY ? openTerminal(fd) : fd,
    sync: false,
    maxLength: LOG_BACKLOG,
    maxWrite: PIPE_BUF,
  });
  lines.on('error', () => {}); // a full disk, say: the service is worth more than its log
  lines.flushSync = () => {}; // at exit it would try for ever; closeLines is what the last lines have
  return lines;
}

/** A terminal that is stopped (Ctrl-S) would hold up whoever writes to it, Node's own stream included. */
function openTerminal(fd: number): number {
  try {
    const { O_WRONLY, O_APPEND, O_NOCTTY, O_NONBLOCK } = constants;
    return openSync(`/dev/fd/${fd}`, O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK);
  } catch {
    return fd; // it belongs to another user, say
  }
}

/** The log, in the form that its reader understands. Lines that were lost are told of once others get through. */
function openLog(level: LogLevel, lines: Lines, forPeople: boolean): Logger {
  const log = createLog(level, forPeople ? readableLines((text) => lines.write(text)) : lines);
  let lost = 0;
  lines.on('drop', () => {
    lost += 1;
  });
  lines.on('drain', () => {
    if (lost === 0) return;
    const count = lost;
    lost = 0;
    log.error({ lines: count }, 'lines of the log were lost, since nobody read them');
  });
  return log;
}

/** Gives what is left of the log a moment to leave; then the process may end without it. */
async function closeLines(lines: Lines): Promise<void> {
  const left = new Promise((resolve) => lines.once('close', resolve));
  lines.end();
  await Promise.race([left, pause(LOG_FAREWELL, undefined)]);
}

function answerArguments(args: readonly string[], { stdout, stderr }: Streams): number {
  const [argument] = args;
  if (args.length === 1 && (argument === '--help' || argument === '-h')) {
    stdout.write(HELP);
    return 0;
  }
  if (args.length === 1 && argument === '--version') {
    stdout.write(`${version()}\n`);
    return 0;
  }
  stderr.write(`Unknown arguments: ${args.join(' ')}. See --help.\n`);
  return 2;
}

function version(): string {
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}

function banner({ url }: Service, store: string, config: Config): string {
  const pair = config.builtInCredentials
    ? `${config.username} / ${config.password}  (built in, for this machine only)`
    : `${config.username} and the password you set`;
  const login = config.builtInCredentials
    ? `{"username":"admin","password":"password"}`
    : '{"username":…,"password":…}';
  return `
Book catalogue ${version()}

  Address    ${url}
  Store      ${store}
  Log in as  ${pair}

Next, get a token:

  curl -X POST ${url}/token -d '${login}'

`;
}
