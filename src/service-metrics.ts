// Owns: the metrics of the service. Numbers are kept where they arise and read when the metrics are requested.
// Does not: have labels whose values a client can make up, or secrets.

import type { RequestCounts } from './api/request-counts.ts';
import type { LoginGuard } from './auth/login-guard.ts';
import type { BatchFigures } from './books/batches.ts';
import type { Catalogue } from './books/catalogue.ts';
import type { Counts } from './counts.ts';
import { type MetricName, metric } from './metrics/descriptions.ts';
import type { Metric } from './metrics/prometheus.ts';

/** @param connections open connections of clients. */
export function serviceMetrics(
  requests: RequestCounts,
  connections: number,
  { batches, followers }: Pick<Catalogue, 'batches' | 'followers'>,
  logins: LoginGuard['outcomes'],
): Metric[] {
  const ofBatches = (name: MetricName, read: (figures: BatchFigures) => Counts) => {
    const counts = Object.entries(batches).map(([operation, figures]) => [operation, read(figures)]);
    return metric(name, Object.fromEntries(counts));
  };
  return [
    metric('http_requests_total', requests.answers),
    metric('http_request_duration_seconds', requests.durations),
    metric('http_connections', connections),
    ofBatches('batch_size', ({ sizes }) => sizes ?? {}),
    ofBatches('batch_duration_seconds', ({ durations }) => durations),
    ofBatches('batches_in_flight', ({ inFlight }) => inFlight),
    ofBatches('waiting_calls', ({ waiting }) => waiting),
    metric('waiting_followers', followers.count),
    metric('store_errors_total', requests.storeFaults),
    metric('logins_total', logins),
  ];
}
