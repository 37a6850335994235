// Owns: the name, type, labels and help of each metric of the service. docs/monitoring.md has its table from here.
// Does not: count anything.

import type { Metric, Sample } from './prometheus.ts';

export interface Description {
  readonly type: Metric['type'];
  /** The values of each label; none if they are those that its help describes. */
  readonly labels?: Readonly<Record<string, readonly string[]>>;
  /** What it counts, then when to look at it. */
  readonly help: string;
}

const POOLS = { pool: ['batches', 'held', 'searches', 'counts', 'lists', 'standby'] };

/** By name, which `book_catalogue_` precedes. Units are seconds and bytes, and counters end in `_total`. */
export const DESCRIPTIONS = {
  http_requests_total: {
    type: 'counter',
    labels: { route: [], method: [], status: [] },
    help:
      'Answered requests. 500 is an internal error, 503 a fault of the store. The route is a pattern; page is a file of ' +
      'the page, unknown another path, unreadable invalid HTTP.',
  },
  http_request_duration_seconds: {
    type: 'histogram',
    labels: { route: [], method: [] },
    help: 'Time until the response was ready; for a list, its first part.',
  },
  http_connections: {
    type: 'gauge',
    help: 'Open connections of clients. The limit of open files bounds them.',
  },
  batch_size: {
    type: 'histogram',
    labels: { operation: [] },
    help: 'Calls sent to the store together. It grows with the load.',
  },
  batch_duration_seconds: {
    type: 'histogram',
    labels: { operation: [] },
    help: 'Time that the store took for a batch. It grows if the store is slow.',
  },
  batches_in_flight: {
    type: 'gauge',
    labels: { operation: [] },
    help: 'Batches that the store is processing.',
  },
  waiting_calls: {
    type: 'gauge',
    labels: { operation: [] },
    help: 'Calls waiting for their batch. If some always wait, the store is too slow for the load.',
  },
  store_errors_total: {
    type: 'counter',
    labels: { reason: ['failure', 'late', 'overload', 'indexing', 'refused'] },
    help:
      'Requests that failed because of the store, whose cause is in the log: an error, no answer in time, too many ' +
      'waiting calls, an incomplete first index, or a missing right, a constraint or a trigger of the operator.',
  },
  unindexed_books: {
    type: 'gauge',
    help:
      'Books that a search may not find yet, approximately. If it does not fall to 0, no process indexes, or writes ' +
      'come faster.',
  },
  logins_total: {
    type: 'counter',
    labels: { outcome: ['succeeded', 'failed', 'delayed', 'refused'] },
    help: 'Logins. If delayed or refused grows, passwords are being guessed, or TRUST_PROXY is missing.',
  },
  postgres_connections: { type: 'gauge', labels: POOLS, help: 'Connections, open or being opened.' },
  postgres_idle_connections: { type: 'gauge', labels: POOLS, help: 'Unused open connections.' },
  postgres_waiting_statements: {
    type: 'gauge',
    labels: POOLS,
    help:
      'Statements waiting for a connection. In held, books are locked or above 64 KiB; in searches or counts, searches are ' +
      'slow.',
  },
  postgres_connections_lost_total: {
    type: 'counter',
    help: 'Connections that broke or stopped answering.',
  },
  postgres_host_changes_total: {
    type: 'counter',
    help: 'Failovers: moves of all connections to another host.',
  },
  postgres_retries_total: {
    type: 'counter',
    help: 'Statements retried because the server had rolled back their transaction.',
  },
  postgres_standby_reads_total: {
    type: 'counter',
    labels: { operation: ['list', 'search'], outcome: ['standby', 'away', 'late', 'failed'] },
    help:
      'Lists and searches: read from the standby, or from the primary since no standby was usable, it had not replayed ' +
      'enough, or it ended the statement.',
  },
  postgres_standby_usable: { type: 'gauge', help: '1 if there is a standby to read from, otherwise 0.' },
  sqlite_open_lists: { type: 'gauge', help: 'Lists being read.' },
  sqlite_file_bytes: {
    type: 'gauge',
    labels: { file: ['books', 'log'] },
    help:
      'Sizes of the file and of its write-ahead log, the same for every worker. A log that never shrinks means that some ' +
      'program always reads.',
  },
  sqlite_thread_restarts_total: {
    type: 'counter',
    labels: { thread: ['writer', 'finder'] },
    help: 'Restarts of a thread that had died: the one that writes, those that search.',
  },
  log_lines_lost_total: {
    type: 'counter',
    help: 'Log lines dropped because the output was not read fast enough.',
  },
  build_info: {
    type: 'gauge',
    labels: { version: [], node: [] },
    help: 'Always 1; the labels have the versions of the service and of Node.js.',
  },
} as const satisfies Readonly<Record<string, Description>>;

export type MetricName = keyof typeof DESCRIPTIONS;

/** @param value one number, or the samples of a metric with labels. */
export function metric(name: MetricName, value: number | readonly Sample[]): Metric {
  const { type, help } = DESCRIPTIONS[name];
  return {
    name: `book_catalogue_${name}`,
    help,
    type,
    samples: typeof value === 'number' ? [{ value }] : value,
  };
}
