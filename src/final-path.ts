// Owns: where a path of the configuration leads: through symbolic links, whether or not there is a file at their end.
// Does not: expand `~` and variables, as a shell would: it refuses them.

import { lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { OperatorError } from './operator-error.ts';

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

/**
 * @param name of the variable or operand with the path.
 * @throws OperatorError if a shell would expand a part of it: the path would otherwise lead to a folder with that name.
 */
export function assertWrittenOut(path: string, name: string): void {
  const [part] = /^~[\w.-]*(?=\/|$)|\$\w+|\$\{\w*\}?|\$\(|\{\{|%\w+%/.exec(path) ?? [];
  if (part !== undefined)
    throw new OperatorError(`${name}: the path ${path} is used as it is: write what ${part} stands for.`);
}
