// Owns: how figures are summarised and shown: medians, tables, progress.

/** The median of every number; of texts, the first. */
export function medians<Sample extends object>(samples: readonly Sample[]): Sample {
  const names = Object.keys(samples[0] as Sample) as (keyof Sample)[];
  const entries = names.map((name) => {
    const values = samples.map((sample) => sample[name]);
    if (typeof values[0] !== 'number') return [name, values[0]];
    return [name, median(values as number[])];
  });
  return Object.fromEntries(entries) as Sample;
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** Half the distance between the quartiles, relative to the median. */
export function noise(values: readonly number[]): number {
  return (quantile(values, 0.75) - quantile(values, 0.25)) / 2 / median(values);
}

/** Between two values, in proportion to its distance from each. */
function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  const place = (sorted.length - 1) * part;
  const below = sorted[Math.floor(place)] as number;
  const above = sorted[Math.ceil(place)] as number;
  return below + (above - below) * (place % 1);
}

export function mebibytes(bytes: number): number {
  return bytes / 1024 / 1024;
}

export function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): void {
  if (rows.length === 0) return;
  const lines = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => (line[column] ?? '').length)));
  for (const line of lines) {
    console.log(
      line
        .map((cell, column) => cell.padEnd(widths[column] as number))
        .join('  ')
        .trimEnd(),
    );
  }
  console.log();
}
