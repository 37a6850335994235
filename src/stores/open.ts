// Owns: from the URL of a store to the store. The only place that looks at the scheme (rule 26), and where a
// store that cannot be opened becomes the sentence the operator reads (rule 27). Loads the store that is
// asked for and no other.

import type { BookStore } from '../books/store.ts';
import { OperatorError } from '../operator-error.ts';
import type { BulkMode, BulkStore } from './bulk.ts';
import type { Hosts } from './postgres/hosts.ts';
import { urlsOfHosts } from './postgres/url.ts';

/** A store that is known by its URL, not yet touched. What opens it throws a OperatorError when that cannot be done. */
export interface StoreAt {
  /** The path of its file, when it is one. */
  readonly file: string | undefined;
  /**
   * Opens it for serving, preparing it when it is new.
   * @param mustExist whether others have the store open already, so that it cannot be new.
   */
  open(mustExist: boolean): Promise<BookStore>;
  /**
   * Opens it for moving books in large numbers.
   * @returns undefined when it is to be read and there is none.
   */
  openBulk(mode: 'read'): Promise<BulkStore | undefined>;
  openBulk(mode: 'write'): Promise<BulkStore>;
}

/**
 * Judges the URL of a store.
 * @param name what the operator knows the URL by.
 * @throws OperatorError when the URL cannot be meant.
 */
export async function readDbUrl(dbUrl: string, name = 'DB_URL'): Promise<StoreAt> {
  const refuse = (error: unknown): never => {
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(
      `${name}: ${describeStore(dbUrl)} cannot be opened: ${(error as Error).message}.`,
    );
  };
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(dbUrl)?.[1]?.toLowerCase();
  switch (scheme) {
    case 'sqlite': {
      const file = sqlitePath(dbUrl, name);
      return {
        file,
        open: async (mustExist) => {
          const { openSqlite } = await import('./sqlite/store.ts');
          return openSqlite(file, mustExist).catch(refuse);
        },
        openBulk: async (mode: BulkMode) => {
          const { openSqliteBulk } = await import('./sqlite/bulk.ts');
          return openSqliteBulk(file, mode).catch(refuse) as Promise<BulkStore>;
        },
      };
    }
    case 'postgres':
    case 'postgresql': {
      if (!urlsOfHosts(dbUrl).every(isWellEscaped)) {
        throw new OperatorError(
          `${name} is not a valid URL: percent-encode special characters in its parts.`,
        );
      }
      const { readHosts } = await import('./postgres/hosts.ts');
      let hosts: Hosts;
      try {
        hosts = readHosts(dbUrl);
      } catch (error) {
        return refuse(error);
      }
      return {
        file: undefined,
        open: async () => {
          const { openPostgres } = await import('./postgres/store.ts');
          return openPostgres(hosts).catch(refuse);
        },
        openBulk: async (mode: BulkMode) => {
          const { openPostgresBulk } = await import('./postgres/bulk.ts');
          return openPostgresBulk(hosts, mode).catch(refuse) as Promise<BulkStore>;
        },
      };
    }
    default: {
      const found = scheme === undefined ? 'it has none' : `not ${scheme}:`;
      throw new OperatorError(`${name} must begin with sqlite: or postgres: (${found}).`);
    }
  }
}

/** Opens a store of no books, which is gone when it is closed, or the process dies. */
export async function openScratch(): Promise<BulkStore> {
  const { openTemporaryBulk } = await import('./sqlite/bulk.ts');
  return openTemporaryBulk();
}

/** What may be shown of a DB_URL: where the store is, never who logs in to it and how. */
export function describeStore(dbUrl: string): string {
  if (/^sqlite:/i.test(dbUrl)) return dbUrl;
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
function sqlitePath(dbUrl: string, name: string): string {
  const path = dbUrl.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '');
  if (path === '' || path.startsWith('//')) {
    throw new OperatorError(
      `${name} must name a file: sqlite:data/books.db is relative, sqlite:/srv/books.db absolute.`,
    );
  }
  return path;
}
