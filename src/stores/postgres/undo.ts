// Owns: taking changes back in PostgreSQL (rule H5). Each function is called within a transaction, by its way to send a statement.
// Twin of `sqlite/undo.ts`.
// Does not: work on several servers: those that write do not know the event.

import { FIELD_NAMES } from '../../books/book.ts';
import {
  MOST_UNDONE,
  type NotUndone,
  type Once,
  StoreUnavailable,
  type Undone,
  type UndoOutcome,
  type UndoRequest,
} from '../../books/store.ts';
import { FIELDS, ID_AND_FIELDS } from '../columns.ts';
import {
  asNumbers,
  asUndone,
  batchesOf,
  changeOf,
  countOf,
  disjoint,
  hasChange,
  type IdRange,
  isEventOf,
  type OldestRow,
  reaches,
} from '../states.ts';
import { about, NEW_NUMBER, NOTE_EVENT, TAKE_EVENT_BACK } from './log.ts';
import type { Query } from './query.ts';
import { DURABLY, idsIn } from './statements.ts';

/** The changes that are taken back. */
export interface Selection {
  /** A condition in SQL, with a value: the parameter of this name. */
  readonly condition: (parameter: string) => string;
  readonly value: number;
  /** If it is one change, its book. */
  readonly book?: number;
}

/** Of the row that has the change $1. */
const FIND = `
  select last - number + $1::bigint as book, event from book_log
  where ${hasChange('$1::bigint')} and (book > 0 or part_of is null) order by number limit 1`;
const OLDEST = `
  select floor(extract(epoch from at) * 1000)::float8 as at, event, year from book_log
  where place = 0 order by xid, number limit 1`;

/** @returns why there is none. */
export async function select(query: Query, request: UndoRequest): Promise<Selection | NotUndone> {
  if ('since' in request) {
    const [oldest] = await query<OldestRow>(OLDEST);
    const condition = (since: string) =>
      `at >= to_timestamp(${since}::float8 / 1000) and event is distinct from 'undo'`;
    return oldest !== undefined && reaches(oldest, request.since)
      ? { condition, value: request.since }
      : 'beyond';
  }
  const value = 'change' in request ? request.change : request.import;
  const [row] = await query<{ book: number; event: string | null }>(FIND, [value]);
  if (row !== undefined && isEventOf(request, row))
    return { condition: (event) => `part_of = ${event}::bigint`, value };
  if (!row?.book || !('change' in request)) return 'unknown';
  return { condition: (number) => `change = ${number}::bigint`, value, book: row.book };
}

/** The books of a selection. */
export async function booksOf(
  query: Query,
  { condition, value, book }: Selection,
): Promise<readonly IdRange[]> {
  if (book !== undefined) return [{ book, last: book }];
  const text = `
    select book, max(last) as last from book_log
    where book > 0 and ${condition('$1')} group by book order by book`;
  return disjoint(await query<IdRange>(text, [value]));
}

/** Of two that bring the same book back, one waits here for the other. */
const BE_ALONE = 'select from book_log_state for update';
const LOCK = `select from books where id = any($1::bigint[]) and ${DURABLY} order by id for update`;

/** The present state follows the rows as one more. */
const LAST = Number.MAX_SAFE_INTEGER;
const stateOf = (book: string) => `array[${book}.title, ${book}.author, ${book}.year::text]`;

/**
 * For the books of $1: what each was before the first of the selected rows. It is free unless others have changed it since: what
 * they did between two of them, or after the last one, may only lead back to a state that it had before.
 */
const decisions = (condition: string) => `
  about as (
    select wanted.id, row.*, coalesce(${condition}, false) as selected, ${stateOf('row')} as before
    from ${idsIn('$1')} as wanted (id) cross join lateral (
      select ${changeOf('wanted.id')} as change, at, event, part_of, ${FIELDS} from ${about('0', 'wanted.id')}
    ) as row
    union all
    select id, ${LAST}, null, null, null, ${FIELDS}, true, ${stateOf('books')} from ${idsIn('$1')} as wanted (id) left join books using (id)
  ), followed as (
    select *, lag(selected) over (partition by id order by change) as previous,
      bool_or(selected) over (partition by id order by change rows between unbounded preceding and 1 preceding) as has_begun
    from about
  ), checked as (
    select *, not has_begun or not selected or previous or min(change) filter (where selected or has_begun and previous)
      over (partition by id, before) < change as is_free
    from followed
  ), decided as (
    select distinct on (id) id, ${FIELDS}, before, last_value(before) over book as present,
      bool_and(coalesce(is_free, true)) over book as is_free
    from checked where selected window book as (
      partition by id order by change rows between unbounded preceding and unbounded following
    ) order by id, change
  ), differing as (
    select *, present[1] is not null as is_there from decided where before is distinct from present
  )`;

const look = (condition: string) => `
  with ${decisions(condition)} select id, is_free as "isFree", is_free as "isWritten" from differing order by id`;

const carryOut = (condition: string) => `
  with ${decisions(condition)}, removed as (
    delete from books using differing as wanted where books.id = wanted.id and is_free and wanted.title is null
    returning books.id
  ), changed as (
    update books set ${FIELD_NAMES.map((name) => `${name} = wanted.${name}`)}
    from differing as wanted where books.id = wanted.id and is_free and wanted.title is not null returning books.id
  ), stored as (
    insert into books (${ID_AND_FIELDS})
    select ${ID_AND_FIELDS} from differing where is_free and title is not null and not is_there returning id
  )
  select id, is_free as "isFree", written.id is not null as "isWritten"
  from differing left join (
    select id from removed union all select id from changed union all select id from stored
  ) as written using (id) order by id`;

interface Decision {
  readonly id: number;
  readonly isFree: boolean;
  readonly isWritten: boolean;
}

/**
 * Makes books what they were before the selected rows.
 * @param isDryRun whether it only looks.
 * @throws StoreUnavailable if an operator's trigger has skipped some.
 */
export async function undoBooks(
  query: Query,
  { condition, value }: Selection,
  ids: readonly number[],
  isDryRun: boolean,
): Promise<Omit<Undone, 'change'>> {
  if (!isDryRun) {
    await query(BE_ALONE);
    await query(LOCK, [ids]);
  }
  const text = isDryRun ? look(condition('$2')) : carryOut(condition('$2'));
  const rows = await query<Decision>(text, [ids, value]);
  const undone = rows.filter(({ isWritten }) => isWritten).length;
  const left = rows.filter(({ isFree }) => !isFree).map(({ id }) => id);
  if (undone + left.length < rows.length)
    throw new StoreUnavailable(`a trigger has skipped some of the writes: ${rows.length}`, 'refused');
  return { undone, left };
}

/** Books of one statement. */
export const UNDONE_BOOKS = 1000;

const CLAIM = `
  insert into book_requests (key, fingerprint, ids) select $1, $2, '{}' where ${DURABLY} on conflict (key) do nothing returning key`;
const KNOWN = 'select fingerprint, ids from book_requests where key = $1';
const KEEP = 'update book_requests set ids = $2 where key = $1';

/** Takes changes back, with the key of a request. */
export async function undo(query: Query, request: UndoRequest, once: Once | undefined): Promise<UndoOutcome> {
  if (once !== undefined && (await query(CLAIM, [once.key, once.fingerprint])).length === 0) {
    const [known] = await query<{ fingerprint: string; ids: readonly string[] }>(KNOWN, [once.key]);
    if (known?.fingerprint !== once.fingerprint) return 'conflict';
    return { ...asUndone(known.ids.map(Number)), isReplay: true };
  }
  const selection = await select(query, request);
  const ranges = typeof selection === 'string' ? [] : await booksOf(query, selection);
  const reason =
    typeof selection === 'string' ? selection : countOf(ranges) > MOST_UNDONE ? 'many' : undefined;
  if (typeof selection === 'string' || reason !== undefined) {
    if (once !== undefined) await query('delete from book_requests where key = $1', [once.key]);
    return reason ?? 'unknown';
  }
  const [{ number } = { number: 0 }] = await query<{ number: number }>(NEW_NUMBER);
  await query(NOTE_EVENT, ['undo', number, null]);
  let undone = 0;
  const left: number[] = [];
  for (const ids of batchesOf(ranges, UNDONE_BOOKS)) {
    const some = await undoBooks(query, selection, ids, false);
    undone += some.undone;
    left.push(...some.left);
  }
  if (undone === 0) await query(TAKE_EVENT_BACK, [number]);
  const answer = { change: undone > 0 ? number : null, undone, left };
  if (once !== undefined) await query(KEEP, [once.key, asNumbers(answer)]);
  return { ...answer, isReplay: false };
}
