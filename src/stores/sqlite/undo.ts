// Owns: the log and the books as an undo reads and writes them in a SQLite file (rule H5), and events. Twin of `postgres/undo.ts`.

import { hash } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { valuesOf } from '../../books/book.ts';
import type {
  CatalogueEvent,
  LogReader,
  LogWriter,
  PastBook,
  Restored,
  Selection,
} from '../../books/change-log.ts';
import { type IdRange, Ids } from '../../books/ids.ts';
import type { KnownRequest, Once } from '../../books/once.ts';
import { FIELDS, ID_AND_FIELDS, TEXT_BYTES } from '../columns.ts';
import { type ImportsDialect, StoredImports } from '../imports.ts';
import { type Fields, FORGET, hasChange, type OldestRow, RUN, reaches } from '../states.ts';
import { Turn } from '../turn.ts';
import { FIND, FIND_KEY, KEEP_KEY, REMOVE } from './books.ts';
import { EVENTS, eventOf, SqliteEvents } from './events.ts';
import { Skipped } from './faults.ts';
import { History } from './history.ts';
import { about, conditionOf } from './log.ts';
import { NOW } from './log-tables.ts';
import { preparing, queryBy } from './structure.ts';

/** The most bytes of texts of books that are looked through together, so that each of several steps ends soon. */
const TOGETHER = 8 * 1024 * 1024;

/** The book whose change has a number. */
const ROW = `select last - number + $number as book from book_log where ${hasChange('$number')} and book > 0
    and number >= (select began from book_log_state) order by number limit 1`;
const OLDEST = `
  select at, number = began as isBeginning, has_all as hasAll from book_log cross join book_log_state
  where number >= began order by number limit 1`;
const BRING_BACK = `insert into books (${ID_AND_FIELDS}) select $id, ${FIELDS} from book_log where number = $change`;
const CHANGE = `update books set (${FIELDS}) = (select ${FIELDS} from book_log where number = $change) where id = $id`;

const IMPORTS: ImportsDialect = {
  nextNumber: `insert into book_log (at, book, last) values (${NOW}, 0, 0) returning number`,
  now: NOW,
  durably: 'true',
  beAlone: 'select 1', // a transaction that writes is
};

const BEGIN_EVENT = `insert into book_events (number, at, kind, name) values (?, ${NOW}, ?, ?)`;
const END_EVENT = 'update book_events set books = books + ?, work = coalesce(?, work) where number = ?';
const SET_PART = 'update book_log_state set part_of = ?';

/** A row about a book, with its fields before the change. */
type PastRow = Fields & { readonly number: number; readonly isSelected: 0 | 1; readonly bytes: number };

/** Each method is called in a transaction. A method that takes long lets other work run. */
export class SqliteLogReader implements LogReader {
  protected readonly db: DatabaseSync;
  protected readonly prepare;
  readonly imports: StoredImports;
  readonly events: SqliteEvents;
  readonly #time: number;

  /** @param time milliseconds of work before other work runs. */
  constructor(db: DatabaseSync, time: number) {
    this.db = db;
    this.prepare = preparing(db);
    this.imports = new StoredImports(queryBy(this.prepare), IMPORTS);
    this.events = new SqliteEvents(db);
    this.#time = time;
  }

  async known(key: string): Promise<KnownRequest | undefined> {
    const known = this.prepare(FIND_KEY).get(key);
    return known && { fingerprint: String(known.fingerprint), ids: JSON.parse(String(known.ids)) };
  }

  async reaches(since: number): Promise<boolean> {
    const oldest = this.prepare(OLDEST).get() as OldestRow | undefined;
    return oldest !== undefined && reaches(oldest, since);
  }

  async began(): Promise<number> {
    return Number(this.prepare(OLDEST).get()?.at);
  }

  async bookOf(change: number): Promise<number | undefined> {
    const row = this.prepare(ROW).get({ number: change });
    return row && Number(row.book);
  }

  async booksOf(selection: Selection): Promise<Ids> {
    if ('book' in selection) return new Ids([{ first: selection.book, last: selection.book }]);
    const [condition, values] = conditionOf(selection);
    const rows = this.prepare(
      `select book as first, last from book_log where book > 0 and last - book < ${RUN} and ${condition}`,
    ).iterate(values);
    const ids = new Ids();
    const turn = this.turn();
    for (const range of rows as Iterable<unknown> as Iterable<IdRange>) {
      ids.add(range);
      if (turn.isOver) await turn.next();
    }
    return ids;
  }

  async event(number: number): Promise<CatalogueEvent | undefined> {
    return eventOf(this.prepare(`${EVENTS} where number = ?`).get(number));
  }

  async newestChange(id: number): Promise<number | undefined> {
    return new History(this.db).states(id, undefined, 1).states[0]?.change ?? undefined;
  }

  async past(ids: readonly number[], selection: Selection): Promise<readonly PastBook[]> {
    const books: PastBook[] = [];
    const turn = this.turn();
    let bytes = 0;
    for (const id of ids) {
      const changes: PastBook['changes'][number][] = [];
      let ofBook = 0;
      for (const row of this.#rows(id, selection)) {
        changes.push({ number: row.number, state: stateOf(row), isSelected: row.isSelected === 1 });
        ofBook += row.bytes;
        if (turn.isOver) await turn.next();
      }
      const present = this.prepare(FIND).get(id) as Fields | undefined;
      books.push({ id, changes, present: stateOf(present), bytes: ofBook });
      bytes += ofBook;
      if (bytes >= TOGETHER) break;
    }
    return books;
  }

  /** The rows about a book, from the first selected one on. Only their numbers are sorted, since the texts may be large. */
  #rows(id: number, selection: Selection): Iterable<PastRow> {
    const [condition, values] = conditionOf(selection, '$id');
    const rows = this.prepare(`
      with numbers as materialized (
        select number, coalesce(${condition}, 0) as isSelected from ${about('$id')} order by number
      )
      select number, isSelected, ${FIELDS}, ${TEXT_BYTES} as bytes from numbers cross join book_log using (number)
      where number >= (select min(number) from numbers where isSelected)`);
    return rows.iterate({ id, ...values }) as Iterable<unknown> as Iterable<PastRow>;
  }

  protected turn(): Turn {
    return new Turn(this.#time);
  }
}

export class SqliteLogWriter extends SqliteLogReader implements LogWriter {
  async claim({ key, fingerprint }: Once): Promise<boolean> {
    if (this.prepare(FIND_KEY).get(key) !== undefined) return false;
    this.prepare(KEEP_KEY).run(key, fingerprint, '[]');
    return true;
  }

  async keep(key: string, ids: readonly number[]): Promise<void> {
    this.prepare('update book_requests set ids = ? where key = ?').run(JSON.stringify(ids), key);
  }

  async begin(
    kind: CatalogueEvent['kind'],
    name: string | null,
    number = Number(this.prepare(IMPORTS.nextNumber).get()?.number),
  ) {
    this.prepare(BEGIN_EVENT).run(number, kind, name);
    this.prepare(SET_PART).run(number);
    return { number, before: number };
  }

  async resume(number: number): Promise<CatalogueEvent | undefined> {
    this.prepare(SET_PART).run(number);
    return this.event(number);
  }

  async end(number: number, books: number, work?: unknown): Promise<void> {
    this.prepare(SET_PART).run(null);
    this.prepare(END_EVENT).run(books, work === undefined ? null : JSON.stringify(work), number);
  }

  async restore(books: readonly Restored[]): Promise<void> {
    const turn = this.turn();
    for (const { id, change, isRemoved, isNew } of books) {
      const { changes } = isRemoved
        ? this.prepare(REMOVE).run(id)
        : this.prepare(isNew ? BRING_BACK : CHANGE).run({ id, change });
      if (changes !== 1) throw new Skipped();
      if (turn.isOver) await turn.next();
    }
  }

  async forget(id: number): Promise<void> {
    this.db.exec('pragma secure_delete = on'); // its texts are overwritten
    this.prepare(REMOVE).run(id);
    for (const statement of FORGET) this.prepare(statement).run({ 1: id });
    await this.imports.forgetReports();
  }
}

/** @returns equal texts for equal states of a book; null for the state without a book. */
function stateOf(fields: Fields | undefined): string | null {
  if (fields === undefined || fields.title === null) return null;
  return hash('sha256', JSON.stringify(valuesOf(fields)));
}
