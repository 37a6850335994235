// Owns: the value of an environment variable, or of the file that it names, and the mistakes in values and names that an
// operator can correct (rule 25).
// Does not: know the settings; config.ts has the table of them.

import { readFileSync, statSync } from 'node:fs';
import { reasonOf } from './error-words.ts';
import { assertWrittenOut } from './final-path.ts';
import { OperatorError } from './operator-error.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Keys, of which only the bytes matter: `openssl rand -base64 64` prints one in two lines. */
const MAY_HAVE_LINES = ['SECRET_TOKEN', 'SECRET_TOKEN_PREVIOUS'];

const CHARACTERS: Readonly<Record<string, string>> = {
  '\t': 'a tab',
  '\n': 'a line break',
  '\r': 'a carriage return',
  ' ': 'a blank',
};

/** What an operator has set. */
export class Given {
  readonly #env: Environment;
  /** The values of files that have been read: a pipe can be read once. */
  readonly #read = new Map<string, string>();

  constructor(env: Environment) {
    this.#env = env;
  }

  /**
   * The value of a variable.
   * @throws OperatorError if it is invalid.
   */
  text(name: string): string | undefined {
    const text = this.#env[name];
    if (text === '') throw new OperatorError(`${name} is set but empty: give it a value, or leave it out.`);
    return text === undefined ? undefined : plain(text, name, name);
  }

  /**
   * The value of a variable, or of the file that `NAME_FILE` names, never of both.
   * @throws OperatorError if it is invalid.
   */
  secret(name: string): string | undefined {
    const source = `${name}_FILE`;
    const [text, path] = [this.text(name), this.text(source)];
    if (path === undefined) return text;
    if (text !== undefined) throw new OperatorError(`${name} and ${source} are both set: keep one.`);
    const value = this.#read.get(name) ?? plain(readSecret(path, source), name, source);
    this.#read.set(name, value);
    return value;
  }
}

/** @returns the content of the file without its last line end. */
function readSecret(path: string, source: string): string {
  assertWrittenOut(path, source);
  let content: string;
  try {
    if (statSync(path).isCharacterDevice()) throw new Error('it is a device'); // some have no end
    content = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readFileSync(path));
  } catch (error) {
    const reason = error instanceof TypeError ? 'it is not UTF-8 text' : reasonOf(error);
    throw new OperatorError(`${source} cannot be read: ${reason}.`);
  }
  const value = content.replace(/\r?\n$/, '');
  if (value === '') throw new OperatorError(`${source} names an empty file: put the value into it.`);
  return value;
}

/**
 * Refuses what programs leave of an env-file's line in a value.
 * @param source the variable that the operator can correct.
 * @returns the value.
 */
function plain(value: string, name: string, source: string): string {
  if (/^\p{Quotation_Mark}.*\p{Quotation_Mark}$/su.test(value)) {
    throw new OperatorError(
      `${source} has quotation marks around its value, which would be part of it: remove them.`,
    );
  }
  const lines = MAY_HAVE_LINES.includes(name) ? value.replaceAll(/\r?\n(?=.)/gs, '') : value;
  if (value.startsWith(`${name}=`)) {
    throw new OperatorError(`${source} has the value ${name}=…: leave out the name.`);
  }
  const position = lines.search(/^\s|[[\p{Cc}\p{Cf}]--[\u200c\u200d]]|\s$/v); // joiners are parts of words
  if (position === -1) return value;
  const found = lines.charAt(position);
  const end = position === lines.length - 1 ? 'at the end of' : 'in';
  const place = position === 0 ? 'at the beginning of' : end;
  const code = found.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0');
  throw new OperatorError(
    `${source} has ${CHARACTERS[found] ?? 'the character'} (U+${code}) ${place} its value: remove it.`,
  );
}

/** Names that other programs give to one of our variables. */
const NAMES_ELSEWHERE = { DATABASE_URL: 'DB_URL', DB_URI: 'DB_URL' } as const;

/** Sentences about variables that are set for the service, and that nothing reads. */
export function misnamed(
  env: Environment,
  settings: readonly { readonly name: string; readonly secret?: unknown }[],
): string[] {
  const files = settings.filter(({ name, secret }) => !secret && env[`${name}_FILE`] !== undefined);
  const others = Object.entries(NAMES_ELSEWHERE).filter(([name, meant]) => env[name] && !env[meant]);
  return [
    ...files.map(({ name }) => `${name}_FILE is ignored: only a secret may come from a file. Set ${name}.`),
    ...others.map(([name, meant]) => `${name} is ignored: set ${meant} instead.`),
  ];
}
