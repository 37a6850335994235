// Owns: opening PostgreSQL for serving: its structure, its index and its standby.

import type { QueryResultRow } from 'pg';
import type { BookStore } from '../../books/store.ts';
import type { OpenOptions } from '../options.ts';
import { prepareIndex } from './book-index.ts';
import { Connections } from './connections.ts';
import { PostgresFinder } from './finder.ts';
import { connectToWritable, type Hosts } from './hosts.ts';
import { Shards } from './shards.ts';
import { Standby, type Standbys } from './standby.ts';
import { STATEMENTS, STATEMENTS_IN_PARTITIONS } from './statements.ts';
import { PostgresStore } from './store.ts';
import { createStructure } from './structure.ts';

/**
 * Opens the store, creating or updating its structure.
 * @throws Error with the reason when that is impossible.
 */
export async function openPostgres(
  hosts: Hosts,
  standbys: Standbys | undefined,
  { find: isFound, times }: OpenOptions,
): Promise<BookStore> {
  const { address, client } = await connectToWritable(hosts, times.postgres);
  try {
    const { isNew, isPartitioned } = await createStructure(client, times.postgres);
    const connections = new Connections(hosts, address, times.postgres);
    try {
      const shards = new Shards(async <Row extends QueryResultRow>(text: string) => {
        const deadline = performance.now() + times.postgres.describe;
        return (await connections.query<Row>('batches', text, [], deadline)).rows;
      });
      await shards.read();
      if (isFound) await prepareIndex(client, shards.areSeveral, times.postgres);
      if (standbys && shards.areSeveral)
        throw new Error(
          'Citus distributes its table "books", which a standby cannot have: unset DB_READ_URL',
        );
      const ask = (text: string, deadline: number) => connections.query('batches', text, [], deadline);
      const standby = standbys && new Standby(standbys, ask, times);
      void (await standby?.connect())?.end();
      const finder = isFound ? new PostgresFinder(hosts, connections, standby, times.postgres) : undefined;
      const statements = isPartitioned ? STATEMENTS_IN_PARTITIONS : STATEMENTS;
      return new PostgresStore(isNew, times, connections, statements, shards, finder, standby);
    } catch (error) {
      void connections.close();
      throw error;
    }
  } finally {
    void client.end();
  }
}
