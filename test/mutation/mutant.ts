// Owns: what a mutant is, and reading them from mutants.tsv. A mutant is the service with one protection taken out, one
// limit shifted or two answers swapped; the test that it names must fail.

import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { pathTo } from '../support/repository.ts';

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

const TABLE = 'test/mutation/mutants.tsv';

/** Such as `stores/undo /a regular expression/ on SQLite`, for tests in test/stores/undo.test.ts. */
const TEST = /^(?<path>\S+) \/(?<pattern>.+)\/(?: on (?<store>SQLite|PostgreSQL))?$/;

/**
 * The rows of the table, which are sorted by file. Tabs separate the cells, `↵` is a line break, and nothing is escaped.
 * The test comes last, since editors would remove white space at the end of a row. Its store is by default PostgreSQL if
 * the changed file is part of that store, else SQLite.
 */
export const MUTANTS: readonly Mutant[] = readFileSync(pathTo(TABLE), 'utf8')
  .trimEnd()
  .split('\n')
  .slice(1)
  .map(mutantIn);

function mutantIn(row: string, index: number): Mutant {
  const cells = row.split('\t').map((cell) => cell.replaceAll('↵', '\n'));
  const [file, name, from, to = '', test = ''] = cells;
  const { path, pattern, store } = TEST.exec(test)?.groups ?? {};
  if (cells.length !== 5 || !file || !name || !from || !pattern)
    throw new Error(`${lineOf(index)}: write file, what, from, to and FILE /PATTERN/, tabs between them`);
  const ofFile = file.startsWith('src/stores/postgres/') ? 'PostgreSQL' : 'SQLite';
  const onStore = (store as StoreName | undefined) ?? ofFile;
  return { name, test: { file: `test/${path}.test.ts`, name: pattern, store: onStore }, file, from, to };
}

/** Where the table has a mutant. */
export function lineOf(index: number): string {
  return `${TABLE}:${index + 2}`;
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
