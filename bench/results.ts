// Owns: the results of the benchmark, as values and as tables.

import type { Operation } from './operations.ts';
import type { TransferRow } from './transfer.ts';

export interface OperationRow {
  readonly operation: Operation;
  readonly store: string;
  readonly requestsPerSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly cpuMicroseconds: number;
  readonly bareCpuMicroseconds: number;
  /** CPU of bare node:http, which answers the same requests, to ours: above 1, ours is faster. Then, of several pairs, the noise of that. */
  readonly ratioToBare: number;
  readonly noise?: number;
  readonly p99ToBare: number;
  /** Of the mix: its CPU to that of as many requests of each kind by themselves. */
  readonly ratioToParts?: number;
  /** Requests a second relative to the store without the service. */
  readonly ratioToStore?: number;
  readonly storeLimit?: string;
}

export interface ListRow {
  readonly books: number;
  readonly store: string;
  readonly seconds: number;
  readonly megabytesPerSecond: number;
  readonly ratioToStore: number;
  readonly storeLimit: string;
  /** MiB by which resident memory grew. */
  readonly growthOfOne: number;
  readonly growthOfEight: number;
  /** Milliseconds of the slowest single read while eight lists ran. */
  readonly slowestRead: number;
}

export interface ProcessRow {
  readonly store: string;
  readonly firstAnswer: number;
  readonly loaded: number;
  readonly requests: number;
}

export interface MemoryRow {
  readonly store: string;
  /** MiB. */
  readonly start: number;
  /** At most, beside connections that read no answer: to short requests, and to those with many headers. */
  readonly short: number;
  readonly headers: number;
}

export interface SyncRow {
  readonly clients: number;
  /** Milliseconds: of a sync, then of a creation. */
  readonly sync: number;
  readonly p50: number;
  readonly p99: number;
  /** A sync that takes a millisecond longer makes the median this much longer. */
  readonly syncs: number;
  /** Milliseconds of the median beside those syncs. */
  readonly rest: number;
}

/** A figure of this build and of another one, in alternating rounds. */
export interface ComparisonRow {
  readonly what: string;
  readonly store: string;
  readonly figure: string;
  readonly own: number;
  readonly other: number;
  /** Of this build to the other one, and, of several rounds, the noise of that ratio. */
  readonly ratio: number;
  readonly noise?: number;
}

export interface WorkersRow {
  readonly operation: Operation;
  readonly store: string;
  /** Requests a second. */
  readonly one: number;
  readonly two: number;
  readonly ratio: number;
  /** Milliseconds. */
  readonly p99OfOne: number;
  readonly p99OfTwo: number;
}

export interface BulkRow {
  /** Books of one request. */
  readonly size: number;
  readonly store: string;
  /** On one connection, by single requests and by requests of this size. */
  readonly singlePerSecond: number;
  readonly booksPerSecond: number;
  readonly ratio: number;
  /** Milliseconds, the 99th percentile of single calls beside such requests, and to that without them. */
  readonly read: number;
  readonly readRatio: number;
  readonly create: number;
  readonly createRatio: number;
}

export interface IndexRow {
  readonly books: number;
  readonly store: string;
  readonly seconds: number;
  /** Of the command, for each book. */
  readonly cpuMicroseconds: number;
  /** MiB of the store. */
  readonly before: number;
  readonly after: number;
}

export interface FoundRow {
  readonly search: string;
  readonly store: string;
  /** Undefined if the service did not count them in time. */
  readonly matches?: number;
  /** Milliseconds. */
  readonly median: number;
  readonly p95: number;
  /** Of the median, to that of a read of one book on the same connection, in turn. */
  readonly ratio: number;
}

export interface SearchersRow {
  readonly store: string;
  /** Without those that were refused. */
  readonly searchesPerSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** Part of all searches. */
  readonly refused: number;
}

export interface FloodRow {
  readonly store: string;
  /** Milliseconds, the 99th percentile without the flood and during it, and their ratio. */
  readonly readQuiet: number;
  readonly read: number;
  readonly readRatio: number;
  readonly createQuiet: number;
  readonly create: number;
  readonly createRatio: number;
  /** Milliseconds, during the flood. */
  readonly slowestRead: number;
  /** Reads and creations. */
  readonly refused: number;
  /** Searches of the flood: 200 and 503. */
  readonly floodAnswered: number;
  readonly floodRefused: number;
}

export interface WritingRow {
  readonly writing: 'create' | 'import';
  readonly store: string;
  /** Books a second with FIND=off, and with FIND=on. */
  readonly off: number;
  readonly on: number;
  /** Time for each book, with FIND=on to FIND=off. */
  readonly ratio: number;
}

export interface FindMemoryRow {
  readonly store: string;
  /** MiB when idle, with FIND=off and with FIND=on. */
  readonly off: number;
  readonly on: number;
  /** MiB by which it grew during the searches of one connection. */
  readonly growth: number;
}

/** How books are found. */
export interface FindResults {
  readonly indexes: readonly IndexRow[];
  readonly found: readonly FoundRow[];
  readonly searchers: readonly SearchersRow[];
  readonly floods: readonly FloodRow[];
  readonly writings: readonly WritingRow[];
  readonly findMemory: readonly FindMemoryRow[];
}

/** One figure of a service without DB_READ_URL and with it. */
export interface StandbyRow {
  readonly what: string;
  readonly without: number;
  readonly with: number;
  readonly ratio: number;
}

/** How results were measured. */
export interface Conditions {
  /** The version of Node.js. */
  readonly node?: string;
  /** The program that generates the load. */
  readonly generator: string;
  /** Connections of the load. */
  readonly connections: number;
  /** Whether the server on SQLite, and the bare one, have their own core. */
  readonly isPinned: boolean;
  /** Of each operation, and of everything else. */
  readonly shortRounds: number;
  readonly rounds: number;
}

export interface Results extends FindResults {
  readonly operations: readonly OperationRow[];
  readonly syncs: readonly SyncRow[];
  readonly lists: readonly ListRow[];
  readonly memory: readonly MemoryRow[];
  readonly processes: readonly ProcessRow[];
  readonly workers: readonly WorkersRow[];
  readonly bulk: readonly BulkRow[];
  readonly transfers: readonly TransferRow[];
  readonly standby: readonly StandbyRow[];
  readonly comparisons: readonly ComparisonRow[];
}

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
