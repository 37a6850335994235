// Owns: what the benchmark measures, as values.

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
  /** Whether the server on SQLite, and the bare one, have a core of their own. */
  readonly isPinned: boolean;
  readonly rounds: number;
  readonly operations: readonly OperationRow[];
  readonly lists: readonly ListRow[];
  readonly processes: readonly ProcessRow[];
  readonly workers: readonly WorkersRow[];
  readonly transfers: readonly TransferRow[];
}
