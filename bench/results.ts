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
  /** Of bare node:http: requests a second, CPU, and, as the noise, the ratio of its fastest to its slowest round. */
  readonly bareRate: number;
  readonly bareCpuMicroseconds: number;
  readonly spreadOfBare: number;
  /** Relative to bare node:http that answers the same request. */
  readonly ratioToBare: number;
  readonly p99ToBare: number;
  /** Relative to the store without the service. */
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
  readonly idle: number;
  readonly loaded: number;
  readonly requests: number;
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

export interface Results {
  /** The program that generates the load. */
  readonly generator: string;
  /** Connections of the load. */
  readonly connections: number;
  /** Whether the server on SQLite, and the bare one, have a core of their own. */
  readonly isPinned: boolean;
  readonly rounds: number;
  readonly operations: readonly OperationRow[];
  readonly lists: readonly ListRow[];
  readonly processes: readonly ProcessRow[];
  readonly workers: readonly WorkersRow[];
  readonly transfers: readonly TransferRow[];
}

export interface Table {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** All results as tables; one without rows was not measured. */
export function tablesOf({ operations, lists, processes, workers, transfers }: Results): readonly Table[] {
  return [
    {
      head: [
        'operation',
        'store',
        'requests/s',
        'p50, ms',
        'p99, ms',
        'CPU, µs (bare)',
        '× bare (noise)',
        'p99 × bare',
        '× store alone',
      ],
      rows: operations.map((row) => [
        row.operation,
        row.store,
        rounded(row.requestsPerSecond),
        row.p50.toFixed(2),
        row.p99.toFixed(2),
        `${row.cpuMicroseconds.toFixed(1)} (${row.bareCpuMicroseconds.toFixed(1)})`,
        `${row.ratioToBare.toFixed(2)} (±${((row.spreadOfBare - 1) * 50).toFixed(0)} %)`,
        row.p99ToBare.toFixed(2),
        ratio(row),
      ]),
    },
    {
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
      head: ['process on', 'first answer, ms', 'idle, MiB', 'after requests, MiB', 'requests'],
      rows: processes.map((row) => [
        row.store,
        row.firstAnswer.toFixed(0),
        row.idle.toFixed(0),
        row.loaded.toFixed(0),
        row.requests.toLocaleString('en-US'),
      ]),
    },
    {
      head: ['workers', 'store', '1: requests/s', '2: requests/s', '2 × 1', '1: p99, ms', '2: p99, ms'],
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
  ];
}

/** To three digits. */
function rounded(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString('en-US');
}

function ratio(row: { readonly ratioToStore?: number; readonly storeLimit?: string }): string {
  return row.ratioToStore === undefined ? '' : `${row.ratioToStore.toFixed(2)} (${row.storeLimit})`;
}
