// Owns: SQL that several statements on books share.

import type { Book } from '../../books/book.ts';
import { HEAVY } from '../../books/store.ts';
import { COLUMNS, ID_AND_FIELDS, TEXT_BYTES } from '../columns.ts';
import type { Connections } from './connections.ts';

/**
 * The books with the ids of $1, as the end of a statement's `from` and the beginning of its conditions: each id is looked
 * for in its own partition, if there are any.
 */
export const WITH_IDS = 'unnest($1::bigint[]) as wanted (id) join books using (id) where true';

/** Bytes of the texts of a book that a statement for many books reads with them: 512 of them take 32 MiB. */
const LARGEST_LIGHT = 65_536;

/** A condition that every book meets whose texts are not large. */
export const IS_LIGHT = `${TEXT_BYTES} <= ${LARGEST_LIGHT}`;

/** The statements that read the books with the ids of $1: without the texts of large books, but with their bytes; in full. */
export interface FindStatements {
  readonly light: string;
  readonly full: string;
}

/** Half the work for a single id, but it looks for every id in every partition. */
export const FINDS = findsIn('books where id = any($1::bigint[])');
export const FINDS_IN_PARTITIONS = findsIn(WITH_IDS);

function findsIn(books: string): FindStatements {
  const columns = COLUMNS.map(({ name }) => `case when ${IS_LIGHT} then ${name} end as ${name}`);
  const weight = `case when not (${IS_LIGHT}) then ${TEXT_BYTES} end as weight`;
  return {
    light: `select id, ${columns.join(', ')}, ${weight} from ${books}`,
    full: `select ${ID_AND_FIELDS} from ${books}`,
  };
}

/**
 * A condition that every row meets. If an operator's trigger has skipped some of the writes, it makes the statement fail as a
 * whole, with an error of class 22: else they would be acknowledged, and were never stored.
 * @param sent the name of the rows to be written.
 * @param stored the names of those that were.
 */
export function allOf(sent: string, ...stored: string[]): string {
  const written = stored.map((name) => `(select count(*) from ${name})`).join(' + ');
  return `
    (case when ${written} < (select count(*) from ${sent})
      then ('a trigger has skipped some of the writes: ' || (select count(*) from ${sent}))::integer end) is null`;
}

// An acknowledged write is durable (rule 23), even where the server's setting would acknowledge it earlier. This is
// part of the statement, as a pooler in transaction mode requires; stronger settings stay.
export const DURABLY = `
  (select set_config('synchronous_commit', case level when 'off' then 'on' else level end, true)
   from current_setting('synchronous_commit') as level) is not null`;

interface LightBook extends Book {
  /** Bytes of the texts of a large book, whose fields are then null. */
  readonly weight: number | null;
}

/**
 * Reads books.
 * @param ids of different books.
 * @returns the books by their ids, undefined where there is none. An id that is missing was left out, since its book and large
 *   ones before it are heavy together.
 */
export async function findFirst(
  connections: Connections,
  pool: 'batches' | 'held',
  { light, full }: FindStatements,
  ids: readonly number[],
  deadline: number,
): Promise<Map<number, Book | undefined>> {
  const { rows } = await connections.query<LightBook>(pool, light, [ids], deadline);
  const found = new Map<number, Book | undefined>(ids.map((id) => [id, undefined]));
  const large: number[] = [];
  let weight = 0;
  for (const { weight: bytes, ...book } of rows) {
    if (bytes === null) {
      found.set(book.id, book);
    } else if (weight < HEAVY) {
      weight += bytes;
      large.push(book.id);
    } else {
      found.delete(book.id);
    }
  }
  if (large.length > 0) {
    const { rows } = await connections.query<Book>(pool, full, [large], deadline);
    for (const book of rows) found.set(book.id, book);
  }
  return found;
}
