// Owns: stores with books, and running commands on them: to their end, or reading what is written to the standard input.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import type { Book } from '../../conformance/service.ts';
import type { BulkStore } from '../../src/stores/bulk.ts';
import type { LoadRules } from '../../src/stores/load.ts';
import { fill } from './books.ts';
import { runCommand } from './command.ts';
import { SQLITE, temporaryFolder } from './service.ts';

export function folderWith(files: Readonly<Record<string, string | Uint8Array>>): string {
  const folder = temporaryFolder();
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return folder;
}

/** A new store with these books. */
export async function storeWith(books: readonly Book[], freshUrl = SQLITE.freshUrl): Promise<string> {
  const url = await freshUrl();
  await fill(url, books);
  return url;
}

/** CSV of so many rows, which are all new. */
export function manyRows(count: number): string {
  const rows = Array.from(
    { length: count },
    (_, at) => `"A book of number ${at}",somebody,${(at % 1900) + 101}\n`,
  );
  return `title,author,year\n${rows.join('')}`;
}

/** Runs a command, whose words have one blank between them. */
export function command(words: string, DB_URL?: string, folder?: string) {
  return runCommand(words.split(' '), DB_URL === undefined ? {} : { DB_URL }, { folder });
}

/** Runs an import; checks the store that its output names, and removes it from the output. */
export async function importing(url: string, folder: string, words: string) {
  const ended = await command(`import ${words}`, url, folder);
  const { host, pathname } = new URL(url);
  const store = url.startsWith('sqlite:') ? url : `postgres://${host}${pathname}`;
  const stderr = ended.stderr.replace(/; into (.+)$/m, (_, named: string) => {
    assert.equal(named, store);
    return '';
  });
  return { ...ended, stderr };
}

/** Of files with all fields. */
export const RULES: LoadRules = {
  fields: ['title', 'author', 'year'],
  ...{ skipsEqual: true, skipsDoubtful: false, onConflict: 'refuse', hasHistory: true },
};

/** Imports rows into a store, those that are new, as a file of the name and the content `fingerprint`. */
export async function importRows(
  store: BulkStore,
  rows: readonly Omit<Book, 'id'>[],
  {
    skipsEqual = true,
    fingerprint = 'one',
    signal = new AbortController().signal,
    onStored = (_: number, __: number) => {},
  } = {},
): Promise<void> {
  const load = await store.load({ ...RULES, skipsEqual });
  try {
    await load.add(
      rows.map((row, at) => {
        return { ...row, line: at + 2, id: undefined, tag: '', original: undefined, doubt: undefined };
      }),
    );
    await load.compare(signal);
    await load.store(
      { name: 'rows', fingerprint, owner: randomUUID(), number: undefined, report: async () => null },
      signal,
      onStored,
    );
  } finally {
    await load.close();
  }
}

/** Starts an import of what is written to its standard input, with all rows as new books. */
export function startImport(url: string) {
  const [args, stdin] = [['import', '-', '--on-duplicate', 'add'], new PassThrough()];
  return { stdin, ended: runCommand(args, { DB_URL: url }, { stdin }) };
}
