// Owns: the memory use of a process that imports or copies books.

import { setFlagsFromString } from 'node:v8';

/**
 * Keeps V8's space for young objects at its initial size. In a long run it would double twice, however little of it is
 * in use, and the process would take 170 MiB instead of 120. V8 reads this setting each time before the space grows.
 */
export function limitHeapGrowth(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
}
