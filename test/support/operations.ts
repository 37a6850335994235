// Owns: the address of a command's operations listener, read from its log, and what its metrics report of open lists.

import type { Target } from './client.ts';
import { scrape, sumOf } from './prometheus.ts';
import type { ServiceProcess } from './service.ts';

export function operationsOf({ log }: { readonly log: readonly string[] }): Target {
  const { operations } = log.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'listening');
  return { url: operations, port: Number(new URL(operations).port) };
}

/** How many lists the service has open, according to its metrics. */
export async function openLists(service: ServiceProcess): Promise<number> {
  const metrics = await scrape(operationsOf(service).url);
  if (service.dbUrl.startsWith('sqlite:')) return sumOf(metrics, 'book_catalogue_sqlite_open_lists');
  const open = ['lists', 'standby'].map((pool) => {
    return (
      sumOf(metrics, 'book_catalogue_postgres_connections', { pool }) -
      sumOf(metrics, 'book_catalogue_postgres_idle_connections', { pool })
    );
  });
  return open.reduce((sum, count) => sum + count);
}
