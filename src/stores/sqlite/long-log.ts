// Owns: when the write-ahead log is too long. It can be emptied only while nothing reads from it: lists and searches that
// overlap all the time would make it grow without end.

import type { DatabaseSync } from 'node:sqlite';
import type { Times } from '../../times.ts';
import { now, retryWhileBusy, SQLITE_BUSY, sizeOf } from './structure.ts';

/** Bytes of the log beyond which new lists and searches wait for those in progress: half more than an emptied log keeps. */
export const LONG_LOG = 96 * 1024 * 1024;

/** Bytes of the log before each page in it. */
const FRAME_HEADER = 24;

/** @returns the bytes of a file's log; 0 if the system does not say. */
export function logSizeOf(file: string): number {
  try {
    return sizeOf(`${file}-wal`);
  } catch {
    return 0;
  }
}

/**
 * Moves the log into the file, and empties it unless others read from it or write to it.
 * @returns the bytes of committed writes that stay in it. A transaction in progress may have made the log longer than that.
 * @throws Error while another connection moves it, since only that one sees how long it is; if it takes long.
 */
export function emptyLog(db: DatabaseSync, times: Times['sqlite']): number {
  db.exec('pragma wal_checkpoint(passive)'); // nearly all of the work, without the lock for writing
  const row = (pragma: string) => db.prepare(`pragma ${pragma}`).get() as Record<string, number>;
  const empty = () => {
    const { log = 0 } = row('wal_checkpoint(truncate)');
    if (log < 0)
      throw Object.assign(new Error('another connection is moving the log'), { errcode: SQLITE_BUSY });
    return log;
  };
  const log = retryWhileBusy(empty, now() + times.read, times);
  return log * (Number(row('page_size').page_size) + FRAME_HEADER);
}
