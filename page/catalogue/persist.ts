// Owns: repeating a request until the catalogue answers it, and why one cannot succeed, in words.

import { CatalogueError } from '../../client/src/book-catalogue.ts';
import { isRefusal } from './refusal.ts';

/** It cannot continue. The message is for the person at the page. */
export class Complaint extends Error {}

/** Milliseconds between two attempts. */
export const PAUSE = 1000;

const TOO_LARGE =
  'The file is too large for the catalogue, or for a proxy in front of it. Split it, or ask the operator to import it.';
const TOO_MANY =
  'These corrections are too long for one import. Save the refused rows, correct them there, and import that file.';

/**
 * Repeats work until the catalogue answers.
 * @param check is called before each repetition, which it may prevent.
 * @throws Complaint when the catalogue refuses it; the reason of the signal.
 */
export async function persist<Result>(
  signal: AbortSignal | undefined,
  work: () => Promise<Result>,
  check: () => unknown = () => {},
): Promise<Result> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof CatalogueError)) throw error;
      if (error.status === 413 || isRefusal(error)) throw complaintOf(error.status, error.message);
    }
    await check();
    await pause(PAUSE, signal);
  }
}

export function complaintOf(status: number | undefined, message: string): Complaint {
  if (status === 413) return new Complaint(TOO_LARGE);
  const isLong = status === 414 || status === 431;
  return new Complaint(isLong ? TOO_MANY : `The catalogue refuses this: ${message}.`);
}

export async function pause(time: number, signal: AbortSignal | undefined): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, time));
  signal?.throwIfAborted();
}
