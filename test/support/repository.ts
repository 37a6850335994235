// Owns: where the files of this repository are, for tests that read or start them.

import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository, as a folder URL. */
export const REPOSITORY = new URL('../../', import.meta.url);

/** @param path relative to the repository, such as `src/main.js`. */
export function pathTo(path: string): string {
  return fileURLToPath(new URL(path, REPOSITORY));
}

/** The environment variable with the path of a single executable to test; without it, this clone is tested. */
const executable = process.env.TEST_EXECUTABLE;

export const IS_EXECUTABLE_TESTED = executable !== undefined;

/** The `book-catalogue` command: a program, and its first arguments. */
export const COMMAND: readonly [program: string, ...args: string[]] =
  executable === undefined ? [process.execPath, pathTo('src/main.js')] : [resolve(executable)];
