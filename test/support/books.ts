// Owns: writing and reading the books of a store without a service.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { Book } from '../../conformance/service.ts';
import { parseBooks } from '../../src/books/line.ts';
import { readDbUrl } from '../../src/stores/open.ts';
import { TIMES } from '../../src/times.ts';

/** Replaces all books of a store by these; creates the store if it does not exist. */
export async function fill(url: string, books: readonly Book[]): Promise<void> {
  const store = await (await readDbUrl(url)).openBulk('write', TIMES);
  try {
    await store.inTransaction(async () => {
      await store.removeAll();
      await store.insertWithIds([books]);
      await store.reserveIdsThrough(books.at(-1)?.id ?? 0);
    });
  } finally {
    await store.close();
  }
}

/** All books, ascending by id. */
export async function booksOf(url: string): Promise<Book[]> {
  const store = await (await readDbUrl(url)).openBulk('read', TIMES);
  assert.ok(store !== undefined, 'the store does not exist');
  try {
    return await store.inSnapshot(async () => (await Array.fromAsync(parseBooks(store.text(), '\n'))).flat());
  } finally {
    await store.close();
  }
}

/** The tag of a book (rule E1). */
export function tagOf({ id, title, author, year }: Book): string {
  const text = JSON.stringify({ id, title, author, year });
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}

/** The export of books as CSV. */
export function exportOf(books: readonly Book[]): string {
  const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;
  const rows = books.map((book) => {
    const { id, title, author, year } = book;
    return `${id},${quoted(title)},${quoted(author)},${year},"""${tagOf(book)}"""\n`;
  });
  return `id,title,author,year,etag\n${rows.join('')}`;
}

/** How many books there are; 0 if the store does not exist. */
export async function countOf(url: string): Promise<number> {
  const store = await (await readDbUrl(url)).openBulk('read', TIMES);
  try {
    return (await store?.count()) ?? 0;
  } finally {
    await store?.close();
  }
}

/** Books with the ids 1, 2 … */
export function manyBooks(count: number, titleLength = 30): Book[] {
  return Array.from({ length: count }, (_, index) => {
    return { id: index + 1, title: `${index} `.padEnd(titleLength, 'x'), author: 'somebody', year: index };
  });
}
