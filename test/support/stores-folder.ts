// Owns: where the stores of tests keep their files: in memory, if there is plenty. Hundreds of stores would keep a disk
// busy, and a sync that takes seconds there would look like a fault of the service. Behaviour that depends on a disk is
// tested on one, in test/release.

import { existsSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';

/** Linux keeps the files of this folder in memory. */
const IN_MEMORY = '/dev/shm';

/** Bytes that must be free there: far more than all stores of a run take. */
const PLENTY = 8 * 1024 ** 3;

/** The environment variable with a folder to use instead, of a run that ends tests which cannot remove their stores. */
export const OWN_STORES_FOLDER = 'TEST_STORES_FOLDER';

/** The folder in which the folders of stores are made. */
export const STORES_FOLDER = process.env[OWN_STORES_FOLDER] ?? (hasPlenty(IN_MEMORY) ? IN_MEMORY : tmpdir());

function hasPlenty(folder: string): boolean {
  if (!existsSync(folder)) return false;
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize >= PLENTY;
}
