// Owns: the store of books in PostgreSQL, and opening it for serving. Twin of `sqlite/store.ts`.
// A batch is one statement, or one transaction if its changes have conditions: few round trips, one commit, and it works through
// a pooler in transaction mode. What its statements need, and which relatives of PostgreSQL have it: docs/engines.md.

import type { QueryResultRow } from 'pg';
import type { Book } from '../../books/book.ts';
import { type BookStore, HEAVY, type Left, StoreUnavailable } from '../../books/store.ts';
import { metric } from '../../metrics/descriptions.ts';
import type { Times } from '../../times.ts';
import { OpenLists } from '../open-lists.ts';
import type { OpenOptions } from '../options.ts';
import { IS_INDEXED, prepareIndex } from './book-index.ts';
import { BookChanger } from './changes.ts';
import { Connections, LIST_CONNECTIONS } from './connections.ts';
import { PostgresFinder } from './finder.ts';
import { History, type Pruning, pruneLog } from './history.ts';
import { connectToWritable, type Hosts } from './hosts.ts';
import { listBooks } from './lists.ts';
import { PLACES, type PlaceOfLog } from './log.ts';
import { type Ask, LogKeeper } from './log-keeper.ts';
import { NewBooks } from './new-books.ts';
import { Shards } from './shards.ts';
import { Standby, type Standbys } from './standby.ts';
import { STATEMENTS, STATEMENTS_ON_SHARDS, type Statements } from './statements.ts';
import { createStructure, look } from './structure.ts';
import { undo } from './undo.ts';

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
  { find: isFound, history: days, times }: OpenOptions,
): Promise<BookStore> {
  const { address, client } = await connectToWritable(hosts, times.postgres);
  try {
    const { isNew } = await createStructure(client, times.postgres);
    const shards = new Shards();
    await shards.read((text) => look(client, times.postgres, text));
    const beginLog = async () => {
      const { client } = await connectToWritable(hosts, times.postgres);
      try {
        await createStructure(client, times.postgres);
        if (isFound) await prepareIndex(client, false, times.postgres);
      } finally {
        void client.end();
      }
    };
    const connections = new Connections(hosts, address, times.postgres, shards.servers);
    try {
      if (isFound) await prepareIndex(client, shards.areSeveral, times.postgres);
      if (standbys && shards.areSeveral)
        throw new Error(
          'Citus distributes its table "books", which a standby cannot have: unset DB_READ_URL',
        );
      const ask = (text: string, deadline: number) => connections.query('batches', text, [], deadline);
      const standby = standbys && new Standby(standbys, ask, times);
      void (await standby?.connect())?.end();
      const askOne: Ask = async <Row extends QueryResultRow>(text: string, deadline: number) =>
        (await connections.query<Row>('searches', text, [], deadline)).rows[0];
      const keeper = shards.areSeveral ? undefined : new LogKeeper(askOne, beginLog);
      const finder = isFound
        ? new PostgresFinder(hosts, connections, standby, keeper, times.postgres)
        : undefined;
      const statements = shards.areSeveral ? STATEMENTS_ON_SHARDS : STATEMENTS;
      const places = await look<PlaceOfLog>(client, times.postgres, PLACES);
      const kept = days * times.history.day;
      const pruning = pruneLog(connections, places, kept, isFound ? IS_INDEXED : 'true', times);
      return {
        isNew,
        ...storeOf(times, connections, statements, shards, finder, standby, keeper, places, pruning),
      };
    } catch (error) {
      void connections.close();
      throw error;
    }
  } finally {
    void client.end();
  }
}

/** Without a standby, everything is read from the primary. */
function storeOf(
  times: Times,
  connections: Connections,
  statements: Statements,
  shards: Shards,
  finder: PostgresFinder | undefined,
  standby: Standby | undefined,
  keeper: LogKeeper | undefined,
  places: readonly PlaceOfLog[],
  pruning: Pruning,
): Omit<BookStore, 'isNew'> {
  const lists = new OpenLists(LIST_CONNECTIONS, times.lists);
  const changes = new BookChanger(connections, statements);
  const newBooks = new NewBooks(connections, times.keys);
  const read = async <Row extends QueryResultRow>(text: string) => {
    const deadline = performance.now() + times.postgres.describe;
    return (await connections.query<Row>('batches', text, [], deadline)).rows;
  };
  /** Work on books of one place. It may have failed because they are in another one by now. */
  const inPlace = <Result>(work: Promise<Result>): Promise<Result> => {
    work.catch(() => shards.renew(read));
    return work;
  };
  const find = (ids: readonly number[], deadline: number) =>
    inPlace(findBooks(connections, statements, ids, deadline));
  const placeOfLog = (id: number) => {
    const shard = shards.placeOf(id);
    return places.find(({ place }) => shards.placeOf(place) === shard)?.place ?? 0;
  };
  const history = new History(connections, times.postgres, places, placeOfLog, find);
  const writes = async <Result>(work: Promise<Result>): Promise<Result> => {
    const result = await work;
    history.noteWrite();
    return result;
  };
  return {
    inFlight: 2, // which keeps the server busy while the answers of the first batch are sent
    holdsProcess: false,
    placeOf: (id) => shards.placeOf(id),
    countUpTo: async (most) => {
      const deadline = performance.now() + times.postgres.count;
      const { rows } = await connections.query('batches', COUNT_UP_TO, [most], deadline);
      return Number(rows[0]?.books);
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
    undo: async (request, once, deadline) => {
      if (shards.areSeveral) return 'distributed';
      await keeper?.keep(deadline);
      return writes(connections.transaction('batches', deadline, (query) => undo(query, request, once)));
    },
    search: async (search, deadline, most) => {
      if (finder === undefined) throw new StoreUnavailable('FIND is off');
      return finder.find(search, deadline, most);
    },
    list: () => {
      const signal = AbortSignal.timeout(times.lists.firstChunk); // which the wait for room is a part of
      return lists.open(() => listBooks(connections, standby, shards.areSeveral, times, signal));
    },
    metrics: () => [
      ...connections.metrics(),
      ...(standby?.metrics() ?? []),
      metric('unindexed_books', finder?.unindexed ?? {}),
      metric('kept_changes', pruning.changes ?? {}),
    ],
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
): Promise<readonly (Book | undefined | Left)[]> {
  const read = async <Row extends Book>(text: string, ids: readonly number[]) =>
    (await connections.query<Row>('batches', text, [ids], deadline)).rows;
  const found = new Map<number, Book | undefined | Left>();
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
