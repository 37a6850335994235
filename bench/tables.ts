// Owns: the results of the benchmark as tables.

import type { FindResults, Results } from './results.ts';

export interface Table {
  readonly of: keyof Results;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** All results as tables; one without rows was not measured. */
export function tablesOf(results: Results): readonly Table[] {
  const { operations, syncs, lists, memory, processes, workers, bulk, transfers } = results;
  return [
    {
      of: 'operations',
      head: [
        'operation',
        'store',
        'requests/s',
        'p50, ms',
        'p99, ms',
        'CPU, µs (bare)',
        '× bare (noise)',
        'p99 × bare',
        '× parts',
        '× store alone',
      ],
      rows: operations.map((row) => [
        row.operation,
        row.store,
        rounded(row.requestsPerSecond),
        row.p50.toFixed(2),
        row.p99.toFixed(2),
        `${row.cpuMicroseconds.toFixed(1)} (${row.bareCpuMicroseconds.toFixed(1)})`,
        withNoise(row.ratioToBare, row.noise),
        row.p99ToBare.toFixed(2),
        row.ratioToParts?.toFixed(2) ?? '',
        ratio(row),
      ]),
    },
    {
      of: 'syncs',
      head: ['clients that create', 'a sync, ms', 'median, ms', 'that is', 'p99, ms'],
      rows: syncs.map((row) => [
        `${row.clients}`,
        row.sync.toFixed(2),
        row.p50.toFixed(2),
        `${row.syncs.toFixed(1)} syncs ${row.rest < 0 ? '-' : '+'} ${Math.abs(row.rest).toFixed(2)} ms`,
        row.p99.toFixed(2),
      ]),
    },
    {
      of: 'lists',
      head: [
        'list of',
        'store',
        'seconds',
        'MB/s',
        '× store alone (time)',
        'MiB for one',
        'for eight',
        'slowest read, ms',
      ],
      rows: lists.map((row) => [
        row.books.toLocaleString('en-US'),
        row.store,
        row.seconds.toFixed(3),
        row.megabytesPerSecond.toFixed(0),
        ratio(row),
        row.growthOfOne.toFixed(0),
        row.growthOfEight.toFixed(0),
        row.slowestRead.toFixed(0),
      ]),
    },
    {
      of: 'memory',
      head: [
        'memory on',
        'at the start, MiB',
        'beside 1,300 clients that read no answer',
        'the same, 900 headers a request',
      ],
      rows: memory.map((row) => [
        row.store,
        row.start.toFixed(0),
        row.short.toFixed(0),
        row.headers.toFixed(0),
      ]),
    },
    {
      of: 'processes',
      head: ['process on', 'first answer, ms', 'after requests, MiB', 'requests'],
      rows: processes.map((row) => [
        row.store,
        row.firstAnswer.toFixed(0),
        row.loaded.toFixed(0),
        row.requests.toLocaleString('en-US'),
      ]),
    },
    {
      of: 'workers',
      head: [
        'workers, each a third of a core',
        'store',
        '1: requests/s',
        '2: requests/s',
        '2 × 1',
        '1: p99, ms',
        '2: p99, ms',
      ],
      rows: workers.map((row) => [
        row.operation,
        row.store,
        rounded(row.one),
        rounded(row.two),
        row.ratio.toFixed(2),
        row.p99OfOne.toFixed(2),
        row.p99OfTwo.toFixed(2),
      ]),
    },
    {
      of: 'bulk',
      head: [
        'books in a request',
        'store',
        'one by one: books/s',
        'together: books/s',
        'together × one by one',
        'read p99 beside it, ms (× quiet)',
        'create p99, ms (× quiet)',
      ],
      rows: bulk.map((row) => [
        row.size.toLocaleString('en-US'),
        row.store,
        rounded(row.singlePerSecond),
        rounded(row.booksPerSecond),
        row.ratio.toFixed(0),
        `${row.read.toFixed(2)} (${row.readRatio.toFixed(1)})`,
        `${row.create.toFixed(2)} (${row.createRatio.toFixed(1)})`,
      ]),
    },
    {
      of: 'transfers',
      head: ['transfer', 'store', 'books', 'seconds', 'books/s', '× store alone (time)', 'peak, MiB'],
      rows: transfers.map((row) => [
        row.transfer,
        row.store,
        row.books.toLocaleString('en-US'),
        row.seconds.toFixed(2),
        rounded(row.books / row.seconds),
        ratio(row),
        row.peak.toFixed(0),
      ]),
    },
    {
      of: 'standby',
      head: ['PostgreSQL with a standby', 'without DB_READ_URL', 'with it', 'ratio'],
      rows: results.standby.map((row) => [
        row.what,
        rounded(row.without),
        rounded(row.with),
        row.ratio.toFixed(2),
      ]),
    },
    ...findTablesOf(results),
    {
      of: 'comparisons',
      head: ['this build and the other one', 'store', 'figure', 'this', 'the other', 'ratio (noise)'],
      rows: results.comparisons.map((row) => [
        row.what,
        row.store,
        row.figure,
        rounded(row.own),
        rounded(row.other),
        withNoise(row.ratio, row.noise),
      ]),
    },
  ];
}

function findTablesOf(results: FindResults): readonly Table[] {
  const { indexes, found, searchers, floods, writings, findMemory } = results;
  return [
    {
      of: 'indexes',
      head: ['index of', 'store', 'seconds', 'books/s', 'CPU, µs a book', 'store before, MiB', 'after, MiB'],
      rows: indexes.map((row) => [
        row.books.toLocaleString('en-US'),
        row.store,
        row.seconds.toFixed(1),
        rounded(row.books / row.seconds),
        row.cpuMicroseconds.toFixed(1),
        row.before.toFixed(0),
        row.after.toFixed(0),
      ]),
    },
    {
      of: 'found',
      head: ['first page of 20', 'store', 'matches', 'median, ms', 'p95, ms', '× a book by its id'],
      rows: found.map((row) => [
        row.search,
        row.store,
        row.matches?.toLocaleString('en-US') ?? '',
        rounded(row.median),
        rounded(row.p95),
        row.ratio.toFixed(1),
      ]),
    },
    {
      of: 'searchers',
      head: ['many clients on', 'searches/s', 'p50, ms', 'p99, ms', 'refused'],
      rows: searchers.map((row) => [
        row.store,
        rounded(row.searchesPerSecond),
        row.p50.toFixed(0),
        row.p99.toFixed(0),
        `${(row.refused * 100).toFixed(1)} %`,
      ]),
    },
    {
      of: 'floods',
      head: [
        'most expensive searches on',
        'read p99, ms (quiet)',
        '× quiet',
        'slowest read, ms',
        'create p99, ms (quiet)',
        '× quiet',
        'refused calls',
        'searches answered',
        'refused',
      ],
      rows: floods.map((row) => [
        row.store,
        `${row.read.toFixed(2)} (${row.readQuiet.toFixed(2)})`,
        row.readRatio.toFixed(1),
        row.slowestRead.toFixed(0),
        `${row.create.toFixed(2)} (${row.createQuiet.toFixed(2)})`,
        row.createRatio.toFixed(1),
        `${row.refused}`,
        `${row.floodAnswered}`,
        `${row.floodRefused}`,
      ]),
    },
    {
      of: 'writings',
      head: ['writing', 'store', 'FIND=off: books/s', 'FIND=on: books/s', 'time × FIND=off'],
      rows: writings.map((row) => [
        row.writing,
        row.store,
        rounded(row.off),
        rounded(row.on),
        row.ratio.toFixed(2),
      ]),
    },
    {
      of: 'findMemory',
      head: ['memory on', 'FIND=off: idle, MiB', 'FIND=on: idle, MiB', 'more for searches, MiB'],
      rows: findMemory.map((row) => [
        row.store,
        row.off.toFixed(0),
        row.on.toFixed(0),
        row.growth.toFixed(0),
      ]),
    },
  ];
}

/** To three digits. */
function rounded(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString('en-US');
}

function withNoise(value: number, noise?: number): string {
  return `${value.toFixed(2)}${noise === undefined ? '' : ` (±${(noise * 100).toFixed(0)} %)`}`;
}

function ratio(row: { readonly ratioToStore?: number; readonly storeLimit?: string }): string {
  return row.ratioToStore === undefined ? '' : `${row.ratioToStore.toFixed(2)} (${row.storeLimit})`;
}
