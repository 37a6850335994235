// Owns: the command line: which command runs, and the exit code. It loads only that command, because a health check
// that runs every few seconds needs nothing else.

import { parseArgs } from 'node:util';
import { type Arguments, type Command, type CommandContext, UsageError } from './commands/command.ts';
import { type Environment, nearMisses, SECRETS, SETTINGS, type Setting } from './config.ts';
import { nearest } from './nearest.ts';
import { OperatorError } from './operator-error.ts';
import { helpEntry } from './terminal/help-entry.ts';
import { printable } from './terminal/printable.ts';
import { version } from './version.ts';

const ABOUT = `Usage: book-catalogue [COMMAND] [--help]
       book-catalogue --version

A catalogue of books: JSON over HTTP.

  serve       serves the catalogue; the default
  demo        serves a catalogue of well-known books, and keeps nothing
  config      shows the configuration in effect, or the first error in it
  ready       checks whether the running service is ready
  token       prints a token for scripts
  import      stores the books of a file: CSV, JSON or JSON Lines
  export      writes all books, or some of them, to a file: CSV, JSON or JSON Lines
  copy        copies all books from one store to another
  index       builds, rebuilds or removes the search index
  backup      writes a verified copy of the SQLite store to a file, even while the service runs
  restore     replaces the SQLite store with a backup
  verify      checks a running service, this one or another, against the contract
  completion  prints a script with which bash, zsh or fish completes commands and options
  man         prints the manual page: book-catalogue man | man -l -
`;

const ENVIRONMENT = `The configuration is in environment variables, all of them optional:

${Object.values<Setting>(SETTINGS)
  .map(({ name, help, absent }) => helpEntry(name, `${help} (${absent})`))
  .join('')}
${SECRETS.map((name) => `${name}_FILE`).join(', ')} name a file that holds the value instead.
`;

const HELP = `${ABOUT}\n${ENVIRONMENT}`;

const COMMANDS = new Map<string, () => Promise<Command>>([
  ['serve', () => import('./commands/serve.ts')],
  ['demo', () => import('./commands/demo.ts')],
  ['config', () => import('./commands/config.ts')],
  ['ready', () => import('./commands/ready.ts')],
  ['token', () => import('./commands/token.ts')],
  ['import', () => import('./commands/import.ts')],
  ['export', () => import('./commands/export.ts')],
  ['copy', () => import('./commands/copy.ts')],
  ['index', () => import('./commands/index.ts')],
  ['backup', () => import('./commands/backup.ts')],
  ['restore', () => import('./commands/restore.ts')],
  ['verify', () => import('./commands/verify.ts')],
  ['completion', async () => (await import('./commands/completion.ts')).completion(loadAll)],
  ['man', async () => (await import('./commands/man.ts')).man(ABOUT, ENVIRONMENT, loadAll)],
]);

async function loadAll(): Promise<Map<string, Command>> {
  const commands = [...COMMANDS].map(async ([name, load]) => [name, await load()] as const);
  return new Map(await Promise.all(commands));
}

/**
 * Runs a command until it ends.
 * @param streams those of the process, or substitutes.
 * @param stop resolves when the service must stop.
 * @returns the exit code: 0 done; 1 failed, explained by one sentence on stderr; 2 called wrongly.
 */
export async function run(
  args: readonly string[],
  env: Environment,
  streams: Pick<CommandContext, 'stdin' | 'stdout' | 'stderr'>,
  stop: Promise<unknown>,
): Promise<number> {
  const { stdout, stderr } = streams;
  const named = args.find((arg) => !arg.startsWith('-'));
  try {
    if (named === 'help' || named === 'version')
      return await run([...args.toSpliced(args.indexOf(named), 1), `--${named}`], env, streams, stop);
    const load = COMMANDS.get(named ?? 'serve');
    if (load === undefined) {
      if (args[0] !== named) readArguments(undefined, undefined, args); // the name may be the value of an unknown option
      throw new UsageError(`${noSuch(`command "${named}"`, named, [...COMMANDS.keys()])} See --help.`);
    }
    const command = named === undefined ? undefined : await load();
    const { options, operands } = readArguments(command, named, args);
    if (options.version) {
      stdout.write(`${version}\n`);
      return 0;
    }
    if (options.help) {
      stdout.write(command?.HELP ?? HELP);
      return 0;
    }
    const stopping = new AbortController();
    stop.then(() => stopping.abort());
    const context: CommandContext = {
      env,
      get stdin() {
        return streams.stdin; // reading this property opens stdin, and most commands do not need it
      },
      stdout,
      stderr,
      stop,
      signal: stopping.signal,
    };
    // The service has them in its log, and `config` beside what it shows.
    if (named !== undefined && !['serve', 'demo', 'config'].includes(named))
      for (const miss of nearMisses(env)) stderr.write(`${miss}\n`);
    return await (command ?? (await load())).run(context, { options, operands });
  } catch (error) {
    if (!(error instanceof OperatorError || error instanceof UsageError)) throw error;
    stderr.write(`${printable(error.message.replace(/\s+/g, ' '))}\n`); // one line, even if it quotes several
    return error instanceof UsageError ? 2 : 1;
  }
}

/**
 * @param command undefined if none is named; `serve` then runs, without options.
 * @throws UsageError for an unknown option, and for too few or too many operands.
 */
function readArguments(
  command: Command | undefined,
  name: string | undefined,
  args: readonly string[],
): Arguments {
  const help = `See ${name === undefined ? '' : `book-catalogue ${name} `}--help.`;
  const options = {
    ...command?.OPTIONS,
    help: { type: 'boolean', short: 'h' },
    version: { type: 'boolean' },
  } as const;
  let call: { values: Arguments['options']; positionals: string[] };
  try {
    call = parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw new UsageError(`${optionFault(error as NodeJS.ErrnoException, Object.keys(options))} ${help}`);
  }
  const { values, positionals } = call;
  const operands = name === undefined ? positionals : positionals.toSpliced(positionals.indexOf(name), 1);
  if (!values.help && !values.version) {
    const fault = faultOf(operands.length, command?.OPERANDS ?? []);
    if (fault !== undefined) throw new UsageError(`${name} ${fault}. ${help}`);
  }
  return { options: values, operands };
}

/** @param error of `parseArgs`, whose message has the option in quotation marks. */
function optionFault({ code, message }: NodeJS.ErrnoException, names: readonly string[]): string {
  const [, option = ''] = /'(?:-\w, )?(-[^' ]*)/.exec(message) ?? [];
  if (code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
    const variable = option.replace(/^-+/, '').replaceAll('-', '_').toUpperCase();
    const isSetting = Object.values<Setting>(SETTINGS).some(({ name }) => name === variable);
    if (isSetting) return `There is no option ${option}: set ${variable} in the environment.`;
    const options = names.map((name) => `--${name}`);
    return noSuch(`option ${option}`, option, options);
  }
  if (/ambiguous/.test(message)) {
    return `${option} needs a value: one that begins with a dash is written ${option}=-1.`;
  }
  return /missing/.test(message) ? `${option} needs a value.` : `${option} takes no value.`;
}

/** @param typed the name that does not exist. */
function noSuch(what: string, typed: string | undefined, names: readonly string[]): string {
  const meant = typed === undefined ? undefined : nearest(typed, names);
  return `There is no ${what}${meant === undefined ? '.' : `: did you mean ${meant}?`}`;
}

/** The error in the number of operands, to follow the command's name. It shows no operand: one may hold a password. */
function faultOf(given: number, names: readonly string[]): string | undefined {
  const needed = names.filter((name) => !name.startsWith('['));
  if (given < needed.length) return `needs ${needed.join(' and ')}`;
  if (given <= names.length) return undefined;
  if (names.length === 0) return `takes no arguments, but got ${given}`;
  return `takes only ${names.join(' and ').replaceAll(/[[\]]/g, '')}, but got ${given} arguments`;
}
