// Owns: the search index in PostgreSQL: its tables, and how it follows the log of changes. A transaction of plain statements
// indexes the books of some rows. It locks the row of their shard in `book_index_state`, so no other transaction indexes them. The
// first index is made from a range with all books. Twin of `sqlite/book-index.ts`.
// Does not: index within the transactions that write books, which would make them four times as expensive.

import type pg from 'pg';
import type { Book } from '../../books/book.ts';
import { INDEXED_UNITS } from '../../books/words.ts';
import type { Times } from '../../times.ts';
import { AUTHOR_FILED, entryOf, INDEX_VERSION, type IndexEntry } from '../book-index.ts';
import type { Query } from '../query.ts';
import { Turn } from '../turn.ts';
import { ARTICLES } from './dialect.ts';
import { begin } from './limits.ts';
import { behind, LOG_SHARDS, type LogPosition, type LogShard, readLog } from './log.ts';
import { codeOf, queryOn } from './query.ts';
import { BOOKS, columnsOf } from './statements.ts';
import { changeStructure } from './structure.ts';

/** The most rows of the log that are read together, and books that are indexed together: a few milliseconds of work in this process. */
export const STEP = 1000;

// The words of a book come from this process: no parser or dictionary of the server sees them. `book_index_state` has a row for each
// shard of the log: how far the index is there, as a `LogPosition`.
const TABLES = [
  ...['book_index', 'book_index_state'].map((name) => `drop table if exists ${name}`),
  `create table book_index (
    id bigint primary key, title_key text collate "C" not null, author_key text collate "C" not null,
    year bigint not null, words tsvector not null, author_filed text collate "C"
  )`,
  'alter table book_index alter column words set statistics 1000',
  'alter table book_index set (parallel_workers = 0)', // one search must not take all cores from those who write
  `create table book_index_state (
    place bigint primary key, version integer not null, is_complete boolean not null, made_at timestamptz not null,
    seen pg_snapshot not null, target pg_snapshot not null, xid xid8 not null default '0', number bigint not null default 0,
    next bigint not null default 1, last bigint not null default 0
  )`,
];

/** On Citus, a book and its entry are on one server. */
const DISTRIBUTE = [
  "select create_distributed_table('book_index', 'id', colocate_with := 'books')",
  "select create_distributed_table('book_index_state', 'place', colocate_with := 'books')",
];

/** The indexes of the sorted part: their definitions by name. */
const SORTED = {
  book_index_titles: '(title_key, id)',
  book_index_authors: '(author_key, title_key, id)',
  book_index_years: '(year, id)',
  book_index_filed: `((${AUTHOR_FILED}), id)`,
  book_index_bare: `((${ARTICLES.bareTitle}), id) where ${ARTICLES.hasArticle}`,
  book_index_words: 'using gin (words)',
};

const INDEXES = Object.entries(SORTED).map(([name, definition]) => {
  return `create index if not exists ${name} on book_index ${definition}`;
});

/** Removes the content and the sorted part, and adds what the table of an older version lacks. It locks the state first, as `indexSome` does. In another order the two would deadlock. */
const EMPTY = [
  'truncate book_index_state, book_index',
  'alter table book_index add column if not exists author_filed text collate "C"',
  ...Object.keys(SORTED).map((name) => `drop index if exists ${name}`),
];

/** The role lacks a right. */
const FORBIDDEN = '42501';

/** Whether all tables of the index are there, and its sorted part. */
const DESCRIBE = `
  select to_regclass('book_index') is not null and exists (
    select from pg_attribute where attrelid = to_regclass('book_index_state') and attname = 'place'
  ) as "hasTables", (
    select count(*) = ${INDEXES.length} from pg_index where indrelid = to_regclass('book_index') and indexrelid in
      (${Object.keys(SORTED).map((name) => `to_regclass('${name}')`)})
  ) as "isSorted"`;

/** Whether the log has all rows that the index lacks. */
const FOLLOWS = `
  select bool_and(version = ${INDEX_VERSION} and pruned < pg_snapshot_xmin(seen)) as follows,
    bool_and(is_complete) as "isComplete"
  from book_log_state left join book_index_state using (place)`;

/** A condition for rows of the shard $1 that the index has. It is as strict as `FOLLOWS`, the condition of a start. */
export const IS_INDEXED =
  'oldest.xid < pg_snapshot_xmin((select seen from book_index_state where place = $1))';

/**
 * Notes that the index sees the snapshot $2 of the shard $1, if it has all rows. Otherwise a transaction that was in progress when it
 * read the latest row would keep later rows in the log until the next write.
 */
export const MOVE_ON = `
  update book_index_state as state set seen = $2::pg_snapshot, target = $2::pg_snapshot
  where place = $1 and version = ${INDEX_VERSION} and xid = '0' and next > last
    and pg_snapshot_xmin(seen) < pg_snapshot_xmin($2::pg_snapshot)
    and exists (select from book_log where place = $1 and xid >= pg_snapshot_xmin(seen)) and not exists (select from ${behind(1)})`;

/** `unindexed` also counts ids without a book. `madeAt` changes when the index is made again. */
const stateOf = (limit: number | 'all') => `
  select min(version) as version, bool_and("isComplete") as "isComplete", max(made)::text as "madeAt",
    coalesce(sum(unindexed), 0)::float8 as unindexed,
    coalesce(array_agg(place) filter (where unindexed > 0), '{}')::text[] as behind
  from (
    select state.place, version, is_complete as "isComplete", made_at as made,
      greatest(0, state.last - next + 1) + (state.xid <> '0')::integer + coalesce(sum(behind.last - book + 1), 0) as unindexed
    from book_index_state as state left join ${behind(limit)} on true group by state.place
  ) as shards`;

/** `STATE` reads at most `STEP` + 1 rows of the log for each shard, `WHOLE_STATE` all. */
export const STATE = stateOf(STEP + 1);
export const WHOLE_STATE = stateOf('all');
export const MADE_AT = 'select max(made_at)::text as "madeAt" from book_index_state';

// No other process indexes this shard until the end of the transaction. Losing the transaction in a crash costs nothing: the
// position comes back with it.
const LOCK = `
  select is_complete as "isComplete", seen::text, target::text, xid::text, number, next, last,
    set_config('synchronous_commit', 'off', true)
  from book_index_state where version = ${INDEX_VERSION} and place = $1 for update`;
const MOVE = `
  update book_index_state
  set seen = $2::pg_snapshot, target = $3::pg_snapshot, xid = $4::xid8, number = $5, next = $6, last = $7 where place = $1`;

const COLUMNS = `id, left(title, ${INDEXED_UNITS}) as title, left(author, ${INDEXED_UNITS}) as author, year`;
const READ = `select ${COLUMNS} from ${BOOKS}`;

const STORE = `
  insert into book_index (id, title_key, author_key, year, author_filed, words)
  select id, title_key, author_key, year, author_filed, words::tsvector
  from unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[])
    as book (id, title_key, author_key, year, author_filed, words)
  on conflict (id) do update set
    title_key = excluded.title_key, author_key = excluded.author_key, year = excluded.year,
    author_filed = excluded.author_filed, words = excluded.words`;

const REMOVE = 'delete from book_index where id = any($1::bigint[]) and id <> all($2::bigint[])';

export interface IndexState {
  readonly version: number;
  readonly isComplete: boolean;
  /** When the index was made; null without one. */
  readonly madeAt: string | null;
  /** About how many books are not indexed. */
  readonly unindexed: number;
  /** The shards with these books. */
  readonly behind: readonly string[];
}

interface Position extends LogPosition {
  readonly isComplete: boolean;
}

/**
 * Indexes the books of some rows of the log of one shard.
 * @param query sends a statement of a transaction that does nothing else.
 * @param time milliseconds of work before other work runs.
 * @returns about how many books; 0 if the index has all, or another version has made it.
 */
export async function indexSome(query: Query, shard: number | string, time: number): Promise<number> {
  const [position] = await query<Position>(LOCK, [shard]);
  if (position === undefined) return 0;
  const found = await readLog<Book>(query, shard, position, STEP, COLUMNS);
  const { ids, position: after, isEnd } = found;
  if (isEnd) return 0;
  const books = found.books ?? (await query<Book>(READ, [ids]));
  const entries: IndexEntry[] = [];
  const turn = new Turn(time);
  for (const book of books) {
    entries.push(entryOf(book));
    if (turn.isOver) await turn.next();
  }
  const keys = columnsOf(['id', 'titleKey', 'authorKey', 'year', 'authorFiled'], entries);
  await query(STORE, [...keys, entries.map(vectorOf)]);
  if (books.length < ids.length) await query(REMOVE, [ids, books.map(({ id }) => id)]);
  const { seen, target, xid, number, next, last } = after;
  await query(MOVE, [shard, seen, target, xid, number, next, last]);
  return Math.max(1, ids.length);
}

/**
 * Begins the index, unless it is there, of this version, and follows the log. It is complete at once if there are no books.
 * @param isDistributed whether several servers keep the books.
 * @throws Error with the reason when that is impossible.
 */
export async function prepareIndex(
  client: pg.Client,
  isDistributed: boolean,
  times: Times['postgres'],
): Promise<void> {
  try {
    await changeStructure(client, times, (query) => missingFrom(query, isDistributed));
  } catch (error) {
    if (codeOf(error) !== FORBIDDEN) throw error;
    throw new Error(
      `its index cannot be created or used (${(error as Error).message}): start the service once as the owner of the table "books", grant its rights, or set FIND=off`,
    );
  }
}

/** The statements that begin the index; none if it is sound. */
async function missingFrom(query: Query, isDistributed: boolean): Promise<string[]> {
  const [{ hasTables, isSorted } = {}] = await query<{ hasTables?: boolean; isSorted?: boolean }>(DESCRIBE);
  const [state] = hasTables ? await query<{ follows: boolean | null; isComplete: boolean }>(FOLLOWS) : [];
  if (state?.follows && (isSorted || !state.isComplete)) return [];
  // In this order: a book that is stored in between is in the log for the index.
  const shards = await query<LogShard>(LOG_SHARDS);
  const [books] = await query<{ last: number | null }>('select max(id) as last from books');
  const last = books?.last ?? 0;
  const rows = shards.map(({ shard, now }, position) => {
    const range = position === 0 ? last : 0; // one shard has the range of all books
    return `(${shard}, ${INDEX_VERSION}, ${last === 0}, now(), '${now}', '${now}', ${range})`;
  });
  return [
    ...(hasTables ? EMPTY : TABLES), // rights on the tables stay if all are there
    ...(isDistributed && !hasTables ? DISTRIBUTE : []),
    `insert into book_index_state (place, version, is_complete, made_at, seen, target, last) values ${rows}`,
    ...(last === 0 ? INDEXES : []),
  ];
}

/**
 * Creates the sorted part, once the first index has all books, unless another process does.
 * @param client without a limit of time for its statements: this takes a while.
 */
export async function sortIndex(
  client: pg.Client,
  { indexLock, indexStep }: Times['postgres'],
): Promise<void> {
  const query = queryOn(client, indexStep);
  await query(begin(indexLock, 'isolation level read committed'));
  const [first] = await query<LogShard>(LOG_SHARDS);
  const [position] = await query<Position>(LOCK, [first?.shard]);
  if (position?.isComplete === false) {
    for (const statement of [...INDEXES, 'analyze book_index']) await client.query(statement);
    await query('update book_index_state set is_complete = true');
  }
  await query('commit');
  // So that the sorted part can be read without the table. The server does it by itself, later.
  await client.query('vacuum book_index').catch(() => {});
}

/** The words of a book as a `tsvector` is written; those of each field are marked. No word has a quote or a backslash. */
function vectorOf({ titleWords, authorWords }: IndexEntry): string {
  const marked = (words: string, mark: string) => words.replace(/[^ ]+/g, `'$&':${mark}`);
  return `${marked(titleWords, '1A')} ${marked(authorWords, '2B')}`;
}
