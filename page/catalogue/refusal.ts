// Owns: which errors mean that repeating a call cannot succeed.

import { CatalogueError } from '../../client/src/book-catalogue.ts';

/**
 * Excepted are a lost answer, one that means "later", "the book has changed" or "log in", and one of a proxy in front of the service.
 * Status 200 means that a proxy changes tags.
 */
export function isRefusal(error: unknown): error is CatalogueError {
  if (!(error instanceof CatalogueError) || error.isForeign) return false;
  const { status = 500 } = error;
  return status < 500 && ![401, 412, 429].includes(status);
}
