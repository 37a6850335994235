// Owns: the settings of a connection or of a transaction: limits of time that the server enforces, and that it hides no row.
// A setting of the connection costs nothing. Behind a pooler it would be wrong: each transaction gets another session, which other
// programs use as well, and the pooler refuses a parameter of the connection that it does not support. There, and where less time
// is left, the transaction of a statement has the setting.

import type pg from 'pg';
import { TIMES } from '../../times.ts';
import type { Query } from '../query.ts';
import { queryOn } from './query.ts';

const TABLES =
  'books book_requests book_imports book_log book_log_state book_events book_index book_index_state'.split(
    ' ',
  );

/**
 * The tables whose rows this role sees by policies, and whether these may hide some. A command sees all rows if one of its policies
 * shows all and none restricts it.
 */
const BY_POLICIES = `
  select relname as name, exists (
    select from (values ('select', 'r'::"char"), ('update', 'w'), ('delete', 'd')) as use (privilege, command)
    where has_table_privilege(pg_class.oid, privilege) and not coalesce((
      select bool_or(polpermissive and shows_all) and bool_and(polpermissive or shows_all)
      from pg_policy cross join lateral (select pg_get_expr(polqual, polrelid) = 'true') as condition (shows_all)
      where polrelid = pg_class.oid and polcmd in (command, '*')
        and exists (select from unnest(polroles) as role where role = 0 or pg_has_role(role, 'usage'))
    ), false)
  ) as is_partial
  from pg_class where oid in (${TABLES.map((name) => `to_regclass('${name}')`)}) and row_security_active(oid)`;

/** With `off`, the server refuses a statement instead of hiding rows from it. */
const ROW_SECURITY = `case when not (select bool_or(is_partial) from (${BY_POLICIES}) as found) then 'on' else 'off' end`;
export const PARTIAL = `select name from (${BY_POLICIES}) as found where is_partial order by name limit 1`;

/** @throws Error if the server hides rows of the catalogue from this role. */
export async function refusePartial(query: Query): Promise<void> {
  const [hidden] = await query<{ name: string }>(PARTIAL);
  if (hidden !== undefined)
    throw new Error(
      `row level security hides rows of its table "${hidden.name}" from this role: give it the attribute bypassrls, or a policy that shows all`,
    );
}

/**
 * A server, database or role may have settings that break lists, close idle connections, hide books or store the text `NULL`. By
 * default, a server compiles some statements (JIT), which takes longer than they do. These settings reset that, before the limits of
 * this service are set.
 * @param isLocal whether they are for one transaction only.
 */
const ownSettings = (isLocal: boolean | string) => `
  set_config('jit', 'off', ${isLocal}), set_config('array_nulls', 'on', ${isLocal}), set_config('gin_fuzzy_search_limit', '0', ${isLocal}),
  set_config('statement_timeout', '0', ${isLocal}), set_config('lock_timeout', '0', ${isLocal}),
  set_config('idle_in_transaction_session_timeout', '0', ${isLocal}), set_config('idle_session_timeout', '0', ${isLocal}),
  case when current_setting('server_version_num')::integer >= 170000
    then set_config('transaction_timeout', '0', ${isLocal}) end,
  set_config('row_security', ${ROW_SECURITY}, ${isLocal}) as "rowSecurity"`;

// The driver was told the number of the server's process. A pooler reports its own number: then the settings end with this statement.
const LIMIT_CONNECTION = `
  select pid = $2 as "isLimited", ${ownSettings('pid <> $2')}, set_config('statement_timeout', $1, pid <> $2)
  from pg_backend_pid() as pid`;

/** The settings of a connection. */
export interface Limited {
  /** Whether the server limits its statements. */
  readonly isLimited: boolean;
  /** The setting for its transactions. */
  readonly rowSecurity: 'on' | 'off';
}

/**
 * Limits all statements of a new connection, unless a pooler is in between.
 * @param timeout milliseconds for the answer.
 * @throws the driver's error.
 */
export async function limitConnection(
  client: pg.ClientBase,
  milliseconds: number,
  timeout: number,
): Promise<Limited> {
  const { processID } = client as unknown as { processID: number };
  const query = queryOn(client, timeout);
  return (await query<Limited>(LIMIT_CONNECTION, [String(milliseconds), processID]))[0] as Limited;
}

/**
 * Begins a transaction whose waits for a lock are limited, and nothing else.
 * @param mode of the transaction, such as its isolation level.
 */
export function begin(milliseconds: number, mode = ''): string {
  return `begin ${mode}; select ${ownSettings(true)}, set_config('lock_timeout', '${milliseconds}', true)`;
}

/**
 * Begins a transaction that sees what others have committed. The server ends each statement that takes longer, and the
 * transaction if the next statement takes longer to arrive: a process that is frozen holds no lock for ever.
 * @param rowSecurity if it is known for the connection.
 */
export function beginWithin(milliseconds: number, rowSecurity?: Limited['rowSecurity']): string {
  const most = Math.ceil(milliseconds);
  return `begin isolation level read committed; set local statement_timeout = ${most};
    set local idle_in_transaction_session_timeout = ${Math.max(most, TIMES.postgres.nextStatement)};
    set local jit = off; set local array_nulls = on; set local gin_fuzzy_search_limit = 0;
    ${rowSecurity === undefined ? `select set_config('row_security', ${ROW_SECURITY}, true)` : `set local row_security = ${rowSecurity}`}`;
}
