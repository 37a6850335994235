// Owns: the number of answered requests, by route and method, with their statuses and durations. Plain numbers that
// grow, because every request passes here.
// Does not: count by names that a client could make up: all unknown paths have one name, and so have all unusual methods.

import { STORE_FAULTS, type StoreFault } from '../books/store.ts';
import { Histogram } from '../counts.ts';

/** Seconds: without load a read takes less than a millisecond, no answer much more than five seconds (rule 23). */
const DURATIONS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']);

export class RequestCounts {
  /** Number of answers by route, method and status. */
  readonly answers: Record<string, Record<string, Record<number, number>>> = {};
  /** Seconds until the answer was ready, by route and method. */
  readonly durations: Record<string, Record<string, Histogram>> = {};
  /** Requests that failed because of the store, including lists that broke off half way. */
  readonly storeFaults = Object.fromEntries(STORE_FAULTS.map((reason) => [reason, 0])) as Record<
    StoreFault,
    number
  >;

  /**
   * @param route path of the route; undefined for an unknown path.
   * @param milliseconds until the answer was ready; the client may take longer to read it.
   */
  add(route = 'unknown', sentMethod: string, status: number, milliseconds: number): void {
    const method = METHODS.has(sentMethod) ? sentMethod : 'other';
    this.#count(route, method, status);
    this.durations[route] ??= {};
    this.durations[route][method] ??= new Histogram(DURATIONS);
    this.durations[route][method].observe(milliseconds / 1000);
  }

  addUnreadable(status: number): void {
    this.#count('unreadable', 'unknown', status);
  }

  #count(route: string, method: string, status: number): void {
    this.answers[route] ??= {};
    this.answers[route][method] ??= {};
    const counts = this.answers[route][method];
    counts[status] = (counts[status] ?? 0) + 1;
  }
}
