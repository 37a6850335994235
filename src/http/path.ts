// Owns: the path and the query of a request's target.

export interface Path {
  /** As it was sent, without a query. */
  readonly sent: string;
  /** With its percent-escapes decoded, except those of delimiters. */
  readonly decoded: string;
  /** As it was sent, without `?`; empty if there is none. */
  readonly query: string;
}

/**
 * @param target in origin form, or in the absolute form that proxies send (RFC 9112 section 3.2).
 * @returns undefined if a percent-escape in it is malformed.
 */
export function pathOf(target: string): Path | undefined {
  const local = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?]*/i, '');
  const mark = local.indexOf('?');
  const sent = mark === -1 ? local : local.slice(0, mark);
  const query = local.slice(sent.length + 1);
  if (!sent.includes('%')) return { sent, decoded: sent, query };
  try {
    return { sent, decoded: decodeURI(sent), query };
  } catch {
    return undefined;
  }
}
