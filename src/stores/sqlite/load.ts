// Owns: the rows of a file in a SQLite catalogue: they are put into temporary tables, compared with its books, and stored in steps,
// between which other processes write. Twin of `postgres/load.ts`.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { setTimeout as pause, setImmediate } from 'node:timers/promises';
import { bookWith, FIELD_NAMES } from '../../books/book.ts';
import type { LogWriter } from '../../books/change-log.ts';
import { tagOf } from '../../books/condition.ts';
import { type KeptImport, NoLongerOpen } from '../../books/kept-imports.ts';
import { OperatorError } from '../../operator-error.ts';
import type { Times } from '../../times.ts';
import { assertAllTaken } from '../bulk.ts';
import { FIELDS, ID_AND_FIELDS } from '../columns.ts';
import type { Comparison, ImportWork, Load, LoadRow, LoadRules, Made } from '../load.ts';
import { CHANGED, CHANGING, HERE, IS_NEW, KNOWN, MAY_BE_SINCE, REPEATED, RowsAside } from '../rows-aside.ts';
import type { BookLog } from './log.ts';
import { LAST_ID } from './log-tables.ts';
import { preparing, queryBy } from './structure.ts';

/** Rows of one statement: most of the cost of a statement is the call. A full batch of a file has 120. */
const STATEMENT_ROWS = 40;

/** Books or rows of one step of a comparison: signals get a turn in between. */
const COMPARED = 20_000;

/** With fewer rows than that, only the books of their years are compared with them. */
const FEW_ROWS = 10_000;

/** Rows that are stored between two looks at the clock. */
const STORED_ROWS = 500;

// No journal: a statement that fails there ends the load.
const TABLES = `
  pragma temp_store = file;
  pragma temp.journal_mode = off;
  pragma temp.cache_size = -4096;
  create temporary table aside (row integer primary key, line, book integer, tag, ${FIELDS}, original, doubt);
  create temporary table known (row integer primary key, ${KNOWN});
  create temporary table since (row integer primary key);
  create temporary table changing (id integer primary key)`;
const DROP = ['aside', 'known', 'since', 'changing', 'years']
  .map((name) => `drop table if exists temp.${name}`)
  .join(';');

const YEARS = 'create temporary table years as select distinct year from aside';

/** Rows without an id that equal an earlier one. */
const FIND_REPEATED = `
  create index temp.aside_by_fields on aside (${FIELDS});
  insert into known (row, what)
    select later.row, ${REPEATED}
    from (select min(row) as first, ${FIELDS} from aside group by ${FIELDS} having count(*) > 1) as several
    cross join aside as later using (${FIELDS})
    where later.row > several.first and later.book is null`;
/** Rows without an id that equal one of the books in a range of ids. */
const findHere = (condition = '') => `
  insert or replace into known (row, what) select aside.row, ${HERE} from books cross join aside using (${FIELDS})
  where aside.book is null and books.id > ? and books.id <= ? ${condition}`;
const NEXT_ID = `select max(id) as value from (select id from books where id > ? and id <= ? order by id limit ${COMPARED})`;

/** The functions that compute the tag of a book, from its id and its fields; and the tags of books, now and before. */
const TAG = 'book_tag';
const tagIn = (id: string, row: string) => `${TAG}(${id}, ${FIELD_NAMES.map((name) => `${row}.${name}`)})`;
const PRESENT_TAG = tagIn('books.id', 'books');
const IN_RANGE = 'aside.row > ? and aside.row <= ?';
const BOOKS_OF_RANGE = `aside cross join books on books.id = aside.book and ${IN_RANGE} and ${IS_NEW}`;
const LOG_OF_RANGE = `aside cross join book_log as log on log.book = aside.book and ${IN_RANGE} and aside.${MAY_BE_SINCE}`;
const HAS_LOG = "select count(*) as value from sqlite_schema where name = 'book_log'";

/** The rows of a range that become books. */
const ofStep = (rows: string) => `from aside where row > ? and row <= ? and ${rows}`;
const store = (rows: string) => `insert into books (${FIELDS}) select ${FIELDS} ${ofStep(rows)} order by row`;
/** With ids below the very high ones of another program, after which SQLite would continue. It takes half as long again. */
const storeBelow = (rows: string) => `
  insert into books (${ID_AND_FIELDS}) select (${LAST_ID}) + row_number() over (order by row), ${FIELDS} ${ofStep(rows)} order by row`;
const IS_BELOW = `
  select max((select coalesce(max(seq), 0) from sqlite_sequence where name = 'books'), (select coalesce(max(id), 0) from books))
    > (${LAST_ID}) as value`;
const storeWithIds = (rows: string) =>
  `insert into books (${ID_AND_FIELDS}) select book, ${FIELDS} ${ofStep(rows)} order by row`;
const COUNT_CHANGES = `select count(*) as value from known where what = ${CHANGED} and row > ? and row <= ?`;

type Done = Pick<KeptImport, 'number' | 'rows' | 'books' | 'state'>;

/** The catalogue that a load stores into. */
export interface LoadTarget {
  readonly db: DatabaseSync;
  readonly bookLog: BookLog;
  readonly logWriter: LogWriter;
  readonly times: Times['sqlite'];
  /** Runs work in a transaction that writes, in its turn with other processes. */
  inTransaction<Result>(work: () => Promise<Result>): Promise<Result>;
  reserveIdsThrough(lastId: number): Promise<void>;
}

export class SqliteLoad extends RowsAside implements Load {
  readonly #target: LoadTarget;
  readonly #isDryRun: boolean;
  readonly #prepare;
  #rows = 0;
  /** How many of them are new, or change a book. */
  #due = 0;
  /** Whether there are new rows with ids, new ones without, and changes. */
  #kinds: readonly boolean[] = [];
  #made: Made = { added: 0, changed: 0 };
  /** Rows up to here were stored before an interruption. */
  #mark = 0;
  /** Whether rows were compared by their fields, and with the books up to which id. */
  #comparesFields = false;
  #comparedTo = 0;

  /** @param isDryRun whether it only compares. */
  constructor(target: LoadTarget, rules: LoadRules, isDryRun: boolean) {
    const prepare = preparing(target.db);
    super(queryBy(prepare), rules);
    this.#target = target;
    this.#isDryRun = isDryRun;
    this.#prepare = prepare;
    target.db.function(TAG, { deterministic: true, varargs: true }, (...values) => tagOf(bookWith(values)));
    inTemporaryFile(() => target.db.exec(`${DROP}; ${TABLES}`));
  }

  async add(rows: readonly LoadRow[]): Promise<void> {
    inTemporaryFile(() => insertRows(this.#prepare, 'aside', COLUMNS, rows));
    this.#rows += rows.length;
  }

  async compare(signal: AbortSignal): Promise<Comparison> {
    const hasHistory = this.rules.hasHistory && this.#number(HAS_LOG) > 0;
    await this.#compareIds(signal, hasHistory);
    if (this.rules.skipsEqual) await this.#compareFields(signal);
    const comparison = await this.counts(hasHistory);
    this.#due = comparison.fresh.count + comparison.changed;
    const has = (condition: string) => this.#number(`select exists (${condition}) as value`) === 1;
    const isNew = `select 1 from aside where ${this.becomeBooks} and book is`;
    this.#kinds = [has(`${isNew} not null`), has(`${isNew} null`), comparison.changed > 0];
    return comparison;
  }

  async store(
    work: ImportWork,
    signal: AbortSignal,
    onStored: (number: number, books: number) => void,
  ): Promise<Made> {
    this.#made = { added: 0, changed: 0 };
    if (this.#due === 0 && work.number === undefined) return this.#made;
    const { inTransaction, logWriter } = this.#target;
    let done = await this.#beginImport(work, signal);
    // A row that is stored equals a book by now, unless equal ones are added.
    [this.#mark, done] = [this.rules.skipsEqual ? 0 : done.rows, { ...done, rows: 0 }];
    try {
      for (let left = this.#due; done.state !== 'stored'; ) {
        signal.throwIfAborted();
        const before = done;
        const { made, ...after } = await inTransaction(() => this.#storeStep(work, before, left));
        [done, this.#made] = [after, made];
        left -= done.books - before.books;
        if (done.books > 0) onStored(done.number, done.books);
      }
    } catch (error) {
      const stop = () => logWriter.imports.keep(done.number, work.owner, { state: 'stopped' });
      await inTransaction(stop).catch(() => {}); // then it counts as stopped when its process was not seen for a while
      throw error;
    }
    return this.#made;
  }

  /** @returns how far the import is: nowhere, or where it was interrupted. */
  async #beginImport(work: ImportWork, signal: AbortSignal): Promise<Done> {
    const { number, fingerprint, owner } = work;
    for (;;) {
      const found = await this.#target.inTransaction(async (): Promise<Done | undefined> => {
        const { imports } = this.#target.logWriter;
        if (number !== undefined) return imports.find(number);
        const other = await imports.unfinished(fingerprint);
        if (other?.state === 'open' && other.idle < this.#target.times.importLost) return undefined; // its process works on it, or has just died
        if (other !== undefined) await imports.take(other.number, owner);
        const begun = other?.number ?? (await imports.begin(fingerprint, owner));
        await imports.keep(begun, owner, { report: await work.report(false), fingerprint });
        return other ?? { number: begun, rows: 0, books: 0, state: 'open' };
      });
      if (found !== undefined) return found;
      await pause(this.#target.times.importPause, undefined, { signal });
    }
  }

  /**
   * Stores the next new rows and changes, as many as time allows.
   * @param left how many there are.
   */
  async #storeStep(work: ImportWork, done: Done, left: number): Promise<Done & { made: Made }> {
    const { logWriter, bookLog, times } = this.#target;
    const { name, owner } = work;
    const { number } = done;
    let rows = done.rows;
    let [added, changed] = [0, 0];
    // Others may have stored equal books since the comparison.
    if (rows === 0 && this.#comparesFields) this.#findHere(this.#comparedTo, Number.MAX_SAFE_INTEGER);
    const [hasIds, hasNew, hasChanges] = this.#kinds;
    if ((await logWriter.resume(number)) === undefined) await logWriter.begin('import', name, number);
    const withNewIds = this.#number(IS_BELOW) === 1 ? storeBelow : store;
    const isDue = `${this.becomeBooks} and (book is not null or row > ${this.#mark})`;
    const inserts = [
      ...(hasIds ? [storeWithIds(`${isDue} and book is not null`)] : []),
      ...(hasNew ? [withNewIds(`${isDue} and book is null`)] : []),
    ].map((sql) => this.#prepare(sql));
    const end = performance.now() + times.bulkTransaction;
    while (added + changed < left && rows < this.#rows && (rows === done.rows || performance.now() < end)) {
      for (const insert of inserts) added += Number(insert.run(rows, rows + STORED_ROWS).changes);
      if (hasChanges) changed += this.#change(rows, rows + STORED_ROWS);
      rows += STORED_ROWS;
    }
    const count = `select count(*) as value ${ofStep(isDue)}`;
    assertAllTaken(added, this.#number(count, done.rows, rows));
    const stored = added + changed;
    bookLog.noteNew();
    await logWriter.end(number, stored);
    const books = done.books + stored;
    const state = stored === left || rows >= this.#rows ? 'stored' : 'open';
    const report = state === 'stored' ? await work.report(true) : undefined;
    const isOurs = await logWriter.imports.keep(number, owner, {
      ...{ rows: Math.max(rows, this.#mark), books, state, report },
    });
    if (!isOurs) throw new NoLongerOpen();
    const made = { added: this.#made.added + added, changed: this.#made.changed + changed };
    return { number, rows, books, state, made };
  }

  async close(): Promise<void> {
    this.#target.db.exec(DROP);
  }

  /** Changes the books of a range of rows. @returns how many. */
  #change(after: number, through: number): number {
    const { fields } = this.rules;
    const changes = `from aside cross join known on known.row = aside.row and what = ${CHANGED}`;
    // An update from several tables would look through all books.
    const change = `
      update books set (${fields}) = (select ${fields.map((name) => `aside.${name}`)} ${changes} where aside.book = books.id)
      where id in (select book ${changes} where ${IN_RANGE})
        and ${PRESENT_TAG} = (select known.tag ${changes} where aside.book = books.id)`;
    const changed = Number(this.#prepare(change).run(after, through).changes);
    if (changed < this.#number(COUNT_CHANGES, after, through)) {
      const isStored = `select 1 from aside join books on books.id = aside.book where aside.row = known.row and ${this.equals('books')}`;
      const others = `row > ? and row <= ? and not exists (${isStored})`;
      this.#prepare(this.forgetChanges(others)).run(after, through);
    }
    return changed;
  }

  async #compareFields(signal: AbortSignal): Promise<void> {
    if (this.#number('select exists (select 1 from aside where book is null) as value') === 0) return;
    this.#comparesFields = true;
    inTemporaryFile(() => this.#target.db.exec(FIND_REPEATED));
    if (this.#rows <= FEW_ROWS) inTemporaryFile(() => this.#target.db.exec(YEARS));
    const highest = this.#number('select max(id) as value from books');
    for (; this.#comparedTo < highest; await setImmediate()) {
      signal.throwIfAborted();
      const end = this.#number(NEXT_ID, this.#comparedTo, highest) || highest;
      this.#findHere(this.#comparedTo, end);
      this.#comparedTo = end;
    }
  }

  #findHere(after: number, through: number): void {
    const ofYears = this.#rows <= FEW_ROWS ? 'and books.year in (select year from years)' : '';
    const find = this.#prepare(findHere(`${ofYears} and books.id not in (select id from changing)`));
    inTemporaryFile(() => find.run(after, through));
  }

  async #compareIds(signal: AbortSignal, hasHistory: boolean): Promise<void> {
    const { db, inTransaction, reserveIdsThrough } = this.#target;
    const highest = this.#number('select max(book) as value from aside');
    if (highest === 0) return;
    // Before the comparison, so that ids that are free stay free.
    if (!this.#isDryRun) await inTransaction(() => reserveIdsThrough(highest));
    inTemporaryFile(() => db.exec(`create index temp.aside_by_book on aside (book); ${this.findTwice}`));
    const steps = [this.findWithIds(PRESENT_TAG, BOOKS_OF_RANGE)];
    if (hasHistory)
      steps.push(`insert into since ${RowsAside.findSince(tagIn('log.book', 'log'), LOG_OF_RANGE)}`);
    for (const step of steps.map((sql) => this.#prepare(sql)))
      for (let last = 0; last < this.#rows; last += COMPARED) {
        signal.throwIfAborted();
        inTemporaryFile(() => step.run(last, last + COMPARED));
        await setImmediate();
      }
    inTemporaryFile(() => db.exec([...this.settle, `insert into changing ${CHANGING}`].join(';')));
  }

  #number(sql: string, ...values: number[]): number {
    const row = this.#prepare(sql).get(...values) as { value: number | null };
    return row.value ?? 0;
  }
}

type Column = readonly [name: string, read: (row: LoadRow) => string | number | null];
const COLUMNS: readonly Column[] = [
  ['line', ({ line }) => line],
  ['book', ({ id }) => id ?? null],
  ['tag', ({ tag }) => tag ?? null],
  ...FIELD_NAMES.map((name): Column => [name, (row) => row[name]]),
  ['original', ({ original }) => original ?? null],
  ['doubt', ({ doubt }) => doubt ?? null],
];

/**
 * Stores rows by few statements.
 * @param columns of the table, each with its value in a row.
 * @returns how many rows were stored: fewer, if a trigger has skipped some.
 */
export function insertRows<Row>(
  prepare: (sql: string) => StatementSync,
  table: 'books' | 'aside',
  columns: readonly (readonly [name: string, read: (row: Row) => string | number | null])[],
  rows: readonly Row[],
): number {
  const names = columns.map(([name]) => name);
  const statementOf = (count: number) =>
    prepare(`insert into ${table} (${names}) values ${Array(count).fill(`(${names.map(() => '?')})`)}`);
  const many = statementOf(STATEMENT_ROWS);
  const one = statementOf(1);
  let stored = 0;
  let values: (string | number | null)[] = [];
  const together = STATEMENT_ROWS * columns.length;
  for (const row of rows) {
    for (const [, read] of columns) values.push(read(row));
    if (values.length < together) continue;
    stored += Number(many.run(...values).changes);
    values = [];
  }
  for (let start = 0; start < values.length; start += columns.length)
    stored += Number(one.run(...values.slice(start, start + columns.length)).changes);
  return stored;
}

/** @throws OperatorError that names the temporary file, not the store, as the cause. */
function inTemporaryFile(work: () => void): void {
  try {
    work();
  } catch (error) {
    throw new OperatorError(
      `The temporary file for comparing rows cannot be written: ${(error as Error).message}. ` +
        'Set SQLITE_TMPDIR to use another folder.',
    );
  }
}
