// Owns: the search index in PostgreSQL: its tables, and how it follows the books. Triggers note which
// books change, whichever program changes them. Every statement is independent, so it works through a pooler in transaction mode.
// Twin of `sqlite/book-index.ts`.
// Does not: index within the transactions that write books, which would make them four times as expensive.

import type pg from 'pg';
import type { Book } from '../../books/book.ts';
import { INDEXED_UNITS } from '../../books/words.ts';
import type { Times } from '../../times.ts';
import { entryOf, INDEX_VERSION, type IndexEntry } from '../book-index.ts';
import { begin, withTimeout } from './limits.ts';
import { WITH_IDS } from './statements.ts';
import { changeStructure, look } from './structure.ts';

/** Books that are indexed together: a few milliseconds of work in this process. */
const STEP = 1000;

/** Notes that are read together. */
const NOTES = 500;

/** Above every id, and so in the note that stands for all books. */
const LAST_ID = Number.MAX_SAFE_INTEGER;

// The words of a book are written by us: no parser or dictionary of the server sees them. A note is a range of ids, as
// narrow as a statement that has written many books allows.
const TABLES = [
  'drop table if exists book_index, book_index_queue, book_index_state',
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

/** Removes the content and the sorted part. */
const EMPTY = [
  'truncate book_index, book_index_queue, book_index_state',
  `drop index if exists ${Object.keys(SORTED).join(', ')}`,
];

/**
 * The function of the triggers. It has the rights of its owner, so a role that may write books needs none on the queue; and a
 * search path without temporary tables before the queue, so such a role gets no other right by it.
 * @param schema of the queue, quoted.
 */
const noteFunction = (schema: string) => `
  create or replace function book_index_note() returns trigger
  language plpgsql security definer set search_path = ${schema}, pg_temp as $$
    declare low bigint; high bigint; many bigint;
    begin
      if tg_op = 'TRUNCATE' then
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

/**
 * Begins the first index, which is complete at once if there are no books. Its rounds begin above those of any index
 * before it, so that a process that is still at work for that one stores nothing in this one: microseconds since 1970.
 */
const START = `
  do $$ begin
    insert into book_index_state (version, round, is_complete)
      select ${INDEX_VERSION}, extract(epoch from clock_timestamp()) * 1000000, not exists (select from books);
    if exists (select from books) then
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

const VERSION = 'select version, is_complete as "isComplete" from book_index_state';

const LOCK_INCOMPLETE = 'select from book_index_state where not is_complete for update';

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

/** In which the server keeps the index and its notes: others once the index is made again, or a table is rewritten. */
const FILES =
  "(select pg_relation_filenode('book_index') || ' ' || pg_relation_filenode('book_index_queue'))";

const STATE = `
  select version, round, is_complete as "isComplete", ${FILES} as files, tid, first, last
  from book_index_state left join (
    select ctid::text as tid, first, last from book_index_queue limit ${NOTES}
  ) as note on true`;

// Ids that no book has are also counted, since counting the books would read all of them.
const COUNT_PENDING = `
  select coalesce(sum(greatest(1, least(last, coalesce((select max(id) from books), 0)) - first + 1)), 0) as books
  from book_index_queue`;

const BEGINNINGS = `left(title, ${INDEXED_UNITS}) as title, left(author, ${INDEXED_UNITS}) as author`;

const READ_RANGE = `select id, ${BEGINNINGS}, year from books where id between $1 and $2 order by id limit ${STEP}`;
const READ_IDS = `select id, ${BEGINNINGS}, year from ${WITH_IDS}`;

// Takes effect only if no other process has indexed anything since the notes were read, since that process may have
// stored a newer book; and only if the notes are in the same places. Losing it in a crash costs nothing: the notes come
// back with it.
const INDEX = `
  with turn as (
    update book_index_state set round = round + 1 where round = $1 and version = ${INDEX_VERSION} and ${FILES} = $13
    returning round
  ), stored as (
    insert into book_index (id, title_key, author_key, year, words)
    select id, title_key, author_key, year, words::tsvector
    from unnest($2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::text[])
      as book (id, title_key, author_key, year, words)
    where exists (select from turn)
    on conflict (id) do update set
      title_key = excluded.title_key, author_key = excluded.author_key, year = excluded.year, words = excluded.words
  ), removed as (
    delete from book_index
    where exists (select from turn) and (id = any($7::bigint[]) or id between $8 and $9) and id <> all($2::bigint[])
  ), taken as (
    delete from book_index_queue where exists (select from turn) and ctid = any($10::tid[])
  ), shortened as (
    update book_index_queue set first = $11 where exists (select from turn) and ctid = $12::tid
  )
  select exists (select from turn) as indexed, set_config('synchronous_commit', 'off', true)`;

/** Whether the index has not been made again since its state was read. */
export const IS_IN_FILES = `select ${FILES} = $1 as "isSame"`;

/** Runs a statement; its caller gives up at the deadline, if there is one. */
export type Query = <Row extends pg.QueryResultRow>(
  text: string,
  values: unknown[],
  deadline?: number,
) => Promise<readonly Row[]>;

/** Books with these ids have been written. */
interface Note {
  /** Its place in the table. */
  readonly tid: string;
  readonly first: number;
  readonly last: number;
}

export interface IndexState {
  readonly version: number;
  /** Grows whenever something is indexed. */
  readonly round: number;
  readonly isComplete: boolean;
  /** In which the server keeps the index and its notes. */
  readonly files: string;
  /** Some of those that are left. */
  readonly notes: readonly Note[];
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

/** Which notes are carried out together. */
interface Task {
  /** Of narrow notes, and the places of these. */
  readonly ids: readonly number[];
  readonly narrow: readonly string[];
  /** Of which as much is done as fits into one step. */
  readonly wide: Note | undefined;
}

/** A range without ids. */
const NO_RANGE = { first: 1, last: 0 };

/** Keeps the index up to date, by one independent statement after the other. */
export class IndexFollower {
  readonly #query: Query;

  constructor(query: Query) {
    this.#query = query;
  }

  /** @param deadline of the caller, on the clock of `performance.now()`. */
  async state(deadline?: number): Promise<IndexState> {
    const rows = await this.#query<Omit<IndexState, 'notes'> & Note>(STATE, [], deadline);
    const { version = 0, round = 0, isComplete = false, files = '' } = rows[0] ?? {};
    return { version, round, isComplete, files, notes: rows.filter(({ tid }) => tid !== null) };
  }

  /** About how many books are not indexed. */
  async countPending(deadline?: number): Promise<number> {
    const [row] = await this.#query<{ books: string }>(COUNT_PENDING, [], deadline);
    return Number(row?.books);
  }

  /**
   * Indexes the books of some notes.
   * @returns how many ids and books they are about; 0 if another process was faster: nothing has been indexed then.
   */
  async index({ round, isComplete, files, notes }: IndexState): Promise<number> {
    const { ids, narrow, wide } = taskOf(notes, isComplete);
    const range = wide ?? NO_RANGE;
    const ofRange = wide === undefined ? [] : await this.#query<Book>(READ_RANGE, [wide.first, wide.last]);
    const reached = ofRange.length === STEP ? (ofRange.at(-1) as Book).id : range.last;
    const isDone = reached === range.last;
    const others = ids.filter((id) => id < range.first || id > reached);
    const ofIds = others.length === 0 ? [] : await this.#query<Book>(READ_IDS, [others]);
    const books = [...ofRange, ...ofIds];
    const entries = books.map(entryOf);
    const [outcome] = await this.#query<{ indexed: boolean }>(INDEX, [
      round,
      entries.map(({ id }) => id),
      entries.map(({ titleKey }) => titleKey),
      entries.map(({ authorKey }) => authorKey),
      entries.map(({ year }) => year),
      entries.map(vectorOf),
      others,
      range.first,
      reached,
      wide !== undefined && isDone ? [...narrow, wide.tid] : narrow,
      reached + 1,
      wide !== undefined && !isDone ? wide.tid : null,
      files,
    ]);
    return outcome?.indexed ? Math.max(1, books.length, ids.length) : 0;
  }
}

/**
 * Begins the index, unless it is there, of this version and with all that notes changes of books. It is complete at once if
 * there are no books.
 * @throws Error with the reason when that is impossible.
 */
export async function prepareIndex(client: pg.Client, times: Times['postgres']): Promise<void> {
  try {
    await changeStructure(client, times, () => missingFrom(client, times));
  } catch (error) {
    if ((error as { code?: string }).code !== FORBIDDEN) throw error;
    throw new Error(
      `its index cannot be created or used (${(error as Error).message}): start the service once as the owner of the table "books", grant its rights, or set FIND=off`,
    );
  }
}

/** The statements that begin the index; none if it is sound. */
async function missingFrom(client: pg.Client, times: Times['postgres']): Promise<string[]> {
  const [books] = await look<BooksTable>(client, times, DESCRIBE, [Object.keys(TRIGGERS)]);
  const { isPartitioned = false, hasTables = false, schema = '' } = books ?? {};
  const [state] = hasTables
    ? await look<{ version: number; isComplete: boolean }>(client, times, VERSION)
    : [];
  const isCurrent = state?.version === INDEX_VERSION && (books?.isSorted || !state.isComplete);
  if (isCurrent && books?.hasTriggers) return [];
  return [
    'lock table books in share row exclusive mode',
    ...(hasTables ? EMPTY : TABLES), // rights on the tables stay if all are there
    noteFunction(schema),
    // Only the replacement of a trigger for rows by one for statements needs a lock that readers wait for.
    ...(isPartitioned ? ['drop trigger if exists book_index_on_new_id on books'] : []),
    ...Object.entries(isPartitioned ? PARTITIONED_TRIGGERS : TRIGGERS).map(([name, when]) => {
      return `create or replace trigger ${name} ${when} execute function book_index_note()`;
    }),
    START,
  ];
}

/**
 * Makes the first index, unless another process does.
 * @param client without a limit of time for its statements: the sorted part takes a while.
 * @yields about how many books are left.
 */
export async function* buildIndex(client: pg.Client, times: Times['postgres']): AsyncGenerator<number, void> {
  const follower = new IndexFollower(
    async <Row extends pg.QueryResultRow>(text: string, values: unknown[]) => {
      await client.query(withTimeout(begin(times.indexLock), [], times.indexStep));
      const { rows } = await client.query<Row>(withTimeout(text, values, times.indexStep));
      await client.query(withTimeout('commit', [], times.indexStep));
      return rows;
    },
  );
  for (let state = await follower.state(); state.notes.length > 0; state = await follower.state()) {
    if ((await follower.index(state)) === 0) return;
    yield Math.max(1, await follower.countPending());
  }
  await complete(client, times);
  yield 0;
}

/** Creates the sorted part of the first index, which nothing has needed before. One process at a time does it. */
async function complete(client: pg.Client, { indexLock, indexStep }: Times['postgres']): Promise<void> {
  /** @param timeout milliseconds; none for what takes longer the more books there are. */
  const query = async (text: string, timeout = 0) =>
    (await client.query(withTimeout(text, [], timeout))).rows;
  await query(begin(indexLock), indexStep);
  try {
    const isOpen = await query(LOCK_INCOMPLETE, indexStep);
    if (isOpen.length > 0) {
      for (const statement of [...INDEXES, 'analyze book_index']) await query(statement);
      await query('update book_index_state set is_complete = true');
    }
    await query('commit');
  } catch (error) {
    await query('rollback', indexStep).catch(() => {}); // the server may be silent
    throw error;
  }
  // So that the sorted part can be read without the table. The server does it by itself, later.
  await query('vacuum book_index').catch(() => {});
}

/**
 * Narrow notes together, and with them the beginning of a wide one, or neither would end beside the other. Before the first
 * index is complete, nothing is searched, so the note that stands for all books comes alone.
 */
function taskOf(notes: readonly Note[], isComplete: boolean): Task {
  const isWide = ({ first, last }: Note) => last - first >= STEP;
  const wide = notes.find(isWide);
  const ids = new Set<number>();
  const narrow: string[] = [];
  for (const { tid, first, last } of wide !== undefined && !isComplete ? [] : notes) {
    if (last - first >= STEP) continue;
    if (ids.size > 0 && ids.size + last - first >= STEP) break;
    for (let id = first; id <= last; id += 1) ids.add(id);
    narrow.push(tid);
  }
  return { ids: [...ids], narrow, wide };
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
