// Owns: measuring single operations in short rounds: those of the service are next to those of what it is compared with, in
// alternating order. A ratio is the median of the ratios within each pair, since the speed of a machine changes from second to
// second. On a shared one only processor time is stable.

import { type Builds, compare } from './builds.ts';
import { applyLoad } from './load.ts';
import { MIX, type Operation, REFUSED_OPERATIONS, requestsOf, STANDING_BOOKS } from './operations.ts';
import { IS_PINNED, type Measured, settle, startBareServer } from './processes.ts';
import { median, noise, progress } from './report.ts';
import type { ComparisonRow, OperationRow } from './results.ts';
import type { BenchStore } from './stores.ts';

/** Seconds of load before the first round. */
const WARM_UP = 2;

interface Sample {
  readonly requestsPerSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly cpuMicroseconds: number;
}

/** The figures of one operation, measured in the same seconds. */
interface Round {
  own: Sample;
  bare: Sample;
  other?: Sample;
  /** Operations a second. */
  limit?: number;
}

interface Target {
  readonly server: Measured;
  /** Undefined for the bare server. */
  readonly store?: BenchStore;
}

export async function measureOperations(
  { own, other }: Builds,
  wanted: readonly Operation[],
  { rounds, seconds }: { readonly rounds: number; readonly seconds: number },
): Promise<{ operations: OperationRow[]; comparisons: ComparisonRow[] }> {
  const { store } = own;
  const isPinned = IS_PINNED && store.name === 'SQLite';
  const targets: Record<'own' | 'bare', Target> & { other?: Target } = {
    own: { server: await own.start(), store },
    bare: { server: await startBareServer(isPinned) },
    ...(other && { other: { server: await other.start(), store: other.store } }),
  };
  const all = Object.values(targets);
  for (const { server, store: filled } of all) {
    await filled?.addBooks(STANDING_BOOKS);
    await settle(server);
  }
  for (const operation of wanted) {
    progress(`${store.name}: ${operation}, warm-up`);
    for (const target of all) await load(target, operation, WARM_UP, isPinned);
  }

  const samples = new Map<Operation, Round[]>(wanted.map((operation) => [operation, []]));
  for (let round = 1; round <= rounds; round += 1) {
    for (const operation of wanted) {
      progress(`${store.name}: ${operation}, round ${round} of ${rounds}`);
      const measured: Partial<Round> = {};
      const limit = store.limitOf(operation);
      const steps = [
        async () => {
          if (targets.other) measured.other = await load(targets.other, operation, seconds, isPinned);
        },
        async () => {
          measured.own = await load(targets.own, operation, seconds, isPinned);
        },
        async () => {
          if (limit) measured.limit = await limit.measure(seconds);
        },
        async () => {
          measured.bare = await load(targets.bare, operation, seconds, isPinned);
        },
      ];
      for (const step of round % 2 === 1 ? steps : steps.toReversed()) await step();
      samples.get(operation)?.push(measured as Round);
    }
  }
  for (const { server } of all) await server.stop();
  return {
    operations: wanted.map((operation) => rowOf(operation, store, samples)),
    comparisons: other ? wanted.flatMap((operation) => comparisonsOf(operation, store, samples)) : [],
  };
}

/** Loads a server, and waits until it is idle, so that it takes no time from the next one. */
async function load(
  { server, store }: Target,
  operation: Operation,
  seconds: number,
  isPinned: boolean,
): Promise<Sample> {
  let doomed = [1];
  if (operation === 'delete' && store) {
    doomed = await doomedBooks(store, seconds);
    await settle(server);
  }
  const before = server.cpuSeconds();
  const requests = requestsOf(operation, doomed);
  const result = await applyLoad({ port: server.port, requests, seconds, isPinned });
  const cpuMicroseconds = ((server.cpuSeconds() - before) * 1e6) / result.requests;
  await settle(server);
  const isRefused = store !== undefined && REFUSED_OPERATIONS.includes(operation);
  if (isRefused ? result.refused < result.requests : result.refused > 0) {
    throw new Error(`${operation}: ${result.refused} of ${result.requests} answers were refusals`);
  }
  return {
    requestsPerSecond: result.requests / result.seconds,
    p50: result.p50,
    p99: result.p99,
    cpuMicroseconds,
  };
}

/** More books than can be removed in the time. */
async function doomedBooks(store: BenchStore, seconds: number): Promise<number[]> {
  const count = 100_000 * seconds;
  const last = await store.addBooks(count);
  return Array.from({ length: count }, (_, position) => last - position);
}

function rowOf(
  operation: Operation,
  store: BenchStore,
  samples: ReadonlyMap<Operation, readonly Round[]>,
): OperationRow {
  const rounds = samples.get(operation) as Round[];
  const of = (figure: (round: Round) => number) => median(rounds.map(figure));
  const toBare = rounds.map(({ own, bare }) => bare.cpuMicroseconds / own.cpuMicroseconds);
  const parts = partsOf(samples);
  const limit = store.limitOf(operation);
  return {
    operation,
    store: store.name,
    requestsPerSecond: of(({ own }) => own.requestsPerSecond),
    p50: of(({ own }) => own.p50),
    p99: of(({ own }) => own.p99),
    cpuMicroseconds: of(({ own }) => own.cpuMicroseconds),
    bareCpuMicroseconds: of(({ bare }) => bare.cpuMicroseconds),
    ratioToBare: median(toBare),
    ...(toBare.length > 1 && { noise: noise(toBare) }),
    p99ToBare: of(({ own, bare }) => own.p99 / bare.p99),
    ...(operation === 'mix' &&
      parts && {
        ratioToParts: median(rounds.map(({ own }, round) => own.cpuMicroseconds / (parts[round] as number))),
      }),
    ...(limit && {
      ratioToStore: of(({ own, limit = 0 }) => own.requestsPerSecond / limit),
      storeLimit: limit.name,
    }),
  };
}

/** The microseconds of the mix in each round, if each request cost the same as among its own kind; undefined if not all were measured. */
function partsOf(samples: ReadonlyMap<Operation, readonly Round[]>): number[] | undefined {
  const { read, create, update } = MIX;
  const [reads, creations, updates] = [samples.get('read'), samples.get('create'), samples.get('update')];
  if (!reads || !creations || !updates) return undefined;
  const cost = (rounds: readonly Round[], round: number) => rounds[round]?.own.cpuMicroseconds ?? Number.NaN;
  return reads.map(
    (_, round) => read * cost(reads, round) + create * cost(creations, round) + update * cost(updates, round),
  );
}

function comparisonsOf(
  operation: Operation,
  store: BenchStore,
  samples: ReadonlyMap<Operation, readonly Round[]>,
): ComparisonRow[] {
  const rounds = samples.get(operation) as Round[];
  const figures: [string, keyof Sample][] = [
    store.name === 'SQLite' ? ['CPU, µs', 'cpuMicroseconds'] : ['requests/s', 'requestsPerSecond'],
    ['p99, ms', 'p99'],
  ];
  return figures.map(([figure, name]) =>
    compare(
      { what: operation, store: store.name, figure },
      rounds.map(({ own }) => own[name]),
      rounds.map(({ other }) => other?.[name] ?? Number.NaN),
    ),
  );
}
