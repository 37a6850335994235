// Owns: SQL that several statements on books share.

import { ID_AND_FIELDS } from '../columns.ts';

/** The books with the ids of $1, as the end of a statement's `from` and the beginning of its conditions. */
export type WithIds = typeof WITH_IDS | typeof WITH_IDS_IN_PARTITIONS;

export const WITH_IDS = 'books where id = any($1::bigint[])';

/** Looks for each id in its own partition; the other form looks for every id in every partition. */
export const WITH_IDS_IN_PARTITIONS = 'unnest($1::bigint[]) as wanted (id) join books using (id) where true';

export const find = (withIds: WithIds) => `select ${ID_AND_FIELDS} from ${withIds}`;

// An acknowledged write is durable (rule 23), even where the server's setting would acknowledge it earlier. This is
// part of the statement, as a pooler in transaction mode requires; stronger settings stay.
export const DURABLY = `
  (select set_config('synchronous_commit', case level when 'off' then 'on' else level end, true)
   from current_setting('synchronous_commit') as level) is not null`;
