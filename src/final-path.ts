// Owns: where a path leads through symbolic links, whether or not there is a file at their end.

import { lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** Links of one path that Linux follows at most. */
const MOST_LINKS = 40;

/** @returns the absolute path; that of a link if it cannot be followed. */
export function finalPath(path: string): string {
  let found = resolve(path);
  try {
    for (let links = 0; links < MOST_LINKS; links += 1) {
      if (!lstatSync(found, { throwIfNoEntry: false })?.isSymbolicLink()) break;
      found = resolve(realpathSync(dirname(found)), readlinkSync(found));
    }
  } catch {
    // a folder that this user may not enter: whatever opens the file says so
  }
  return found;
}
