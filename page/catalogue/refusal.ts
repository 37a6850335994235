// Owns: which errors mean that repeating a call cannot succeed, and the words for a proxy that alters answers.

import { CatalogueError } from '../../client/src/book-catalogue.ts';

export const ALTERED =
  'A proxy in front of the catalogue changes what it passes on: the headers Authorization, Link or ETag, or an answer. Tell the operator.';

/**
 * A lost answer, or one that says "later", does not mean that; nor does one that says that the book has changed, one that
 * says that nobody is logged in, or one of a proxy in front of the service. Status 200 means that a proxy changes tags.
 */
export function isRefusal(error: unknown): error is CatalogueError {
  if (!(error instanceof CatalogueError) || error.isForeign) return false;
  const { status = 500 } = error;
  return status < 500 && ![401, 412, 429].includes(status);
}
