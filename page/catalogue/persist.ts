// Owns: repeating a request until the catalogue answers it, and the complaint about one that cannot succeed.

import { CatalogueError } from '../../client/src/book-catalogue.ts';
import { CATALOGUE } from '../texts/catalogue.ts';
import { isRefusal } from './refusal.ts';

/** Work cannot continue. The message is for the person at the page. */
export class Complaint extends Error {}

/** Milliseconds between two attempts. */
export const PAUSE = 1000;

type Reasons = Readonly<Record<number, string>>;

/**
 * Repeats work until the catalogue answers.
 * @param reasons why it refuses the work, by the status of its answer.
 * @param check is called before each repetition, which it may prevent.
 * @throws Complaint when the catalogue refuses it; the reason of the signal.
 */
export async function persist<Result>(
  signal: AbortSignal | undefined,
  work: () => Promise<Result>,
  reasons: Reasons = {},
  check: () => unknown = () => {},
): Promise<Result> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof CatalogueError)) throw error;
      if (error.status === 413 || isRefusal(error)) throw complaintOf(error, reasons);
    }
    await check();
    await pause(PAUSE, signal);
  }
}

/** @param reasons see `persist`. */
export function complaintOf(
  { status = 0, message }: Pick<CatalogueError, 'status' | 'message'>,
  reasons: Reasons,
): Complaint {
  return new Complaint(reasons[status] ?? CATALOGUE.refused(message));
}

export async function pause(time: number, signal?: AbortSignal): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, time));
  signal?.throwIfAborted();
}
