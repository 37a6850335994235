// Owns: the permissions that SQLite needs for its files, in words for the operator: its own errors do not name them.

import { accessSync, constants } from 'node:fs';
import { dirname } from 'node:path';
import { companionsOf } from './structure.ts';

const { R_OK, W_OK, X_OK } = constants;

/**
 * Finds the file or folder that keeps this user from opening a store. SQLite makes files beside its own.
 * @returns undefined if the permissions are not the cause.
 */
export function deniedAccess(file: string): string | undefined {
  const user = process.getuid === undefined ? 'this user' : `this user (uid ${process.getuid()})`;
  let folder = dirname(file);
  while (faultOf(`${folder}/.`, W_OK | X_OK) === 'ENOENT') folder = dirname(folder);
  const needs = [file, ...companionsOf(file)].map((path) => ({
    path,
    mode: R_OK | W_OK,
    to: 'read and write',
  }));
  for (const { path, mode, to } of [
    { path: `${folder}/.`, mode: W_OK | X_OK, to: 'make files in' },
    ...needs,
  ]) {
    const shown = path.replace(/\/\.$/, '');
    const fault = faultOf(path, mode);
    if (fault === 'EACCES' || fault === 'EPERM') return `${user} may not ${to} ${shown}`;
    if (fault === 'EROFS') return `${shown} is on a read-only file system`;
    if (fault === 'ENOTDIR') return `a part of the path ${shown} is a file, not a folder`;
  }
  return undefined;
}

/** @returns the system's code for the error, undefined if this user may use the path so. */
function faultOf(path: string, mode: number): string | undefined {
  try {
    accessSync(path, mode);
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code;
  }
}
