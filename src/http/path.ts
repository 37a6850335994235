// Owns: the path of a request's target.

export interface Path {
  /** As it was sent, without a query. */
  readonly sent: string;
  /** Its percent-escapes decoded, those of delimiters excepted. */
  readonly decoded: string;
}

/**
 * @param target origin form, or absolute as proxies send it (RFC 9112 section 3.2).
 * @returns undefined when an escape in it is malformed.
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
