// Owns: what the project's own code finds in the files that a power failure has left: it opens them as a service or a command
// does at its start, and continues the index.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import type { Book, BookFields } from '../../../src/books/book.ts';
import { entryOf } from '../../../src/stores/book-index.ts';
import { SqliteIndex } from '../../../src/stores/sqlite/book-index.ts';
import { openSqliteBulk } from '../../../src/stores/sqlite/bulk.ts';
import { openCatalogue, openForIndexing, openForWriting } from '../../../src/stores/sqlite/structure.ts';
import { TIMES } from '../../../src/times.ts';
import { importRows } from '../../support/importing.ts';
import { type Found, fieldsOf } from './books.ts';

/** Milliseconds of one transaction that indexes. */
const STEP_TIME = 1000;

/** Starts on a store as the service does. Without a file there, it creates one. */
export async function examineStore(file: string): Promise<Found> {
  const writer = await openForWriting(file, TIMES.sqlite);
  try {
    const indexing = openForIndexing(file);
    try {
      const index = new SqliteIndex(indexing, () => false);
      index.prepare(TIMES.sqlite);
      while (!index.step(STEP_TIME));
      assertIndexed(indexing);
    } finally {
      indexing.close();
    }
    const { seq = 0 } = writer.prepare("select seq from sqlite_sequence where name = 'books'").get() ?? {};
    const keys = writer.prepare('select key, ids from book_requests').all();
    return {
      books: booksIn(writer),
      keys: Object.fromEntries(keys.map(({ key, ids }) => [key, JSON.parse(String(ids))])),
      lastId: Number(seq),
    };
  } finally {
    writer.close();
  }
}

/** Reads a store, a backup or a copy as a command does that changes nothing. */
export function examineFile(file: string): Found['books'] | null {
  if (!existsSync(file)) return null;
  const db = openCatalogue(file, TIMES.sqlite);
  assert.ok(db, 'there is a file without a catalogue');
  try {
    return booksIn(db);
  } finally {
    db.close();
  }
}

/** Runs an import again whose rows are these. */
export async function importAgain(file: string, rows: readonly BookFields[]): Promise<Found['books']> {
  const store = await openSqliteBulk(file, 'write', TIMES.sqlite);
  assert.ok(store);
  await importRows(store, rows);
  await store.close();
  return examineFile(file) ?? [];
}

/** Every book must be of one write, and the file sound. */
function booksIn(db: DatabaseSync): Found['books'] {
  assert.equal(db.prepare('pragma integrity_check').get()?.integrity_check, 'ok');
  return db
    .prepare('select id, title, author, year from books order by id')
    .all()
    .map(({ id, title, author, year }) => {
      const [, book] = /^author (\d+)$/.exec(String(author)) ?? [];
      const fields = fieldsOf(Number(book), Number(year));
      assert.ok(fields.title === title && fields.author === author, `book ${id} is not of one write`);
      return [Number(id), Number(book), Number(year)];
    });
}

/** The index must be that of the books. */
function assertIndexed(db: DatabaseSync): void {
  db.exec(
    "create virtual table if not exists temp.words using fts5vocab(main, 'book_index_words', 'instance')",
  );
  const words = Map.groupBy(
    rowsOf<[number, string, string]>(db, 'select doc, col, term from temp.words'),
    ([id]) => id,
  );
  const rows = rowsOf<[number]>(db, 'select id, title_key, author_key, year from book_index order by id');
  const found = rows.map(
    (row) => `${row} ${(words.get(row[0]) ?? []).map(([, col, term]) => `${col}:${term}`).sort()}`,
  );
  const books = db.prepare('select id, title, author, year from books order by id').all();
  const wanted = (books as unknown as Book[]).map(indexOf);
  const wrong = wanted.findIndex((row, place) => row !== found[place]);
  assert.equal(found[wrong], wanted[wrong], 'the index of a book');
  assert.equal(found.length, wanted.length, 'the index has books that are gone');
  assert.equal(words.size, wanted.length, 'the index has words of books that are gone');
}

function rowsOf<Row>(db: DatabaseSync, sql: string): Row[] {
  const statement = db.prepare(sql);
  statement.setReturnArrays(true);
  return statement.all() as unknown as Row[];
}

/** By the id, the author and the year, from which the title follows. */
const indexes = new Map<string, string>();

/** What the index must have of a book. */
function indexOf(book: Book): string {
  const name = `${book.id} ${book.author} ${book.year}`;
  const known = indexes.get(name);
  if (known !== undefined) return known;
  const { id, titleKey, authorKey, year, titleWords, authorWords } = entryOf(book);
  const words = [
    ...titleWords.split(' ').map((word) => `title:${word}`),
    ...authorWords.split(' ').map((word) => `author:${word}`),
  ];
  const row = `${[id, titleKey, authorKey, year]} ${[...new Set(words)].sort()}`;
  indexes.set(name, row);
  return row;
}
