// Owns: what a kind of work is during which the power fails, and what all kinds share.

import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Requester } from '../../support/client.ts';
import { type ServiceProcess, startServiceProcess } from '../../support/service.ts';
import { waitUntil } from '../../support/wait.ts';
import { acknowledgedIn, assertKept, type Found, type History, Scribe } from './books.ts';
import { examineStore } from './examine.ts';
import type { Recording } from './recording.ts';

export interface Work {
  /**
   * Records the work.
   * @param variant different ones do it in different ways.
   * @returns notes for the rest, which can be kept as JSON.
   */
  record(recording: Recording, variant: number): Promise<unknown>;
  /** Opens a state with the project's own code; what it finds depends on nothing else. */
  examine(folder: string, notes: unknown): unknown;
  /** @param said the texts that had left the processes before. */
  judge(found: unknown, said: readonly string[], notes: unknown): void;
  /** The books of the store. */
  booksOf(found: unknown): Found['books'];
}

export const STORE = 'data/books.db';

/** The request of the books that are there before anything is recorded. */
export const BEFORE = 'before';

export interface Written {
  readonly history: History;
}

/** How work that writes into a store is judged. */
export const WRITTEN = {
  examine: (folder: string) => examineStore(join(folder, STORE)),
  judge: (found: unknown, said: readonly string[], notes: unknown) =>
    assertWritten(found as Found, said, notes as Written),
  booksOf: (found: unknown) => (found as Found).books,
};

export function assertWritten(found: Found, said: readonly string[], { history }: Written): void {
  assertKept(found, history, new Set([BEFORE, ...acknowledgedIn(said)]));
}

/** Books that are there, and durable, before a recording. A service has been killed there, so some are in the log. */
export async function storeBefore(
  recording: Recording,
  file: string,
  count: number,
  first = 1,
): Promise<History[number][]> {
  mkdirSync(dirname(join(recording.disk, file)), { recursive: true });
  const service = await startServiceProcess(recording.urlOf(file));
  const scribe = new Scribe();
  const half = Math.floor(count / 2);
  await scribe.createMany(service.client, first, half);
  await waitUntil(async () => (await find(service.client)) === half);
  await scribe.createMany(service.client, first + half, count - half);
  await kill(service);
  return scribe.history.map(({ books, ids = [] }) => ({ request: BEFORE, key: undefined, books, ids }));
}

export async function kill(service: ServiceProcess): Promise<void> {
  const ended = once(service.process, 'close');
  service.process.kill('SIGKILL');
  await ended;
}

/** Brings the index up to date, so that its writes lie between the others. */
export async function find(client: Requester): Promise<number> {
  const { status, data } = await client.request('GET', '/books?q=title&limit=1000');
  return status === 200 ? data.length : -1;
}
