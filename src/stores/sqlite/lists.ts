// Owns: the list of all books in a SQLite file, chunk by chunk. Twin of `postgres/lists.ts`.

import type { DatabaseSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import { type BookList, StoreUnavailable } from '../../books/store.ts';
import { chunksOf, IN_LIST } from './text.ts';

/** All books of a snapshot, which is closed as soon as the last chunk has been read. */
export function listOf(db: DatabaseSync): BookList {
  const texts = chunksOf(db, IN_LIST);
  let isComplete = false;
  const close = () => {
    if (db.isOpen) db.close();
  };
  const read = () => {
    try {
      const { value } = texts.next();
      isComplete = value?.isLast ?? true;
      if (isComplete) close();
      return value?.text;
    } catch (error) {
      close();
      throw new StoreUnavailable(error);
    }
  };
  async function* chunks(first: string | undefined) {
    if (first !== undefined) yield first;
    while (!isComplete) {
      await setImmediate(); // other work first
      const json = read();
      if (json !== undefined) yield `,${json}`;
    }
  }
  return { chunks: chunks(read()), close };
}
