// Owns: the command line. Which command is meant, and the exit code it ends with. Loads that command alone:
// a health check that runs every few seconds has no use for the rest.

import { parseArgs } from 'node:util';
import { type Arguments, type Command, type CommandContext, UsageError } from './commands/command.ts';
import { type Environment, SECRETS, VARIABLES, type Variable } from './config.ts';
import { OperatorError } from './operator-error.ts';
import { version } from './version.ts';

/** Characters of a line of help, and of what stands before it. */
const HELP_WIDTH = 72;
const NAME_WIDTH = 23;

const HELP = `Usage: book-catalogue [COMMAND] [--help]
       book-catalogue --version

A catalogue of books: JSON over HTTP.

  serve    serves it; what is done without a command, and by \`npm start\`
  config   shows the configuration in effect, or what is wrong with it
  ready    asks the running service whether it is ready
  token    prints a token for scripts
  import   stores the books of a file: CSV, JSON or JSON Lines
  export   writes all books to a file: CSV, JSON or JSON Lines
  copy     copies all books from one store to another
  backup   writes a verified copy of the SQLite store to a file, also while it is served
  restore  puts a backup in the place of the SQLite store

Everything is set by environment variables; all of them may be left out.

${Object.entries<Variable>(VARIABLES).map(variableHelp).join('')}
${SECRETS.map((name) => `${name}_FILE`).join(', ')} name a file that holds the value instead.
`;

const COMMANDS = new Map<string, () => Promise<Command>>([
  ['serve', () => import('./commands/serve.ts')],
  ['config', () => import('./commands/config.ts')],
  ['ready', () => import('./commands/ready.ts')],
  ['token', () => import('./commands/token.ts')],
  ['import', () => import('./commands/import.ts')],
  ['export', () => import('./commands/export.ts')],
  ['copy', () => import('./commands/copy.ts')],
  ['backup', () => import('./commands/backup.ts')],
  ['restore', () => import('./commands/restore.ts')],
]);

/** A variable's lines: its name, what it is, and in brackets what there is without it. */
function variableHelp([name, { help, absent }]: readonly [string, Variable]): string {
  const lines = [''];
  for (const word of `${help} (${absent})`.split(' ')) {
    const longer = `${lines.at(-1)} ${word}`;
    if (longer.length > HELP_WIDTH) lines.push(` ${word}`);
    else lines[lines.length - 1] = longer;
  }
  return lines.map((line, index) => `  ${(index === 0 ? name : '').padEnd(NAME_WIDTH)}${line}\n`).join('');
}

/**
 * Runs a command to its end.
 * @param streams the process, or what stands for it.
 * @param stop resolves when the service shall end.
 * @returns the exit code: 0 done, 1 not done, which one sentence on stderr explains, 2 called wrongly.
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
    const load = COMMANDS.get(named ?? 'serve');
    if (load === undefined) throw new UsageError(`There is no command "${named}". See --help.`);
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
    const context: CommandContext = {
      env,
      get stdin() {
        return streams.stdin; // a process opens it when it is asked for it, and most commands have no use for it
      },
      stdout,
      stderr,
      stop,
    };
    return await (command ?? (await load())).run(context, { options, operands });
  } catch (error) {
    if (!(error instanceof OperatorError || error instanceof UsageError)) throw error;
    stderr.write(`${error.message.replace(/\s+/g, ' ')}\n`); // one line, whatever it quotes
    return error instanceof UsageError ? 2 : 1;
  }
}

/**
 * @param command undefined when none is named, which is to serve, without any option of its own.
 * @throws UsageError when there is an option that the command does not know, or too few or too many operands.
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
    throw new UsageError(`${(error as Error).message.split('. ')[0]}. ${help}`); // what follows is about any program
  }
  const { values, positionals } = call;
  const operands = name === undefined ? positionals : positionals.toSpliced(positionals.indexOf(name), 1);
  if (!values.help && !values.version) {
    const fault = faultOf(operands.length, command?.OPERANDS ?? []);
    if (fault !== undefined) throw new UsageError(`${name} ${fault}. ${help}`);
  }
  return { options: values, operands };
}

/** What is wrong with so many operands, to follow the command's name. Shows none of them: one may hold a password. */
function faultOf(given: number, names: readonly string[]): string | undefined {
  const needed = names.filter((name) => !name.startsWith('['));
  if (given < needed.length) return `needs ${needed.join(' and ')}`;
  if (given <= names.length) return undefined;
  if (names.length === 0) return `takes no arguments, but got ${given}`;
  return `takes only ${names.join(' and ').replaceAll(/[[\]]/g, '')}, but got ${given} arguments`;
}
