// Owns: the words for errors of the system, in the sentences that an operator reads.

import { getSystemErrorMessage } from 'node:util';

/** The reason that an error gives, without the names that the system and Node.js have for it. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'AbortError') return 'stopped'; // by a signal
  const { errno, code, syscall, path } = error as NodeJS.ErrnoException;
  if (code === 'ENOTFOUND') return `the name ${(error as { hostname?: string }).hostname} is not known`;
  if (errno === undefined || syscall === undefined) return error.message;
  return `${path === undefined ? '' : `${path}: `}${getSystemErrorMessage(errno)}`;
}
