// Owns: what there is to be measured of the service, and under which names: units are seconds and bytes, and what only
// grows ends in `_total`. Numbers are kept where they arise and read when they are asked for.
// Refuses: labels whose values a client can make up, and what is secret.

import { versions } from 'node:process';
import type { RequestCounts } from '../api/request-counts.ts';
import type { LoginOutcomes } from '../auth/login-guard.ts';
import type { BatchFigures } from '../books/batches.ts';
import { version } from '../version.ts';
import { counter, gauge, histogram, type Metric, type Sample } from './prometheus.ts';

export interface ServiceFigures {
  readonly requests: RequestCounts;
  /** Connections that are open. */
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
    counter('book_catalogue_http_requests_total', 'Requests that were answered.', [
      ...answered,
      ...unreadable,
    ]),
    histogram(
      'book_catalogue_http_request_duration_seconds',
      'Time until an answer was ready; of a list, until its beginning was.',
      requests.series.flatMap(({ route, method, durations }) => durations.samples({ route, method })),
    ),
    gauge('book_catalogue_http_connections', 'Connections of clients.', connections),
    histogram(
      'book_catalogue_batch_size',
      'Calls that went to the store together.',
      ofBatches((operation, { sizes }) => sizes.samples({ operation })),
    ),
    histogram(
      'book_catalogue_batch_duration_seconds',
      'Time the store took for a batch.',
      ofBatches((operation, { durations }) => durations.samples({ operation })),
    ),
    gauge(
      'book_catalogue_batches_in_flight',
      'Batches that the store is at work on.',
      ofBatches((operation, { inFlight }) => [{ labels: { operation }, value: inFlight }]),
    ),
    gauge(
      'book_catalogue_waiting_calls',
      'Calls that wait for their batch to leave.',
      ofBatches((operation, { waiting }) => [{ labels: { operation }, value: waiting }]),
    ),
    counter(
      'book_catalogue_store_errors_total',
      'Requests that the store failed: it could not, it was late, or too much waited for it already.',
      byName('reason', requests.storeFaults),
    ),
  ];
}

/** What every process tells of itself, the one that serves nothing included. */
export function buildMetric(): Metric {
  const labels = { version, node: versions.node };
  return gauge('book_catalogue_build_info', 'What is running; always 1.', [{ labels, value: 1 }]);
}

export function logMetric(linesLost: number): Metric {
  const help = 'Lines of the log that were lost, since nobody read them.';
  return counter('book_catalogue_log_lines_lost_total', help, linesLost);
}

export function loginMetric(outcomes: LoginOutcomes): Metric {
  const help =
    'Logins. What was delayed had failed too often and was answered late, what was refused was not judged.';
  return counter('book_catalogue_logins_total', help, byName('outcome', outcomes));
}

function byStatus(answers: ReadonlyMap<number, number>, labels: Readonly<Record<string, string>>): Sample[] {
  return [...answers].map(([status, value]) => ({ labels: { ...labels, status: String(status) }, value }));
}

function byName(label: string, counts: Readonly<Record<string, number>>): Sample[] {
  return Object.entries(counts).map(([name, value]) => ({ labels: { [label]: name }, value }));
}
