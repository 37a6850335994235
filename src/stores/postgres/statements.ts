// Owns: SQL that several statements on books share.

import { ID_AND_FIELDS } from '../columns.ts';

export const FIND = `select ${ID_AND_FIELDS} from books where id = any($1::bigint[])`;

// An acknowledged write is durable (rule 23), even where the server's setting would acknowledge it earlier. This is
// part of the statement, as a pooler in transaction mode requires; stronger settings stay.
export const DURABLY = `
  (select set_config('synchronous_commit', case level when 'off' then 'on' else level end, true)
   from current_setting('synchronous_commit') as level) is not null`;
