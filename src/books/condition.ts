// Owns: the tag of a book, and the conditions that a request may set (rules E1 to E4).
// Independent of HTTP and of stores.

import { hash } from 'node:crypto';
import type { Book } from './book.ts';

/** Characters of a tag: 132 bits of the hash. */
export const TAG_LENGTH = 22;

/** The tags that a client has sent, or any tag. */
export type Tags = readonly string[] | '*';

/** The book must have one of the tags in the first list, and none of those in the second. */
export interface Condition {
  readonly match?: Tags | undefined;
  readonly noneMatch?: Tags | undefined;
}

/**
 * A hash of everything that a client sees of a book: equal tags mean equal books. Nothing is stored that could differ
 * from the book, whichever program changes it.
 */
export function tagOf(book: Book): string {
  return tagOfText(JSON.stringify(book));
}

/** @param text of a book, as JSON. */
export function tagOfText(text: string): string {
  return hash('sha256', text, 'base64url').slice(0, TAG_LENGTH);
}

export function meets(book: Book, { match = '*', noneMatch = [] }: Condition): boolean {
  const tag = tagOf(book);
  const isAmong = (tags: Tags) => tags === '*' || tags.includes(tag);
  return isAmong(match) && !isAmong(noneMatch);
}
