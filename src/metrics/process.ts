// Owns: the metrics of a process, whatever it does: processor, memory, files, garbage collection, and event loop delay.
// Names and meanings are those that Prometheus clients have in common.
// Does not: fail: a metric that the system does not provide is left out.

import { readdir, readFile } from 'node:fs/promises';
import { constants, PerformanceObserver } from 'node:perf_hooks';
import { cpuUsage, memoryUsage } from 'node:process';
import type { Times } from '../times.ts';
import { counter, gauge, Histogram, histogram, type Metric } from './prometheus.ts';

/** Seconds. Normally a timer is up to a millisecond late. */
const DELAYS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
const COLLECTIONS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25];

const COLLECTION_KINDS = new Map([
  [constants.NODE_PERFORMANCE_GC_MINOR, 'minor'],
  [constants.NODE_PERFORMANCE_GC_MAJOR, 'major'],
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL, 'incremental'],
  [constants.NODE_PERFORMANCE_GC_WEAKCB, 'weakcb'],
]);

type Collection = PerformanceEntry & { readonly detail: { readonly kind: number } };

export interface ProcessMeasurement {
  metrics(): Promise<Metric[]>;
  stop(): void;
}

/** Begins to measure this process. */
export function measureProcess({ look }: Times['metrics']): ProcessMeasurement {
  const delays = new Histogram(DELAYS);
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    delays.observe(Math.max(0, now - last - look) / 1000);
    last = now;
  }, look).unref();

  const collections = new Map(
    [...COLLECTION_KINDS.values()].map((kind) => [kind, new Histogram(COLLECTIONS)]),
  );
  const observer = new PerformanceObserver((list) => {
    for (const { detail, duration } of list.getEntries() as Collection[]) {
      collections.get(COLLECTION_KINDS.get(detail.kind) ?? '')?.observe(duration / 1000);
    }
  });
  observer.observe({ entryTypes: ['gc'] });

  return {
    async metrics() {
      return [
        ...runtimeMetrics(),
        ...(await linuxMetrics()),
        histogram(
          'nodejs_event_loop_delay_seconds',
          'Delay of the event loop in seconds: how late it ran a timer, measured 50 times a second.',
          delays.samples(),
        ),
        histogram(
          'nodejs_gc_duration_seconds',
          'Pauses for garbage collection in seconds, by kind.',
          [...collections].flatMap(([kind, durations]) => durations.samples({ kind })),
        ),
      ];
    },
    stop() {
      clearInterval(timer);
      observer.disconnect();
    },
  };
}

function runtimeMetrics(): Metric[] {
  const { user, system } = cpuUsage(); // microseconds
  const { rss, heapTotal, heapUsed, external } = memoryUsage();
  const { active, idle } = performance.eventLoopUtilization(); // milliseconds
  return [
    counter('process_cpu_user_seconds_total', 'CPU time in user mode, in seconds.', user / 1e6),
    counter('process_cpu_system_seconds_total', 'CPU time in system mode, in seconds.', system / 1e6),
    counter('process_cpu_seconds_total', 'CPU time in both modes, in seconds.', (user + system) / 1e6),
    gauge('process_start_time_seconds', 'Start time, in Unix seconds.', performance.timeOrigin / 1000),
    gauge('process_resident_memory_bytes', 'Resident memory of the process, in bytes.', rss),
    gauge('nodejs_heap_size_total_bytes', 'Size of the JavaScript heap, in bytes.', heapTotal),
    gauge('nodejs_heap_size_used_bytes', 'Used part of the JavaScript heap, in bytes.', heapUsed),
    gauge('nodejs_external_memory_bytes', 'Memory of objects outside the heap, in bytes.', external),
    counter(
      'nodejs_event_loop_active_seconds_total',
      'Time of work in the event loop, in seconds.',
      active / 1000,
    ),
    counter('nodejs_event_loop_idle_seconds_total', 'Time without work there, in seconds.', idle / 1000),
  ];
}

/** Metrics that only Linux provides, in these files. */
async function linuxMetrics(): Promise<Metric[]> {
  try {
    const [descriptors, limits, status] = await Promise.all([
      readdir('/proc/self/fd'),
      readFile('/proc/self/limits', 'latin1'),
      readFile('/proc/self/status', 'latin1'),
    ]);
    const limit = /^Max open files +(\d+)/m.exec(limits)?.[1]; // or `unlimited`
    const kibibytes = Number(/^VmSize:\s+(\d+) kB$/m.exec(status)?.[1]);
    const metrics = [
      gauge('process_open_fds', 'Open file descriptors of the process.', descriptors.length),
      gauge('process_virtual_memory_bytes', 'Virtual memory of the process, in bytes.', kibibytes * 1024),
    ];
    if (limit !== undefined) metrics.push(gauge('process_max_fds', 'Most that may be open.', Number(limit)));
    return metrics;
  } catch {
    return []; // another system
  }
}
