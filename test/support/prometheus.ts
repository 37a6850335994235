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

const FAMILY =
  /^# HELP ((?:book_catalogue|process|nodejs)_[a-z0-9_]+) ((?:[^\\\n]|\\\\|\\n)*\.)\n# TYPE \1 (counter|gauge|histogram)\n((?:[^#\n].*\n)*)/gm;
const SAMPLE = /^([a-z0-9_]+)(?:\{(.+)\})? (-?\d+(?:\.\d+)?(?:e[+-]\d+)?)$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(?:,|$)/g;

/** Reads a whole exposition; fails if any part of it is invalid. */
function readMetrics(text: string): Map<string, Family> {
  const families = new Map<string, Family>();
  for (const [, name = '', help = '', type = '', lines = ''] of parts(FAMILY, text)) {
    assert.ok(!families.has(name), `${name} occurs twice`);
    const family = { help, type, samples: lines.split('\n').slice(0, -1).map(readSample) };
    families.set(name, family);
    check(name, family);
  }
  return families;
}

function readSample(line: string): Sample {
  const [, name = '', pairs = '', number = ''] = SAMPLE.exec(line) ?? assert.fail(`not a sample: ${line}`);
  const labels: Record<string, string> = {};
  for (const [, label = '', value = ''] of parts(LABEL, pairs)) {
    assert.ok(!(label in labels), `${label} twice: ${line}`);
    labels[label] = value.replace(/\\(.)/g, (_, escaped) => (escaped === 'n' ? '\n' : escaped));
  }
  return { name, labels, value: Number(number) };
}

/** The matches of which a text must consist. */
function parts(part: RegExp, text: string) {
  assert.equal(text.replaceAll(part, ''), '', 'invalid');
  return text.matchAll(part);
}

function check(name: string, { type, samples }: Family): void {
  assert.equal(name.endsWith('_total'), type === 'counter', `${name} is a ${type}`);
  const units = /_(milliseconds|ms|minutes|kilobytes|kb|mib|megabytes|count|sum|bucket|info_total)$/;
  assert.doesNotMatch(name, units);
  const names = type === 'histogram' ? ['_bucket', '_sum', '_count'].map((end) => name + end) : [name];
  for (const sample of samples) {
    assert.ok(names.includes(sample.name), `${sample.name} is listed under ${name}`);
    assert.ok(type === 'gauge' || sample.value >= 0);
  }
  const series = samples.map((sample) => JSON.stringify([sample.name, Object.entries(sample.labels).sort()]));
  assert.equal(new Set(series).size, series.length, `${name} has a series twice`);
  if (type !== 'histogram') return;
  const groups = Map.groupBy(samples, ({ labels: { le: _, ...others } }) => JSON.stringify(others));
  for (const group of groups.values()) {
    const [buckets, [sum], [count]] = names.map((one) => group.filter((sample) => sample.name === one)) as [
      ...[Sample[], Sample[], Sample[]],
    ];
    const bounds = buckets.map(({ labels: { le } }) => Number(le?.replace('+Inf', 'Infinity')));
    // Each bucket includes the smaller ones, and the last one counts everything.
    for (const list of [bounds, buckets.map(({ value }) => value)])
      assert.ok(
        list.every((one, at) => at === 0 || one >= Number(list[at - 1])),
        `${name}: ${list}`,
      );
    assert.equal(bounds.at(-1), Number.POSITIVE_INFINITY);
    assert.ok(sum, `${name}_sum`);
    assert.equal(count?.value, buckets.at(-1)?.value);
  }
}
