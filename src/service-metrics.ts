// Owns: the metrics of the service. Numbers are kept where they arise and read when the metrics are requested.
// Does not: have labels whose values a client can make up, or secrets.

import { versions } from 'node:process';
import type { RequestCounts } from './api/request-counts.ts';
import type { LoginOutcomes } from './auth/login-guard.ts';
import type { BatchFigures } from './books/batches.ts';
import { metric } from './metrics/descriptions.ts';
import type { Metric, Sample } from './metrics/prometheus.ts';
import { version } from './version.ts';

export interface ServiceFigures {
  readonly requests: RequestCounts;
  /** Open connections of clients. */
  readonly connections: number;
  readonly batches: Readonly<Record<string, BatchFigures>>;
  readonly logins: LoginOutcomes;
}

export function serviceMetrics({ requests, connections, batches, logins }: ServiceFigures): Metric[] {
  const answered = requests.series.flatMap(({ route, method, answers }) => {
    return byStatus(answers, { route, method });
  });
  const unreadable = byStatus(requests.unreadable, { route: 'unreadable', method: 'unknown' });
  const ofBatches = (samplesOf: (operation: string, figures: BatchFigures) => readonly Sample[]) => {
    return Object.entries(batches).flatMap(([operation, figures]) => samplesOf(operation, figures));
  };
  return [
    metric('http_requests_total', [...answered, ...unreadable]),
    metric(
      'http_request_duration_seconds',
      requests.series.flatMap(({ route, method, durations }) => durations.samples({ route, method })),
    ),
    metric('http_connections', connections),
    metric(
      'batch_size',
      ofBatches((operation, { sizes }) => sizes.samples({ operation })),
    ),
    metric(
      'batch_duration_seconds',
      ofBatches((operation, { durations }) => durations.samples({ operation })),
    ),
    metric(
      'batches_in_flight',
      ofBatches((operation, { inFlight }) => [{ labels: { operation }, value: inFlight }]),
    ),
    metric(
      'waiting_calls',
      ofBatches((operation, { waiting }) => [{ labels: { operation }, value: waiting }]),
    ),
    metric('store_errors_total', byName('reason', requests.storeFaults)),
    metric('logins_total', byName('outcome', logins)),
  ];
}

/** A metric of every process, including the first of several, which serves nothing itself. */
export function buildMetric(): Metric {
  return metric('build_info', [{ labels: { version, node: versions.node }, value: 1 }]);
}

function byStatus(answers: ReadonlyMap<number, number>, labels: Readonly<Record<string, string>>): Sample[] {
  return [...answers].map(([status, value]) => ({ labels: { ...labels, status: String(status) }, value }));
}

function byName(label: string, counts: Readonly<Record<string, number>>): Sample[] {
  return Object.entries(counts).map(([name, value]) => ({ labels: { [label]: name }, value }));
}
