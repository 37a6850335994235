// Owns: the path of a request's target.

export interface Path {
  /** As it was sent, without a query. */
  readonly sent: string;
  /** With its percent-escapes decoded, except those of delimiters. */
  readonly decoded: string;
}

/**
 * @param target in origin form, or in the absolute form that proxies send (RFC 9112 section 3.2).
 * @returns undefined if a percent-escape in it is malformed.
 */
export function pathOf(target: string): Path | undefined {
  const from = target.startsWith('/') ? 0 : (/^https?:\/\/[^/?#]*/i.exec(target)?.[0].length ?? 0);
  const query = target.slice(from).search(/[?#]/);
  const sent = query === -1 ? target.slice(from) : target.slice(from, from + query);
  if (!sent.includes('%')) return { sent, decoded: sent };
  try {
    return { sent, decoded: decodeURI(sent) };
  } catch {
    return undefined;
  }
}
