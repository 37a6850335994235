// Owns: which rows are books that are there already, in the store or before in the same file: those with the same
// title, author and year, exactly. In fixed memory, however many there are: a filter tells what is certainly new;
// what may be there is put aside, in a temporary file, until all books of the store are read once more.

import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { type Book, type BookFields, isSameBook } from '../books/book.ts';
import { Refusal } from '../refusal.ts';
import { BATCH_CHARACTERS } from '../stores/bulk.ts';
import { BookFilter, BookHash } from './book-filter.ts';

/** Bytes. With ten million books in it, one in some hundred new ones is put aside in vain. */
const FILTER_SIZE = 16 * 1024 * 1024;

/** Bytes of the filter of what is put aside, which spares most books of the store a search there. */
const ASIDE_FILTER_SIZE = 4 * 1024 * 1024;

/** Books of the store that may come before a row that is awaited. */
const MOST_MISSES = 1000;

/** Rows of one statement: most of what a statement costs is calling it. */
const STATEMENT_ROWS = 50;

/** Rows of one batch of `left`, which will be durable together. */
const BATCH_ROWS = 2000;

export class Duplicates {
  readonly #hash = new BookHash();
  readonly #known: BookFilter;
  readonly #aside = new BookFilter(ASIDE_FILTER_SIZE);
  readonly #scratch: Scratch;

  /** @param filterSize bytes. */
  constructor(filterSize = FILTER_SIZE) {
    this.#known = new BookFilter(filterSize);
    this.#scratch = new Scratch();
  }

  /** Takes note of books that are in the store. */
  note(books: readonly BookFields[]): void {
    for (const book of books) {
      this.#hash.of(book);
      this.#known.add(this.#hash);
    }
  }

  /**
   * Puts aside what may be in the store, or among the rows before.
   * @returns the rest, which is certainly new, in order.
   */
  takeNew<Row extends BookFields>(rows: readonly Row[]): Row[] {
    return rows.filter((row) => {
      this.#hash.of(row);
      if (this.#known.add(this.#hash)) return true;
      this.#putAside(row);
      return false;
    });
  }

  /** Puts all of it aside. */
  putAside(rows: readonly BookFields[]): void {
    for (const row of rows) {
      this.#hash.of(row);
      this.#putAside(row);
    }
  }

  #putAside(row: BookFields): void {
    this.#aside.add(this.#hash);
    this.#scratch.put(this.#hash.key, row);
  }

  /**
   * Drops of what is put aside all that is equal to another row there, or to a book of the store, read once more.
   * Nothing is put aside any more.
   */
  async drop(known: AsyncIterable<readonly BookFields[]>): Promise<void> {
    const dropping = this.#scratch.complete();
    // Where this file was imported before, the store has its books in the same order: a comparison with the row that
    // comes next spares most of them a search.
    const rows = this.#scratch.rows();
    let row = rows.next().value;
    let misses = 0;
    for await (const books of known) {
      for (const book of books) {
        if (row !== undefined && isSameBook(row, book)) {
          this.#scratch.drop(row.id);
          row = rows.next().value;
          misses = 0;
          continue;
        }
        this.#hash.of(book);
        if (this.#aside.has(this.#hash)) dropping.add(this.#hash.key, book);
        misses += 1;
        if (misses < MOST_MISSES) continue;
        row = rows.next().value;
        misses = 0;
      }
    }
    dropping.flush();
  }

  /** What is left aside, in the order of the rows, in batches. */
  left(): Iterable<readonly BookFields[]> {
    return this.#scratch.left();
  }

  /** How many rows are aside. */
  get asideCount(): number {
    return this.#scratch.count;
  }

  close(): void {
    this.#scratch.close();
  }
}

/**
 * Books of a file whose ids are kept, when nothing is stored: the ids that the rows before have taken. In a
 * temporary file.
 */
export class TakenIds {
  readonly #db = openScratch(`
    create table taken (id integer primary key, title text not null, author text not null, year integer not null)`);
  readonly #find = this.#db.prepare('select id, title, author, year from taken where id = ?');
  readonly #put = this.#db.prepare('insert into taken values (?, ?, ?, ?)');

  find(ids: readonly number[]): Book[] {
    return ids.flatMap((id) => (this.#find.get(id) as unknown as Book | undefined) ?? []);
  }

  put(books: readonly Book[]): void {
    inTemporaryFile(() => {
      for (const { id, title, author, year } of books) this.#put.run(id, title, author, year);
    });
  }

  close(): void {
    this.#db.close();
  }
}

/** Rows put aside: found by a hash, compared as they are. In memory there is one bit for each. */
class Scratch {
  readonly #db = openScratch(`
    create table aside (
      id integer primary key, key integer not null,
      title text not null, author text not null, year integer not null
    )`);
  readonly #putting = new ManyRows(
    this.#db,
    (rows) => `insert into aside (key, title, author, year) ${rows}`,
    () => {},
  );
  /** Whether a row has been dropped, by its id. */
  #dropped = new Uint8Array();
  #putCount = 0;
  #droppedCount = 0;

  /** How many rows are not dropped. */
  get count(): number {
    return this.#putCount - this.#droppedCount;
  }

  put(key: number, row: BookFields): void {
    this.#putCount += 1;
    this.#putting.add(key, row);
  }

  /** @returns what drops rows that are equal to those it is given; to be flushed in the end. */
  complete(): ManyRows {
    this.#putting.flush();
    this.#dropped = new Uint8Array(Math.floor(this.#putCount / 8) + 1);
    inTemporaryFile(() => this.#db.exec('create index by_key on aside (key)'));
    const doubles = this.#db.prepare(`
      select id from aside as later
      where key in (select key from aside group by key having count(*) > 1) and exists (
        select 1 from aside as first
        where first.key = later.key and first.id < later.id and first.title = later.title
          and first.author = later.author and first.year = later.year
      )`);
    doubles.setReturnArrays(true);
    for (const [id] of doubles.iterate() as Iterable<unknown> as Iterable<[number]>) this.drop(id);
    return new ManyRows(
      this.#db,
      (rows) => `
        select aside.id from (${rows}) as known cross join aside
        on aside.key = known.column1 and aside.title = known.column2
          and aside.author = known.column3 and aside.year = known.column4`,
      (id) => this.drop(id),
    );
  }

  /** What is not dropped, nor will be until its turn comes, in order. */
  *rows(): Generator<Book, undefined, void> {
    const all = this.#db.prepare('select id, title, author, year from aside order by id');
    all.setReturnArrays(true);
    for (const row of all.iterate() as Iterable<unknown>) {
      const [id, title, author, year] = row as [number, string, string, number];
      if (!this.#isDropped(id)) yield { id, title, author, year };
    }
  }

  *left(): Generator<readonly BookFields[], void, void> {
    const rows = this.#db.prepare(
      'select title, author, year from aside where id between ? and ? order by id',
    );
    let batch: BookFields[] = [];
    let characters = 0;
    for (const [first, last] of this.#remaining()) {
      for (const row of rows.iterate(first, last) as Iterable<unknown> as Iterable<BookFields>) {
        batch.push(row);
        characters += row.title.length + row.author.length;
        if (batch.length < BATCH_ROWS && characters < BATCH_CHARACTERS) continue;
        yield batch;
        batch = [];
        characters = 0;
      }
    }
    if (batch.length > 0) yield batch;
  }

  /** Ids of rows in a row of which none has been dropped. */
  *#remaining(): Generator<readonly [first: number, last: number], void, void> {
    let first = 1;
    for (let id = 1; id <= this.#putCount; id += 1) {
      if (!this.#isDropped(id)) continue;
      if (first < id) yield [first, id - 1];
      first = id + 1;
    }
    if (first <= this.#putCount) yield [first, this.#putCount];
  }

  close(): void {
    this.#db.close();
  }

  #isDropped(id: number): boolean {
    return ((this.#dropped[id >>> 3] as number) & (1 << (id & 7))) !== 0;
  }

  drop(id: number): void {
    if (this.#isDropped(id)) return;
    (this.#dropped[id >>> 3] as number) |= 1 << (id & 7);
    this.#droppedCount += 1;
  }
}

/** A statement that takes many rows at once. */
class ManyRows {
  readonly #prepare;
  readonly #onId;
  readonly #whole;
  #values: (string | number)[] = [];

  /** @param onId is told each id that the statement returns. */
  constructor(db: DatabaseSync, sql: (rows: string) => string, onId: (id: number) => void) {
    this.#prepare = (count: number) => {
      const statement = db.prepare(sql(`values ${Array(count).fill('(?, ?, ?, ?)')}`));
      statement.setReturnArrays(true);
      return statement;
    };
    this.#onId = onId;
    this.#whole = this.#prepare(STATEMENT_ROWS);
  }

  add(key: number, { title, author, year }: BookFields): void {
    this.#values.push(key, title, author, year);
    if (this.#values.length === STATEMENT_ROWS * 4) this.#run(this.#whole);
  }

  /** Whatever was given is done. */
  flush(): void {
    if (this.#values.length > 0) this.#run(this.#prepare(this.#values.length / 4));
  }

  #run(statement: StatementSync): void {
    const ids = inTemporaryFile(() => statement.all(...this.#values)) as unknown as [number][];
    for (const [id] of ids) this.#onId(id);
    this.#values = [];
  }
}

/** A database that SQLite removes when it is closed, or the process dies. In memory as long as it is small. */
function openScratch(structure: string): DatabaseSync {
  const db = new DatabaseSync('');
  db.exec(
    `pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -4096; ${structure}; begin`,
  );
  return db;
}

/** @throws Refusal that does not put it down to the store. */
function inTemporaryFile<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    throw new Refusal(
      `The temporary file in which rows are compared cannot be written: ${(error as Error).message}. ` +
        'SQLITE_TMPDIR names another folder for it.',
    );
  }
}
