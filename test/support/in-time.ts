// Owns: tests of what happens before a timeout of the service expires. A machine can always be too slow for that; then
// the attempt proves nothing and is repeated.

/** Marks the earliest moment at which the service's timeout may start. */
export type StartClock = () => void;

/**
 * Repeats an attempt until it succeeds. An attempt that fails before the timeout can have expired is a failure; one
 * that fails later may have met the timeout.
 * @param limit the timeout, in milliseconds.
 * @param attempt starts the clock before it does what starts the timeout.
 */
export async function inTime(
  limit: number,
  attempt: (startClock: StartClock) => Promise<void>,
): Promise<void> {
  for (;;) {
    let began = Number.POSITIVE_INFINITY;
    try {
      return await attempt(() => {
        began = performance.now();
      });
    } catch (error) {
      const took = performance.now() - began;
      if (took < limit) throw error;
      console.error(
        `retrying, since it took ${Math.round(took)} ms and the timeout is ${limit} ms: ${error}`,
      );
    }
  }
}
