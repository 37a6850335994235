// Owns: the log and the books as an undo reads and writes them in PostgreSQL (rule H5), and events. Each method runs within a
// transaction that its caller has started. Twin of `sqlite/undo.ts`.

import { FIELD_NAMES } from '../../books/book.ts';
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
import { ID_AND_FIELDS, TEXT_BYTES } from '../columns.ts';
import { StoredImports } from '../imports.ts';
import type { Query } from '../query.ts';
import { FORGET, hasChange, type OldestRow, RUN, reaches } from '../states.ts';
import { EVENTS, PostgresEvents } from './events.ts';
import { milliseconds, statesOf } from './history.ts';
import { BEFORE, byShard, conditionOf, type LogShards, rowsAbout } from './log.ts';
import { columnsOf, DURABLY, writeAll } from './statements.ts';

/** The most rows of the log that are read together, and the most bytes of their texts. */
const ROWS = 10_000;
const BYTES = 8 * 1024 * 1024;

const KNOWN = 'select fingerprint, ids from book_requests where key = $1';
const CLAIM = `
  insert into book_requests (key, fingerprint, ids) select $1, $2, '{}' where ${DURABLY} on conflict (key) do nothing returning key`;

/** The book whose change has the number $1. */
const ROW = `
  select last - number + $1::bigint as book from book_log join book_log_state using (place)
  where ${hasChange('$1::bigint')} and book > 0 and xid >= began order by number limit 1`;

/** The oldest row of each shard since the beginning of its log. */
const OLDEST = `
  select ${milliseconds('oldest.at')} as at, oldest.xid = began as "isBeginning", has_all as "hasAll"
  from book_log_state as state cross join lateral (
    select at, xid from book_log where book_log.place = state.place and xid >= began order by xid, number limit 1
  ) as oldest`;

const NEW = `
  select coalesce($1::bigint, nextval('book_log_number')) as number,
    (extract(epoch from clock_timestamp()) * 1000000)::bigint as before
  where ${DURABLY}`;
const BEGIN = `
  insert into book_events (place, number, at, kind, name) values ($1, $2, to_timestamp($3::bigint / 1000000.0), $4, $5)`;
/** Starts the event in another shard than the first, where rows of the log become a part of it as well. */
const JOIN = `
  insert into book_events (place, number, kind) values ($1, $2, $3)
  on conflict (place, number) do update set is_open = true`;
const RESUME = 'update book_events set is_open = true where place = $1 and number = $2';
const LEAVE = 'update book_events set is_open = false where place = $1 and number = $2';
const END = `
  update book_events set is_open = false, books = books + $3, work = coalesce($4::json, work) where place = $1 and number = $2`;

const IMPORTS = {
  nextNumber: "select nextval('book_log_number') as number",
  now: '(extract(epoch from clock_timestamp()) * 1000)::bigint',
  durably: DURABLY,
};

/** If two undos bring the same book back, one waits here for the other. */
const beAlone = (shard: number) => `select from book_log_state where place = ${shard} for no key update`;

/** SQL for a text that is equal for equal states of a book. */
const stateOf = (row: string) =>
  `case when ${row}.title is not null then encode(sha256(convert_to(row(${FIELD_NAMES.map((name) => `${row}.${name}`)})::text, 'UTF8')), 'base64') end`;

/** For each book of $1, its first selected change, the number of its rows from that one on, and the bytes of their texts. */
const pastsWith = (condition: string, shard: number) => `
  select wanted.id, first.number as first, rows, bytes from unnest($1::bigint[]) as wanted (id) cross join lateral (
    select min(number) as number from ${rowsAbout(shard)} where ${condition}
  ) as first cross join lateral (
    select count(*) as rows, coalesce(sum(${TEXT_BYTES}), 0)::float8 as bytes
    from ${rowsAbout(shard)} where about.number >= first.number
  ) as past order by id`;

/** For each book of $1, its changes from the number of $2 on. */
const changesWith = (condition: string, shard: number) => `
  select wanted.id, rows.* from unnest($1::bigint[], $2::bigint[]) as wanted (id, first) cross join lateral (
    select number, coalesce(${condition}, false) as "isSelected", ${stateOf('about')} as state
    from ${rowsAbout(shard)} where about.number >= wanted.first
  ) as rows order by id, number`;
const PRESENT = `select id, ${stateOf('books')} as state from books where id = any($1::bigint[])`;

const CHANGE = `
  update books set ${FIELD_NAMES.map((name) => `${name} = log.${name}`)}
  from ${BEFORE} where books.id = any($1::bigint[]) and books.id + 0 = wanted.id returning books.id`;
const BRING_BACK = `
  insert into books (${ID_AND_FIELDS}) select wanted.id, ${FIELD_NAMES.map((name) => `log.${name}`)} from ${BEFORE} returning id`;

interface Past {
  readonly id: number;
  readonly first: number | null;
  readonly rows: number;
  readonly bytes: number;
}

interface ChangeRow {
  readonly id: number;
  readonly number: number;
  readonly isSelected: boolean;
  readonly state: string | null;
}

type PresentRow = Pick<ChangeRow, 'id' | 'state'>;

export class PostgresLogReader implements LogReader {
  protected readonly query: Query;
  readonly imports: StoredImports;
  readonly events: PostgresEvents;
  readonly shards: LogShards;

  constructor(query: Query, shards: LogShards) {
    this.query = query;
    this.imports = new StoredImports(query, { ...IMPORTS, beAlone: beAlone(shards.first) });
    this.events = new PostgresEvents(query, shards);
    this.shards = shards;
  }

  async known(key: string): Promise<KnownRequest | undefined> {
    const [known] = await this.query<{ fingerprint: string; ids: readonly string[] }>(KNOWN, [key]);
    return known && { ...known, ids: known.ids.map(Number) };
  }

  async reaches(since: number): Promise<boolean> {
    const oldest = await this.query<OldestRow>(OLDEST);
    return oldest.length === this.shards.all.length && oldest.every((row) => reaches(row, since));
  }

  async began(): Promise<number> {
    const oldest = await this.query<OldestRow>(OLDEST);
    return Math.max(...oldest.map(({ at }) => at));
  }

  async bookOf(change: number): Promise<number | undefined> {
    return (await this.query<{ book: number }>(ROW, [change]))[0]?.book;
  }

  async booksOf(selection: Selection): Promise<Ids> {
    if ('book' in selection) return new Ids([{ first: selection.book, last: selection.book }]);
    const found: IdRange[][] = [];
    for (const shard of this.shards.all)
      found.push(
        await this.query<IdRange>(`
          select book as first, max(last) as last from book_log
          where place = ${shard} and book > 0 and last - book < ${RUN} and ${conditionOf(selection, shard)} group by book`),
      );
    return new Ids(found.flat());
  }

  async event(number: number): Promise<CatalogueEvent | undefined> {
    const [event] = await this.query<CatalogueEvent>(`${EVENTS} and number = $2`, [
      this.shards.first,
      number,
    ]);
    return event;
  }

  async newestChange(id: number): Promise<number | undefined> {
    const { states } = await statesOf(this.query, this.shards.of(id), id, undefined, 1);
    return states[0]?.change ?? undefined;
  }

  async past(ids: readonly number[], selection: Selection): Promise<readonly PastBook[]> {
    const found = new Map<number, PastBook>();
    let end = Number.POSITIVE_INFINITY;
    for (const [shard, all] of byShard(this.shards, ids, (id) => id)) {
      const condition = conditionOf(selection, shard, 'wanted.id');
      const present = new Map((await this.present(shard, all)).map(({ id, state }) => [id, state]));
      const pasts = within(await this.query<Past>(pastsWith(condition, shard), [all]));
      if (pasts.length < all.length) end = Math.min(end, pasts.at(-1)?.id ?? 0);
      const changed = pasts.filter(({ first }) => first !== null);
      const values = [changed.map(({ id }) => id), changed.map(({ first }) => first)];
      const rows = await this.query<ChangeRow>(changesWith(condition, shard), values);
      const byBook = Map.groupBy(rows, ({ id }) => id);
      for (const { id, bytes } of pasts)
        found.set(id, { id, changes: byBook.get(id) ?? [], present: present.get(id) ?? null, bytes });
    }
    return ids.filter((id) => id <= end).map((id) => found.get(id) as PastBook);
  }

  /** The present states of the books of a shard that are there. */
  protected present(_place: number, ids: readonly number[]): Promise<PresentRow[]> {
    return this.query<PresentRow>(PRESENT, [ids]);
  }
}

export class PostgresLogWriter extends PostgresLogReader implements LogWriter {
  #event: Pick<CatalogueEvent, 'number' | 'kind'> | undefined;

  async claim({ key, fingerprint }: Once): Promise<boolean> {
    return (await this.query(CLAIM, [key, fingerprint])).length > 0;
  }

  async keep(key: string, ids: readonly number[]): Promise<void> {
    await this.query('update book_requests set ids = $2 where key = $1', [key, ids]);
  }

  async begin(kind: CatalogueEvent['kind'], name: string | null, given?: number) {
    const [begun] = await this.query<{ number: number; before: number }>(NEW, [given ?? null]);
    const { number, before } = begun as { number: number; before: number };
    await this.query(BEGIN, [this.shards.first, number, before, kind, name]);
    this.#event = { number, kind };
    return { number, before };
  }

  async resume(number: number): Promise<CatalogueEvent | undefined> {
    await this.query(`select ${DURABLY}`);
    await this.query(RESUME, [this.shards.first, number]);
    const event = await this.event(number);
    this.#event = event;
    return event;
  }

  /** From now on, changes in a shard are a part of the event as well. */
  async join(shard: number): Promise<void> {
    if (this.#event === undefined || shard === this.shards.first) return;
    await this.query(JOIN, [shard, this.#event.number, this.#event.kind]);
  }

  /** Changes in the shard are no longer a part of the event. */
  async leave(shard: number): Promise<void> {
    if (this.#event !== undefined && shard !== this.shards.first)
      await this.query(LEAVE, [shard, this.#event.number]);
  }

  async end(number: number, books: number, work?: unknown): Promise<void> {
    const kept = work === undefined ? null : JSON.stringify(work);
    await this.query(END, [this.shards.first, number, books, kept]);
    this.#event = undefined;
  }

  /** Until the end of the transaction, nobody else changes these books. */
  protected override async present(shard: number, ids: readonly number[]): Promise<PresentRow[]> {
    await this.query(beAlone(shard));
    return this.query<PresentRow>(this.shards.statements.lockAs(`${stateOf('books')} as state`), [ids]);
  }

  async forget(id: number): Promise<void> {
    await this.query('delete from books where id = $1', [id]);
    for (const statement of FORGET) await this.query(statement, [id]);
    await this.imports.forgetReports();
  }

  async restore(books: readonly Restored[]): Promise<void> {
    for (const [shard, some] of byShard(this.shards, books, ({ id }) => id)) {
      const removed = some.filter(({ isRemoved }) => isRemoved);
      const back = some.filter(({ isRemoved, isNew }) => isNew && !isRemoved);
      const changed = some.filter(({ isRemoved, isNew }) => !isNew && !isRemoved);
      await this.join(shard);
      await writeAll(this.query, this.shards.statements.delete, columnsOf(['id'], removed));
      await writeAll(this.query, CHANGE, [...columnsOf(['id', 'change'], changed), shard]);
      await writeAll(this.query, BRING_BACK, [...columnsOf(['id', 'change'], back), shard]);
      await this.leave(shard);
    }
  }
}

/** The first books whose rows and texts can be read together; at least one. */
function within(pasts: readonly Past[]): Past[] {
  let rows = 0;
  let bytes = 0;
  return pasts.filter((past, at) => {
    rows += past.rows;
    bytes += past.bytes;
    return at === 0 || (rows <= ROWS && bytes <= BYTES);
  });
}
