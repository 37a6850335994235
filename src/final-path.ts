// Owns: where a path of the configuration leads: through symbolic links, whether or not there is a file yet.
// Does not: expand `~` and variables, as a shell would: it refuses them.

import { lstatSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { OperatorError } from './operator-error.ts';

/**
 * @returns the absolute path.
 * @throws OperatorError for a link to nothing: a new file at its end would hide that a disk is not mounted there.
 */
export function finalPath(path: string): string {
  const absolute = resolve(path);
  try {
    return realpathSync(absolute);
  } catch (error) {
    // A folder that this user may not enter is no fault here: whatever opens the file says so.
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    if (isMissing && lstatSync(absolute, { throwIfNoEntry: false })?.isSymbolicLink()) {
      throw new OperatorError(`${absolute} is a link to a file or folder that is missing.`);
    }
    return join(finalPath(dirname(absolute)), basename(absolute));
  }
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
