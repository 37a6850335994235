// Owns: the search index in PostgreSQL: its tables, and how it follows the books. Triggers note which books change, whichever
// program changes them. A transaction of plain statements indexes those of some notes; it locks the one row of
// `book_index_state`, so that it is alone. Twin of `sqlite/book-index.ts`.
// Does not: index within the transactions that write books, which would make them four times as expensive.

import type pg from 'pg';
import type { Book } from '../../books/book.ts';
import { INDEXED_UNITS } from '../../books/words.ts';
import type { Times } from '../../times.ts';
import { entryOf, INDEX_VERSION, type IndexEntry } from '../book-index.ts';
import type { Query } from './connections.ts';
import { begin, withTimeout } from './limits.ts';
import { WITH_IDS } from './statements.ts';
import { changeStructure, look } from './structure.ts';

/** Notes that are taken together, and books that are indexed together: a few milliseconds of work in this process. */
const STEP = 1000;

/** Above every id, and so in the note that stands for all books. */
const LAST_ID = Number.MAX_SAFE_INTEGER;

// The words of a book are written by us: no parser or dictionary of the server sees them. A note is a range of ids, as
// narrow as a statement that has written many books allows.
const TABLES = [
  ...['book_index', 'book_index_queue', 'book_index_state'].map((name) => `drop table if exists ${name}`),
  `create table book_index (
    id bigint primary key, title_key text collate "C" not null, author_key text collate "C" not null,
    year bigint not null, words tsvector not null
  )`,
  'alter table book_index alter column words set statistics 1000',
  'alter table book_index set (parallel_workers = 0)', // one search must not take all cores from those who write
  'create table book_index_queue (first bigint not null, last bigint not null)',
  `create table book_index_state (
    version integer not null, round bigint not null default 0, is_complete boolean not null
  )`,
];

/**
 * On the workers of Citus, the notes on a book and its place in the index are beside it. So its triggers may write them there,
 * which Citus allows on request. The last statement lets shards move beside writers.
 */
const ALLOW_TRIGGERS = 'set local citus.enable_unsafe_triggers = on';
const DISTRIBUTE = [
  "select create_distributed_table('book_index', 'id', colocate_with := 'books')",
  "select create_distributed_table('book_index_queue', 'first', colocate_with := 'books')",
  'alter table book_index_queue replica identity full',
];

/** The indexes of the sorted part: their definitions by name. */
const SORTED = {
  book_index_titles: '(title_key, id)',
  book_index_authors: '(author_key, title_key, id)',
  book_index_years: '(year, id)',
  book_index_words: 'using gin (words)',
};

const INDEXES = Object.entries(SORTED).map(([name, definition]) => {
  return `create index if not exists ${name} on book_index ${definition}`;
});

/** Removes the content and the sorted part. The state is locked first, as by what indexes, or each would wait for the other. */
const EMPTY = [
  'truncate book_index_state, book_index_queue, book_index',
  ...Object.keys(SORTED).map((name) => `drop index if exists ${name}`),
];

/**
 * The function of the triggers. It has the rights of its owner, so a role that may write books needs none on the queue; and a
 * search path without temporary tables before the queue, so such a role gets no other right by it. On a server of Citus it belongs
 * to a shard of books, and its notes to the shard of the queue that is beside it.
 * @param schema of the queue, quoted.
 */
const noteFunction = (schema: string) => `
  create or replace function book_index_note() returns trigger
  language plpgsql security definer set search_path = ${schema}, pg_temp as $$
    declare low bigint; high bigint; many bigint; queue text;
    begin
      if tg_table_name <> 'books' then
        select 'book_index_queue_' || queues.shardid into strict queue
          from pg_dist_shard as own join pg_dist_shard as queues using (shardminvalue)
          where 'books_' || own.shardid = tg_table_name and queues.logicalrelid = 'book_index_queue'::regclass;
        if tg_op = 'TRUNCATE' then
          execute format('insert into %I values (1, ${LAST_ID})', queue);
        else
          execute format('insert into %I select id, id from changed', queue);
        end if;
      elsif tg_op = 'TRUNCATE' then
        insert into book_index_queue values (1, ${LAST_ID});
      elsif tg_level = 'ROW' then
        insert into book_index_queue values (old.id, old.id);
      elsif tg_name = 'book_index_on_new_id' then
        insert into book_index_queue select id, id from before except select id, id from changed;
      else
        select min(id), max(id), count(*) into low, high, many from changed;
        if high - low < 4 * many then
          insert into book_index_queue values (low, high);
        elsif many > 0 then
          insert into book_index_queue select id, id from changed;
        end if;
      end if;
      return null;
    end $$`;

/** Begins the first index, which is complete at once if there are no books. Without the limit, Citus would gather all of them. */
const START = `
  do $$ declare has_books boolean := exists (select 1 from books limit 1);
  begin
    insert into book_index_state (version, is_complete) values (${INDEX_VERSION}, not has_books);
    if has_books then
      insert into book_index_queue values (1, ${LAST_ID});
    else
      ${INDEXES.join('; ')};
    end if;
  end $$`;

/** By name. Of an update that changes ids, the old ones are noted by rows. */
const TRIGGERS: Readonly<Record<string, string>> = {
  book_index_on_insert: 'after insert on books referencing new table as changed for each statement',
  book_index_on_update: 'after update on books referencing new table as changed for each statement',
  book_index_on_delete: 'after delete on books referencing old table as changed for each statement',
  book_index_on_new_id: 'after update of id on books for each row when (old.id <> new.id)',
  book_index_on_truncate: 'after truncate on books for each statement',
};

// A partitioned table fires no trigger for a row that an update of its id moves to another partition: the old ids are
// noted together.
const PARTITIONED_TRIGGERS = {
  ...TRIGGERS,
  book_index_on_new_id:
    'after update on books referencing old table as before new table as changed for each statement',
};

/** The role lacks a right. */
const FORBIDDEN = '42501';

const DESCRIBE = `
  select relkind = 'p' as "isPartitioned", (
    select count(*) = 3 from pg_class where oid in
      (to_regclass('book_index'), to_regclass('book_index_queue'), to_regclass('book_index_state'))
  ) as "hasTables", (
    select count(*) = ${Object.keys(TRIGGERS).length} from pg_trigger join pg_proc on pg_proc.oid = tgfoid
    where tgrelid = books.oid and tgname = any($1::text[]) and tgenabled in ('O', 'A')
      and not (relkind = 'p' and tgtype & 1 = 1) and array_to_string(proconfig, ' ') like '%, pg_temp'
  ) as "hasTriggers", (
    select count(*) = ${INDEXES.length} from pg_index where indrelid = to_regclass('book_index') and indexrelid in
      (${Object.keys(SORTED).map((name) => `to_regclass('${name}')`)})
  ) as "isSorted", coalesce(
    (select relnamespace::regnamespace::text from pg_class where oid = to_regclass('book_index_queue')),
    quote_ident(current_schema())
  ) as schema
  from pg_class as books where oid = to_regclass('books')`;

/**
 * `unindexed` has also ids that no book has, since counting the books would read all of them; of the notes on all books, as many as
 * the sequence has given out. `file` is another one once the index has been emptied to be made again.
 */
export const STATE = `
  select version, is_complete as "isComplete", pg_relation_filenode('book_index') as file,
    narrow + case when beginning is null then 0
      else greatest(1, coalesce(pg_sequence_last_value('books_id_seq'), 0) - beginning + 1) end as unindexed
  from book_index_state, (
    select coalesce(sum(last - first + 1) filter (where last < ${LAST_ID}), 0)::float8 as narrow,
      min(first) filter (where last = ${LAST_ID}) as beginning
    from book_index_queue
  ) as queue`;

// No other process indexes until the end of the transaction. Builds before version 1.1 store nothing if the round is another
// one than when they read the notes. Losing the transaction in a crash costs nothing: the notes come back with it.
const LOCK = `
  update book_index_state set round = round + 1 where version = ${INDEX_VERSION}
  returning is_complete as "isComplete", set_config('synchronous_commit', 'off', true)`;

const PLACES = `select ctid from book_index_queue limit ${STEP}`;

// Where several servers have the notes, each has such places, so this may remove more of them: all are carried out.
const TAKE = 'delete from book_index_queue where ctid = any($1::tid[]) returning first, last';
const PUT_BACK = 'insert into book_index_queue select * from unnest($1::bigint[], $2::bigint[])';

const BEGINNINGS = `left(title, ${INDEXED_UNITS}) as title, left(author, ${INDEXED_UNITS}) as author`;

const READ_RANGE = `select id, ${BEGINNINGS}, year from books where id between $1 and $2 order by id limit ${STEP}`;
const READ_IDS = `select id, ${BEGINNINGS}, year from ${WITH_IDS}`;

const STORE = `
  insert into book_index (id, title_key, author_key, year, words)
  select id, title_key, author_key, year, words::tsvector
  from unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[])
    as book (id, title_key, author_key, year, words)
  on conflict (id) do update set
    title_key = excluded.title_key, author_key = excluded.author_key, year = excluded.year, words = excluded.words`;

const REMOVE = `
  delete from book_index where (id = any($1::bigint[]) or id between $2 and $3) and id <> all($4::bigint[])`;

export interface IndexState {
  readonly version: number;
  readonly isComplete: boolean;
  /** In which the server keeps the index. */
  readonly file: number;
  /** About how many books are not indexed. */
  readonly unindexed: number;
}

/** Books with these ids have been written. */
interface Note {
  readonly first: number;
  readonly last: number;
}

interface BooksTable {
  readonly isPartitioned: boolean;
  /** Whether all tables of the index are there. */
  readonly hasTables: boolean;
  /** Whether all triggers are there and in effect, and their function is the present one. */
  readonly hasTriggers: boolean;
  /** Whether the sorted part is there. */
  readonly isSorted: boolean;
  /** Of the index, quoted. */
  readonly schema: string;
}

/** A range without ids. */
const NO_RANGE = { first: 1, last: 0 };

/**
 * Indexes the books of some notes.
 * @param query sends a statement of a transaction that does nothing else.
 * @returns how many ids of notes are done; 0 if there are no notes, or another version has made the index.
 */
export async function indexSome(query: Query): Promise<number> {
  if ((await query(LOCK)).rowCount === 0) return 0;
  const places = await query<{ ctid: string }>(PLACES);
  if (places.rowCount === 0) return 0;
  // A change that is committed after this has a note that stays; one before it is in the books that are read.
  const notes = await query<Note>(TAKE, [places.rows.map(({ ctid }) => ctid)]);
  const { ids, wide, rest } = taskOf(notes.rows);
  const range = wide ?? NO_RANGE;
  const ofIds = ids.length === 0 ? [] : (await query<Book>(READ_IDS, [ids])).rows;
  const ofRange = wide === undefined ? [] : (await query<Book>(READ_RANGE, [wide.first, wide.last])).rows;
  const reached = ofRange.length === STEP ? (ofRange.at(-1) as Book).id : range.last;
  if (reached < range.last) rest.push({ first: reached + 1, last: range.last });
  const entries = [...ofIds, ...ofRange].map(entryOf);
  const stored = entries.map(({ id }) => id);
  await query(STORE, [
    stored,
    entries.map(({ titleKey }) => titleKey),
    entries.map(({ authorKey }) => authorKey),
    entries.map(({ year }) => year),
    entries.map(vectorOf),
  ]);
  if (wide !== undefined || ofIds.length < ids.length)
    await query(REMOVE, [ids, range.first, reached, stored]);
  if (rest.length > 0) await query(PUT_BACK, [rest.map(({ first }) => first), rest.map(({ last }) => last)]);
  return Math.max(1, idsOf(notes.rows) - idsOf(rest));
}

/**
 * Begins the index, unless it is there, of this version and with all that notes changes of books. It is complete at once if
 * there are no books.
 * @param isDistributed whether several servers keep the books.
 * @throws Error with the reason when that is impossible.
 */
export async function prepareIndex(
  client: pg.Client,
  isDistributed: boolean,
  times: Times['postgres'],
): Promise<void> {
  try {
    await changeStructure(client, times, () => missingFrom(client, isDistributed, times));
  } catch (error) {
    if ((error as { code?: string }).code !== FORBIDDEN) throw error;
    throw new Error(
      `its index cannot be created or used (${(error as Error).message}): start the service once as the owner of the table "books", grant its rights, or set FIND=off`,
    );
  }
}

/** The statements that begin the index; none if it is sound. */
async function missingFrom(
  client: pg.Client,
  isDistributed: boolean,
  times: Times['postgres'],
): Promise<string[]> {
  const [books] = await look<BooksTable>(client, times, DESCRIBE, [Object.keys(TRIGGERS)]);
  const { isPartitioned = false, hasTables = false, schema = '' } = books ?? {};
  const [state] = hasTables ? await look<IndexState>(client, times, STATE) : [];
  const isCurrent = state?.version === INDEX_VERSION && (books?.isSorted || !state.isComplete);
  if (isCurrent && books?.hasTriggers) return [];
  return [
    'lock table books in share row exclusive mode',
    ...(isDistributed ? [ALLOW_TRIGGERS] : []),
    noteFunction(schema),
    ...(hasTables ? EMPTY : TABLES), // rights on the tables stay if all are there
    ...(isDistributed && !hasTables ? DISTRIBUTE : []),
    // Only the replacement of a trigger for rows by one for statements needs a lock that readers wait for.
    ...(isPartitioned ? ['drop trigger if exists book_index_on_new_id on books'] : []),
    ...Object.entries(isPartitioned ? PARTITIONED_TRIGGERS : TRIGGERS).map(([name, when]) => {
      return `create or replace trigger ${name} ${when} execute function ${schema}.book_index_note()`;
    }),
    START,
  ];
}

/**
 * Makes the first index. Several processes may do that together; one of them creates the sorted part.
 * @param client without a limit of time for its statements: the sorted part takes a while. It is of no further use after an error.
 * @yields about how many books are left.
 */
export async function* buildIndex(
  client: pg.Client,
  { indexLock, indexStep }: Times['postgres'],
): AsyncGenerator<number, void> {
  const query: Query = (text, values = []) => client.query(withTimeout(text, values, indexStep));
  const transaction = async <Result>(work: () => Promise<Result>) => {
    await query(begin(indexLock, 'isolation level read committed'));
    const result = await work();
    await query('commit');
    return result;
  };
  while ((await transaction(() => indexSome(query))) > 0) {
    const [state] = (await query<IndexState>(STATE)).rows;
    yield Math.max(1, state?.unindexed ?? 0);
  }
  await transaction(async () => {
    const [state] = (await query<IndexState>(LOCK)).rows;
    if (state?.isComplete !== false) return;
    for (const statement of [...INDEXES, 'analyze book_index']) await client.query(statement);
    await query('update book_index_state set is_complete = true');
  });
  // So that the sorted part can be read without the table. The server does it by itself, later.
  await client.query('vacuum book_index').catch(() => {});
  yield 0;
}

/**
 * What is done together: narrow notes, and the beginning of a wide one, or neither would end beside the other. Notes that touch
 * each other become one.
 */
function taskOf(notes: readonly Note[]): { ids: number[]; wide: Note | undefined; rest: Note[] } {
  const ranges: { first: number; last: number }[] = [];
  for (const { first, last } of notes.toSorted((one, other) => one.first - other.first)) {
    const before = ranges.at(-1);
    if (before !== undefined && first <= before.last + 1) before.last = Math.max(before.last, last);
    else ranges.push({ first, last });
  }
  const wide = ranges.find(({ first, last }) => last - first >= STEP);
  const ids: number[] = [];
  const rest: Note[] = [];
  for (const range of ranges) {
    const { first, last } = range;
    if (range === wide) continue;
    if (ids.length + last - first >= STEP) rest.push(range);
    else for (let id = first; id <= last; id += 1) ids.push(id);
  }
  return { ids, wide, rest };
}

function idsOf(notes: readonly Note[]): number {
  return notes.reduce((ids, { first, last }) => ids + last - first + 1, 0);
}

/** The words of a book as a `tsvector` is written; those of each field are marked. */
function vectorOf({ titleWords, authorWords }: IndexEntry): string {
  return `${lexemes(titleWords, '1A')} ${lexemes(authorWords, '2B')}`;
}

/** No word has a quote or a backslash. */
function lexemes(words: string, position: string): string {
  return words === ''
    ? ''
    : words
        .split(' ')
        .map((word) => `'${word}':${position}`)
        .join(' ');
}
