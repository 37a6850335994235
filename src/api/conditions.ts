// Owns: the headers `If-Match` and `If-None-Match` (RFC 9110 section 13.1), and the header `Idempotency-Key`.
// Does not: accept weak tags where the content must be the same byte by byte.

import type { Condition, Tags } from '../books/condition.ts';
import type { RequestHeaders } from '../http/head.ts';
import type { Exchange } from './exchange.ts';

/**
 * An element of a list of entity tags, with what separates it from the next; it may be empty (RFC 9110 section 5.6.1). Only a
 * tag of the service's own length is captured, without the suffix of a proxy that compresses: tags may end with `-br`.
 */
const ELEMENT =
  /(?:(W\/)?"(?:([\w-]{22})(?:(?:--?|;)(?:gzip|br|zstd|deflate|df))?|[!#-~\x80-\xff]*)")?[ \t]*(?:,[ \t]*|$)/y;

/** @returns undefined if the request has no condition. */
export function conditionOf(headers: RequestHeaders): Condition | undefined {
  const { 'if-match': match, 'if-none-match': noneMatch } = headers;
  if (match === undefined && noneMatch === undefined) return undefined;
  return {
    match: match === undefined ? undefined : readTags(match, false),
    noneMatch: noneMatch === undefined ? undefined : readTags(noneMatch, true),
  };
}

/** In place of a key that cannot be one. */
export const INVALID = Symbol('invalid');

/** @returns undefined without a key, INVALID if it is not visible ASCII of at most 255 characters (rule I1). */
export function idempotencyKeyOf({ request }: Exchange): string | typeof INVALID | undefined {
  const { 'idempotency-key': sent } = request.headers;
  if (sent === undefined) return undefined;
  const key = /^"(.*)"$/.exec(sent)?.[1] ?? sent; // a string of RFC 9651, or bare
  return /^[!-~]{1,255}$/.test(key) ? key : INVALID;
}

/** @returns no tags if the text is not a list of them. */
function readTags(text: string, acceptsWeak: boolean): Tags {
  if (text === '*') return '*';
  const tags: string[] = [];
  ELEMENT.lastIndex = 0;
  while (ELEMENT.lastIndex < text.length) {
    const element = ELEMENT.exec(text);
    if (element === null) return [];
    const [, weak, tag] = element;
    if (tag !== undefined && (weak === undefined || acceptsWeak)) tags.push(tag);
  }
  return tags;
}
