// Owns: the kinds of SQLite's errors that matter here (https://sqlite.org/rescode.html).

/** The low byte of a code is its kind. */
export const SQLITE_BUSY = 5;
export const SQLITE_IOERR = 10;
export const SQLITE_FULL = 13;
export const SQLITE_CONSTRAINT = 19;

/** Whole codes, of the kind IOERR: a file, or the name of one, could not be synced. */
const FAILED_SYNCS = [SQLITE_IOERR | (4 << 8), SQLITE_IOERR | (5 << 8)];

export function isOfKind(error: unknown, kind: number): boolean {
  return codeOf(error) % 256 === kind;
}

/** Whether a disk has not written something that the system may now take for written. */
export function isFailedSync(error: unknown): boolean {
  return FAILED_SYNCS.includes(codeOf(error));
}

function codeOf(error: unknown): number {
  return (error as { errcode?: number }).errcode ?? 0;
}

/** A trigger that an operator has added skips a write. */
export class Skipped extends Error {
  readonly errcode = SQLITE_CONSTRAINT;

  constructor() {
    super('a trigger has skipped the write');
  }
}
