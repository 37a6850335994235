// Owns: opening the store of a URL. Only this file evaluates the scheme (rule 26). If a store cannot be opened, it
// makes the sentence that the operator reads (rule 27). It loads only the code of the store that the URL names.

import type { BookStore } from '../books/store.ts';
import { OperatorError } from '../operator-error.ts';
import type { BookIndex } from './book-index.ts';
import type { BulkMode, BulkStore } from './bulk.ts';
import type { Hosts } from './postgres/hosts.ts';
import { urlsOfHosts } from './postgres/url.ts';

export interface OpenOptions {
  /** Whether other processes already have the store open, so that it cannot be new. */
  readonly mustExist: boolean;
  /** Whether its books can be searched; they are then indexed. */
  readonly find: boolean;
}

/** A store that is not open yet. Opening it throws an OperatorError when that is impossible. */
export interface StoreAt {
  /** The path of its file; undefined if the store is not a file. */
  readonly file: string | undefined;
  /** Opens it for serving, and prepares it if it is new. */
  open(options: OpenOptions): Promise<BookStore>;
  /**
   * Opens it for import, export or copy.
   * @returns undefined when it does not exist, in mode `read`.
   */
  openBulk(mode: 'read'): Promise<BulkStore | undefined>;
  openBulk(mode: 'write'): Promise<BulkStore>;
  /**
   * Opens its index, which need not exist.
   * @returns undefined when the store does not exist.
   */
  openIndex(): Promise<BookIndex | undefined>;
}

/**
 * Reads the URL of a store.
 * @param name of the URL in messages.
 * @throws OperatorError when the URL is invalid.
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
        open: async (options) => {
          const { openSqlite } = await import('./sqlite/store.ts');
          return openSqlite(file, options).catch(refuse);
        },
        openBulk: async (mode: BulkMode) => {
          const { openSqliteBulk } = await import('./sqlite/bulk.ts');
          return openSqliteBulk(file, mode).catch(refuse) as Promise<BulkStore>;
        },
        openIndex: async () => {
          const { openSqliteIndex } = await import('./sqlite/book-index.ts');
          return openSqliteIndex(file).catch(refuse);
        },
      };
    }
    case 'postgres':
    case 'postgresql': {
      if (!urlsOfHosts(dbUrl).every(isWellEscaped)) {
        throw new OperatorError(
          `${name} is not a valid URL: percent-escape special characters in its parts.`,
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
        open: async (options) => {
          const { openPostgres } = await import('./postgres/store.ts');
          return openPostgres(hosts, options).catch(refuse);
        },
        openBulk: async (mode: BulkMode) => {
          const { openPostgresBulk } = await import('./postgres/bulk.ts');
          return openPostgresBulk(hosts, mode).catch(refuse) as Promise<BulkStore>;
        },
        openIndex: async () => {
          const { openPostgresIndex } = await import('./postgres/book-index.ts');
          return openPostgresIndex(hosts).catch(refuse);
        },
      };
    }
    default: {
      const found = scheme === undefined ? 'it has no scheme' : `not ${scheme}:`;
      throw new OperatorError(`${name} must begin with sqlite: or postgres: (${found}).`);
    }
  }
}

/** Opens an empty store, which disappears when it is closed or the process dies. */
export async function openScratch(): Promise<BulkStore> {
  const { openTemporaryBulk } = await import('./sqlite/bulk.ts');
  return openTemporaryBulk();
}

/** The part of a DB_URL that may be shown: where the store is, never the credentials. */
export function describeStore(dbUrl: string): string {
  if (/^sqlite:/i.test(dbUrl)) return dbUrl;
  const urls = urlsOfHosts(dbUrl).map((url) => new URL(url));
  return `postgres://${urls.map(({ host }) => host).join(',')}${urls[0]?.pathname}`;
}

/** An `@` after the host is the rest of a password with a `/`, `?` or `#`; host and path would be shown. */
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
