// Owns: taking changes back in a SQLite file, and which imports and undos there were (rule H5). Twin of `postgres/undo.ts`.

import { hash } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import type { Book } from '../../books/book.ts';
import { MOST_UNDONE, type NotUndone, type UndoRequest, weightOf } from '../../books/store.ts';
import type { UndoneBooks } from '../bulk.ts';
import { FIELDS, ID_AND_FIELDS } from '../columns.ts';
import {
  changeOf,
  countOf,
  disjoint,
  type Fields,
  hasChange,
  type IdRange,
  isEventOf,
  type OldestRow,
  reaches,
} from '../states.ts';
import { Turn } from '../turn.ts';
import { Skipped } from './faults.ts';
import { about } from './log.ts';
import { preparing } from './structure.ts';

/** What is looked through at most: rows of the log, and characters of their texts; and the books that are taken back. */
interface Bounds {
  readonly books: number;
  readonly rows: number;
  readonly weight: number;
}

/** Of a request, for which other writes wait (rule H5). */
export const OF_REQUEST: Bounds = { books: MOST_UNDONE, rows: 100_000, weight: 64 * 1024 * 1024 };

/** Of a command. */
export const UNBOUND: Bounds = { books: Infinity, rows: Infinity, weight: Infinity };

/** A request is out of its bounds. */
export class TooMany extends Error {}

/** The changes that are taken back. */
interface Selection {
  /** A condition in SQL, with `$value`. */
  readonly condition: string;
  readonly value: number;
  /** Before all of them in the log. */
  readonly from: number;
  /** If it is one change, its book. */
  readonly book?: number;
}

/** Of a book that is gone. */
const NONE = { title: null, author: null, year: null } as const;

type Passage = Fields & { readonly isSelected: 0 | 1 };
type Row = Passage & { readonly number: number };

/** A book that becomes what it was. */
interface Wanted {
  readonly id: number;
  readonly isThere: boolean;
  readonly fields: Fields;
  /** The number of the newest row about it. */
  readonly newest: number;
}

interface Decided {
  readonly wanted: readonly Wanted[];
  /** The ids of the books that others have changed since. */
  readonly left: readonly number[];
}

export function undoneBooks({ wanted, left }: Decided): UndoneBooks {
  return { undone: wanted.length, left };
}

/** Characters of the texts of a row. */
const WEIGHT = 'coalesce(octet_length(title), 0) + coalesce(octet_length(author), 0)';

/** Each method is called in a transaction. One that takes long lets other work run. */
export class Undo {
  readonly #prepare;
  readonly #time: number;
  readonly #most: Bounds;

  /** @param time milliseconds of work before other work runs. */
  constructor(db: DatabaseSync, time: number, most: Bounds) {
    this.#prepare = preparing(db);
    this.#time = time;
    this.#most = most;
  }

  select(request: UndoRequest): Selection | NotUndone {
    if ('since' in request) return this.#since(request.since);
    const value = 'change' in request ? request.change : request.import;
    const find = this.#prepare(`
      select last - number + $from as book, event from book_log where ${hasChange('$from')} order by number limit 1`);
    const row = find.get({ from: value }) as { book: number; event: string | null } | undefined;
    if (row !== undefined && isEventOf(request, row))
      return { condition: 'part_of = $value', value, from: value };
    if (!row?.book || !('change' in request)) return 'unknown';
    return { condition: `${changeOf('$id')} = $value`, value, from: value, book: row.book };
  }

  #since(value: number): Selection | NotUndone {
    const oldest = this.#prepare('select at, event, year from book_log order by number limit 1').get();
    if (oldest === undefined || !reaches(oldest as unknown as OldestRow, value)) return 'beyond';
    const first = this.#prepare('select min(number) as number from book_log where at >= ?').get(value);
    return { condition: "at >= $value and event is not 'undo'", value, from: Number(first?.number ?? 0) };
  }

  /**
   * The books of a selection, each in one range or several.
   * @throws TooMany
   */
  async books({ condition, value, book }: Selection): Promise<IdRange[]> {
    if (book !== undefined) return [{ book, last: book }];
    const rows = this.#prepare(
      `select book, last, ${WEIGHT} as weight from book_log where book > 0 and ${condition}`,
    ).iterate({ value }) as Iterable<unknown> as Iterable<IdRange & { readonly weight: number }>;
    const lasts = new Map<number, number>();
    const passed = new Passed(this.#most, this.#time);
    for (const { book, last, weight } of rows) {
      lasts.set(book, Math.max(last, lasts.get(book) ?? 0));
      if (passed.add(weight)) await passed.nextTurn();
    }
    const sorted = [...lasts].map(([book, last]) => ({ book, last })).sort((a, b) => a.book - b.book);
    const ranges = disjoint(sorted);
    if (countOf(ranges) > this.#most.books) throw new TooMany();
    return ranges;
  }

  /**
   * Decides what becomes of books.
   * @throws TooMany
   */
  async decide(ids: Iterable<number>, selection: Selection): Promise<Decided> {
    const passed = new Passed(this.#most, this.#time);
    const wanted: Wanted[] = [];
    const left: number[] = [];
    for (const id of ids) {
      const states = new PastStates();
      let newest = 0;
      for (const row of this.#rows(id, selection)) {
        states.add(row);
        newest = row.number;
        const weight = weightOf({ title: row.title ?? '', author: row.author ?? '' });
        if (passed.add(weight)) await passed.nextTurn();
      }
      const now = this.#prepare(`select ${ID_AND_FIELDS} from books where id = ?`).get(id) as
        | Book
        | undefined;
      const fields = states.decide(now ?? NONE);
      if (fields === 'left') left.push(id);
      else if (fields !== 'same') wanted.push({ id, isThere: now !== undefined, fields, newest });
    }
    return { wanted, left };
  }

  /** What is decided now, in a transaction that writes: most books have not changed since the first decision. */
  async decideAgain({ wanted, left }: Decided, selection: Selection): Promise<Decided> {
    const newest = this.#prepare(`select max(number) as number from ${about('$id')}`);
    const isCurrent = (book: Wanted) => newest.get({ id: book.id })?.number === book.newest;
    const { true: current = [], false: changed = [] } = Object.groupBy(
      wanted,
      (book) => `${isCurrent(book)}`,
    );
    const again = await this.decide(
      changed.map(({ id }) => id),
      selection,
    );
    return { wanted: [...current, ...again.wanted], left: [...left, ...again.left] };
  }

  /** Those about a book, from the first selected one on. Only their numbers are sorted: the texts may be large. */
  #rows(id: number, { condition, value, from }: Selection): Iterable<Row> {
    const rows = this.#prepare(`
      with numbers as materialized (select number from ${about('$id')} where number >= $from order by number)
      select number, ${FIELDS}, (${condition}) as isSelected from numbers cross join book_log using (number)`);
    return rows.iterate({ id, value, from }) as Iterable<unknown> as Iterable<Row>;
  }

  /** Makes books what they were. */
  async write(wanted: readonly Wanted[]): Promise<void> {
    const turn = new Turn(this.#time);
    for (const book of wanted) {
      this.#store(book);
      if (turn.isOver) await turn.next();
    }
  }

  #store({ id, isThere, fields: { title, author, year } }: Wanted): void {
    const write = (sql: string, ...values: (string | number | null)[]) => this.#prepare(sql).run(...values);
    const { changes } =
      title === null
        ? write('delete from books where id = ?', id)
        : isThere
          ? write('update books set title = ?, author = ?, year = ? where id = ?', title, author, year, id)
          : write(`insert into books (${ID_AND_FIELDS}) values (?, ?, ?, ?)`, id, title, author, year);
    if (changes !== 1) throw new Skipped();
  }
}

/** How much of the log has been looked through. */
class Passed {
  readonly #most: Bounds;
  readonly #turn: Turn;
  #rows = 0;
  #weight = 0;

  constructor(most: Bounds, time: number) {
    this.#most = most;
    this.#turn = new Turn(time);
  }

  /**
   * @param weight of one more row.
   * @returns whether other work should run.
   * @throws TooMany
   */
  add(weight: number): boolean {
    this.#rows += 1;
    this.#weight += weight;
    if (this.#rows > this.#most.rows || this.#weight > this.#most.weight) throw new TooMany();
    return this.#turn.isOver;
  }

  nextTurn(): Promise<void> {
    return this.#turn.next();
  }
}

/**
 * What a book was before the first of the selected rows, unless others have changed it since: what they did between two of them, or
 * after the last one, may only lead back to a state that it had before.
 */
class PastStates {
  readonly #had = new Set<string>();
  #last: State | undefined;
  #wanted: State | undefined;
  #isByOthers = false;
  #isFree = true;

  /** @param row with the state before it. One that alters nothing is left out. */
  add({ isSelected, title, author, year }: Passage): void {
    const fields = { title, author, year } as Fields;
    const next = { fields, key: keyOf(fields), isSelected: isSelected === 1 };
    if (this.#last?.key !== next.key) this.#pass();
    this.#last = next;
  }

  /** @param present the state after all rows. */
  decide(present: Fields): Fields | 'left' | 'same' {
    this.add({ ...present, isSelected: 1 });
    this.#pass();
    const { fields, key } = this.#wanted as State;
    if (key === this.#last?.key) return 'same';
    return this.#isFree ? fields : 'left';
  }

  #pass(): void {
    if (this.#last === undefined) return;
    const { key, isSelected } = this.#last;
    if (isSelected) this.#wanted ??= this.#last;
    if (this.#wanted === undefined) return;
    if (isSelected && this.#isByOthers) this.#isFree &&= this.#had.has(key);
    if (isSelected || !this.#isByOthers) this.#had.add(key);
    this.#isByOthers = !isSelected;
  }
}

/** A state of a book, and whether the change that ended it is selected. */
interface State {
  readonly fields: Fields;
  readonly key: string;
  readonly isSelected: boolean;
}

/** Equal for equal states. */
function keyOf({ title, author, year }: Fields): string {
  return hash('sha256', JSON.stringify([title, author, year]));
}
