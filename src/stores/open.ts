// Owns: opening the store of a URL. Only this file evaluates the scheme (rule 26). If a store cannot be opened, it
// makes the sentence that the operator reads (rule 27). It loads only the code of the store that the URL names.

import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { Store } from '../books/store.ts';
import { reasonOf } from '../error-words.ts';
import { assertWrittenOut, finalPath } from '../final-path.ts';
import { OperatorError } from '../operator-error.ts';
import type { Times } from '../times.ts';
import type { BulkMode, BulkStore } from './bulk.ts';
import type { OpenOptions } from './options.ts';
import type { Hosts } from './postgres/hosts.ts';
import type { Standbys } from './postgres/standby.ts';
import { urlsOfHosts } from './postgres/url.ts';

/** A store that is not open yet. Opening it throws an OperatorError when that is impossible. */
export interface StoreAt {
  /** The path of its file, at the end of all symbolic links; undefined if the store is not a file. */
  readonly file: string | undefined;
  /** Opens it for serving, and prepares it if it is new. */
  open(options: OpenOptions): Promise<Store>;
  /**
   * Opens it for import, export or copy.
   * @returns undefined when it does not exist, in mode `read`.
   */
  openBulk(mode: 'read', times: Times): Promise<BulkStore | undefined>;
  openBulk(mode: 'write', times: Times): Promise<BulkStore>;
}

/**
 * @param name of the URL in messages.
 * @param readUrl DB_READ_URL, if there is one: lists, searches and exports are then read there, if possible.
 * @throws OperatorError when a URL is invalid.
 */
export async function readDbUrl(dbUrl: string, name = 'DB_URL', readUrl?: string): Promise<StoreAt> {
  const refuse = (error: unknown): never => {
    throw error instanceof OperatorError ? error : cannotOpen(dbUrl, name, error);
  };
  const scheme = schemeOf(dbUrl);
  switch (scheme) {
    case 'sqlite': {
      const file = sqlitePath(dbUrl, name);
      if (readUrl !== undefined)
        throw new OperatorError(
          'DB_READ_URL names a standby of PostgreSQL, but DB_URL is sqlite: remove one of them.',
        );
      const refuseFile = async (error: unknown) => {
        const { deniedAccess } = await import('./sqlite/access.ts');
        const denied = deniedAccess(file);
        return refuse(denied === undefined ? error : new Error(denied));
      };
      return {
        file,
        open: async (options) => {
          const { openSqlite } = await import('./sqlite/store.ts');
          return openSqlite(file, options).catch(refuseFile);
        },
        openBulk: async (mode: BulkMode, times: Times) => {
          const { openSqliteBulk } = await import('./sqlite/bulk.ts');
          return openSqliteBulk(file, mode, times.sqlite).catch(refuseFile) as Promise<BulkStore>;
        },
      };
    }
    case 'postgres':
    case 'postgresql': {
      const hosts = await readPostgresUrl(dbUrl, name, 'writing');
      const standbys = readUrl === undefined ? undefined : await readStandbys(readUrl);
      return {
        file: undefined,
        open: async (options) => {
          const { openPostgres } = await import('./postgres/store.ts');
          return openPostgres(hosts, standbys, options).catch(refuse);
        },
        openBulk: async (mode: BulkMode, times: Times) => {
          const { openPostgresBulk } = await import('./postgres/bulk.ts');
          return openPostgresBulk(hosts, standbys, mode, times).catch(refuse) as Promise<BulkStore>;
        },
      };
    }
    default: {
      const found = scheme === undefined ? 'it has no scheme' : `not ${scheme}:`;
      throw new OperatorError(`${name} must begin with sqlite: or postgres: (${found}).`);
    }
  }
}

async function readStandbys(readUrl: string): Promise<Standbys> {
  if (!/^postgres(ql)?$/.test(schemeOf(readUrl) ?? ''))
    throw new OperatorError('DB_READ_URL must begin with postgres: and name a standby of DB_URL.');
  const { all } = await readPostgresUrl(readUrl, 'DB_READ_URL', 'reading');
  return { hosts: all, shownUrl: describeStore(readUrl) };
}

async function readPostgresUrl(url: string, name: string, purpose: 'writing' | 'reading'): Promise<Hosts> {
  if (!urlsOfHosts(url).every(isWellEscaped))
    throw new OperatorError(
      `${name} is not a valid URL: percent-escape special characters in its parts (# as %23, % as %25, / as %2F, ? as %3F, @ as %40).`,
    );
  const { readHosts } = await import('./postgres/hosts.ts');
  try {
    return readHosts(url, purpose);
  } catch (error) {
    throw cannotOpen(url, name, error);
  }
}

function cannotOpen(url: string, name: string, error: unknown): OperatorError {
  return new OperatorError(`${name}: ${describeStore(url)} cannot be opened: ${reasonOf(error)}.`);
}

function schemeOf(url: string): string | undefined {
  return /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase();
}

/** Opens an empty store, which disappears when it is closed or the process dies. */
export async function openScratch({ sqlite }: Times): Promise<BulkStore> {
  const { openTemporaryBulk } = await import('./sqlite/bulk.ts');
  return openTemporaryBulk(sqlite);
}

/** The part of a DB_URL that may be shown: where the store is, never the credentials. */
export function describeStore(dbUrl: string): string {
  if (/^sqlite:/i.test(dbUrl)) return dbUrl;
  const urls = urlsOfHosts(dbUrl).map((url) => new URL(url));
  return `postgres://${urls.map(({ host }) => host).join(',')}${urls[0]?.pathname}`;
}

/** An `@` after the host is the rest of a password with a `/`, `?` or `#`; host and path would be shown. */
function isWellEscaped(url: string): boolean {
  try {
    decodeURIComponent(url); // else the driver fails
    const { pathname, search, hash } = new URL(url);
    return !`${pathname}${search}${hash}`.includes('@');
  } catch {
    return false;
  }
}

/**
 * `sqlite:books.db` is relative; `sqlite:/srv/books.db` and `sqlite:///srv/books.db` are absolute.
 * @returns the path at the end of all symbolic links: SQLite keeps its WAL beside that file.
 */
function sqlitePath(dbUrl: string, name: string): string {
  const path = dbUrl.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '');
  if (/^(?:$|\/\/|\p{Quotation_Mark})/u.test(path))
    throw new OperatorError(
      `${name} must name a file, without quotation marks: sqlite:data/books.db is relative, sqlite:/srv/books.db absolute.`,
    );
  assertWrittenOut(path, name);
  const file = finalPath(path);
  if (isFolder(file))
    throw new OperatorError(
      `${name}: ${file} is a folder: name a file in it, such as sqlite:${join(file, 'books.db')}.`,
    );
  return file;
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false; // it is missing, or this user may not look: opening it says so
  }
}
