// Owns: measuring what a standby that answers lists and searches (DB_READ_URL) takes from the primary, and what it costs:
// the processor time of the primary, the time of a search and of a list, and creations beside them. Two services on the same
// two servers are measured in turn, one of them without DB_READ_URL.

import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PostgresServer } from '../test/support/postgres.ts';
import { COMMAND } from '../test/support/repository.ts';
import { writeBooksFile } from './books-file.ts';
import { Catalogue } from './catalogue.ts';
import { untilIndexed } from './find.ts';
import { applyLoad } from './load.ts';
import { request, TOKEN } from './operations.ts';
import { cpuSecondsOfFamily, type Measured, runToEnd, startService } from './processes.ts';
import { medians, progress } from './report.ts';
import type { StandbyRow } from './results.ts';

/** Times that a search is measured in one round. */
const SEARCHES = 60;

/** Connections that create books, and clients that search, beside one that lists. */
const CREATORS = 16;
const SEARCHERS = 2;

/** Distinct books that are created. */
const CREATED = 5000;

export interface StandbyOptions {
  readonly rounds: number;
  /** Seconds of load for each measurement. */
  readonly seconds: number;
  readonly books: number;
}

/** What is measured of one service in one round, by its name. */
type Figures = Record<string, number>;

export async function measureStandby({ rounds, seconds, books }: StandbyOptions): Promise<StandbyRow[]> {
  const say = (work: string) => progress(`PostgreSQL with a standby, ${books} books: ${work}`);
  const settings = ['fsync=on', 'shared_buffers=512MB'];
  const folder = await mkdtemp(join(tmpdir(), 'book-catalogue-bench-'));
  const { primary, standby } = await PostgresServer.startPair(
    [...settings, 'wal_keep_size=8GB', 'max_wal_size=8GB'],
    [...settings, 'hot_standby_feedback=on'],
  );
  const services: Measured[] = [];
  try {
    say('filling');
    const catalogue = new Catalogue(books);
    const file = join(folder, 'books.csv');
    await writeBooksFile(file, catalogue.books());
    await runToEnd([...COMMAND, 'import', file], { DB_URL: primary.url() });
    services.push(await startService(primary.url()));
    services.push(await startService(primary.url(), { DB_READ_URL: standby.url() }));
    for (const service of services) await untilIndexed(service);
    const paths = searchPathsOf(catalogue);
    const creations = [...catalogue.books().take(CREATED)].map((book) => {
      return request('POST', '/book', JSON.stringify(book));
    });
    const samples: Figures[][] = services.map(() => []);
    for (let round = 0; round <= rounds; round += 1) {
      for (const [position, service] of services.entries()) {
        say(`round ${round} of ${rounds}, ${position === 0 ? 'without' : 'with'} DB_READ_URL`);
        const cpu = () => cpuSecondsOfFamily(primary.pid);
        const figures = {
          ...(await measureReads(service, paths, cpu)),
          ...(await measureCreations(service, paths, creations, seconds * 3, cpu)),
        };
        if (round > 0) samples[position]?.push(figures); // now warm
      }
    }
    const [without, withStandby] = samples as [Figures[], Figures[]];
    return Object.keys(without[0] as Figures).map((what) => {
      const pairs = without.map((figures, round) => {
        const one = figures[what] as number;
        const other = withStandby[round]?.[what] as number;
        return { without: one, with: other, ratio: other / one };
      });
      return { what, ...medians(pairs) };
    });
  } finally {
    for (const service of services) await service.stop();
    await Promise.all([primary.remove(), standby.remove(), rm(folder, { recursive: true })]);
  }
}

/** Reads on one connection. */
async function measureReads(
  service: Measured,
  paths: readonly string[],
  cpu: () => number,
): Promise<Figures> {
  const ask = connectionTo(service);
  const times: number[] = [];
  let before = cpu();
  for (let count = 0; count < SEARCHES; count += 1) {
    const began = performance.now();
    await ask(paths[count % paths.length] as string);
    times.push(performance.now() - began);
  }
  const cpuOfSearch = ((cpu() - before) * 1000) / SEARCHES;
  before = cpu();
  const began = performance.now();
  await ask('/books');
  const list = (performance.now() - began) / 1000;
  const sorted = times.toSorted((one, other) => one - other);
  return {
    'a search: CPU of the primary, ms': cpuOfSearch,
    'a search: median, ms': sorted[Math.floor(SEARCHES / 2)] as number,
    'a list: CPU of the primary, s': cpu() - before,
    'a list: s': list,
  };
}

/** Creations while others search and list. */
async function measureCreations(
  service: Measured,
  paths: readonly string[],
  requests: readonly string[],
  seconds: number,
  cpu: () => number,
): Promise<Figures> {
  let isOver = false;
  let reads = 0;
  const readOn = async (path: (turn: number) => string) => {
    const ask = connectionTo(service);
    for (let turn = 0; !isOver; turn += 1) {
      await ask(path(turn));
      reads += 1;
    }
  };
  const readers = Array.from({ length: SEARCHERS }, () =>
    readOn((turn) => paths[turn % paths.length] as string),
  );
  readers.push(readOn(() => '/books'));
  const before = cpu();
  const load = { port: service.port, requests, seconds, connections: CREATORS };
  const result = await applyLoad(load);
  const used = cpu() - before;
  isOver = true;
  await Promise.all(readers);
  if (result.refused > 0) throw new Error(`${result.refused} creations were refused`);
  return {
    'creations beside searches and lists: a second': result.requests / result.seconds,
    'such creations: p99, ms': result.p99,
    'such creations: a second of the primary’s CPU': result.requests / used,
    'searches and lists beside them: a second': reads / result.seconds,
  };
}

function searchPathsOf(catalogue: Catalogue): readonly string[] {
  return [
    { q: 'harry potter', sort: 'id' },
    { q: 'the', sort: 'title' },
    { q: 'har*', sort: 'id' },
    { q: catalogue.wordIn(900), sort: 'title' },
    { author_contains: 'king' },
    { year_gte: '1990', year_lte: '1999', sort: 'title' },
  ].map(
    (parameters) => `/books?${new URLSearchParams({ ...parameters, limit: '20' } as Record<string, string>)}`,
  );
}

/** One connection, for one request after the other; each has to succeed. */
function connectionTo({ port }: Measured): (path: string) => Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  return (path) => {
    return new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port, path, agent, headers: { authorization: TOKEN } };
      get(options, (response) => {
        response.resume();
        response.on('error', reject);
        response.on('end', () => {
          if (response.statusCode === 200) resolve();
          else reject(new Error(`${path}: ${response.statusCode}`));
        });
      }).on('error', reject);
    });
  };
}
