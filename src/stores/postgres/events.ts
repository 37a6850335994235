// Owns: events and their books, as they are read from the log in PostgreSQL (rules H7 to H9). Twin of `sqlite/events.ts`.

import { type Book, TEXT_NAMES } from '../../books/book.ts';
import type {
  CatalogueEvent,
  ChangedBook,
  EventsReader,
  Selection,
  SingleChange,
} from '../../books/change-log.ts';
import { type IdRange, Ids } from '../../books/ids.ts';
import { HEAVY } from '../../books/store.ts';
import { FIELDS, ID_AND_FIELDS, TEXT_BYTES } from '../columns.ts';
import type { Query } from '../query.ts';
import { asBook, type Fields, IS_SINGLE, RUN } from '../states.ts';
import { milliseconds } from './history.ts';
import { BEFORE, byShard, conditionOf, type LogShards, rowsAbout, timeOf } from './log.ts';
import { columnsOf } from './statements.ts';

/** Of the shard $1, which keeps the events. */
export const EVENTS = `select number, kind, ${milliseconds('at')} as at, name, books, work from book_events where place = $1`;
const NEWEST_EVENTS = `${EVENTS}
  and books > 0 and ($3::bigint is null or (book_events.at, number) < (
    select at, number from book_events where place = $1 and number = $3
  )) order by book_events.at desc, number desc limit $2`;
const NEWEST_UNDOS = `${EVENTS} and kind = 'undo' order by number desc limit $2`;

const SINGLES = `
  select ${milliseconds('at')} as at, book as first, last from book_log
  where place = $1 and ${IS_SINGLE} and last - book < ${RUN} and at < ${timeOf('$2')} order by book_log.at desc limit $3`;
/** Each step is as long as possible, so that it reads few of many changes. */
const BEGINNING_OF_RUN = `
  with recursive step (at) as (
    select ${timeOf('$2')} union all select (
      select min(at) from book_log
      where place = $1 and ${IS_SINGLE} and at > step.at - $4 * interval '1 millisecond' and at >= ${timeOf('$3')} and at < step.at
    ) from step where at is not null
  )
  select ${milliseconds('min(at)')} as at from step`;

/** For each book of $1, the numbers of its first selected change and of the change after the last one. */
const endsWith = (condition: string, shard: number) => `
  select wanted.id, first, next from unnest($1::bigint[]) as wanted (id) cross join lateral (
    select min(number) as first, max(number) as last from ${rowsAbout(shard)} where ${condition}
  ) as selected cross join lateral (
    select min(number) as next from ${rowsAbout(shard)} where about.number > selected.last
  ) as later order by id`;

interface ChangeEnds {
  readonly id: number;
  readonly first: number;
  readonly next: number | null;
}

/**
 * The fields of rows that have an id and texts, without the texts after heavy ones, unless they are of the first book of $1.
 * @param order of the rows.
 */
const withinBounds = (rows: string, order: string) => `
  select ${order}, year, "isCut", ${TEXT_NAMES.map((name) => `case when not "isCut" then ${name} end as ${name}`)} from (
    select *, id <> ($1::bigint[])[1] and sum(bytes) over (order by ${order}) - bytes >= ${HEAVY} as "isCut"
    from (${rows}) as all_rows
  ) as rows`;
const FIELDS_BEFORE = withinBounds(
  `select wanted.id, log.number, ${FIELDS}, ${TEXT_BYTES} as bytes from ${BEFORE}`,
  'id, number',
);
const PRESENT = withinBounds(
  `select ${ID_AND_FIELDS}, ${TEXT_BYTES} as bytes from books where id = any($1::bigint[])`,
  'id',
);

type BookRow = Fields & { readonly id: number; readonly isCut: boolean };

export class PostgresEvents implements EventsReader {
  readonly #query: Query;
  readonly #shards: LogShards;

  constructor(query: Query, shards: LogShards) {
    this.#query = query;
    this.#shards = shards;
  }

  newest(before: number | undefined, most: number): Promise<readonly CatalogueEvent[]> {
    return this.#query<CatalogueEvent>(NEWEST_EVENTS, [this.#shards.first, most, before]);
  }

  undos(most: number): Promise<readonly CatalogueEvent[]> {
    return this.#query<CatalogueEvent>(NEWEST_UNDOS, [this.#shards.first, most]);
  }

  async singleChanges(before: number, most: number): Promise<readonly SingleChange[]> {
    const found = await this.#ofEachShard<SingleChange>(SINGLES, before, most);
    return found.sort((one, other) => other.at - one.at).slice(0, most);
  }

  async beginningOfRun(at: number, earliest: number, gap: number): Promise<number> {
    const found = await this.#ofEachShard<{ at: number }>(BEGINNING_OF_RUN, at, earliest, gap);
    const began = Math.min(...found.map((row) => row.at));
    const isEarliest = began === at || this.#shards.all.length === 1; // others may have changes before it
    return isEarliest ? began : await this.beginningOfRun(began, earliest, gap);
  }

  async idsAfter(selection: Selection, after: number, most: number): Promise<readonly number[]> {
    const found: IdRange[][] = [];
    for (const shard of this.#shards.all)
      found.push(
        await this.#query<IdRange>(
          `select book as first, max(last) as last from book_log
          where place = ${shard} and book > $1 - ${RUN} and book > 0 and last > $1 and last - book < ${RUN}
            and ${conditionOf(selection, shard)} group by book order by book limit $2`,
          [after, most],
        ),
      );
    return new Ids(found.flat()).next(after, most);
  }

  async changed(selection: Selection, ids: readonly number[]): Promise<readonly ChangedBook[]> {
    const found: ChangedBook[] = [];
    let end = Number.POSITIVE_INFINITY;
    for (const [shard, some] of byShard(this.#shards, ids, (id) => id)) {
      // Read first: a change that is noted meanwhile has the book as it was before.
      const present = new Map((await this.#query<BookRow>(PRESENT, [some])).map((row) => [row.id, row]));
      const ends = await this.#query<ChangeEnds>(
        endsWith(conditionOf(selection, shard, 'wanted.id'), shard),
        [some],
      );
      const places = ends.flatMap(({ id, first, next }) =>
        [first, next].flatMap((number) => (number === null ? [] : { id, number })),
      );
      const rows = await this.#query<BookRow & { number: number }>(FIELDS_BEFORE, [
        ...columnsOf(['id', 'number'], places),
        shard,
      ]);
      const fields = new Map(rows.map((row) => [row.number, row]));
      for (const { id, first, next } of ends) {
        const [before, after] = [fields.get(first), next === null ? present.get(id) : fields.get(next)];
        if (before?.isCut || after?.isCut) end = Math.min(end, id);
        else found.push({ id, before: bookOf(id, before), book: bookOf(id, after) });
      }
    }
    return found.filter(({ id }) => id < end).sort((one, other) => one.id - other.id);
  }

  async #ofEachShard<Row extends object>(statement: string, ...values: readonly number[]): Promise<Row[]> {
    const found: Row[][] = [];
    for (const shard of this.#shards.all) found.push(await this.#query<Row>(statement, [shard, ...values]));
    return found.flat();
  }
}

function bookOf(id: number, fields: Fields | undefined): Book | undefined {
  return fields && asBook(id, fields);
}
