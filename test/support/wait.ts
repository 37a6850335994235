// Owns: waiting for a state, never for a time. A slow machine must not fail a test: a wait ends when its condition holds, or
// when something else has happened after which it cannot hold.

import { inspect } from 'node:util';

/** Milliseconds between two checks, at least and at most; in between five times as long as a check takes, which may need a core. */
const SHORTEST_PAUSE = 5;
const LONGEST_PAUSE = 100;

/** Milliseconds after which a condition will never hold, on any machine: more than ten times what the slowest one took. */
const HOPELESS = 5 * 60_000;

/** Of the runner, which was interrupted or has lost its patience with the file. */
let isToEnd = false;
process.once('SIGTERM', () => {
  isToEnd = true;
});

/**
 * Resolves once the condition holds.
 * @param unless what else may happen, such as a call that is answered or a process that ends: a promise of it, or a function that
 * returns what it sees of it, undefined as long as it has not happened.
 * @param there what is there while the condition does not hold, for the message of a wait that never ends.
 * @throws as soon as that has happened before the condition holds; the message says what was seen.
 */
export async function waitUntil(
  holds: () => boolean | Promise<boolean>,
  unless: Promise<unknown> | (() => unknown) = () => undefined,
  there: () => unknown = () => '',
): Promise<void> {
  const began = performance.now();
  const otherwise = unless instanceof Promise ? seenOf(unless) : unless;
  for (;;) {
    const checked = performance.now();
    const seen = await otherwise(); // before the check: what ends may have made the condition true
    if (await holds()) return;
    if (seen !== undefined) throw new Error(`instead of ${holds}: ${format(seen)}`);
    if (isToEnd || checked - began > HOPELESS)
      throw new Error(`this never held: ${holds} ${format(await there())}`);
    const pause = Math.min(SHORTEST_PAUSE + 5 * (performance.now() - checked), LONGEST_PAUSE);
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** What a promise has become, if it is settled. */
function seenOf(promise: Promise<unknown>): () => unknown {
  let seen: unknown;
  const note = (value: unknown) => {
    seen = value ?? 'settled';
  };
  promise.then(note, note);
  return () => seen;
}

/** As a person reads it. */
function format(seen: unknown): string {
  return inspect(seen, { depth: 4, breakLength: 120 });
}
