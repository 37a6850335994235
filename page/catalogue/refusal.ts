// Owns: which errors mean that repeating a call cannot succeed, and the words for a proxy that alters answers.

import { CatalogueError } from '../../client/src/book-catalogue.ts';

export const ALTERED =
  'A proxy in front of the catalogue changes requests or answers: the headers Session-Key, Link or ETag, or an answer. Tell the person who runs the catalogue.';

/**
 * Excepted are a lost answer, one that means "later", "the book has changed" or "log in", and one of a proxy in front of the service.
 * Status 200 means that a proxy changes tags.
 */
export function isRefusal(error: unknown): error is CatalogueError {
  if (!(error instanceof CatalogueError) || error.isForeign) return false;
  const { status = 500 } = error;
  return status < 500 && ![401, 412, 429].includes(status);
}
