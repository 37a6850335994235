// Owns: what a metric is, and the text format in which Prometheus reads the metrics of one process or of several.
// https://prometheus.io/docs/instrumenting/exposition_formats/ (text format 0.0.4)
// Independent of what is measured.

export const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8';

export type Labels = Readonly<Record<string, string>>;

export interface Sample {
  /** Follows the metric's name: a histogram has samples of three names. */
  readonly suffix?: '_bucket' | '_sum' | '_count';
  readonly labels?: Labels;
  readonly value: number;
}

/** A metric with all of its samples. Plain data, so that processes can send it to each other. */
export interface Metric {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly samples: readonly Sample[];
}

export function counter(name: string, help: string, value: number | readonly Sample[]): Metric {
  return { name, help, type: 'counter', samples: typeof value === 'number' ? [{ value }] : value };
}

export function gauge(name: string, help: string, value: number | readonly Sample[]): Metric {
  return { name, help, type: 'gauge', samples: typeof value === 'number' ? [{ value }] : value };
}

export function histogram(name: string, help: string, samples: readonly Sample[]): Metric {
  return { name, help, type: 'histogram', samples };
}

/** Observations counted by size. Plain numbers: an observation takes about ten nanoseconds. */
export class Histogram {
  readonly #bounds: readonly number[];
  /** For each bound, the observations up to it and above the one before; last, those above all bounds. */
  readonly #counts: number[];
  #sum = 0;

  /** @param bounds upper bounds, ascending. */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Array<number>(bounds.length + 1).fill(0);
  }

  observe(value: number): void {
    let position = 0;
    while (value > (this.#bounds[position] as number)) position += 1; // above the last bound, undefined ends the loop
    (this.#counts[position] as number) += 1;
    this.#sum += value;
  }

  /** Buckets are cumulative: each includes the observations in the smaller ones. */
  samples(labels: Labels = {}): Sample[] {
    let count = 0;
    const buckets = this.#counts.map((observed, position): Sample => {
      count += observed;
      const le = String(this.#bounds[position] ?? '+Inf');
      return { suffix: '_bucket', labels: { ...labels, le }, value: count };
    });
    return [
      ...buckets,
      { suffix: '_sum', labels, value: this.#sum },
      { suffix: '_count', labels, value: count },
    ];
  }
}

/** Merges the metrics of several processes: each metric once, its samples labelled with their process. */
export function mergeMetrics(byWorker: ReadonlyMap<string, readonly Metric[]>): Metric[] {
  const merged = new Map<string, Metric>();
  for (const [worker, metrics] of byWorker) {
    for (const { samples, ...metric } of metrics) {
      const labelled = samples.map((sample) => ({ ...sample, labels: { worker, ...sample.labels } }));
      const others = merged.get(metric.name)?.samples ?? [];
      merged.set(metric.name, { ...metric, samples: [...others, ...labelled] });
    }
  }
  return [...merged.values()];
}

export function prometheusText(metrics: readonly Metric[]): string {
  return metrics.map(textOf).join('');
}

function textOf({ name, help, type, samples }: Metric): string {
  const lines = samples.map(({ suffix = '', labels = {}, value }) => {
    const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(text)}"`);
    return `${name}${suffix}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${value}\n`;
  });
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
}

function escapeLabel(text: string): string {
  return text.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n');
}
