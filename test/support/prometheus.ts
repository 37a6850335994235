// Owns: a strict reader of metrics in the text format 0.0.4, which also checks the rules for names and for histograms.
// https://prometheus.io/docs/instrumenting/exposition_formats/ and https://prometheus.io/docs/practices/naming/

import assert from 'node:assert/strict';

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Family {
  readonly help: string;
  readonly type: string;
  readonly samples: Sample[];
}

/** Fetches and reads the metrics of a service. */
export async function scrape(operations: string): Promise<Map<string, Family>> {
  const response = await fetch(`${operations}/metrics`);
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
  return readMetrics(await response.text());
}

/**
 * Fetches metrics until those of all processes are there: a worker that takes seconds to answer is left out.
 * @param processes the workers, and the one that started them; 1 without workers.
 */
export async function scrapeAll(operations: string, processes: number): Promise<Map<string, Family>> {
  for (;;) {
    const families = await scrape(operations);
    if (families.get('process_resident_memory_bytes')?.samples.length === processes) return families;
  }
}

/** The sum of all samples that have this name and at least these labels. */
export function sumOf(
  families: Map<string, Family>,
  name: string,
  wanted: Record<string, string> = {},
): number {
  return [...families.values()]
    .flatMap(({ samples }) => samples)
    .filter((sample) => sample.name === name)
    .filter(({ labels }) => Object.entries(wanted).every(([label, value]) => labels[label] === value))
    .reduce((sum, { value }) => sum + value, 0);
}

/** Reads a whole exposition; fails if any part of it is invalid. */
export function readMetrics(text: string): Map<string, Family> {
  assert.ok(text.endsWith('\n'), 'the last line must end with a line feed');
  const families = new Map<string, Family>();
  let help: [name: string, text: string] | undefined;
  let current: [name: string, family: Family] | undefined;
  for (const line of text.slice(0, -1).split('\n')) {
    const comment = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/.exec(line);
    if (comment?.[1] === 'HELP') {
      help = [comment[2] as string, comment[3] as string];
      assert.match(help[1], /^(?:[^\\]|\\\\|\\n)+$/);
      assert.ok(!families.has(help[0]), `${help[0]} occurs twice`);
    } else if (comment?.[1] === 'TYPE') {
      const [, , name = '', type = ''] = comment;
      assert.match(type, /^(counter|gauge|histogram)$/);
      assert.equal(help?.[0], name, `${name} has no HELP before its TYPE`);
      current = [name, { help: help?.[1] ?? '', type, samples: [] }];
      families.set(...current);
    } else {
      const sample = readSample(line);
      const [name, family] = current ?? ['', undefined];
      const names =
        family?.type === 'histogram' ? ['_bucket', '_sum', '_count'].map((end) => name + end) : [name];
      assert.ok(names.includes(sample.name), `${sample.name} is listed under ${name}`);
      family?.samples.push(sample);
    }
  }
  for (const [name, family] of families) check(name, family);
  return families;
}

function readSample(line: string): Sample {
  const [, name = '', , pairs = '', number = ''] =
    /^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(.+)\})? (-?(?:\d+(?:\.\d+)?(?:e[+-]\d+)?))$/.exec(line) ?? [];
  assert.notEqual(name, '', `not a sample: ${line}`);
  const pair = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(,|$)/y;
  const labels: Record<string, string> = {};
  while (pair.lastIndex < pairs.length) {
    const found = pair.exec(pairs);
    assert.ok(found !== null, `invalid labels: ${line}`);
    const [, label = '', value = ''] = found;
    assert.ok(!(label in labels), `${label} twice: ${line}`);
    labels[label] = value.replace(/\\(.)/g, (_, escaped) => (escaped === 'n' ? '\n' : escaped));
  }
  return { name, labels, value: Number(number) };
}

function check(name: string, { help, type, samples }: Family): void {
  assert.match(name, /^(book_catalogue|process|nodejs)_[a-z0-9_]+$/);
  assert.match(help, /\.$/);
  assert.equal(name.endsWith('_total'), type === 'counter', `${name} is a ${type}`);
  assert.doesNotMatch(
    name,
    /_(milliseconds|ms|minutes|kilobytes|kb|mib|megabytes|count|sum|bucket|info_total)$/,
  );
  const series = samples.map((sample) => JSON.stringify([sample.name, Object.entries(sample.labels).sort()]));
  assert.equal(new Set(series).size, series.length, `${name} has a series twice`);
  for (const { value } of samples) assert.ok(type === 'gauge' || value >= 0);
  if (type === 'histogram') checkHistogram(name, samples);
}

/** Bounds and counts of buckets ascend: each bucket includes the smaller ones, and the last one counts everything. */
function checkHistogram(name: string, samples: readonly Sample[]): void {
  const groups = Map.groupBy(samples, ({ labels: { le: _, ...others } }) => JSON.stringify(others));
  for (const [labels, group] of groups) {
    const of = (end: string) => group.filter((sample) => sample.name === name + end);
    const bounds = of('_bucket').map(({ labels: { le } }) =>
      le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le),
    );
    const counts = of('_bucket').map(({ value }) => value);
    for (const list of [bounds, counts]) {
      assert.deepEqual(
        list,
        list.toSorted((one, other) => one - other),
        `${name}${labels}`,
      );
    }
    assert.equal(bounds.at(-1), Number.POSITIVE_INFINITY);
    assert.equal(of('_sum').length, 1);
    assert.deepEqual(
      of('_count').map(({ value }) => value),
      [counts.at(-1)],
    );
  }
}
