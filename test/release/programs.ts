// Owns: programs of Debian in front of a service, such as proxies, for as long as a test lasts; and guesses of a password
// through them.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { atEnd } from '../support/at-end.ts';
import { waitUntil } from '../support/wait.ts';

export interface Program {
  /** Ends it; may be called again. */
  stop(): Promise<void>;
}

/**
 * Starts a program until the end of the test, which Debian has in a package of the same name.
 * @param isUp whether it does its work.
 */
export async function startProgram(
  [name = '', ...args]: readonly string[],
  isUp: () => boolean | Promise<boolean>,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Program> {
  const child = spawn(name, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (text) => {
    said += text;
  });
  const ended = once(child, 'exit').then(
    ([code]) => `${name} ended with exit code ${code}: ${said}`,
    () => `${name} must be installed (Debian: apt-get install ${name})`,
  );
  const stop = async () => {
    child.kill();
    await ended;
  };
  atEnd(stop);
  await waitUntil(isUp, ended);
  return { stop };
}

/** Guesses that arrive together: far more than are answered in the seconds that they take. */
const GUESSES = 60;

/**
 * Resolves once guesses from one address are refused, although each claims to come from another one.
 * @param login sends a login with these headers; to its status.
 */
export async function untilRefused(
  login: (headers: Record<string, string>, body: string, guess: number) => Promise<number | undefined>,
): Promise<void> {
  await waitUntil(async () => {
    const statuses = await Promise.all(
      Array.from({ length: GUESSES }, (_, guess) => {
        const headers = { 'x-forwarded-for': `203.0.113.${guess}` };
        return login(headers, `{"username":"librarian","password":"guess ${guess}"}`, guess);
      }),
    );
    for (const status of statuses) assert.ok(status === 401 || status === 429, `${status}`);
    return statuses.includes(429);
  });
}
