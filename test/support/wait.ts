// Owns: waiting for a state, never for a time.

import assert from 'node:assert/strict';

/** Resolves once the condition holds; fails when it has not within 20 s. */
export async function waitUntil(holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 20_000;
  while (!(await holds())) {
    assert.ok(Date.now() < deadline, 'it did not come about within 20 s');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
