// Owns: the permissions that SQLite needs for its files, in words for the operator: its own errors do not name them.

import { accessSync, constants, existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { companionsOf } from '../../disk.ts';

const { R_OK, W_OK, X_OK } = constants;

/**
 * Finds the file or folder that keeps this user from opening a store. SQLite makes files beside its own.
 * @returns undefined if the permissions are not the cause.
 */
export function deniedAccess(file: string): string | undefined {
  let folder = dirname(file);
  while (!existsSync(folder)) folder = dirname(folder);
  const files = [file, ...companionsOf(file)].map((path) => [path, R_OK | W_OK, 'read and write'] as const);
  for (const [path, mode, to] of [[`${folder}/.`, W_OK | X_OK, 'make files in'] as const, ...files]) {
    try {
      accessSync(path, mode);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      const shown = path.replace(/\/\.$/, '');
      if (code === 'EACCES' || code === 'EPERM') {
        return `this user (uid ${process.getuid?.()}) may not ${to} ${shown}`;
      }
      if (code === 'EROFS') return `${shown} is on a read-only file system`;
      if (code === 'ENOTDIR') return `a part of the path ${shown} is a file, not a folder`;
    }
  }
  return undefined;
}
