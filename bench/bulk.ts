// Owns: measuring creations of many books in one request: against single ones on one connection, and beside single calls.

import { applyLoad } from './load.ts';
import { request } from './operations.ts';
import { startService } from './processes.ts';
import { medians, progress } from './report.ts';
import type { BulkRow } from './results.ts';
import type { BenchStore } from './stores.ts';

/** Books of one request. */
const SIZES = [100, 1000, 10_000];

const BOOK = { title: 'The Hunger Games (The Hunger Games, #1)', author: 'Suzanne Collins', year: 2008 };

/** How many times longer than other measurements those beside each other take: bulk requests are few. */
const LONGER = 3;

export async function measureBulk(
  store: BenchStore,
  { rounds, seconds }: { readonly rounds: number; readonly seconds: number },
): Promise<BulkRow[]> {
  const service = await startService(store.dbUrl);
  const { port } = service;
  const creations = [request('POST', '/book', JSON.stringify(BOOK))];
  const reads = [request('GET', '/book/1')];
  const one = { port, connections: 1 };
  const single = async (duration: number) => {
    const [read, create] = await Promise.all([
      applyLoad({ ...one, requests: reads, seconds: duration }),
      applyLoad({ ...one, requests: creations, seconds: duration }),
    ]);
    return { read, create };
  };
  await single(seconds); // warm, and book 1 is there
  const rows: BulkRow[] = [];
  for (const size of SIZES) {
    const bulk = [request('POST', '/books', JSON.stringify(Array.from({ length: size }, () => BOOK)))];
    const samples = [];
    for (let round = 1; round <= rounds; round += 1) {
      progress(`${store.name}: ${size} books in a request, round ${round} of ${rounds}`);
      const alone = await applyLoad({ ...one, requests: creations, seconds });
      const many = await applyLoad({ ...one, requests: bulk, seconds });
      const quiet = await single(seconds * LONGER);
      const [beside, during] = await Promise.all([
        single(seconds * LONGER),
        applyLoad({ ...one, requests: bulk, seconds: seconds * LONGER }),
      ]);
      for (const { refused } of [alone, many, quiet.read, quiet.create, beside.read, beside.create, during]) {
        if (refused > 0) throw new Error(`${refused} calls were refused`);
      }
      const booksPerSecond = (many.requests * size) / many.seconds;
      const singlePerSecond = alone.requests / alone.seconds;
      samples.push({
        singlePerSecond,
        booksPerSecond,
        ratio: booksPerSecond / singlePerSecond,
        read: beside.read.p99,
        readRatio: beside.read.p99 / quiet.read.p99,
        create: beside.create.p99,
        createRatio: beside.create.p99 / quiet.create.p99,
      });
    }
    rows.push({ size, store: store.name, ...medians(samples) });
  }
  await service.stop();
  return rows;
}
