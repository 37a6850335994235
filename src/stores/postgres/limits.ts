// Owns: limits of time that the server enforces: for a connection, a statement or a transaction.
// A connection's own costs nothing. Behind a pooler it would be wrong: each transaction gets another session, which other
// programs use as well, and a parameter of the connection that the pooler does not know is refused. There, and where less
// time is left, the limit is set in the transaction of the statement, and in the same packet: no round trip is added.

import pg from 'pg';

/** What the server limits: the time of the statement, or each of its waits for a lock. */
export type Limit = 'statement_timeout' | 'lock_timeout';

/** Milliseconds of the limit of a connection. One through a pooler has none. */
const connectionLimits = new WeakMap<pg.ClientBase, number>();

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
  select ${ownSettings(false)}, set_config($1, $2, false) from pg_backend_pid() as pid where pid = $3`;

const LIMIT_STATEMENT = `
  select where set_config($1, $2, true) is null or set_config('array_nulls', 'on', true) is null
    or set_config('gin_fuzzy_search_limit', '0', true) is null`; // no row

/** What this file uses of the driver's query and connection, beyond the driver's own description of them. */
interface DriverConnection {
  parse(message: { readonly text: string }): void;
  bind(message: { readonly values: readonly string[] }): void;
  execute(message: object): void;
}
interface DriverQuery extends pg.Submittable {
  callback: (error: Error | null, result: pg.QueryResult) => void;
  prepare(connection: DriverConnection): void;
  handleCommandComplete(message: unknown, connection: DriverConnection): void;
}

/** A statement, with an option that the driver's own description lacks. */
interface Statement {
  readonly text: string;
  readonly values: unknown[];
  /** Milliseconds for the answer of a server that may have fallen silent; undefined for the connection's own. */
  readonly query_timeout?: number;
}

const Query = pg.Query as unknown as new (config: object) => DriverQuery;

/** A statement behind one that sets its limit. */
class LimitedQuery extends Query {
  readonly query_timeout: number | undefined;
  readonly #limit: readonly [name: Limit, milliseconds: string];
  #isLimited = false;

  constructor(limit: Limit, milliseconds: number, statement: Statement) {
    super({ ...statement, queryMode: 'extended' });
    this.query_timeout = statement.query_timeout;
    this.#limit = [limit, String(milliseconds)];
  }

  override prepare(connection: DriverConnection): void {
    connection.parse({ text: LIMIT_STATEMENT });
    connection.bind({ values: this.#limit });
    connection.execute({});
    super.prepare(connection);
  }

  override handleCommandComplete(message: unknown, connection: DriverConnection): void {
    if (this.#isLimited) super.handleCommandComplete(message, connection);
    this.#isLimited = true;
  }
}

/** @param timeout milliseconds for the answer; the connection cannot be used any more after a longer time. */
export function withTimeout(text: string, values: unknown[], timeout: number): Statement {
  return { text, values, query_timeout: timeout };
}

/**
 * Limits all statements of a new connection, unless a pooler is in between.
 * @param timeout milliseconds for the answer.
 * @throws the driver's error.
 */
export async function limitConnection(
  client: pg.ClientBase,
  limit: Limit,
  milliseconds: number,
  timeout: number,
): Promise<void> {
  const { processID } = client as unknown as { processID: number };
  const values = [limit, String(milliseconds), processID];
  if ((await client.query(withTimeout(LIMIT_CONNECTION, values, timeout))).rowCount === 1)
    connectionLimits.set(client, milliseconds);
}

/** Whether the connection has its own limit. */
export function isLimited(client: pg.ClientBase): boolean {
  return connectionLimits.has(client);
}

/**
 * Sends one statement, which the server ends when the limit is reached. A connection that has its own limit must have
 * one of the same kind.
 * @throws the driver's error.
 */
export function queryWithin<Row extends pg.QueryResultRow>(
  client: pg.ClientBase,
  limit: Limit,
  milliseconds: number,
  statement: Statement,
): Promise<pg.QueryResult<Row>> {
  if (milliseconds >= (connectionLimits.get(client) ?? Number.POSITIVE_INFINITY)) {
    return client.query<Row>(statement);
  }
  const query = new LimitedQuery(limit, Math.max(1, Math.ceil(milliseconds)), statement); // 0 would be no limit
  return new Promise((resolve, reject) => {
    query.callback = (error, result) => (error === null ? resolve(result) : reject(error));
    client.query(query);
  });
}

/**
 * Begins a transaction whose waits for a lock are limited, and nothing else.
 * @param mode of the transaction, such as its isolation level.
 */
export function begin(milliseconds: number, mode = ''): string {
  return `begin ${mode}; ${limitLocks(milliseconds)}`;
}

/**
 * Begins a transaction, each statement of which the server ends when it takes longer.
 * @param milliseconds may have passed already.
 */
export function beginWithin(milliseconds: number): string {
  return `begin; select ${ownSettings(true)}, set_config('statement_timeout', '${Math.max(1, Math.ceil(milliseconds))}', true)`;
}

/** SQL at the beginning of a transaction. */
export function limitLocks(milliseconds: number): string {
  return `select ${ownSettings(true)}, set_config('lock_timeout', '${milliseconds}', true)`;
}
