// Owns: SQL that several statements on books share.

import { ID_AND_FIELDS } from '../../columns.ts';

/**
 * The books with the ids of $1, as the end of a statement's `from` and the beginning of its conditions: each id is looked
 * for in its own partition, if there are any.
 */
export const WITH_IDS = 'unnest($1::bigint[]) as wanted (id) join books using (id) where true';

/** Half the work for a single id, but it looks for every id in every partition. */
export const FIND = `select ${ID_AND_FIELDS} from books where id = any($1::bigint[])`;
export const FIND_IN_PARTITIONS = `select ${ID_AND_FIELDS} from ${WITH_IDS}`;

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
