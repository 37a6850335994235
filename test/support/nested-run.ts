// Owns: a run of test files within a test, on another server or on databases that an operator has prepared.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { pathTo } from './repository.ts';
import { endOf } from './service.ts';

/**
 * Runs test files on PostgreSQL in a process of its own; fails unless all of them pass.
 * @param env for them, beside this process's own; a variable that is undefined is removed.
 * @param atOnce files at a time; 1 if other tests run beside them.
 * @returns how many passed.
 */
export async function runFiles(
  files: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  atOnce: number,
): Promise<string> {
  const { NODE_TEST_CONTEXT: _, ...others } = process.env; // a run of its own, not a part of this one
  const args = ['test/run.ts', ...files, '--store', 'PostgreSQL', '--at-once', String(atOnce)];
  const child = spawn(process.execPath, args, {
    cwd: pathTo(''),
    env: { ...others, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const { code, stdout, stderr } = await endOf(child);
  assert.equal(code, 0, `${stdout}${stderr}`);
  return stdout.trimEnd().split('\n').at(-1) ?? '';
}
