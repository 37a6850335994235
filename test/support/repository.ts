// Owns: where the files of this repository are, for tests that read or start them.

import { fileURLToPath } from 'node:url';

/** The repository, as a folder URL. */
export const REPOSITORY = new URL('../../', import.meta.url);

/** @param path relative to the repository, such as `src/main.js`. */
export function pathTo(path: string): string {
  return fileURLToPath(new URL(path, REPOSITORY));
}

/** The `book-catalogue` command: a program, and its first argument. */
export const COMMAND: readonly [program: string, script: string] = [process.execPath, pathTo('src/main.js')];
