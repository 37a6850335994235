// Owns: measuring the list of all books: its time next to that of the store alone and of another build, and what eight of them
// at once cost in memory and in the time of a single read.

import { get } from 'node:http';
import { type Builds, compare } from './builds.ts';
import { TOKEN } from './operations.ts';
import { type Measured, settle, watchMemory } from './processes.ts';
import { mebibytes, medians, progress } from './report.ts';
import type { ComparisonRow, ListRow } from './results.ts';

/** One list: bytes that it sends, and bytes that the memory grows. */
interface Measurement {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly bytes: number;
  readonly growth: number;
}

type Sample = Omit<ListRow, 'books' | 'store' | 'growthOfEight' | 'slowestRead'> &
  Pick<Measurement, 'cpuSeconds'>;

export async function measureList(
  { own, other }: Builds,
  books: number,
  rounds: number,
): Promise<{ lists: ListRow[]; comparisons: ComparisonRow[] }> {
  const { store } = own;
  const what = `list of ${books.toLocaleString('en-US')}`;
  progress(`${store.name}: the ${what} books`);
  const service = await own.start();
  const otherService = await other?.start();
  for (const build of [own, other]) await build?.store.addBooks(books);
  for (const server of [service, otherService]) {
    if (!server) continue;
    await list(server); // warm
    await settle(server);
  }
  const samples: Sample[] = [];
  const ofOther: Measurement[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    const limit = await store.listLimit();
    const steps = [
      async () => {
        if (otherService) ofOther.push(await watchedList(otherService));
      },
      async () => {
        const { seconds, cpuSeconds, bytes, growth } = await watchedList(service);
        samples.push({
          seconds,
          cpuSeconds,
          megabytesPerSecond: bytes / 1e6 / seconds,
          ratioToStore: seconds / limit.seconds,
          storeLimit: limit.name,
          growthOfOne: mebibytes(growth),
        });
      },
    ];
    for (const step of round % 2 === 1 ? steps : steps.toReversed()) await step();
  }
  await otherService?.stop();

  progress(`${store.name}: eight lists of ${books} books at once`);
  const before = service.residentBytes();
  const watch = watchMemory(service);
  let running = true;
  const eight = Promise.all(Array.from({ length: 8 }, () => list(service))).finally(() => {
    running = false;
  });
  let slowestRead = 0;
  while (running) {
    const began = performance.now();
    await read(service, '/book/1');
    slowestRead = Math.max(slowestRead, performance.now() - began);
  }
  await eight;
  const growthOfEight = mebibytes(watch.stop() - before);
  await service.stop();
  const { cpuSeconds: _, ...row } = medians(samples);
  const figures: [string, 'seconds' | 'cpuSeconds'][] = [
    ['seconds', 'seconds'],
    ['CPU, s', 'cpuSeconds'],
  ];
  const comparisons = figures.map(([figure, name]) =>
    compare(
      { what, store: store.name, figure },
      samples.map((sample) => sample[name]),
      ofOther.map((sample) => sample[name]),
    ),
  );
  return {
    lists: [{ books, store: store.name, ...row, growthOfEight, slowestRead }],
    comparisons: other ? comparisons : [],
  };
}

async function watchedList(service: Measured): Promise<Measurement> {
  const before = service.residentBytes();
  const cpuBefore = service.cpuSeconds();
  const watch = watchMemory(service);
  const result = await list(service);
  return { ...result, growth: watch.stop() - before, cpuSeconds: service.cpuSeconds() - cpuBefore };
}

async function list(service: Measured): Promise<{ seconds: number; bytes: number }> {
  const began = performance.now();
  const bytes = await read(service, '/books');
  return { seconds: (performance.now() - began) / 1000, bytes };
}

/** Reads an answer to its end and counts its bytes. */
function read({ port }: Measured, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: TOKEN };
    const request = get({ host: '127.0.0.1', port, path, headers, agent: false }, (response) => {
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      response.on('end', () => resolve(bytes));
      response.on('error', reject);
    });
    request.on('error', reject);
  });
}
