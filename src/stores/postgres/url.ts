// Owns: the syntax of a PostgreSQL URL. It may name several hosts, as in PostgreSQL's own tools, which URL parsers do
// not support. It is independent of the driver, so that a URL can be checked and shown without loading one.

/** `postgres://librarian@a:5432,b/books`, taken apart: before the hosts, the hosts, after them. */
const PARTS = /^([a-z]+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/is;

/** One URL for each host that the URL names, in its order; each may still be an invalid URL. */
export function urlsOfHosts(dbUrl: string): readonly string[] {
  const [, before, hosts, after] = PARTS.exec(dbUrl) ?? [];
  return hosts === undefined ? [dbUrl] : hosts.split(',').map((host) => `${before}${host}${after}`);
}
