// Owns: the builds of the service that are measured next to each other, each with its own store: this one, and another one if
// there is a folder to compare with.

import { join, resolve } from 'node:path';
import { COMMAND } from '../test/support/repository.ts';
import { type Command, type Measured, runToEnd, startService } from './processes.ts';
import { median, noise } from './report.ts';
import type { ComparisonRow } from './results.ts';
import type { BenchStore } from './stores.ts';

export interface Build {
  readonly store: BenchStore;
  start(): Promise<Measured>;
}

export interface Builds {
  readonly own: Build;
  readonly other: Build | undefined;
}

/**
 * Compiles another build, as `npm ci` does.
 * @param folder a checkout with its libraries.
 * @returns the command that starts it.
 */
export async function prepareOther(folder: string): Promise<Command> {
  const path = (file: string) => join(resolve(folder), 'src', file);
  await runToEnd([process.execPath, path('compile.js')]);
  return [process.execPath, path('main.js')];
}

/** @param open makes the store of one build. */
export async function withBuilds<Result>(
  open: () => Promise<BenchStore>,
  other: Command | undefined,
  use: (builds: Builds) => Promise<Result>,
): Promise<Result> {
  const stores: BenchStore[] = [];
  const build = async (command: Command): Promise<Build> => {
    const store = await open();
    stores.push(store);
    return { store, start: () => startService(store.dbUrl, {}, undefined, command) };
  };
  try {
    return await use({ own: await build(COMMAND), other: other && (await build(other)) });
  } finally {
    for (const store of stores) await store.remove();
  }
}

/** A figure of both builds: pairs of rounds next to each other. */
export function compare(
  row: Pick<ComparisonRow, 'what' | 'store' | 'figure'>,
  own: readonly number[],
  other: readonly number[],
): ComparisonRow {
  const ratios = own.map((figure, round) => figure / (other[round] as number));
  return {
    ...row,
    own: median(own),
    other: median(other),
    ratio: median(ratios),
    ...(ratios.length > 1 && { noise: noise(ratios) }),
  };
}
