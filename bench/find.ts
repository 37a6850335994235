// Owns: measuring how books are found among many: making the index, each kind of search, many clients at once, the
// most expensive searches beside single calls, what the index costs those who write, and memory.

import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { execute } from '../test/support/postgres.ts';
import { COMMAND } from '../test/support/repository.ts';
import { writeBooksFile } from './books-file.ts';
import { Catalogue } from './catalogue.ts';
import { applyLoad } from './load.ts';
import { request } from './operations.ts';
import { type Ended, type Measured, runToEnd, startService, watchMemory } from './processes.ts';
import { mebibytes, medians, progress } from './report.ts';
import type { FindResults, FloodRow, FoundRow, IndexRow, SearchersRow, WritingRow } from './results.ts';
import { type Ask, connectionTo, cursorOf, type Kind, kindOf, measureOne } from './search-times.ts';
import { dearestOf, type Search, searchesOf, searchHalfWay, suggestionsOf } from './searches.ts';
import { openPostgresTransfers, openSqliteTransfers, type TransferStore } from './transfer-stores.ts';

/** Milliseconds between two looks whether all books are indexed. */
const LOOK = 10;

/** Books of the yardstick: as many as a page has. */
const PAGE = 20;

/** Clients that send the most expensive searches, and for how many times `--seconds`: one of them may take a second. */
const FLOOD_CLIENTS = 16;
const FLOOD_TIMES = 3;

/** Distinct books that are created. */
const CREATED = 5000;

export interface FindOptions {
  readonly rounds: number;
  /** Seconds of load for each measurement. */
  readonly seconds: number;
  readonly books: number;
}

export async function measureFinds(
  names: readonly TransferStore['name'][],
  options: FindOptions,
): Promise<FindResults> {
  const folder = await mkdtemp(join(tmpdir(), 'book-catalogue-bench-'));
  try {
    const file = join(folder, 'books.csv');
    const results: FindResults[] = [];
    if (names.length > 0) await writeBooksFile(file, new Catalogue(options.books).books());
    for (const name of names) {
      const store = name === 'SQLite' ? openSqliteTransfers(folder) : await openPostgresTransfers();
      try {
        results.push(await new FindBench(store, file, options).measure());
      } finally {
        await store.remove();
      }
    }
    return {
      indexes: results.flatMap(({ indexes }) => indexes),
      found: results.flatMap(({ found }) => found),
      searchers: results.flatMap(({ searchers }) => searchers),
      floods: results.flatMap(({ floods }) => floods),
      writings: results.flatMap(({ writings }) => writings),
      findMemory: results.flatMap(({ findMemory }) => findMemory),
    };
  } finally {
    await rm(folder, { recursive: true });
  }
}

class FindBench {
  readonly #store: TransferStore;
  readonly #file: string;
  readonly #options: FindOptions;
  readonly #catalogue: Catalogue;
  readonly #creations: readonly string[];

  /** @param file with the books of the catalogue. */
  constructor(store: TransferStore, file: string, options: FindOptions) {
    this.#store = store;
    this.#file = file;
    this.#options = options;
    this.#catalogue = new Catalogue(options.books);
    const books = this.#catalogue.books().take(CREATED);
    this.#creations = [...books].map((book) => request('POST', '/book', JSON.stringify(book)));
  }

  async measure(): Promise<FindResults> {
    const store = this.#store.name;
    this.#say('the index');
    const indexed = await this.#store.makeEmpty('indexed');
    const index = await this.#measureIndex(indexed);
    const plain = await this.#store.makeEmpty('plain');
    await this.#import(plain);

    const services: Measured[] = [];
    try {
      const on = await startService(indexed, { FIND: 'on' }, false);
      services.push(on);
      const off = await startService(plain, { FIND: 'off' }, false);
      services.push(off);
      const memory = { store, off: mebibytes(off.residentBytes()), on: mebibytes(on.residentBytes()) };
      await this.#warmUp(on);
      const before = on.residentBytes();
      const watch = watchMemory(on);
      const found = await this.#measureSearches(on, indexed);
      const growth = mebibytes(watch.stop() - before);
      const searchers = await this.#measureSearchers(on);
      const flood = await this.#measureFlood(on);
      const creations = await this.#measureCreations(on, off);
      for (const service of services.splice(0)) await service.stop();
      const imports = await this.#measureImports();
      return {
        indexes: [index],
        found,
        searchers: [searchers],
        floods: [flood],
        writings: [creations, imports],
        findMemory: [{ ...memory, growth }],
      };
    } finally {
      for (const service of services) await service.stop();
    }
  }

  async #measureIndex(url: string): Promise<IndexRow> {
    const { books } = this.#options;
    await this.#import(url);
    const before = await bytesOf(url);
    const began = performance.now();
    const service = await startService(url, {}, false);
    await untilIndexed(service);
    const seconds = (performance.now() - began) / 1000;
    const cpuSeconds = service.cpuSeconds();
    await service.stop();
    return {
      books,
      store: this.#store.name,
      seconds,
      cpuMicroseconds: (cpuSeconds * 1e6) / books,
      before: mebibytes(before),
      after: mebibytes(await bytesOf(url)),
    };
  }

  /** Reads single books, so that the memory that serving takes is not counted as that of searches. */
  async #warmUp({ port }: Measured): Promise<void> {
    const { seconds, books } = this.#options;
    await applyLoad({ port, requests: readsOf(books), seconds });
  }

  /** Each kind of search on one connection, in turn with a read of one book. */
  async #measureSearches({ port }: Measured, url: string): Promise<FoundRow[]> {
    const { rounds, books } = this.#options;
    const ask = connectionTo(port);
    const read = async () => {
      const { status } = await ask(`/book/${1 + Math.floor(Math.random() * books)}`);
      if (status !== 200) throw new Error(`a book by its id: ${status}`);
    };
    const driver = await openDriver(url);
    const ids = () => Array.from({ length: PAGE }, () => 1 + Math.floor(Math.random() * books));
    const kinds: Kind[] = [
      { search: 'a book by its id', once: read },
      { search: `${PAGE} books by their ids, by the driver alone`, once: () => driver.read(ids()) },
    ];
    const searches = [...(await this.#searches(ask)), ...suggestionsOf(this.#catalogue)];
    for (const search of searches) kinds.push(await kindOf(ask, search));
    const samples = new Map(kinds.map((kind) => [kind, [] as Omit<FoundRow, 'search' | 'store'>[]]));
    for (let round = 1; round <= rounds; round += 1) {
      for (const [kind, ofKind] of samples) {
        this.#say(`${kind.search}, round ${round} of ${rounds}`);
        ofKind.push(await measureOne(kind.once, read));
      }
    }
    await driver.close();
    return [...samples].map(([{ search, matches, isRefused }, ofKind]) => ({
      search: isRefused ? `${search}: 503` : search,
      store: this.#store.name,
      ...(matches !== undefined && { matches }),
      ...medians(ofKind),
    }));
  }

  /** Many clients, each with one search after the other, of all kinds but the most expensive. */
  async #measureSearchers({ port }: Measured): Promise<SearchersRow> {
    const { rounds, seconds, books } = this.#options;
    const dearest = new Set(dearestOf(books).map(({ name }) => name));
    const requests = (await this.#searches(connectionTo(port)))
      .filter(({ name, isCounted }) => !isCounted && !dearest.has(name))
      .map(({ path }) => request('GET', path));
    const samples = [];
    for (let round = 1; round <= rounds; round += 1) {
      this.#say(`many clients, round ${round} of ${rounds}`);
      const result = await applyLoad({ port, requests, seconds });
      samples.push({
        searchesPerSecond: (result.requests - result.refused) / result.seconds,
        p50: result.p50,
        p99: result.p99,
        refused: result.refused / result.requests,
      });
    }
    return { store: this.#store.name, ...medians(samples) };
  }

  /** One client reads single books, and one creates them, without others and during a flood of the most expensive searches. */
  async #measureFlood(service: Measured): Promise<FloodRow> {
    const { port } = service;
    const { rounds, seconds, books } = this.#options;
    const reads = readsOf(books);
    const both = async (duration: number) => {
      const one = { port, seconds: duration, connections: 1 };
      const [read, create] = await Promise.all([
        applyLoad({ ...one, requests: reads }),
        applyLoad({ ...one, requests: this.#creations }),
      ]);
      return { read, create, refused: read.refused + create.refused };
    };
    const samples = [];
    for (let round = 1; round <= rounds; round += 1) {
      this.#say(`the most expensive searches beside single calls, round ${round} of ${rounds}`);
      await untilIndexed(service); // the books that the round before has created
      const quiet = await both(seconds);
      const flood = startFlood(port, dearestOf(books));
      const during = await both(seconds * FLOOD_TIMES);
      const statuses = await flood.stop();
      if (statuses.keys().some((status) => status !== 200 && status !== 503)) {
        throw new Error(`the most expensive searches: ${[...statuses.keys()]}`);
      }
      samples.push({
        readQuiet: quiet.read.p99,
        read: during.read.p99,
        readRatio: during.read.p99 / quiet.read.p99,
        slowestRead: during.read.slowest,
        createQuiet: quiet.create.p99,
        create: during.create.p99,
        createRatio: during.create.p99 / quiet.create.p99,
        refused: quiet.refused + during.refused,
        floodAnswered: statuses.get(200) ?? 0,
        floodRefused: statuses.get(503) ?? 0,
      });
    }
    return { store: this.#store.name, ...medians(samples) };
  }

  async #measureCreations(onService: Measured, offService: Measured): Promise<WritingRow> {
    const { rounds, seconds } = this.#options;
    const requests = this.#creations;
    const samples = [];
    for (let round = 0; round <= rounds; round += 1) {
      this.#say(`creations, round ${round} of ${rounds}`);
      const off = await applyLoad({ port: offService.port, requests, seconds });
      const on = await applyLoad({ port: onService.port, requests, seconds });
      await untilIndexed(onService); // else the indexing would slow the next round of the other
      if (off.refused + on.refused > 0) throw new Error('creations were refused');
      if (round > 0) samples.push(comparison(off.requests / off.seconds, on.requests / on.seconds)); // now warm
    }
    return { writing: 'create', store: this.#store.name, ...medians(samples) };
  }

  /** Of the whole file, while a service runs on the store. */
  async #measureImports(): Promise<WritingRow> {
    const { rounds, books } = this.#options;
    const booksPerSecond = async (find: 'on' | 'off') => {
      const url = await this.#store.makeEmpty('imported');
      const service = await startService(url, { FIND: find }, false);
      try {
        return books / (await this.#import(url)).seconds;
      } finally {
        await service.stop();
      }
    };
    const samples = [];
    for (let round = 1; round <= rounds; round += 1) {
      this.#say(`import, round ${round} of ${rounds}`);
      samples.push(comparison(await booksPerSecond('off'), await booksPerSecond('on')));
    }
    return { writing: 'import', store: this.#store.name, ...medians(samples) };
  }

  async #searches(ask: Ask): Promise<readonly Search[]> {
    const halfWay = {
      id: await cursorOf(ask, searchHalfWay(this.#catalogue, 'id')),
      title: await cursorOf(ask, searchHalfWay(this.#catalogue, 'title')),
    };
    return searchesOf(this.#catalogue, this.#options.books, halfWay);
  }

  #import(url: string): Promise<Ended> {
    return runToEnd([...COMMAND, 'import', this.#file], { DB_URL: url });
  }

  #say(work: string): void {
    progress(`${this.#store.name}, ${this.#options.books} books: ${work}`);
  }
}

function comparison(off: number, on: number): Pick<WritingRow, 'off' | 'on' | 'ratio'> {
  return { off, on, ratio: off / on };
}

/** Reads of single books, here and there. */
function readsOf(books: number): readonly string[] {
  return Array.from({ length: 1000 }, (_, position) => {
    return request('GET', `/book/${((position * 7919) % books) + 1}`);
  });
}

/** Several clients, each with one search after the other. */
function startFlood(port: number, searches: readonly Search[]): { stop(): Promise<Map<number, number>> } {
  const statuses = new Map<number, number>();
  let isOver = false;
  const clients = Array.from({ length: FLOOD_CLIENTS }, async (_, client) => {
    const ask = connectionTo(port);
    for (let sent = client; !isOver; sent += 1) {
      const { path, isCounted } = searches[sent % searches.length] as Search;
      const { status } = await ask(path, isCounted ? { prefer: 'count=exact' } : {});
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  });
  return {
    async stop() {
      isOver = true;
      await Promise.all(clients);
      return statuses;
    },
  };
}

export async function untilIndexed({ port }: Measured): Promise<void> {
  const ask = connectionTo(port);
  for (;;) {
    const { status, headers } = await ask('/books?limit=1');
    if (status === 200 && headers['x-unindexed-books'] === undefined) return;
    await pause(LOOK);
  }
}

async function bytesOf(url: string): Promise<number> {
  if (url.startsWith('sqlite:')) return (await stat(url.slice('sqlite:'.length))).size;
  const [row] = await execute<{ bytes: string }>(url, 'select pg_database_size(current_database()) as bytes');
  return Number(row?.bytes);
}

/** What a store does without the service: reads books by their ids, in one statement or one after the other. */
async function openDriver(
  url: string,
): Promise<{ read(ids: readonly number[]): Promise<void>; close(): Promise<void> }> {
  if (url.startsWith('sqlite:')) {
    const db = new DatabaseSync(url.slice('sqlite:'.length), { readOnly: true });
    const find = db.prepare('select id, title, author, year from books where id = ?');
    return {
      async read(ids) {
        for (const id of ids) find.get(id);
      },
      close: async () => db.close(),
    };
  }
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return {
    async read(ids) {
      await client.query('select id, title, author, year from books where id = any($1)', [ids]);
    },
    close: () => client.end(),
  };
}
