// Owns: the commands during which the power fails.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { asCsv } from '../../../src/books/line.ts';
import { runCommand } from '../../support/command.ts';
import { waitUntil } from '../../support/wait.ts';
import { booksFrom, type Found, type History, Scribe } from './books.ts';
import { examineFile, examineStore, importAgain } from './examine.ts';
import type { Recording } from './recording.ts';
import { assertWritten, find, STORE, storeBefore, type Work, WRITTEN, type Written } from './work.ts';

const TARGET = 'out/target';

interface Imported extends Written {
  readonly first: number;
  readonly count: number;
}

/** Rows that are read together. */
const BATCH = 120;

/** What another import leaves, by what it finds. */
const againOf = new Map<string, Found['books']>();

export const imported: Work = {
  async record(recording, variant) {
    const history = await storeBefore(recording, STORE, 20);
    recording.begin();
    const [first, count] = [1001, 2 * BATCH + 10];
    const options =
      [
        ['--ids', 'new'],
        ['--ids', 'keep'],
        ['--ids', 'new', '--on-duplicate', 'add'],
      ][variant % 3] ?? [];
    await recording.run(['import', '-', '--format', 'csv', ...options], STORE, async (stdin, syncs) => {
      stdin.write('id,title,author,year\n');
      if (variant % 3 === 0) stdin.end(rowsFrom(first, count)); // compared as a whole
      for (let row = 0; row < count && !stdin.writableEnded; row += BATCH) {
        const before = syncs();
        stdin.write(rowsFrom(first + row, Math.min(BATCH, count - row)));
        if (row + BATCH <= count) await waitUntil(() => syncs() > before);
      }
      stdin.end();
    });
    return { history, first, count } satisfies Imported;
  },
  async examine(folder, notes) {
    const { first, count } = notes as Imported;
    const found = examineStore(join(folder, STORE));
    const text = JSON.stringify(found);
    const again = againOf.get(text) ?? (await importAgain(join(folder, STORE), booksFrom(first, count)));
    againOf.set(text, again);
    return { found, again };
  },
  judge(result, said, notes) {
    const { found, again } = result as { found: Found; again: Found['books'] };
    const { history, first, count } = notes as Imported;
    const isRow = ([, book]: Found['books'][number]) => book >= first;
    assertWritten({ ...found, books: found.books.filter((book) => !isRow(book)) }, said, { history });
    const rows = found.books.filter(isRow).map(([, book]) => book);
    assert.deepEqual(rows, numbersFrom(first, rows.length), 'rows are missing before the last one');
    assert.ok(
      rows.length === count || rows.length % BATCH === 0,
      `${rows.length} rows are no whole transactions`,
    );
    if (said.some((text) => / rows read: /.test(text))) assert.equal(rows.length, count, 'rows are lost');
    const repeated = again.filter(isRow).map(([, book]) => book);
    assert.deepEqual(
      repeated.toSorted((one, other) => one - other),
      numbersFrom(first, count),
      'after another import',
    );
  },
  booksOf: (result) => (result as { found: Found }).found.books,
};

function rowsFrom(first: number, count: number): string {
  return booksFrom(first, count)
    .map((fields) => asCsv({ id: fields.year, ...fields }))
    .join('');
}

function numbersFrom(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, number) => first + number);
}

export const indexed: Work = {
  async record(recording, variant) {
    const history = await storeBefore(recording, STORE, 80);
    recording.begin();
    if (variant % 2 === 0) {
      for (const option of ['--rebuild', '--remove']) await recording.run(['index', option], STORE);
      await recording.run(['index'], STORE);
      return { history } satisfies Written;
    }
    // By the service, while others write.
    const scribe = new Scribe('session');
    await recording.run(['index', '--remove'], STORE);
    await recording.serve(STORE, async ({ client }) => {
      for (let book = 300; (await find(client)) < 0 || book < 310; book += 1) {
        const id = await scribe.create(client, book);
        await scribe.change(client, id, book, 1000 + book);
      }
    });
    return { history: [...history, ...scribe.history] } satisfies Written;
  },
  ...WRITTEN,
};

/** The contents of a file or a store, one after the other; undefined where there is none. */
interface Replaced {
  readonly source: Found['books'];
  readonly contents: readonly unknown[];
  /** A text that a process says when it has put the next content in place. */
  readonly done: string;
}

interface Pair {
  readonly source: Found['books'];
  readonly target: unknown;
}

/** The books of stores that are only read, by the digests of their files. */
const known = new Map<string, Found['books']>();

/** The books of such a store, which has few states. */
function unchanged(file: string): Found['books'] {
  const hash = createHash('sha1');
  for (const path of [file, `${file}-wal`])
    hash.update(existsSync(path) ? readFileSync(path) : '').update(path);
  const digest = hash.digest('base64');
  const books = known.get(digest) ?? examineStore(file).books;
  known.set(digest, books);
  return books;
}

/** Work that replaces a target as a whole: it has one of two contents in between, and the last one that was said. */
function replacing(
  record: (recording: Recording, variant: number) => Promise<Omit<Replaced, 'done'>>,
  done: string,
  read: (file: string) => unknown,
): Work {
  return {
    record: async (recording, variant) => ({ ...(await record(recording, variant)), done }),
    examine: (folder): Pair => {
      const file = join(folder, STORE);
      return { target: read(join(folder, TARGET)), source: unchanged(file) };
    },
    judge(found, said, notes) {
      const { source, target } = found as Pair;
      const { source: expected, contents, done: text } = notes as Replaced;
      assert.deepEqual(source, expected, 'the source');
      const times = said.filter((line) => line.includes(text)).length;
      const possible = contents.slice(times, times + 2).map((content) => JSON.stringify(content ?? null));
      assert.ok(
        possible.includes(JSON.stringify(target ?? null)),
        `the target is neither the old nor the new one`,
      );
    },
    booksOf: (found) => (found as Pair).source,
  };
}

export const backedUp = replacing(
  async (recording) => {
    const history = await storeBefore(recording, STORE, 40);
    const old = await targetBefore(recording);
    recording.begin();
    await recording.run(['backup', join(recording.disk, TARGET), '--overwrite'], STORE);
    await recording.run(['backup', join(recording.disk, TARGET), '--overwrite'], STORE);
    const source = foundOf(history);
    return { source, contents: [old, source, source] };
  },
  'backed up to',
  examineFile,
);

export const backedUpAnew = replacing(
  async (recording) => {
    const history = await storeBefore(recording, STORE, 40);
    mkdirSync(join(recording.disk, 'out'));
    recording.begin();
    await recording.run(['backup', join(recording.disk, TARGET)], STORE);
    return { source: foundOf(history), contents: [null, foundOf(history)] };
  },
  'backed up to',
  examineFile,
);

export const copied = replacing(
  async (recording, variant) => {
    const history = await storeBefore(recording, STORE, 40);
    const old = await targetBefore(recording, variant);
    recording.begin();
    const urls = [recording.urlOf(STORE), recording.urlOf(TARGET)];
    await recording.run(['copy', ...urls, '--overwrite'], STORE);
    return { source: foundOf(history), contents: [old, foundOf(history)] };
  },
  'books copied to',
  (file) => examineStore(file).books,
);

export const exported = replacing(
  async (recording, variant) => {
    const history = await storeBefore(recording, STORE, 600);
    const file = join(recording.disk, TARGET);
    const contents: (string | null)[] = [variant % 2 === 0 ? null : 'old\n'];
    mkdirSync(dirname(file));
    if (contents[0] != null) writeFileSync(file, contents[0]);
    recording.begin();
    for (const format of ['csv', 'json', 'jsonl']) {
      await recording.run(['export', file, '--format', format, '--overwrite'], STORE);
      contents.push(readFileSync(file, 'utf8'));
    }
    return { source: foundOf(history), contents };
  },
  'books exported to',
  (file) => (existsSync(file) ? readFileSync(file, 'utf8') : null),
);

export const restored = replacing(
  async (recording, variant) => {
    const backup = join(recording.disk, 'out/backup.db');
    const history = await storeBefore(recording, STORE, 40);
    const old = await targetBefore(recording, variant);
    const { code, stderr } = await runCommand(['backup', backup], { DB_URL: recording.urlOf(STORE) });
    assert.equal(code, 0, stderr);
    recording.begin();
    await recording.run(['restore', backup, '--overwrite'], TARGET);
    return { source: foundOf(history), contents: [old, foundOf(history)] };
  },
  'books restored to',
  (file) => examineStore(file).books,
);

/** Makes a catalogue with a log, which is replaced, or in every second variant only its folder. */
async function targetBefore(recording: Recording, variant = 0): Promise<Found['books']> {
  if (variant % 2 === 0) return foundOf(await storeBefore(recording, TARGET, 10, 500));
  mkdirSync(dirname(join(recording.disk, TARGET)));
  return [];
}

function foundOf(history: History): Found['books'] {
  return history.flatMap(({ books, ids = [] }) =>
    books.map(([book, version], place) => [ids[place] ?? 0, book, version ?? 0] as const),
  );
}
