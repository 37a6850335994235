// Owns: what a mutant is. A mutant is the service with one protection taken out, one limit shifted or two answers
// swapped; the part of the suite that it names must fail.

import { stripTypeScriptTypes } from 'node:module';

export interface Mutant {
  /** What the service then does wrong, such as `a body may be longer than BODY_LIMIT`. */
  readonly name: string;
  /** The file that is changed, such as `src/http/server.ts`. */
  readonly file: string;
  /** Occurs exactly once in that file. */
  readonly from: string;
  readonly to: string;
  /** The part of the suite that must fail: a file, and the tests of it whose full names match. */
  readonly test: {
    readonly file: string;
    readonly name: string;
    /** The only store to run the tests on; both without it. */
    readonly store?: 'SQLite' | 'PostgreSQL';
  };
}

/**
 * The text of the mutant's file with the mutant in it.
 * @param text of the file as it is.
 * @throws if the mutant no longer fits the code, or if it is not a valid program, which any test would notice.
 */
export function applied({ name, file, from, to }: Mutant, text: string): string {
  const places = text.split(from).length - 1;
  if (places !== 1)
    throw new Error(`"${name}" no longer fits ${file}: its text occurs ${places} times there`);
  const changed = text.replace(from, () => to);
  stripTypeScriptTypes(changed); // throws a SyntaxError
  return changed;
}
