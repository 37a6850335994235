// Owns: from DB_URL to an open store. The only place that looks at the scheme (rule 26), and where a
// store that cannot be opened becomes the sentence the operator reads (rule 27). Loads the store that is
// asked for and no other.

import type { BookStore } from '../books/store.ts';
import { StartupRefusal } from '../config.ts';
import { urlsOfHosts } from './postgres-url.ts';

/**
 * Opens the store, preparing it when it is new.
 * @param mustExist whether others have it open already, so that it cannot be new.
 * @throws StartupRefusal when the URL cannot be meant or its store cannot be opened.
 */
export async function openStore(dbUrl: string, mustExist = false): Promise<BookStore> {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(dbUrl)?.[1]?.toLowerCase();
  switch (scheme) {
    case 'sqlite':
      return await openOrRefuse(describeStore(dbUrl), async () => {
        const { openSqlite } = await import('./sqlite.ts');
        return openSqlite(sqlitePath(dbUrl), mustExist);
      });
    case 'postgres':
    case 'postgresql':
      // An `@` in the path is what remains of a password with a `/` in it, and the path is shown.
      if (urlsOfHosts(dbUrl).some((url) => !URL.canParse(url) || new URL(url).pathname.includes('@'))) {
        throw new StartupRefusal(
          'DB_URL is not a valid URL: percent-encode special characters in its parts.',
        );
      }
      return await openOrRefuse(describeStore(dbUrl), async () => {
        const { openPostgres } = await import('./postgres.ts');
        return openPostgres(dbUrl);
      });
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

async function openOrRefuse(store: string, open: () => Promise<BookStore>): Promise<BookStore> {
  try {
    return await open();
  } catch (error) {
    if (error instanceof StartupRefusal) throw error;
    throw new StartupRefusal(`DB_URL: ${store} cannot be opened: ${(error as Error).message}.`);
  }
}
