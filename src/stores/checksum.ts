// Owns: the checksum for comparing two catalogues: the digest of their export as CSV. It is that of
// `book-catalogue export | sha256sum`.

import { createHash } from 'node:crypto';
import type { Book } from '../books/book.ts';
import { asCsv, CSV_HEADER } from '../books/line.ts';
import type { BulkStore } from './bulk.ts';

/** SHA-256 of a catalogue in CSV, computed from its text or from its books, ascending by id. */
export class Checksum {
  readonly #hash = createHash('sha256').update(CSV_HEADER);

  addText(chunk: string | Uint8Array): void {
    this.#hash.update(chunk);
  }

  addBooks(books: readonly Book[]): void {
    this.#hash.update(books.map(asCsv).join(''));
  }

  /** In hexadecimal, once everything has been added. */
  digest(): string {
    return this.#hash.digest('hex');
  }
}

/** @param store within a snapshot or a transaction. */
export async function checksumOf(store: BulkStore): Promise<string> {
  const checksum = new Checksum();
  for await (const chunk of store.text('csv')) checksum.addText(chunk);
  return checksum.digest();
}
