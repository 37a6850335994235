// Owns: /dev/full, a file that behaves as if its disk were full, and commands that print to it.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { COMMAND } from './repository.ts';
import { endOf } from './service.ts';

export const FULL = '/dev/full';

/** For the option `skip` of a test that needs it. */
export const NO_FULL_DISK = !existsSync(FULL) && `this system has no ${FULL}, which behaves like a full disk`;

/** Runs a command whose standard output, or whose messages on standard error, find the disk full. */
export function runOnFullDisk(
  stream: 'stdout' | 'stderr',
  args: readonly string[],
  env: Record<string, string>,
) {
  const script = `exec "$@" ${stream === 'stdout' ? 1 : 2}>${FULL}`;
  return endOf(spawn('/bin/sh', ['-c', script, 'sh', ...COMMAND, ...args], { env }));
}
