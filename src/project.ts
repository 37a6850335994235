// Owns: what the running service takes from the project: files, and the programs of its threads. In a clone they are
// files in its folder; in the single executable they are assets, under the same paths.
// Does not: look for a file of the project beside the executable, where anyone may have put it.

import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { getAsset, getAssetKeys, getRawAsset, isSea } from 'node:sea';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** Whether this process runs the single executable, which release/binary.ts makes. */
export const IS_EXECUTABLE = isSea();

/** The folder of the project; of the single executable, the one that it is in, as far as its path is known. */
export const PROJECT = IS_EXECUTABLE
  ? pathToFileURL(`${dirname(process.execPath)}/`) // `import.meta.url` is not a URL if it was called by a relative path
  : new URL('..', import.meta.url);

/**
 * The content of a file, which must not be changed: in the single executable it is memory of the program.
 * @param path in the project, with `/`, such as `docs/openapi/openapi.json`.
 * @throws Error if it cannot be read.
 */
export async function readProjectFile(path: string): Promise<Buffer> {
  return IS_EXECUTABLE ? Buffer.from(getRawAsset(path)) : readFile(new URL(path, PROJECT));
}

/**
 * The paths of the files in a folder and in those below it; none if there is no such folder.
 * @param folder path in the project, such as `site/dist`.
 */
export async function projectFiles(folder: string): Promise<string[]> {
  if (IS_EXECUTABLE) return getAssetKeys().filter((path) => path.startsWith(`${folder}/`));
  const options = { recursive: true, withFileTypes: true } as const;
  const found = await readdir(new URL(folder, PROJECT), options).catch((error) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  return found
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) =>
      relative(fileURLToPath(PROJECT), join(parentPath, name)).replaceAll('\\', '/'),
    );
}

/**
 * A program of the project, as the first argument of `new Worker`, and the option `eval` that belongs to it.
 * @param path in the project, such as `src/stores/sqlite/finder.ts`.
 */
export function threadProgram(path: string): { readonly program: URL | string; readonly eval: boolean } {
  return IS_EXECUTABLE
    ? { program: getAsset(path, 'utf8'), eval: true }
    : { program: new URL(path, PROJECT), eval: false };
}
