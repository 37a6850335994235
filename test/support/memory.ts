// Owns: how much memory a service takes, according to its metrics.

import { operationsOf } from './operations.ts';
import { scrape, sumOf } from './prometheus.ts';
import type { CommandProcess } from './service.ts';

/** Resident memory of all its processes, in MiB. */
export async function residentMemory(service: CommandProcess): Promise<number> {
  const metrics = await scrape(operationsOf(service).url);
  return sumOf(metrics, 'process_resident_memory_bytes') / 1024 ** 2;
}
