// Owns: reading a file of books from memory, in pieces of any size, and its books in short; tables of such files.

import type { ReadBatch, ReadBook, Reading, ReadingOptions, RefusedRecord } from '../../src/files/format.ts';
import { readBooks } from '../../src/files/reading.ts';
import { sentenceOf } from '../../src/files/reasons.ts';
import { OperatorError } from '../../src/operator-error.ts';

export type Content = string | Buffer;
export type Options = Partial<ReadingOptions>;

export const PIECE_SIZES = [1, 2, 3, 7, 1_000_000];

export interface Outcome {
  readonly reading: Reading;
  readonly batches: readonly ReadBatch[];
  readonly books: readonly ReadBook[];
  readonly refused: readonly RefusedRecord[];
  /** The error message with which the reading broke off. */
  readonly fault: string | undefined;
}

/** @param sizes of the pieces, in bytes; after the last one, again from the first. */
export async function read(
  content: Content,
  options: Options = {},
  sizes: readonly number[] = [65_536],
): Promise<Outcome> {
  const bytes = piecesOf(Buffer.from(content as string), sizes);
  const reading = await readBooks(bytes, { name: '-', columns: {}, ...options });
  const batches: ReadBatch[] = [];
  let fault: string | undefined;
  try {
    for await (const batch of reading.batches) batches.push(batch);
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    fault = error.message;
  }
  const books = batches.flatMap((batch) => batch.books);
  const refused = batches.flatMap((batch) => batch.refused);
  return { reading, batches, books, refused, fault };
}

async function* piecesOf(bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Buffer> {
  let at = 0;
  for (let index = 0; at < bytes.length; index += 1) {
    const size = sizes[index % sizes.length] as number;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

/** `line title/author/year` of each book. */
export function inShort({ books }: Pick<Outcome, 'books'>): string[] {
  return books.map(({ line, title, author, year }) => `${line} ${title}/${author}/${year}`);
}

/** `line column "value" reason` of each rejected record. */
export function refusalsOf({ refused }: Outcome): string[] {
  return refused.map(({ line, column, value, reason }) =>
    column === undefined
      ? `${line} ${sentenceOf(reason)}`
      : `${line} ${column} "${value}" ${sentenceOf(reason)}`,
  );
}

/** A table of files: a name » the content → its books ✗ its rejected records ! the fault with which it breaks off. */
export function casesOf(table: string) {
  const rows = table.trim().split(/\n(?![→✗!])/);
  return rows.map((row) => {
    const [beginning = '', ...parts] = row.split(/\s(?=[→✗!] )/);
    const [name = '', content = ''] = beginning.split(' » ');
    const [books = [], refused = [], fault = []] = ['→', '✗', '!'].map((sign) => {
      const lists = parts.filter((part) => part.startsWith(sign));
      return lists.flatMap((part) => part.slice(2).split(' | ').map(unescaped));
    });
    return { name, content: unescaped(content), books, refused, fault: fault[0] };
  });
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', 0: '\0' };

/** A text in which \n, \r, \t, \0, \\ and \u{…} stand for what they mean in JavaScript. */
function unescaped(text: string): string {
  return text.replaceAll(/\\(?:u\{(\w+)\}|(.))/g, (_, code, sign) =>
    code === undefined ? (ESCAPES[sign] ?? sign) : String.fromCodePoint(Number.parseInt(code, 16)),
  );
}
