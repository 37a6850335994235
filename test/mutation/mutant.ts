// Owns: what a mutant is, and how the lists beside this file are written. A mutant is the service with one protection
// taken out, one limit shifted or two answers swapped; the test that it names must fail.

import { stripTypeScriptTypes } from 'node:module';

export type StoreName = 'SQLite' | 'PostgreSQL';

export interface Mutant {
  /** What the service then does wrong, such as `a body may be longer than BODY_LIMIT`. */
  readonly name: string;
  /** The file that is changed, such as `src/http/server.ts`. */
  readonly file: string;
  /** Occurs exactly once in that file. */
  readonly from: string;
  readonly to: string;
  /** What must fail: the tests of this file whose full names match, on this store. */
  readonly test: { readonly file: string; readonly name: string; readonly store: StoreName };
}

/** A list of mutants, two lines each: `mutant` names it and its test, `change` says what is changed. */
export class Mutants {
  readonly all: Mutant[] = [];
  #file = '';
  #named: Pick<Mutant, 'name' | 'test'> | undefined;

  /** The file that the next mutants change. */
  in(file: string): this {
    this.#file = file;
    return this;
  }

  /** @param store by default PostgreSQL if the changed file is part of that store, else SQLite. */
  mutant(name: string, testFile: string, testName: string, store?: StoreName): this {
    const ofFile = this.#file.startsWith('src/stores/postgres/') ? 'PostgreSQL' : 'SQLite';
    this.#named = { name, test: { file: testFile, name: testName, store: store ?? ofFile } };
    return this;
  }

  change(from: string, to: string): this {
    if (this.#named === undefined) throw new Error(`A change of ${this.#file} has no name.`);
    this.all.push({ ...this.#named, file: this.#file, from, to });
    this.#named = undefined;
    return this;
  }
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
