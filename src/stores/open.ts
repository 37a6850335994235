// Owns: from DB_URL to an open store. The only place that looks at the scheme (rule 26), and where a
// store that cannot be opened becomes the sentence the operator reads (rule 27). Loads the store that is
// asked for and no other.

import type { BookStore } from '../books/store.ts';
import { StartupRefusal } from '../config.ts';
import { urlsOfHosts } from './postgres-url.ts';

/** @param mustExist whether others have the store open already, so that it cannot be new. */
type OpenStore = (mustExist: boolean) => Promise<BookStore>;

/**
 * Judges a DB_URL without touching its store.
 * @returns what opens the store, preparing it when it is new.
 * @throws StartupRefusal when the URL cannot be meant; so does what is returned when the store cannot be opened.
 */
export async function readDbUrl(dbUrl: string): Promise<OpenStore> {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(dbUrl)?.[1]?.toLowerCase();
  switch (scheme) {
    case 'sqlite': {
      const path = sqlitePath(dbUrl);
      const { openSqlite } = await import('./sqlite.ts');
      return (mustExist) => orRefuse(dbUrl, () => openSqlite(path, mustExist));
    }
    case 'postgres':
    case 'postgresql': {
      if (!urlsOfHosts(dbUrl).every(isWellEscaped)) {
        throw new StartupRefusal(
          'DB_URL is not a valid URL: percent-encode special characters in its parts.',
        );
      }
      const { openPostgres } = await import('./postgres.ts');
      const { readHosts } = await import('./postgres-hosts.ts');
      const hosts = await orRefuse(dbUrl, () => readHosts(dbUrl));
      return () => orRefuse(dbUrl, () => openPostgres(hosts));
    }
    default: {
      const found = scheme === undefined ? 'it has none' : `not ${scheme}:`;
      throw new StartupRefusal(`DB_URL must begin with sqlite: or postgres: (${found}).`);
    }
  }
}

/** What may be shown of a DB_URL: where the store is, never who logs in to it and how. */
export function describeStore(dbUrl: string): string {
  if (!/^postgres(ql)?:/i.test(dbUrl)) return dbUrl;
  const urls = urlsOfHosts(dbUrl).map((url) => new URL(url));
  return `postgres://${urls.map(({ host }) => host).join(',')}${urls[0]?.pathname}`;
}

/** An `@` behind the host is what remains of a password with a `/`, `?` or `#` in it; host and path are shown. */
function isWellEscaped(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { pathname, search, hash } = new URL(url);
  return !`${pathname}${search}${hash}`.includes('@');
}

/** `sqlite:books.db` is relative; `sqlite:/srv/books.db` and `sqlite:///srv/books.db` are absolute. */
function sqlitePath(dbUrl: string): string {
  const path = dbUrl.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '');
  if (path === '' || path.startsWith('//')) {
    throw new StartupRefusal(
      'DB_URL must name a file: sqlite:data/books.db is relative, sqlite:/srv/books.db absolute.',
    );
  }
  return path;
}

async function orRefuse<Result>(dbUrl: string, action: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await action();
  } catch (error) {
    if (error instanceof StartupRefusal) throw error;
    throw new StartupRefusal(
      `DB_URL: ${describeStore(dbUrl)} cannot be opened: ${(error as Error).message}.`,
    );
  }
}
