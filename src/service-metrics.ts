// Owns: the metrics of the service and their names: units are seconds and bytes, and counters end in `_total`. Numbers
// are kept where they arise and read when the metrics are requested.
// Does not: have labels whose values a client can make up, or secrets.

import { versions } from 'node:process';
import type { RequestCounts } from './api/request-counts.ts';
import type { LoginOutcomes } from './auth/login-guard.ts';
import type { BatchFigures } from './books/batches.ts';
import { counter, gauge, histogram, type Metric, type Sample } from './metrics/prometheus.ts';
import { version } from './version.ts';

export interface ServiceFigures {
  readonly requests: RequestCounts;
  /** Open connections of clients. */
  readonly connections: number;
  readonly batches: Readonly<Record<string, BatchFigures>>;
}

export function serviceMetrics({ requests, connections, batches }: ServiceFigures): Metric[] {
  const answered = requests.series.flatMap(({ route, method, answers }) => {
    return byStatus(answers, { route, method });
  });
  const unreadable = byStatus(requests.unreadable, { route: 'unreadable', method: 'unknown' });
  const ofBatches = (samplesOf: (operation: string, figures: BatchFigures) => readonly Sample[]) => {
    return Object.entries(batches).flatMap(([operation, figures]) => samplesOf(operation, figures));
  };
  return [
    counter(
      'book_catalogue_http_requests_total',
      'HTTP requests that were answered, by route, method and status.',
      [...answered, ...unreadable],
    ),
    histogram(
      'book_catalogue_http_request_duration_seconds',
      'Time until the answer to an HTTP request was ready, in seconds; for a list, until its beginning was ready.',
      requests.series.flatMap(({ route, method, durations }) => durations.samples({ route, method })),
    ),
    gauge('book_catalogue_http_connections', 'Open connections of clients.', connections),
    histogram(
      'book_catalogue_batch_size',
      'Calls that were sent to the store in one batch.',
      ofBatches((operation, { sizes }) => sizes.samples({ operation })),
    ),
    histogram(
      'book_catalogue_batch_duration_seconds',
      'Time that the store took for a batch of calls, in seconds.',
      ofBatches((operation, { durations }) => durations.samples({ operation })),
    ),
    gauge(
      'book_catalogue_batches_in_flight',
      'Batches of calls that the store is processing.',
      ofBatches((operation, { inFlight }) => [{ labels: { operation }, value: inFlight }]),
    ),
    gauge(
      'book_catalogue_waiting_calls',
      'Calls that wait for their batch to be sent to the store.',
      ofBatches((operation, { waiting }) => [{ labels: { operation }, value: waiting }]),
    ),
    counter(
      'book_catalogue_store_errors_total',
      'Requests that failed because of the store, by reason: failure (an error), late (no answer in time), overload (too many calls waited), indexing (a search before the first index was complete).',
      byName('reason', requests.storeFaults),
    ),
  ];
}

/** A metric of every process, including the first of several, which serves nothing itself. */
export function buildMetric(): Metric {
  const labels = { version, node: versions.node };
  return gauge(
    'book_catalogue_build_info',
    'Versions of the service and of Node.js, as labels; the value is always 1.',
    [{ labels, value: 1 }],
  );
}

export function logMetric(linesLost: number): Metric {
  const help = 'Log lines that were lost because the output was not read fast enough.';
  return counter('book_catalogue_log_lines_lost_total', help, linesLost);
}

export function loginMetric(outcomes: LoginOutcomes): Metric {
  const help =
    'Logins by outcome: succeeded, failed, delayed (failed too often, answered late), refused (too many already waiting).';
  return counter('book_catalogue_logins_total', help, byName('outcome', outcomes));
}

function byStatus(answers: ReadonlyMap<number, number>, labels: Readonly<Record<string, string>>): Sample[] {
  return [...answers].map(([status, value]) => ({ labels: { ...labels, status: String(status) }, value }));
}

function byName(label: string, counts: Readonly<Record<string, number>>): Sample[] {
  return Object.entries(counts).map(([name, value]) => ({ labels: { [label]: name }, value }));
}
