// Owns: waiting until an output has been read.

import type { Writable } from 'node:stream';

/** Resolves when everything so far has been written, or cannot be. It waits as long as a reader takes. */
export async function untilRead(output: Pick<Writable, 'write' | 'writableLength'>): Promise<void> {
  if (output.writableLength === 0) return;
  await new Promise<void>((resolve) => {
    output.write('', () => resolve());
  });
}
