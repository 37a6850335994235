// Owns: the results of the benchmark, as values; `tables.ts` has them as tables.

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
