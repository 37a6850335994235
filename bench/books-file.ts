// Owns: a file of books as another program would write it: CSV of title, author and year, quoted only where
// necessary. And books for it, no two alike, the same in every run.

import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { BookFields } from '../src/books/book.ts';

const QUALITIES = ['Silent', 'Last', 'Hidden', 'Burning', 'Little', 'Crimson', 'Forgotten', 'Unbearable'];
const THINGS = ['Garden', 'Daughter', 'River', 'Château', 'Kingdom', 'Lighthouse', 'Señora', 'Winter'];
const PLACES = ['the North', 'Kraków', 'São Paulo', 'the Sea', 'Avalon', 'Москва', 'Everyday Life', '東京'];
const FIRST_NAMES = ['Suzanne', 'Miguel', 'Jane', 'Gabriel', 'Zoë', 'Haruki', 'Chimamanda', 'George R. R.'];
const LAST_NAMES = [
  'Collins',
  'de Cervantes',
  'Austen',
  'García Márquez',
  'Müller',
  "O'Brien",
  'Łukasiewicz',
  'Lee',
];

/** Characters of one chunk, or a few more. */
const CHUNK = 64 * 1024;

export async function writeBooksFile(path: string, books: Iterable<BookFields>): Promise<void> {
  await pipeline(chunks(books), createWriteStream(path));
}

/** Every seventh title has quotes, every third a comma, and so has every fifth author. */
export function* distinctBooks(count: number): Generator<BookFields, void, void> {
  for (let book = 1; book <= count; book += 1) {
    const any = (words: readonly string[], step: number) =>
      words[Math.floor(book / step) % words.length] as string;
    const named = `The ${any(QUALITIES, 1)} ${any(THINGS, 3)} of ${any(PLACES, 5)}`;
    const title = book % 7 === 0 ? `"${named}"` : named;
    const volume = book % 3 === 0 ? ` (Collected, #${book})` : ` Vol. ${book}`;
    const author = `${any(FIRST_NAMES, 2)} ${any(LAST_NAMES, 7)}`;
    const authors = book % 5 === 0 ? `${author}, ${any(FIRST_NAMES, 11)} Smith` : author;
    yield { title: title + volume, author: authors, year: 1500 + (book % 520) };
  }
}

function* chunks(books: Iterable<BookFields>): Generator<string, void, void> {
  let chunk = 'title,author,year\n';
  for (const { title, author, year } of books) {
    chunk += `${field(title)},${field(author)},${year}\n`;
    if (chunk.length < CHUNK) continue;
    yield chunk;
    chunk = '';
  }
  yield chunk;
}

function field(text: string): string {
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
