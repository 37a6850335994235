// Owns: events and their books, as they are read from the log in a SQLite file (rules H7 to H9). Twin of `postgres/events.ts`.

import type { DatabaseSync } from 'node:sqlite';
import type { Book } from '../../books/book.ts';
import type {
  CatalogueEvent,
  ChangedBook,
  EventsReader,
  Selection,
  SingleChange,
} from '../../books/change-log.ts';
import { type IdRange, Ids } from '../../books/ids.ts';
import { HEAVY, weightOfChanged } from '../../books/store.ts';
import { FIELDS } from '../columns.ts';
import { asBook, type Fields, IS_SINGLE, RUN } from '../states.ts';
import { FIND } from './books.ts';
import { about, conditionOf } from './log.ts';
import { preparing } from './structure.ts';

export const EVENTS = 'select number, kind, at, name, books, work from book_events';
const NEWEST_EVENTS = `${EVENTS}
  where books > 0 and ($before is null or (at, number) < (select at, number from book_events where number = $before))
  order by at desc, number desc limit $most`;
const NEWEST_UNDOS = `${EVENTS} where kind = 'undo' order by number desc limit ?`;
const SINGLES = `
  select at, book as first, last from book_log where ${IS_SINGLE} and at < ? and last - book < ${RUN} order by at desc limit ?`;
/** Each step is as long as possible, so that it reads few of many changes. */
const BEGINNING_OF_RUN = `
  with recursive step (at) as (
    select $at union all select (
      select min(at) from book_log where ${IS_SINGLE} and at > step.at - $gap and at >= $earliest and at < step.at
    ) from step where at is not null
  )
  select min(at) as at from step`;
const FIELDS_BEFORE = `select ${FIELDS} from book_log where number = ?`;

export class SqliteEvents implements EventsReader {
  readonly #prepare;

  constructor(db: DatabaseSync) {
    this.#prepare = preparing(db);
  }

  async newest(before: number | undefined, most: number): Promise<readonly CatalogueEvent[]> {
    const rows = this.#prepare(NEWEST_EVENTS).all({ before: before ?? null, most });
    return rows.map((row) => eventOf(row) as CatalogueEvent);
  }

  async undos(most: number): Promise<readonly CatalogueEvent[]> {
    return this.#prepare(NEWEST_UNDOS)
      .all(most)
      .map((row) => eventOf(row) as CatalogueEvent);
  }

  async singleChanges(before: number, most: number): Promise<readonly SingleChange[]> {
    return this.#prepare(SINGLES).all(before, most) as unknown as SingleChange[];
  }

  async beginningOfRun(at: number, earliest: number, gap: number): Promise<number> {
    return Number(this.#prepare(BEGINNING_OF_RUN).get({ at, earliest, gap })?.at);
  }

  async idsAfter(selection: Selection, after: number, most: number): Promise<readonly number[]> {
    const [condition, values] = conditionOf(selection);
    const rows = this.#prepare(`
      select book as first, max(last) as last from book_log
      where book > $after - ${RUN} and book > 0 and last > $after and last - book < ${RUN} and ${condition}
      group by book order by book limit $most`);
    return new Ids(rows.all({ after, most, ...values }) as unknown as IdRange[]).next(after, most);
  }

  async changed(selection: Selection, ids: readonly number[]): Promise<readonly ChangedBook[]> {
    const [condition, values] = conditionOf(selection, '$id');
    const ends = this.#prepare(`
      with numbers as materialized (select number, coalesce(${condition}, 0) as isSelected from ${about('$id')}),
        selected as (select min(number) as first, max(number) as last from numbers where isSelected)
      select first, (select min(number) from numbers where number > selected.last) as next from selected`);
    const before = this.#prepare(FIELDS_BEFORE);
    const found: ChangedBook[] = [];
    let weight = 0;
    for (const id of ids) {
      const { first, next } = ends.get({ id, ...values }) as { first: number; next: number | null };
      const after = next === null ? this.#prepare(FIND).get(id) : before.get(next);
      const changed = { id, before: bookOf(id, before.get(first)), book: bookOf(id, after) };
      found.push(changed);
      weight += weightOfChanged(changed);
      if (weight >= HEAVY) break;
    }
    return found;
  }
}

export function eventOf(row: unknown): CatalogueEvent | undefined {
  if (row === undefined) return undefined;
  const event = row as CatalogueEvent;
  let work: unknown;
  try {
    work = JSON.parse(String(event.work));
  } catch {} // another program has damaged it
  return { ...event, work };
}

function bookOf(id: number, row: unknown): Book | undefined {
  return row === undefined ? undefined : asBook(id, row as Fields);
}
