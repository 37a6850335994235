// Owns: the store of books in PostgreSQL, and opening it for serving. Twin of `sqlite/store.ts`.
// A batch is one statement, or one transaction if its changes have conditions: few round trips, one commit, and it works through
// a pooler in transaction mode. What its statements need, and which relatives of PostgreSQL have it: docs/engines.md.

import type { Book } from '../../books/book.ts';
import { type BookStore, HEAVY, type NotAnswered, StoreUnavailable } from '../../books/store.ts';
import { OpenLists } from '../open-lists.ts';
import type { OpenOptions } from '../options.ts';
import { prepareIndex } from './book-index.ts';
import { BookChanger } from './changes.ts';
import { Connections, LIST_CONNECTIONS } from './connections.ts';
import { PostgresFinder } from './finder.ts';
import { History } from './history.ts';
import { connectToWritable, type Hosts } from './hosts.ts';
import { listBooks } from './lists.ts';
import { LOG_SHARDS, type LogShard, logShards } from './log.ts';
import { LogKeeper } from './log-keeper.ts';
import { pruneLog } from './log-pruning.ts';
import { NewBooks } from './new-books.ts';
import { type Query, queryOn } from './query.ts';
import { Standby, type Standbys } from './standby.ts';
import { STATEMENTS, STATEMENTS_ON_SHARDS, type Statements } from './statements.ts';
import { createStructure } from './structure.ts';
import { PostgresLogReader, PostgresLogWriter } from './undo.ts';

const COUNT_UP_TO = 'select count(*) as books from (select 1 from books limit $1) as found';

/** A book as it is found for many calls. */
interface LightBook extends Book {
  /** Bytes of the texts of a large book, whose fields are then null. */
  readonly weight: number | null;
}

/**
 * Opens the store, creating or updating its structure.
 * @throws Error with the reason when that is impossible.
 */
export async function openPostgres(
  hosts: Hosts,
  standbys: Standbys | undefined,
  options: OpenOptions,
): Promise<BookStore> {
  const { times } = options;
  const prepared = await prepare(hosts, options);
  const { address, shards } = prepared;
  if (standbys && shards.areSeveral)
    throw new Error('Citus distributes its table "books", which a standby cannot have: unset DB_READ_URL');
  const connections = new Connections(hosts, address, times.postgres, shards.servers);
  const ask = (text: string, deadline: number) => connections.query('batches', text, [], deadline);
  const standby = standbys && new Standby(standbys, ask, times);
  try {
    void (await standby?.connect())?.end();
  } catch (error) {
    void connections.close();
    throw error;
  }
  return storeOf(hosts, connections, standby, prepared, options);
}

/** Creates or updates the structure. */
async function prepare(hosts: Hosts, { mustExist, find, times: { postgres: times } }: OpenOptions) {
  const { address, client } = await connectToWritable(hosts, times);
  try {
    const { isNew, shards } = await createStructure(client, times, mustExist);
    if (find) await prepareIndex(client, shards.areSeveral, times);
    const places = await queryOn(client, times.describe)<LogShard>(LOG_SHARDS);
    return { address, isNew, shards, places };
  } finally {
    void client.end();
  }
}

/** Without a standby, everything is read from the primary. */
function storeOf(
  hosts: Hosts,
  connections: Connections,
  standby: Standby | undefined,
  { isNew, shards, places }: Awaited<ReturnType<typeof prepare>>,
  options: OpenOptions,
): BookStore {
  const { find: isFound, times } = options;
  const again = () => prepare(hosts, { ...options, mustExist: true });
  const keeper = shards.areSeveral ? undefined : new LogKeeper(connections, again);
  const finder = isFound
    ? new PostgresFinder(hosts, connections, standby, keeper, times.postgres)
    : undefined;
  const kept = options.history * times.history.day;
  const pruning = pruneLog(connections, places, kept, isFound, times);
  const lists = new OpenLists(LIST_CONNECTIONS, times.lists);
  const statements = shards.areSeveral ? STATEMENTS_ON_SHARDS : STATEMENTS;
  const changes = new BookChanger(connections, statements);
  const newBooks = new NewBooks(connections, times.keys);
  const read: Query = (text) =>
    connections.query('batches', text, [], performance.now() + times.postgres.describe);
  /** Work on books of one place. It may have failed because they are in another one by now. */
  const inPlace = <Result>(work: Promise<Result>): Promise<Result> => {
    work.catch(() => shards.renew(read));
    return work;
  };
  const find = (ids: readonly number[], deadline: number) =>
    inPlace(findBooks(connections, statements, ids, deadline));
  const logAt = logShards(places, shards);
  const history = new History(connections, times.postgres, places, logAt.of, find);
  const writes = async <Result>(work: Promise<Result>): Promise<Result> => {
    const result = await work;
    history.noteWrite();
    return result;
  };
  return {
    inFlight: 2, // which keeps the server busy while the answers of the first batch are sent
    isNew,
    holdsProcess: false,
    shardOf: (id) => shards.shardOf(id),
    countUpTo: async (most) => {
      const deadline = performance.now() + times.postgres.count;
      const [found] = await connections.query('batches', COUNT_UP_TO, [most], deadline);
      return Number(found?.books);
    },
    find,
    insert: (books, deadline) => writes(newBooks.insert(books, deadline)),
    insertGroups: (groups, deadline) => writes(newBooks.insertGroups(groups, deadline)),
    update: (updates, deadline) => writes(inPlace(changes.update(updates, deadline))),
    remove: (ids, deadline) => writes(inPlace(changes.remove(ids, deadline))),
    changeIf: (conditional, deadline) => writes(inPlace(changes.changeIf(conditional, deadline))),
    changes: async (cursor, most, deadline) => {
      await keeper?.keep(deadline);
      return history.changes(cursor, most, deadline);
    },
    watch: (onChange) => history.watch(onChange),
    states: async (id, before, most, deadline) => {
      await keeper?.keep(deadline);
      return history.states(id, before, most, deadline);
    },
    readLog: async (read, deadline) => {
      await keeper?.keep(deadline);
      return connections.transaction('batches', deadline, (query) =>
        read(new PostgresLogReader(query, logAt)),
      );
    },
    writeLog: async (write, deadline) => {
      await keeper?.keep(deadline);
      const work = (query: Query) => write(new PostgresLogWriter(query, logAt, statements));
      return writes(inPlace(connections.transaction('batches', deadline, work)));
    },
    search: async (search, deadline, most) => {
      if (finder === undefined) throw new StoreUnavailable('FIND is off');
      return finder.find(search, deadline, most);
    },
    list: () => {
      const signal = AbortSignal.timeout(times.lists.firstChunk); // which the wait for room is a part of
      return lists.open(() => listBooks(connections, standby, shards.areSeveral, times, signal));
    },
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

/** The books of these ids. Of large ones, those are left out that come after others which are heavy together. */
async function findBooks(
  connections: Connections,
  { find, findInFull }: Statements,
  ids: readonly number[],
  deadline: number,
): Promise<readonly (Book | undefined | NotAnswered)[]> {
  const read = <Row extends Book>(text: string, ids: readonly number[]) =>
    connections.query<Row>('batches', text, [ids], deadline);
  const found = new Map<number, Book | undefined | NotAnswered>();
  const large: number[] = [];
  let weight = 0;
  for (const { weight: bytes, ...book } of await read<LightBook>(find, [...new Set(ids)])) {
    if (bytes === null) found.set(book.id, book);
    else if (weight >= HEAVY) found.set(book.id, null);
    else {
      weight += bytes;
      large.push(book.id);
    }
  }
  if (large.length > 0) for (const book of await read(findInFull, large)) found.set(book.id, book);
  return ids.map((id) => found.get(id));
}
