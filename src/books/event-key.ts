// Owns: how clients name events (rule H7).

import { readBookId } from './book.ts';
import type { EventKey } from './change-log.ts';

/** The name of an event: a number, or the first and the last time of a run. */
export function nameOf(key: EventKey): number | string {
  return typeof key === 'number' ? key : `${key.from}-${key.until}`;
}

/** @returns undefined if the text names no event. */
export function readEventKey(text: string): EventKey | undefined {
  const [from, until, ...more] = text.split('-').map(readBookId); // they are written like ids
  if (from === undefined || more.length > 0) return undefined;
  if (!text.includes('-')) return from;
  return until === undefined || until < from ? undefined : { from, until };
}
