// Owns: the checksum for comparing two catalogues: the digest of their export as CSV. It is that of
// `book-catalogue export | sha256sum`.

import { createHash, type Hash } from 'node:crypto';
import { CSV_HEADER } from '../books/line.ts';
import type { BulkStore } from './bulk.ts';

/** SHA-256 of a catalogue in CSV, to be updated with the lines of its books, ascending by id. */
export function startChecksum(): Hash {
  return createHash('sha256').update(CSV_HEADER);
}

/** @param store within a snapshot or a transaction. */
export async function checksumOf(store: BulkStore): Promise<string> {
  const checksum = startChecksum();
  for await (const chunk of store.text('csv')) checksum.update(chunk);
  return checksum.digest('hex');
}
