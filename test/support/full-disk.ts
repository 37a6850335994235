// Owns: /dev/full, a file that behaves as if its disk were full, and commands that print to it.

import { spawn } from 'node:child_process';
import { COMMAND } from './repository.ts';
import { endOf } from './service.ts';

export const FULL = '/dev/full';

/** Runs a command whose standard output, or whose messages on standard error, find the disk full. */
export function runOnFullDisk(
  stream: 'stdout' | 'stderr',
  args: readonly string[],
  env: Record<string, string>,
) {
  const script = `exec "$@" ${stream === 'stdout' ? 1 : 2}>${FULL}`;
  return endOf(spawn('/bin/sh', ['-c', script, 'sh', ...COMMAND, ...args], { env }));
}
