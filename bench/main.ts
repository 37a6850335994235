// Owns: the benchmark as a command. Starts everything itself, measures in alternating rounds, and prints medians, each
// with its ratio to a limit of the same run: times drift between runs, ratios are stable.

import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { prepareOther, withBuilds } from './builds.ts';
import { measureBulk } from './bulk.ts';
import { shareCpu } from './cpu-share.ts';
import { describe, save } from './document.ts';
import { measureFinds } from './find.ts';
import { measureList } from './list.ts';
import { applyLoad, CONNECTIONS, GENERATOR } from './load.ts';
import { measureMemory } from './memory.ts';
import { OPERATIONS, requestsOf, STANDING_BOOKS } from './operations.ts';
import { IS_PINNED, startService } from './processes.ts';
import { mebibytes, medians, progress, table } from './report.ts';
import type {
  BulkRow,
  ComparisonRow,
  Conditions,
  ListRow,
  MemoryRow,
  OperationRow,
  ProcessRow,
  Results,
  WorkersRow,
} from './results.ts';
import { measureOperations } from './rounds.ts';
import { measureStandby } from './standby.ts';
import { type BenchStore, openPostgresBench, openSqliteBench } from './stores.ts';
import { measureSyncs } from './syncs.ts';
import { tablesOf } from './tables.ts';
import { measureTransfers } from './transfer.ts';

/** What --only selects, beside single operations and stores. */
const KINDS = [
  'operations',
  'syncs',
  'list',
  'memory',
  'process',
  'workers',
  'bulk',
  'transfer',
  'standby',
  'find',
];

const HELP = `Usage: npm run bench -- [options]

  --only <words>    only what matches all the words: an operation (${OPERATIONS.join(', ')}),
                    or ${KINDS.join(', ')};
                    SQLite, PostgreSQL. Example: --only "read SQLite"
  --rounds <n>      rounds to take the medians of (14 of an operation, 3 of everything else)
  --seconds <n>     seconds of load for each measurement (1 for an operation, 2 for everything else)
  --books <n>       books in the long list, in the imported file, and to be found (1000000)
  --against <dir>   compare operations, list and memory with the build in this checkout
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
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    books: { type: 'string', default: '1000000' },
    against: { type: 'string' },
    json: { type: 'boolean', default: false },
    save: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

/** Of an operation, and of everything else. */
const SHORT = { rounds: Number(options.rounds ?? 14), seconds: Number(options.seconds ?? 1) };
const SIZES = {
  rounds: Number(options.rounds ?? 3),
  seconds: Number(options.seconds ?? 2),
  books: Number(options.books),
};
const CONDITIONS: Conditions = {
  node: process.versions.node,
  generator: GENERATOR,
  connections: CONNECTIONS,
  isPinned: IS_PINNED,
  shortRounds: SHORT.rounds,
  rounds: SIZES.rounds,
};

async function bench(): Promise<void> {
  const other = options.against === undefined ? undefined : await prepareOther(options.against);
  const operations: OperationRow[] = [];
  const lists: ListRow[] = [];
  const memory: MemoryRow[] = [];
  const processes: ProcessRow[] = [];
  const workers: WorkersRow[] = [];
  const bulk: BulkRow[] = [];
  const comparisons: ComparisonRow[] = [];
  for (const [name, open] of [
    ['SQLite', () => openSqliteBench()],
    ['PostgreSQL', openPostgresBench],
  ] as const) {
    if (!isWanted(name)) continue;
    const wanted = OPERATIONS.filter((operation) => isWanted(`${operation} operations`, name));
    if (wanted.length > 0) {
      const measured = await withBuilds(open, other, (builds) => measureOperations(builds, wanted, SHORT));
      operations.push(...measured.operations);
      comparisons.push(...measured.comparisons);
    }
    if (isWanted('memory', name)) {
      const measured = await withBuilds(open, other, measureMemory);
      memory.push(...measured.memory);
      comparisons.push(...measured.comparisons);
    }
    if (isWanted('process', name)) processes.push(await withStore(open, measureProcess));
    if (isWanted('workers', name)) workers.push(...(await withStore(open, measureWorkers)));
    if (isWanted('bulk', name)) bulk.push(...(await withStore(open, (store) => measureBulk(store, SIZES))));
    if (isWanted('list', name)) {
      for (const books of [1000, SIZES.books]) {
        const compared = books === SIZES.books ? other : undefined; // a short one takes less than a tick
        const measured = await withBuilds(open, compared, (builds) =>
          measureList(builds, books, SIZES.rounds),
        );
        lists.push(...measured.lists);
        comparisons.push(...measured.comparisons);
      }
    }
  }
  const moving = (['SQLite', 'PostgreSQL'] as const).filter((name) => isWanted('transfer', name));
  const finding = (['SQLite', 'PostgreSQL'] as const).filter((name) => isWanted('find', name));
  const results: Results = {
    operations,
    syncs: isWanted('syncs', 'SQLite') ? await measureSyncs(SIZES) : [],
    lists,
    memory,
    processes,
    workers,
    bulk,
    transfers: moving.length > 0 ? await measureTransfers(moving, SIZES.rounds, SIZES.books) : [],
    standby: isWanted('standby', 'PostgreSQL') ? await measureStandby(SIZES) : [],
    ...(await measureFinds(finding, SIZES)),
    comparisons,
  };
  if (options.json) console.log(JSON.stringify({ ...CONDITIONS, ...results }, null, 2));
  else report(results);
  if (options.save) save(results, CONDITIONS);
}

/** A word of --only names an operation, a kind of measurement or a store; all of them have to match. */
function isWanted(...subjects: string[]): boolean {
  const words = wordsOfOnly();
  const stores = words.filter((word) => ['sqlite', 'postgresql'].includes(word));
  const kinds = words.filter((word) => !stores.includes(word));
  return subjects.every((subject) => {
    const name = subject.toLowerCase();
    const choices = ['sqlite', 'postgresql'].includes(name) ? stores : kinds;
    return choices.length === 0 || choices.some((word) => name.split(' ').includes(word));
  });
}

function wordsOfOnly(): string[] {
  return options.only.toLowerCase().split(/[ ,]+/).filter(Boolean);
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

async function measureWorkers(store: BenchStore): Promise<WorkersRow[]> {
  const { rounds: count, seconds } = SIZES;
  const one = await startService(store.dbUrl);
  const two = await startService(store.dbUrl, { WORKERS: '2' });
  const shares = shareCpu([...one.pids(), ...two.pids()], WORKERS_SHARE);
  await store.addBooks(STANDING_BOOKS);
  const rows: WorkersRow[] = [];
  for (const operation of WORKERS_OPERATIONS) {
    const requests = requestsOf(operation, []);
    const rounds = [];
    for (const service of [one, two]) await applyLoad({ port: service.port, requests, seconds: 1 });
    for (let round = 1; round <= count; round += 1) {
      progress(`${store.name}: ${operation} by one process and by two, round ${round} of ${count}`);
      const ofOne = await applyLoad({ port: one.port, requests, seconds });
      const ofTwo = await applyLoad({ port: two.port, requests, seconds });
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
    loaded: mebibytes(loaded),
    requests,
  };
}

function report(results: Results): void {
  progress('');
  console.log(`${describe(CONDITIONS)} ${availableParallelism()} cores.\n`);
  for (const { head, rows } of tablesOf(results)) table(head, rows);
}

if (options.help) {
  process.stdout.write(HELP);
} else if (options.save && (options.against !== undefined || wordsOfOnly().some((w) => !KINDS.includes(w)))) {
  console.error('--save needs whole tables: omit --against, and stores and operations in --only.');
  process.exitCode = 2;
} else {
  await bench();
}
