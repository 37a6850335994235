// Owns: how much a run checks: everything in CI, less at the desk.

/** Services that run CI set it; `CI=true npm test` checks here what they check. */
export const IS_CI = process.env.CI === 'true';

/**
 * How often a loop of random or killing rounds goes round.
 * @param rounds in CI; at the desk a quarter of them, rounded up.
 */
export function scaled(rounds: number): number {
  return IS_CI ? rounds : Math.ceil(rounds / 4);
}
