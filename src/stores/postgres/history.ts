// Owns: the states of a book, read from the log in PostgreSQL (rule H4). Twin of `sqlite/history.ts`.

import type { States } from '../../books/change-log.ts';
import { HEAVY } from '../../books/store.ts';
import { FIELDS, TEXT_BYTES } from '../columns.ts';
import type { Query } from '../query.ts';
import { BookStates, changeOf, type Fields, hasChange, type RowOfBook } from '../states.ts';
import { about } from './log.ts';

/** Milliseconds since 1970. */
export const milliseconds = (at: string) => `floor(extract(epoch from ${at}) * 1000)::float8`;
/** When the kept part of the log begins. */
export const BEGAN = '(select at from book_log where place = $1 order by xid, number limit 1)';

const ID = '$2::bigint';
const AT = `${milliseconds('at')} as at`;
const ROW = `select ${FIELDS} from ${about('$1', ID)} where ${hasChange('$3::bigint')} and ${changeOf(ID)} = $3`;

/** The most rows about a book that are read together. */
const ROWS = 100;
const NEWEST = `order by number desc limit ${ROWS}`;
/** Rows about the book $2 before the number $3, the newest first, and none after heavy ones. */
const OLDER_ROWS = `
  select change, ${AT}, ${FIELDS} from (
    select *, sum(bytes) over (order by change desc) - bytes as before from (
      select ${changeOf(ID)} as change, at, ${FIELDS}, ${TEXT_BYTES} as bytes
      from ${about('$1', ID, `and number < $3 ${NEWEST}`)} ${NEWEST}
    ) as rows
  ) as rows where before < ${HEAVY} order by change desc`;
/** The present state before such rows, all from one snapshot. */
const ALL_ROWS = `
  select null::bigint as change, null::float8 as at, ${FIELDS} from books where id = $2
  union all (${OLDER_ROWS}) order by change desc nulls first`;

/**
 * The states of a book.
 * @param shard of the log, with the rows about the book.
 * @param before the number of a change; undefined to begin with the present state.
 */
export async function statesOf(
  query: Query,
  shard: number,
  id: number,
  before: number | undefined,
  most: number,
): Promise<States> {
  const ask = <Row extends object>(text: string, more: unknown) => query<Row>(text, [shard, id, more]);
  let end = before ?? Number.MAX_SAFE_INTEGER;
  let rows = await ask<RowOfBook>(before === undefined ? ALL_ROWS : OLDER_ROWS, end);
  const isPresent = rows[0]?.change === null;
  const [latest] = before === undefined ? rows.slice(0, isPresent ? 1 : 0) : await ask<Fields>(ROW, before);
  if (before !== undefined && latest === undefined) return { states: [], next: undefined }; // it is no longer kept
  if (isPresent) rows = rows.slice(1);
  const states = new BookStates(id, latest, most);
  for (; rows.length > 0; rows = await ask<RowOfBook>(OLDER_ROWS, end)) {
    for (const row of rows) if (states.add(row)) return states.full;
    end = (rows.at(-1) as RowOfBook).change;
  }
  const [began] = await query<{ at: number }>(`select ${milliseconds(BEGAN)} as at`, [shard]);
  return states.whole(began?.at ?? 0);
}
