// Owns: what is counted: numbers and histograms, kept where they arise. Independent of who reads them.

/** A number or a histogram, or such by the values of a label. */
export type Counts = number | Histogram | { readonly [value: string]: Counts };

/** Observations counted by size. Plain numbers: an observation takes about ten nanoseconds. */
export class Histogram {
  readonly bounds: readonly number[];
  /** For each bound, the observations up to it and above the one before; last, those above all bounds. */
  readonly counts: number[];
  sum = 0;

  /** @param bounds upper bounds, ascending. */
  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Array<number>(bounds.length + 1).fill(0);
  }

  observe(value: number): void {
    let position = 0;
    while (value > (this.bounds[position] as number)) position += 1; // above the last bound, undefined ends the loop
    (this.counts[position] as number) += 1;
    this.sum += value;
  }
}
