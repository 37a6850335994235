// Owns: a Debian system in a folder, whose programs tests run as those of other machines: so their versions are the same on
// each machine that runs the tests.
// Does not: run without root and `debootstrap`.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Debian 13. */
const RELEASE = 'trixie';

/** The systems are kept for the next run: each takes some minutes to install. */
const FOLDER = '/var/cache/book-catalogue-tests';

/**
 * Installs a system from Debian's packages, unless an earlier run has.
 * @param name of the system.
 * @param packages beside those that every Debian has.
 * @returns its folder.
 */
export async function debian(name: string, packages: readonly string[]): Promise<string> {
  const folder = join(FOLDER, name);
  if (existsSync(folder)) return folder;
  const unfinished = `${folder}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true }); // of an earlier run that was killed
  mkdirSync(dirname(folder), { recursive: true });
  const options = ['--variant=minbase', `--include=${packages.join()}`];
  const installation = spawn('debootstrap', [...options, RELEASE, unfinished], {
    stdio: ['ignore', process.stderr, process.stderr],
  });
  const [code] = await once(installation, 'exit');
  if (code !== 0) throw new Error(`debootstrap ended with exit code ${code}`);
  renameSync(unfinished, folder);
  return folder;
}
