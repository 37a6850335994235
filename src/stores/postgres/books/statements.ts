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

// An acknowledged write is durable (rule 23), even where the server's setting would acknowledge it earlier. This is
// part of the statement, as a pooler in transaction mode requires; stronger settings stay.
export const DURABLY = `
  (select set_config('synchronous_commit', case level when 'off' then 'on' else level end, true)
   from current_setting('synchronous_commit') as level) is not null`;
