// Owns: how a PostgreSQL URL is written. It may name several hosts, as PostgreSQL's own tools take them,
// which no URL parser reads. Knows no driver, so that a URL can be judged and shown without loading one.

/** `postgres://librarian@a:5432,b/books`, taken apart: before the hosts, the hosts, after them. */
const PARTS = /^([a-z]+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/is;

/** One URL for each host that the URL names, in its order; each may still be no URL at all. */
export function urlsOfHosts(dbUrl: string): readonly string[] {
  const [, before, hosts, after] = PARTS.exec(dbUrl) ?? [];
  return hosts === undefined ? [dbUrl] : hosts.split(',').map((host) => `${before}${host}${after}`);
}
