// Owns: when the write-ahead log is too long. It can be emptied only while nothing reads from it: lists and searches that
// overlap all the time would make it grow without end.

import { LOG_SIZE, sizeOf } from './structure.ts';

/**
 * Bytes beyond which new lists and searches wait for those in progress. Milliseconds that they wait, between two looks, and
 * until the next such wait.
 */
export const LONG_LOG = 1.5 * LOG_SIZE;
export const LOG_WAIT = 1000;
export const LOG_STEP = 10;
export const LOG_PAUSE = 10_000;

/** Bytes beyond which lists break off, and no search starts. */
export const LARGEST_LOG = 1024 * 1024 * 1024;

/** @returns the bytes of a file's log; 0 if the system does not say. */
export function logSizeOf(file: string): number {
  try {
    return sizeOf(`${file}-wal`);
  } catch {
    return 0;
  }
}
