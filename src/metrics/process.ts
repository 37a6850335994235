// Owns: the metrics of a process, whatever it does: its version and log, and those that Prometheus clients have in common:
// processor, memory, open files, event loop delay.

import { readdir, readFile } from 'node:fs/promises';
import { cpuUsage, memoryUsage, versions } from 'node:process';
import { Histogram } from '../counts.ts';
import type { Log } from '../log/log.ts';
import type { Times } from '../times.ts';
import { version } from '../version.ts';
import { metric } from './descriptions.ts';
import { type Metric, toMetric } from './prometheus.ts';

/** Seconds. Normally a timer is up to a millisecond late. */
const DELAYS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

export function measureProcess(log: Log, { look }: Times['metrics']) {
  // Node's `monitorEventLoopDelay` has no counts for a histogram, and adds the time between two looks to each delay.
  const delays = new Histogram(DELAYS);
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    delays.observe(Math.max(0, now - last - look) / 1000);
    last = now;
  }, look).unref();

  return {
    async metrics(): Promise<Metric[]> {
      const { user, system } = cpuUsage(); // microseconds
      const { rss, heapUsed } = memoryUsage();
      const delay = 'How late the event loop ran a timer, in seconds, measured 50 times a second.';
      return [
        metric('build_info', { [version]: { [versions.node]: 1 } }),
        metric('log_lines_lost_total', log.linesLost()),
        one('process_cpu_seconds_total', 'Processor time, in seconds.', (user + system) / 1e6),
        one('process_start_time_seconds', 'Start time, in Unix seconds.', performance.timeOrigin / 1000),
        one('process_resident_memory_bytes', 'Resident memory of the process, in bytes.', rss),
        one('nodejs_heap_size_used_bytes', 'Used part of the JavaScript heap, in bytes.', heapUsed),
        ...(await openFiles()),
        toMetric('nodejs_event_loop_delay_seconds', { type: 'histogram', help: delay }, delays),
      ];
    },
    stop: () => clearInterval(timer),
  };
}

function one(name: string, help: string, value: number): Metric {
  return toMetric(name, { help }, value);
}

/** Only Linux has these files; elsewhere there are no such metrics. */
async function openFiles(): Promise<Metric[]> {
  try {
    const open = await readdir('/proc/self/fd');
    const limits = await readFile('/proc/self/limits', 'latin1');
    const most = /^Max open files +(\d+)/m.exec(limits)?.[1];
    return [
      one('process_open_fds', 'Open file descriptors of the process.', open.length),
      one('process_max_fds', 'Most that may be open.', Number(most)),
    ];
  } catch {
    return [];
  }
}
