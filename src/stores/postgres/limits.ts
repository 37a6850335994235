// Owns: limits of time that the server enforces: for the statements of a connection, or for a transaction.
// A connection's own costs nothing. Behind a pooler it would be wrong: each transaction gets another session, which other
// programs use as well, and a parameter of the connection that the pooler does not know is refused. There, and where less
// time is left, the limit is set in the transaction of the statement.

import type pg from 'pg';

/**
 * Settings that a server, a database or a role may have and that would break a list half-way or a connection between two
 * requests, hide books from searches, or store the text `NULL` in place of a field that a change leaves out. They are set
 * before the limits of this service.
 * @param isLocal whether they are for one transaction only.
 */
const ownSettings = (isLocal: boolean) => `
  set_config('array_nulls', 'on', ${isLocal}), set_config('gin_fuzzy_search_limit', '0', ${isLocal}),
  set_config('statement_timeout', '0', ${isLocal}), set_config('lock_timeout', '0', ${isLocal}),
  set_config('idle_in_transaction_session_timeout', '0', ${isLocal}), set_config('idle_session_timeout', '0', ${isLocal}),
  case when current_setting('server_version_num')::integer >= 170000
    then set_config('transaction_timeout', '0', ${isLocal}) end`;

// The driver was told the number of the server's process. A pooler reports its own number.
const LIMIT_CONNECTION = `
  select ${ownSettings(false)}, set_config('statement_timeout', $1, false) from pg_backend_pid() as pid where pid = $2`;

/**
 * A statement with an option that the driver's own description lacks.
 * @param timeout milliseconds for the answer; the connection cannot be used any more after a longer time.
 */
export function withTimeout(text: string, values: unknown[], timeout: number) {
  return { text, values, query_timeout: timeout };
}

/**
 * Limits all statements of a new connection, unless a pooler is in between.
 * @param timeout milliseconds for the answer.
 * @returns whether they are limited.
 * @throws the driver's error.
 */
export async function limitConnection(
  client: pg.ClientBase,
  milliseconds: number,
  timeout: number,
): Promise<boolean> {
  const { processID } = client as unknown as { processID: number };
  const question = withTimeout(LIMIT_CONNECTION, [String(milliseconds), processID], timeout);
  return (await client.query(question)).rowCount === 1;
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
 */
export function beginWithin(milliseconds: number): string {
  const most = Math.ceil(milliseconds);
  return `begin isolation level read committed; set local statement_timeout = ${most};
    set local idle_in_transaction_session_timeout = ${most};
    set local array_nulls = on; set local gin_fuzzy_search_limit = 0`;
}
