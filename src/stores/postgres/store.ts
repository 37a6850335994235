// Owns: opening PostgreSQL for serving, and the parts of that store. Twin of `sqlite/store.ts`. What its statements need, and
// which relatives of PostgreSQL have it: docs/engines.md.

import type { Store } from '../../books/store.ts';
import { OpenLists } from '../open-lists.ts';
import type { OpenOptions } from '../options.ts';
import { prepareIndex } from './book-index.ts';
import { PostgresBooks } from './books.ts';
import { Connections, LIST_CONNECTIONS } from './connections.ts';
import { PostgresFinder } from './finder.ts';
import { connectToWritable, type Hosts } from './hosts.ts';
import { readLogShards } from './log.ts';
import { LogKeeper } from './log-keeper.ts';
import { pruneLog } from './log-pruning.ts';
import { queryOn } from './query.ts';
import { PostgresLog } from './served-log.ts';
import { Standby, type Standbys } from './standby.ts';
import { createStructure } from './structure.ts';

/**
 * Opens the store, creating or updating its structure.
 * @throws Error with the reason when that is impossible.
 */
export async function openPostgres(
  hosts: Hosts,
  standbys: Standbys | undefined,
  options: OpenOptions,
): Promise<Store> {
  const { find: isFound, times } = options;
  const { address, isNew, shards, logShards } = await prepare(hosts, options);
  if (standbys && shards.areSeveral)
    throw new Error('Citus distributes its table "books", which a standby cannot have: unset DB_READ_URL');
  const connections = new Connections(hosts, address, times.postgres, shards.servers);
  const ask = (text: string, deadline: number) => connections.query('batches', text, [], deadline);
  const standby = standbys && new Standby(standbys, ask, times); // without one, everything is read from the primary
  try {
    void (await standby?.connect())?.end();
  } catch (error) {
    void connections.close();
    throw error;
  }
  const again = () => prepare(hosts, { ...options, mustExist: true });
  const keeper = shards.areSeveral ? undefined : new LogKeeper(connections, again);
  const finder = isFound
    ? new PostgresFinder(hosts, connections, standby, keeper, times.postgres)
    : undefined;
  const kept = options.history * times.history.day;
  const pruning = pruneLog(connections, logShards.all, kept, isFound, times);
  const lists = new OpenLists(LIST_CONNECTIONS, times.lists);
  const books = new PostgresBooks(connections, standby, shards, lists, times);
  return {
    books,
    search: finder,
    log: new PostgresLog(connections, keeper, books, logShards, times.postgres),
    inFlight: 2, // which keeps the server busy while the answers of the first batch are sent
    isNew,
    holdsProcess: false,
    counts: () => ({
      ...connections.counts(),
      ...standby?.counts(),
      unindexed_books: finder?.unindexed ?? {},
      kept_changes: pruning.changes ?? {},
    }),
    close: async () => {
      pruning.end();
      finder?.close();
      standby?.close();
      await connections.close();
    },
  };
}

/** Creates or updates the structure. */
async function prepare(hosts: Hosts, { mustExist, find, times: { postgres: times } }: OpenOptions) {
  const { address, client } = await connectToWritable(hosts, times);
  try {
    const { isNew, shards } = await createStructure(client, times, mustExist);
    if (find) await prepareIndex(client, shards.areSeveral, times);
    const logShards = await readLogShards(queryOn(client, times.describe), shards);
    return { address, isNew, shards, logShards };
  } finally {
    void client.end();
  }
}
