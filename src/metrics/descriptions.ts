// Owns: the name, type, labels and help of each metric of the service. docs/monitoring.md has its table from here.
// Does not: count anything.

import { STORE_FAULTS } from '../books/store.ts';
import type { Counts } from '../counts.ts';
import { type Description, type Metric, toMetric } from './prometheus.ts';

const POOLS = { pool: ['batches', 'held', 'searches', 'counts', 'lists', 'barriers'] };

/** By name, which `book_catalogue_` precedes. Units are seconds and bytes, and counters end in `_total`. */
export const DESCRIPTIONS = {
  http_requests_total: {
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
  http_connections: { help: 'Open connections of clients. The limit of open files bounds them.' },
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
  batches_in_flight: { labels: { operation: [] }, help: 'Batches that the store is processing.' },
  waiting_calls: {
    labels: { operation: [] },
    help: 'Calls waiting for their batch. If some always wait, the store is too slow for the load.',
  },
  waiting_followers: { help: 'Requests that wait for a change.' },
  import_files: { help: 'Files of imports that the process has: arriving, in work, or checked.' },
  import_bytes: { help: 'Bytes of these files on disk, with those that are announced.' },
  store_errors_total: {
    labels: { reason: STORE_FAULTS },
    help:
      'Requests that failed because of the store, whose cause is in the log: an error, no answer in time, too many ' +
      'waiting calls, an incomplete first index, or a missing right, a constraint or a trigger of the operator.',
  },
  unindexed_books: {
    help:
      'Books that a search may not find yet, approximately. If it does not fall to 0, no process indexes, or writes ' +
      'come faster.',
  },
  kept_changes: {
    help: 'Changes in the log, approximately. HISTORY limits their age, nothing their bytes.',
  },
  logins_total: {
    labels: { outcome: ['succeeded', 'failed', 'delayed', 'refused'] },
    help: 'Logins. If delayed or refused grows, passwords are being guessed, or TRUST_PROXY is missing.',
  },
  postgres_connections: { labels: POOLS, help: 'Connections, open or being opened.' },
  postgres_idle_connections: { labels: POOLS, help: 'Unused open connections.' },
  postgres_waiting_statements: {
    labels: POOLS,
    help:
      'Statements waiting for a connection. In held, books are locked or above 64 KiB; in searches or counts, searches are ' +
      'slow.',
  },
  postgres_connections_lost_total: { help: 'Connections that broke or stopped answering.' },
  postgres_host_changes_total: { help: 'Failovers: moves of all connections to another host.' },
  postgres_retries_total: {
    help: 'Statements retried because the server had rolled back their transaction.',
  },
  postgres_standby_reads_total: {
    labels: { outcome: ['standby', 'primary'] },
    help: 'Lists and searches: read from the standby, or from the primary instead.',
  },
  postgres_standby_usable: { help: '1 if the latest attempt to read the standby succeeded, otherwise 0.' },
  sqlite_open_lists: { help: 'Lists being read.' },
  sqlite_file_bytes: {
    labels: { file: ['books', 'log'] },
    help:
      'Sizes of the file and its write-ahead log, the same for every worker. If the log never shrinks, some program ' +
      'always reads.',
  },
  log_lines_lost_total: { help: 'Log lines dropped because the output was not read fast enough.' },
  build_info: {
    labels: { version: [], node: [] },
    help: 'Always 1; the labels have the versions of the service and of Node.js.',
  },
} as const satisfies Readonly<Record<string, Description>>;

export type MetricName = keyof typeof DESCRIPTIONS;

/** @param counts by the values of the labels, in the order of the description. */
export function metric(name: MetricName, counts: Counts): Metric {
  return toMetric(`book_catalogue_${name}`, DESCRIPTIONS[name], counts);
}
