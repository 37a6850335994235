// Owns: opening PostgreSQL for serving: its structure, its index and its standby, and how its table of books is divided.

import type { BookStore } from '../../books/store.ts';
import type { OpenOptions } from '../options.ts';
import { prepareIndex } from './book-index.ts';
import { BookChanger } from './changes.ts';
import { Connections } from './connections.ts';
import { PostgresFinder } from './finder.ts';
import { connectToWritable, type Hosts } from './hosts.ts';
import { listBooks } from './lists.ts';
import { Standby, type Standbys } from './standby.ts';
import { FINDS, FINDS_IN_PARTITIONS } from './statements.ts';
import { PostgresStore } from './store.ts';
import { createStructure, divisionOf } from './structure.ts';

/**
 * Opens the store, creating or updating its structure.
 * @throws Error with the reason when that is impossible.
 */
export async function openPostgres(
  hosts: Hosts,
  standbys: Standbys | undefined,
  { find: isFound, times, onLongWait }: OpenOptions,
): Promise<BookStore> {
  const { address, client } = await connectToWritable(hosts, times.postgres);
  try {
    const isNew = await createStructure(client, times.postgres, onLongWait);
    const division = await divisionOf(client, times.postgres);
    if (division === 'citus') {
      const refused = isFound
        ? 'no index can follow it: set FIND=off'
        : standbys && 'no standby has it: unset DB_READ_URL';
      if (refused !== undefined) throw new Error(`Citus distributes its table "books", and ${refused}`);
      const { operationsOfCitus } = await import('./citus.ts');
      const connections = new Connections(hosts, address, times.postgres);
      return new PostgresStore(isNew, times, connections, operationsOfCitus(connections, times.postgres));
    }
    if (isFound) await prepareIndex(client, times.postgres, onLongWait);
    const connections = new Connections(hosts, address, times.postgres);
    try {
      const ask = (text: string, deadline: number) => connections.query('batches', text, [], deadline);
      const standby = standbys && new Standby(standbys, ask, times);
      void (await standby?.connect())?.end();
      const finder = isFound ? new PostgresFinder(hosts, connections, standby, times.postgres) : undefined;
      const find = division === 'partitions' ? FINDS_IN_PARTITIONS : FINDS;
      const operations = {
        find,
        changes: new BookChanger(connections, find),
        list: (signal: AbortSignal) => listBooks(connections, standby, times, signal),
      };
      return new PostgresStore(isNew, times, connections, operations, finder, standby);
    } catch (error) {
      void connections.close();
      throw error;
    }
  } finally {
    void client.end();
  }
}
