// Owns: the number of answered requests, by route and method, with their statuses and durations. Plain numbers that
// grow, because every request passes here.
// Does not: count by names that a client could make up: all unknown paths have one name, and so have all unusual methods.

import type { StoreFault } from '../books/store.ts';
import { Histogram } from '../metrics/prometheus.ts';

/** Seconds: without load a read takes less than a millisecond, no answer much more than five seconds (rule 23). */
const DURATIONS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']);

/** The requests of one route and method. */
export interface RequestSeries {
  readonly route: string;
  readonly method: string;
  /** Number of answers by status. */
  readonly answers: Map<number, number>;
  /** Seconds until the answer was ready. */
  readonly durations: Histogram;
}

export class RequestCounts {
  readonly #routes = new Map<string | undefined, Map<string, RequestSeries>>();
  /** Requests that could not be read, by the status of their answers. */
  readonly unreadable = new Map<number, number>();
  /** Requests that failed because of the store, including lists that broke off half way. */
  readonly storeFaults: Record<StoreFault, number> = {
    failure: 0,
    late: 0,
    overload: 0,
    indexing: 0,
    refused: 0,
  };

  /**
   * @param route path of the route; undefined for an unknown path.
   * @param milliseconds until the answer was ready; the client may take longer to read it.
   */
  add(route: string | undefined, method: string, status: number, milliseconds: number): void {
    const { answers, durations } = this.#routes.get(route)?.get(method) ?? this.#seriesOf(route, method);
    answers.set(status, (answers.get(status) ?? 0) + 1);
    durations.observe(milliseconds / 1000);
  }

  addUnreadable(status: number): void {
    this.unreadable.set(status, (this.unreadable.get(status) ?? 0) + 1);
  }

  get series(): RequestSeries[] {
    return [...this.#routes.values()].flatMap((methods) => [...methods.values()]);
  }

  #seriesOf(route: string | undefined, sentMethod: string): RequestSeries {
    const methods = this.#routes.get(route) ?? new Map<string, RequestSeries>();
    const method = METHODS.has(sentMethod) ? sentMethod : 'other';
    const series = methods.get(method) ?? {
      route: route ?? 'unknown',
      method,
      answers: new Map<number, number>(),
      durations: new Histogram(DURATIONS),
    };
    this.#routes.set(route, methods.set(method, series));
    return series;
  }
}
