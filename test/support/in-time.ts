// Owns: tests of what happens before a time limit of the service's own. A machine can always be too slow for that;
// then the attempt shows nothing, and is made again.

/** Says that the service's limit begins to run now, at the latest. */
export type StartClock = () => void;

/**
 * Makes an attempt until it succeeds. It fails when it fails in time: an attempt that took as long as the service's own
 * limit may have met that.
 * @param limit milliseconds.
 * @param attempt starts the clock before it does what makes the limit run.
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
      console.error(`once more, since it took ${Math.round(took)} ms, and ${limit} is the limit: ${error}`);
    }
  }
}
