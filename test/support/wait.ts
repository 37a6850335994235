// Owns: waiting for a state, never for a time. A state that never comes is reported by the time limit of the whole
// file, which the runner sets; a slow machine must not fail a test.

/** Milliseconds between two checks, at least and at most; in between twice as long as a check takes, which may need a core. */
const SHORTEST_PAUSE = 5;
const LONGEST_PAUSE = 100;

/** Milliseconds after which a wait prints its condition: the last such line explains a test that times out. */
const REMARKABLE = 30_000;

/** Of the runner, which was interrupted or has lost its patience with the file. */
let isToEnd = false;
process.once('SIGTERM', () => {
  isToEnd = true;
});

/**
 * Resolves once the condition holds.
 * @param seen what there is instead: printed while the condition does not hold for long.
 */
export async function waitUntil(
  holds: () => boolean | Promise<boolean>,
  seen?: () => Promise<unknown>,
): Promise<void> {
  let remarkAt = performance.now() + REMARKABLE;
  for (let began = performance.now(); !(await holds()); began = performance.now()) {
    if (isToEnd) throw new Error(`the run was ended while it waited for: ${holds}`);
    const pause = Math.min(SHORTEST_PAUSE + 2 * (performance.now() - began), LONGEST_PAUSE);
    if (performance.now() >= remarkAt) {
      remarkAt += REMARKABLE;
      console.error(`still waiting for: ${holds}`, ...(seen === undefined ? [] : [await seen()]));
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}
