// Owns: what a metric is, and the text format in which Prometheus reads the metrics of one process or of several.
// https://prometheus.io/docs/instrumenting/exposition_formats/ (text format 0.0.4)
// Independent of what is measured.

import { type Counts, Histogram } from '../counts.ts';

export const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8';

type Labels = Readonly<Record<string, string>>;

interface Sample {
  /** Follows the metric's name: a histogram has samples of three names. */
  readonly suffix?: '_bucket' | '_sum' | '_count';
  readonly labels: Labels;
  readonly value: number;
}

export interface Description {
  /** Absent: a name that ends in `_total` is a counter's, any other one a gauge's. */
  readonly type?: 'histogram';
  /** The values of each label; none if they are those that its help describes. */
  readonly labels?: Readonly<Record<string, readonly string[]>>;
  /** What it counts, then when to look at it. */
  readonly help: string;
}

/** A metric with all of its samples. Plain data, so that processes can send it to each other. */
export interface Metric {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly samples: readonly Sample[];
}

export function toMetric(name: string, { type, labels = {}, help }: Description, counts: Counts): Metric {
  return {
    name,
    help,
    type: type ?? (name.endsWith('_total') ? 'counter' : 'gauge'),
    samples: samplesOf(counts, Object.keys(labels), {}),
  };
}

function samplesOf(counts: Counts, [label, ...others]: readonly string[], labels: Labels): readonly Sample[] {
  if (typeof counts === 'number') return [{ labels, value: counts }];
  if (counts instanceof Histogram) return samplesOfHistogram(counts, labels);
  return Object.entries(counts).flatMap(([value, inner]) => {
    return samplesOf(inner, others, { ...labels, [label as string]: value });
  });
}

/** Buckets are cumulative: each includes the observations in the smaller ones. */
function samplesOfHistogram({ bounds, counts, sum }: Histogram, labels: Labels): Sample[] {
  let count = 0;
  const buckets = counts.map((observed, position): Sample => {
    count += observed;
    const le = String(bounds[position] ?? '+Inf');
    return { suffix: '_bucket', labels: { ...labels, le }, value: count };
  });
  return [...buckets, { suffix: '_sum', labels, value: sum }, { suffix: '_count', labels, value: count }];
}

/** Merges the metrics of several processes: each metric once, its samples labelled with their process. */
export function mergeMetrics(byWorker: ReadonlyMap<string, readonly Metric[]>): Metric[] {
  const all = [...byWorker].flatMap(([worker, metrics]) => {
    const labelled = (sample: Sample) => ({ ...sample, labels: { worker, ...sample.labels } });
    return metrics.map((metric) => ({ ...metric, samples: metric.samples.map(labelled) }));
  });
  return [...Map.groupBy(all, ({ name }) => name).values()].map((same) => {
    return { ...(same[0] as Metric), samples: same.flatMap(({ samples }) => samples) };
  });
}

/** @param metrics whose labels have no values that would have to be escaped. */
export function prometheusText(metrics: readonly Metric[]): string {
  const texts = metrics.map(({ name, help, type, samples }) => {
    const lines = samples.map(({ suffix = '', labels, value }) => {
      const pairs = Object.entries(labels).map(([label, text]) => `${label}="${text}"`);
      return `${name}${suffix}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${value}\n`;
    });
    return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
  });
  return texts.join('');
}
