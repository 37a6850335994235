// Owns: the benchmark as a command. Starts everything itself, measures in alternating rounds, and prints medians, each
// with its ratio to a limit of the same run: times drift between runs, ratios are stable.

import { get } from 'node:http';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { measureBulk } from './bulk.ts';
import { shareCpu } from './cpu-share.ts';
import { save } from './document.ts';
import { measureFinds } from './find.ts';
import { applyLoad, CONNECTIONS, GENERATOR } from './load.ts';
import {
  BARE_OPERATIONS,
  OPERATIONS,
  type Operation,
  REFUSED_OPERATIONS,
  requestsOf,
  STANDING_BOOKS,
  TOKEN,
} from './operations.ts';
import { IS_PINNED, type Measured, startBareServer, startService, watchMemory } from './processes.ts';
import { mebibytes, medians, progress, table } from './report.ts';
import {
  type BulkRow,
  type ListRow,
  type OperationRow,
  type ProcessRow,
  type Results,
  tablesOf,
  type WorkersRow,
} from './results.ts';
import { measureStandby } from './standby.ts';
import { type BenchStore, openPostgresBench, openSqliteBench } from './stores.ts';
import { measureTransfers } from './transfer.ts';

const HELP = `Usage: npm run bench -- [options]

  --only <words>    only what matches all the words: an operation (${OPERATIONS.join(', ')}),
                    list, process, workers, bulk, transfer, standby, find; SQLite, PostgreSQL. Example: --only "read SQLite"
  --rounds <n>      rounds to take the medians of (3)
  --seconds <n>     seconds of load for each measurement (2)
  --books <n>       books in the long list, in the imported file, and to be found (1000000)
  --json            print JSON instead of tables
  --save            write the results to bench/results.json and bench/figures.md
  --help            print this
`;

/** The operations that are measured with one process and with two. */
const WORKERS_OPERATIONS = ['read', 'create', 'update', 'mix'] as const;

/** The part of a core that each process gets there: on two cores, the load and PostgreSQL then have more than they need. */
const WORKERS_SHARE = 1 / 3;

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '2' },
    books: { type: 'string', default: '1000000' },
    json: { type: 'boolean', default: false },
    save: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
async function bench(): Promise<void> {
  const operations: OperationRow[] = [];
  const lists: ListRow[] = [];
  const processes: ProcessRow[] = [];
  const workers: WorkersRow[] = [];
  const bulk: BulkRow[] = [];
  for (const [name, open] of [
    ['SQLite', openSqliteBench],
    ['PostgreSQL', openPostgresBench],
  ] as const) {
    if (!isWanted(name)) continue;
    const wanted = OPERATIONS.filter((operation) => isWanted(operation, name));
    if (wanted.length > 0) operations.push(...(await withStore(open, (store) => measure(store, wanted))));
    if (isWanted('process', name)) processes.push(await withStore(open, measureProcess));
    if (isWanted('workers', name)) workers.push(...(await withStore(open, measureWorkers)));
    if (isWanted('bulk', name)) {
      const [rounds, seconds] = [Number(options.rounds), Number(options.seconds)];
      bulk.push(...(await withStore(open, (store) => measureBulk(store, { rounds, seconds }))));
    }
    if (isWanted('list', name)) {
      for (const books of [1000, Number(options.books)]) {
        lists.push(await withStore(open, (store) => measureList(store, books)));
      }
    }
  }
  const moving = (['SQLite', 'PostgreSQL'] as const).filter((name) => isWanted('transfer', name));
  const transfers =
    moving.length > 0 ? await measureTransfers(moving, Number(options.rounds), Number(options.books)) : [];
  const sizes = {
    rounds: Number(options.rounds),
    seconds: Number(options.seconds),
    books: Number(options.books),
  };
  const standby = isWanted('standby', 'PostgreSQL') ? await measureStandby(sizes) : [];
  const finding = (['SQLite', 'PostgreSQL'] as const).filter((name) => isWanted('find', name));
  const finds = await measureFinds(finding, sizes);
  const results: Results = {
    generator: GENERATOR,
    connections: CONNECTIONS,
    isPinned: IS_PINNED,
    rounds: Number(options.rounds),
    operations,
    lists,
    processes,
    workers,
    bulk,
    transfers,
    standby,
    ...finds,
  };
  if (options.json) console.log(JSON.stringify(results, null, 2));
  else report(results);
  if (options.save) save(results);
}

/** A word of --only names an operation, a kind of measurement or a store; all of them have to match. */
function isWanted(...subjects: string[]): boolean {
  const words = options.only.toLowerCase().split(/[ ,]+/).filter(Boolean);
  const stores = words.filter((word) => ['sqlite', 'postgresql'].includes(word));
  const kinds = words.filter((word) => !stores.includes(word));
  return subjects.every((subject) => {
    const name = subject.toLowerCase();
    const choices = ['sqlite', 'postgresql'].includes(name) ? stores : kinds;
    return choices.length === 0 || choices.some((word) => name.split(' ').includes(word));
  });
}

async function withStore<Result>(
  open: () => Promise<BenchStore>,
  use: (store: BenchStore) => Promise<Result>,
): Promise<Result> {
  const store = await open();
  try {
    return await use(store);
  } finally {
    await store.remove();
  }
}

async function measure(store: BenchStore, wanted: readonly Operation[]): Promise<OperationRow[]> {
  const seconds = Number(options.seconds);
  const isPinned = IS_PINNED && store.name === 'SQLite';
  const service = await startService(store.dbUrl, {}, isPinned);
  const bare = await startBareServer(isPinned);
  await store.addBooks(STANDING_BOOKS);

  const samples = new Map<Operation, Omit<OperationRow, 'operation' | 'store' | 'spreadOfBare'>[]>();
  for (let round = 1; round <= Number(options.rounds); round += 1) {
    for (const operation of wanted) {
      progress(`${store.name}: ${operation}, round ${round} of ${options.rounds}`);
      const doomed = operation === 'delete' ? await doomedBooks(store, seconds) : [];
      const requests = requestsOf(operation, doomed);
      if (round === 1 && operation !== 'delete')
        await applyLoad({ port: service.port, requests, seconds: 1, isPinned });
      const own = await load(service, requests, seconds, isPinned);
      const isRefused = REFUSED_OPERATIONS.includes(operation);
      if (own.refused > 0 !== isRefused) {
        throw new Error(`${operation}: ${own.refused} of ${own.requests} answers were refusals`);
      }
      const limit = await load(bare, requestsOf(bareOperation(operation), []), seconds, isPinned);
      const ofStore = await store.limit(operation, seconds);
      const sample = {
        requestsPerSecond: own.requests / own.seconds,
        p50: own.p50,
        p99: own.p99,
        cpuMicroseconds: own.cpuMicroseconds,
        bareRate: limit.requests / limit.seconds,
        bareCpuMicroseconds: limit.cpuMicroseconds,
        ratioToBare: own.requests / own.seconds / (limit.requests / limit.seconds),
        p99ToBare: own.p99 / limit.p99,
        ...(ofStore && {
          ratioToStore: own.requests / own.seconds / ofStore.rate,
          storeLimit: ofStore.name,
        }),
      };
      samples.set(operation, [...(samples.get(operation) ?? []), sample]);
    }
  }
  await service.stop();
  await bare.stop();
  return [...samples].map(([operation, rounds]) => {
    const bareRates = rounds.map(({ bareRate }) => bareRate);
    const spreadOfBare = Math.max(...bareRates) / Math.min(...bareRates);
    return { operation, store: store.name, ...medians(rounds), spreadOfBare };
  });
}

function bareOperation(operation: Operation): Operation {
  return BARE_OPERATIONS.find((bare) => bare === operation) ?? 'read';
}

/** More books than can be removed in the time. */
async function doomedBooks(store: BenchStore, seconds: number): Promise<number[]> {
  const count = 100_000 * seconds;
  const last = await store.addBooks(count);
  return Array.from({ length: count }, (_, position) => last - position);
}

async function load(server: Measured, requests: readonly string[], seconds: number, isPinned = false) {
  const before = server.cpuSeconds();
  const result = await applyLoad({ port: server.port, requests, seconds, isPinned });
  const cpuMicroseconds = ((server.cpuSeconds() - before) * 1e6) / result.requests;
  return { ...result, cpuMicroseconds };
}

async function measureWorkers(store: BenchStore): Promise<WorkersRow[]> {
  const seconds = Number(options.seconds);
  const one = await startService(store.dbUrl);
  const two = await startService(store.dbUrl, { WORKERS: '2' });
  const shares = shareCpu([...one.pids(), ...two.pids()], WORKERS_SHARE);
  await store.addBooks(STANDING_BOOKS);
  const rows: WorkersRow[] = [];
  for (const operation of WORKERS_OPERATIONS) {
    const requests = requestsOf(operation, []);
    const rounds = [];
    for (const service of [one, two]) await applyLoad({ port: service.port, requests, seconds: 1 });
    for (let round = 1; round <= Number(options.rounds); round += 1) {
      progress(`${store.name}: ${operation} by one process and by two, round ${round} of ${options.rounds}`);
      const ofOne = await load(one, requests, seconds);
      const ofTwo = await load(two, requests, seconds);
      rounds.push({
        one: ofOne.requests / ofOne.seconds,
        two: ofTwo.requests / ofTwo.seconds,
        ratio: ofTwo.requests / ofTwo.seconds / (ofOne.requests / ofOne.seconds),
        p99OfOne: ofOne.p99,
        p99OfTwo: ofTwo.p99,
      });
    }
    rows.push({ operation, store: store.name, ...medians(rounds) });
  }
  shares.end();
  await one.stop();
  await two.stop();
  return rows;
}

async function measureProcess(store: BenchStore): Promise<ProcessRow> {
  progress(`${store.name}: a process`);
  const requests = 1_000_000;
  const service = await startService(store.dbUrl);
  const idle = service.residentBytes();
  await store.addBooks(STANDING_BOOKS);
  for (let sent = 0; sent < requests; ) {
    sent += (await applyLoad({ port: service.port, requests: requestsOf('mix', []), seconds: 5 })).requests;
    progress(`${store.name}: a process, ${sent} requests`);
  }
  const loaded = service.residentBytes();
  await service.stop();
  return {
    store: store.name,
    firstAnswer: service.startup,
    idle: mebibytes(idle),
    loaded: mebibytes(loaded),
    requests,
  };
}

async function measureList(store: BenchStore, books: number): Promise<ListRow> {
  progress(`${store.name}: the list of ${books} books`);
  const service = await startService(store.dbUrl);
  await store.addBooks(books);
  await list(service); // warm
  const rounds = [];
  for (let round = 1; round <= Number(options.rounds); round += 1) {
    const limit = await store.listLimit();
    const before = service.residentBytes();
    const watch = watchMemory(service);
    const { seconds, bytes } = await list(service);
    rounds.push({
      seconds,
      megabytesPerSecond: bytes / 1e6 / seconds,
      ratioToStore: seconds / limit.seconds,
      storeLimit: limit.name,
      growthOfOne: mebibytes(watch.stop() - before),
    });
  }

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
  return { books, store: store.name, ...medians(rounds), growthOfEight, slowestRead };
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

function report(results: Results): void {
  progress('');
  console.log(
    `Load: ${GENERATOR}, ${CONNECTIONS} connections; ${availableParallelism()} cores${IS_PINNED ? ', on SQLite one of them for the server alone' : ''}; medians of ${options.rounds} rounds\n`,
  );
  for (const { head, rows } of tablesOf(results)) table(head, rows);
}

if (options.help) {
  process.stdout.write(HELP);
} else if (options.save && options.only !== '') {
  console.error('--save needs all results: omit --only.');
  process.exitCode = 2;
} else {
  await bench();
}
