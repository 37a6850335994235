// Owns: the command line: which command runs, and the exit code. It loads only that command, because a health check
// that runs every few seconds needs nothing else.

import { parseArgs } from 'node:util';
import { type Arguments, type Command, type CommandContext, UsageError } from './commands/command.ts';
import { ROWS } from './config.ts';
import { type Environment, misnamed } from './environment.ts';
import { OperatorError } from './operator-error.ts';
import { writeLine } from './terminal/printable.ts';
import { TIMES } from './times.ts';
import { version } from './version.ts';

/** What each command does, and its module. `--help` shows them in this order. */
export const COMMANDS: Readonly<Record<string, readonly [about: string, load: () => Promise<Command>]>> = {
  serve: ['serves the catalogue; the default', () => import('./commands/serve.ts')],
  demo: ['serves a catalogue of well-known books, and keeps nothing', () => import('./commands/demo.ts')],
  config: ['shows the configuration in effect', () => import('./commands/config.ts')],
  ready: ['checks whether the running service is ready', () => import('./commands/ready.ts')],
  token: ['prints a token for scripts', () => import('./commands/token.ts')],
  import: ['stores the books of a file: CSV, JSON or JSON Lines', () => import('./commands/import.ts')],
  export: ['writes all books to a file: CSV, JSON or JSON Lines', () => import('./commands/export.ts')],
  copy: ['copies all books from one store to another', () => import('./commands/copy.ts')],
  undo: ['takes changes back: since a time, of a book, or an import', () => import('./commands/undo.ts')],
  forget: ['removes a book and its history permanently', () => import('./commands/forget.ts')],
  backup: ['writes a verified copy of the SQLite store to a file', () => import('./commands/backup.ts')],
  restore: ['replaces the SQLite store with a backup', () => import('./commands/restore.ts')],
  verify: ['checks a running service against the contract', () => import('./commands/verify.ts')],
  man: ['prints the manual page: book-catalogue man | man -l -', () => import('./commands/man.ts')],
};

export const ABOUT = `Usage: book-catalogue [COMMAND] [--help]
       book-catalogue --version

A catalogue of books: JSON over HTTP.

${Object.entries(COMMANDS)
  .map(([name, [about]]) => `  ${name.padEnd(12)}${about}\n`)
  .join('')}`;

/** Widths in characters: a line of the meaning, and the name before it. */
const MEANING_WIDTH = 72;
const NAME_WIDTH = 23;

export const ENVIRONMENT = `The configuration is in environment variables, all of them optional:

${ROWS.map(({ name, help, absent }) => helpEntry(name, `${help} (${absent})`)).join('')}
${ROWS.flatMap(({ name, secret }) => (secret ? `${name}_FILE` : [])).join(', ')} name a file that holds the value instead.
`;

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
  const [name = 'serve', ...others] = args;
  if (name === 'help') return run([...others, '--help'], env, streams, stop);
  if (name === 'version') return run(['--version'], env, streams, stop);
  try {
    if (name.startsWith('-')) {
      const { options } = readArguments('book-catalogue', args, { version: { type: 'boolean' } });
      stdout.write(options.version ? `${version}\n` : `${ABOUT}\n${ENVIRONMENT}`);
      return 0;
    }
    const [, load] = (Object.hasOwn(COMMANDS, name) && COMMANDS[name]) || [];
    if (load === undefined) throw new UsageError(`There is no command "${name}". See --help.`);
    const command = await load();
    const call = readArguments(`book-catalogue ${name}`, others, command.OPTIONS, command.OPERANDS);
    if (call.options.help) {
      stdout.write(command.HELP);
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
      times: TIMES,
    };
    // The service has them in its log, and `config` beside what it shows.
    if (!['serve', 'demo', 'config'].includes(name))
      for (const miss of misnamed(env, ROWS)) writeLine(stderr, miss);
    return await command.run(context, call);
  } catch (error) {
    if (!(error instanceof OperatorError || error instanceof UsageError)) throw error;
    writeLine(stderr, error.message.replace(/\s+/g, ' ')); // one line, even if it quotes several
    return error instanceof UsageError ? 2 : 1;
  }
}

/**
 * @param call the program, with the command.
 * @param operands their names; one in brackets is optional.
 * @throws UsageError whose message shows no value: it may be a password.
 */
function readArguments(
  call: string,
  args: readonly string[],
  options: Command['OPTIONS'],
  operands: readonly string[] = [],
): Arguments {
  const known = { ...options, help: { type: 'boolean', short: 'h' } } as const;
  let read: { values: Arguments['options']; positionals: string[] };
  try {
    read = parseArgs({ args: [...args], options: known, allowPositionals: true });
  } catch (error) {
    const sentence = (error as Error).message.replace(/\.? To specify a positional .*/s, '');
    throw new UsageError(`${sentence.replace(/\.?$/, '.')} See ${call} --help.`);
  }
  const { values, positionals } = read;
  const [given, most] = [positionals.length, operands.length];
  const least = operands.filter((name) => !name.startsWith('[')).length;
  if (!values.help && (given < least || given > most)) {
    const names = operands.join(' and ') || 'no arguments';
    throw new UsageError(`${call} takes ${names}, but got ${given || 'none'}. See ${call} --help.`);
  }
  return { options: values, operands: positionals };
}

/** A name and its meaning, as lines of a help text. @param meaning in Markdown. */
function helpEntry(name: string, meaning: string): string {
  const lines = [''];
  for (const word of meaning.replaceAll('`', '').split(' ')) {
    const longer = `${lines.at(-1)} ${word}`;
    if (longer.length > MEANING_WIDTH) lines.push(` ${word}`);
    else lines[lines.length - 1] = longer;
  }
  return lines.map((line, index) => `  ${(index === 0 ? name : '').padEnd(NAME_WIDTH)}${line}\n`).join('');
}
