// Owns: the figures of the page, their goals, and the table of them.

import { table } from './report.ts';

export const STORES = ['SQLite', 'PostgreSQL'] as const;
export type StoreName = (typeof STORES)[number];

/** One line of the results. */
export interface Figure {
  readonly name: string;
  readonly value: number;
  /** The largest value, where there are several and `value` is their median. */
  readonly worst?: number;
  /** The largest value that is good. */
  readonly goal?: number;
}

export interface Measurement {
  readonly store: StoreName;
  readonly books: number;
  readonly figures: readonly Figure[];
}

export function framesOf(kind: string, frames: readonly number[]): Figure[] {
  const sorted = frames.toSorted((one, other) => one - other);
  const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
  return [
    { name: `frame while scrolling by ${kind}, ms`, value: at(0.5), goal: 17 },
    { name: `95th percentile by ${kind}, ms`, value: at(0.95) },
  ];
}

/** @param values the median is the figure. */
export function figureOf(name: string, values: readonly number[], goal?: number): Figure {
  const sorted = values.toSorted((one, other) => one - other);
  return {
    name,
    value: sorted[sorted.length >> 1] ?? Number.NaN,
    worst: sorted.at(-1) ?? Number.NaN,
    ...(goal !== undefined && { goal }),
  };
}

export function report(measurements: readonly Measurement[]): void {
  const [first] = measurements;
  if (first === undefined) return;
  const head = measurements.map(({ store, books }) => `${store}, ${books.toLocaleString('en-US')}`);
  const rows = first.figures.map(({ name, goal }, row) => {
    const figures = measurements.map(({ figures }) => figures[row] as Figure);
    const isMet = figures.every(({ value }) => rounded(value) <= (goal ?? 0));
    const verdict = goal === undefined ? ['', ''] : [`≤ ${goal}`, isMet ? 'met' : 'missed'];
    return [name, ...figures.map(textOf), ...verdict];
  });
  table(['', ...head, 'goal', ''], rows);
}

function textOf({ value, worst }: Figure): string {
  return worst === undefined ? `${rounded(value)}` : `${rounded(value)} (${rounded(worst)})`;
}

/** To three digits. */
export function rounded(value: number): number {
  return Number(value.toPrecision(3));
}
