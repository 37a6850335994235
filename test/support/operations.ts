// Owns: where the operations listener of a running command is, by its log, and what it says of open lists.

import type { Target } from './client.ts';
import { scrape, sumOf } from './prometheus.ts';
import type { ServiceProcess } from './service.ts';

export function operationsOf({ log }: { readonly log: readonly string[] }): Target {
  const { operations } = log.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'listening');
  return { url: operations, port: Number(new URL(operations).port) };
}

/** Lists that the service has open, by its own count. */
export async function openLists(service: ServiceProcess): Promise<number> {
  const metrics = await scrape(operationsOf(service).url);
  if (service.dbUrl.startsWith('sqlite:')) return sumOf(metrics, 'book_catalogue_sqlite_open_lists');
  const ofLists = { pool: 'lists' };
  return (
    sumOf(metrics, 'book_catalogue_postgres_connections', ofLists) -
    sumOf(metrics, 'book_catalogue_postgres_idle_connections', ofLists)
  );
}
