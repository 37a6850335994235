// Owns: the command line. Which command is meant, and the exit code it ends with. Loads that command alone:
// a health check that runs every few seconds has no use for the rest.

import { parseArgs } from 'node:util';
import type { Command, Surroundings } from './commands/command.ts';
import { type Environment, StartupRefusal } from './config.ts';
import { version } from './version.ts';

const HELP = `Usage: npx book-catalogue [serve | config | ready | token] [--help]
       npx book-catalogue --version

A catalogue of books: JSON over HTTP.

  serve    serves it; what is done without a command, and by \`npm start\`
  config   shows the configuration in effect, or what is wrong with it
  ready    asks the running service whether it is ready
  token    prints a token for scripts

Everything is set by environment variables; all of them may be left out.

  PORT                    port to listen on (8080)
  HOST                    address to listen on (this machine only, until AUTH_USERNAME,
                          AUTH_PASSWORD and SECRET_TOKEN are set; then every address)
  DB_URL                  sqlite:<path> or postgres://user:password@host:port/database, of
                          several hosts host:port,host:port (sqlite:data/books.db)
  SECRET_TOKEN            secret that signs tokens (random, new at every start)
  SECRET_TOKEN_PREVIOUS   the one before it, whose tokens live out their time (none)
  AUTH_USERNAME           the name and
  AUTH_PASSWORD           the password that log in (admin and password)
  WORKERS                 processes that serve together, on as many cores (1)
  ADMIN_PORT              port for operators: health, metrics, /docs (PORT + 1)
  ADMIN_HOST              address of that port (this machine only)
  CORS_ORIGINS            origins whose pages may call the service from a browser (none)
  TRUST_PROXY             addresses or networks of proxies whose X-Forwarded-For is believed (none)
  LOG_LEVEL               fatal, error, warn, info, debug, trace or silent (info)
  BODY_LIMIT              bytes of one request's body (1048576)
  HEADER_LIMIT            bytes of one request's line and headers (16384)

DB_URL_FILE, SECRET_TOKEN_FILE, SECRET_TOKEN_PREVIOUS_FILE and AUTH_PASSWORD_FILE name a file that
holds the value instead.
`;

const COMMANDS = new Map<string, () => Promise<Command>>([
  ['serve', () => import('./commands/serve.ts')],
  ['config', () => import('./commands/config.ts')],
  ['ready', () => import('./commands/ready.ts')],
  ['token', () => import('./commands/token.ts')],
]);

/**
 * Runs a command to its end.
 * @param stop resolves when the service shall end.
 * @returns the exit code: 0 done, 1 not done, which one sentence on stderr explains, 2 called wrongly.
 */
export async function run(
  args: readonly string[],
  env: Environment,
  { stdout, stderr }: Pick<Surroundings, 'stdout' | 'stderr'>,
  stop: Promise<unknown>,
): Promise<number> {
  const call = readArguments(args);
  const [name = 'serve', ...more] = call?.positionals ?? [];
  const load = COMMANDS.get(name);
  if (call === undefined || load === undefined || more.length > 0) {
    stderr.write(`Unknown arguments: ${args.join(' ')}. See --help.\n`);
    return 2;
  }
  if (call.values.version) {
    stdout.write(`${version}\n`);
    return 0;
  }
  if (call.values.help) {
    stdout.write(call.positionals.length === 0 ? HELP : (await load()).HELP);
    return 0;
  }
  const command = await load();
  try {
    return await command.run({ env, stdout, stderr, stop });
  } catch (error) {
    if (!(error instanceof StartupRefusal)) throw error;
    stderr.write(`${error.message.replace(/\s+/g, ' ')}\n`); // one line, whatever it quotes
    return 1;
  }
}

/** @returns undefined when there is an option that nobody knows. */
function readArguments(args: readonly string[]) {
  const options = { help: { type: 'boolean', short: 'h' }, version: { type: 'boolean' } } as const;
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch {
    return undefined;
  }
}
