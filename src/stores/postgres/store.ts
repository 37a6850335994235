// Owns: the store of books in PostgreSQL. Twin of `sqlite/store.ts`.
// A batch is one statement, or one transaction if its changes have conditions: few round trips, one commit, and it works through
// a pooler in transaction mode. What its statements need, and which relatives of PostgreSQL have it: docs/engines.md.

import type { Book, BookFields } from '../../books/book.ts';
import type { Page, Search } from '../../books/search.ts';
import {
  type BookGroup,
  type BookList,
  type BookStore,
  type BookUpdate,
  type ConditionalChange,
  type ConditionalOutcome,
  type Eventual,
  type GroupOutcome,
  HEAVY,
  type Left,
  type LongSearch,
  type Place,
  StoreUnavailable,
} from '../../books/store.ts';
import { metric } from '../../metrics/descriptions.ts';
import type { Metric } from '../../metrics/prometheus.ts';
import type { Times } from '../../times.ts';
import { OpenLists } from '../open-lists.ts';
import { BookChanger } from './changes.ts';
import { type Connections, LIST_CONNECTIONS } from './connections.ts';
import type { PostgresFinder } from './finder.ts';
import { listBooks } from './lists.ts';
import { NewBooks } from './new-books.ts';
import type { Shards } from './shards.ts';
import type { Standby } from './standby.ts';
import type { Statements } from './statements.ts';

// Large enough that the cost of a round trip is negligible, small enough that a batch takes milliseconds, even with
// the longest texts. Two in flight keep the server busy while the answers of the first one are sent. Updates and
// removals go one by one, so that two batches of one process never wait for each other's books.
const OVERLAPPING = { size: 512, weight: HEAVY, inFlight: 2 };
const ONE_AT_A_TIME = { ...OVERLAPPING, inFlight: 1 };
/** Searches and requests with many books: each may keep a core of the server busy, and two would slow down others. */
const SINGLY = { ...ONE_AT_A_TIME, size: 1 };

/** A book as it is found for many calls. */
interface LightBook extends Book {
  /** Bytes of the texts of a large book, whose fields are then null. */
  readonly weight: number | null;
}

export class PostgresStore implements BookStore {
  readonly limits = {
    find: OVERLAPPING,
    insert: OVERLAPPING,
    keyed: ONE_AT_A_TIME,
    bulk: SINGLY,
    update: ONE_AT_A_TIME,
    remove: ONE_AT_A_TIME,
    conditional: ONE_AT_A_TIME,
    search: SINGLY,
  };
  readonly holdsProcess = false;
  readonly isNew: boolean;
  readonly #times: Times;
  readonly #connections: Connections;
  readonly #statements: Statements;
  readonly #shards: Shards;
  readonly #changes: BookChanger;
  readonly #newBooks: NewBooks;
  /** Undefined if books are not searched. */
  readonly #finder: PostgresFinder | undefined;
  /** Undefined if everything is read from the primary. */
  readonly #standby: Standby | undefined;
  readonly #lists: OpenLists;

  constructor(
    isNew: boolean,
    times: Times,
    connections: Connections,
    statements: Statements,
    shards: Shards,
    finder?: PostgresFinder,
    standby?: Standby,
  ) {
    this.isNew = isNew;
    this.#times = times;
    this.#lists = new OpenLists(LIST_CONNECTIONS, times.lists);
    this.#connections = connections;
    this.#statements = statements;
    this.#shards = shards;
    this.#changes = new BookChanger(connections, statements);
    this.#newBooks = new NewBooks(connections, times.keys);
    this.#finder = finder;
    this.#standby = standby;
  }

  placeOf(id: number): Place | undefined {
    return this.#shards.placeOf(id);
  }

  async countUpTo(most: number): Promise<number> {
    const count = 'select count(*) as books from (select 1 from books limit $1) as found';
    const deadline = performance.now() + this.#times.postgres.count;
    const { rows } = await this.#connections.query<{ books: number }>('batches', count, [most], deadline);
    return Number(rows[0]?.books);
  }

  find(ids: readonly number[], deadline: number): Promise<readonly (Book | undefined | Left)[]> {
    return this.#inPlace(this.#find(ids, deadline));
  }

  async #find(ids: readonly number[], deadline: number): Promise<readonly (Book | undefined | Left)[]> {
    const { find, findInFull } = this.#statements;
    const query = async <Row extends Book>(text: string, ids: readonly number[]) =>
      (await this.#connections.query<Row>('batches', text, [ids], deadline)).rows;
    const found = new Map<number, Book | undefined | Left>();
    const large: number[] = [];
    let weight = 0;
    for (const { weight: bytes, ...book } of await query<LightBook>(find, [...new Set(ids)])) {
      if (bytes === null) found.set(book.id, book);
      else if (weight >= HEAVY) found.set(book.id, null);
      else {
        weight += bytes;
        large.push(book.id);
      }
    }
    if (large.length > 0) for (const book of await query(findInFull, large)) found.set(book.id, book);
    return ids.map((id) => found.get(id));
  }

  insert(books: readonly BookFields[], deadline: number): Promise<readonly number[]> {
    return this.#newBooks.insert(books, deadline);
  }

  insertGroups(groups: readonly BookGroup[], deadline: number): Promise<readonly GroupOutcome[]> {
    return this.#newBooks.insertGroups(groups, deadline);
  }

  update(
    updates: readonly BookUpdate[],
    deadline: number,
  ): Promise<readonly (Eventual<Book | undefined> | Left)[]> {
    return this.#inPlace(this.#changes.update(updates, deadline));
  }

  remove(ids: readonly number[], deadline: number): Promise<readonly (Eventual<boolean> | Left)[]> {
    return this.#inPlace(this.#changes.remove(ids, deadline));
  }

  changeIf(
    changes: readonly ConditionalChange[],
    deadline: number,
  ): Promise<readonly (Eventual<ConditionalOutcome> | Left)[]> {
    return this.#inPlace(this.#changes.changeIf(changes, deadline));
  }

  /** Work on books of one place. It may have failed because they are in another one by now. */
  #inPlace<Result>(work: Promise<Result>): Promise<Result> {
    work.catch(() => this.#shards.renew());
    return work;
  }

  async search(
    searches: readonly Search[],
    deadline: number,
    most: number,
  ): Promise<readonly (Page | LongSearch)[]> {
    const finder = this.#finder;
    if (finder === undefined) throw new StoreUnavailable('FIND is off');
    return Promise.all(searches.map((search) => finder.find(search, deadline, most)));
  }

  list(): Promise<BookList> {
    const signal = AbortSignal.timeout(this.#times.lists.firstChunk); // which the wait for room is a part of
    return this.#lists.open(() =>
      listBooks(this.#connections, this.#standby, this.#shards.areSeveral, this.#times, signal),
    );
  }

  metrics(): Metric[] {
    return [
      ...this.#connections.metrics(),
      ...(this.#standby?.metrics() ?? []),
      metric('unindexed_books', this.#finder?.unindexed ?? {}),
    ];
  }

  async close(): Promise<void> {
    this.#finder?.close();
    this.#standby?.close();
    await this.#connections.close();
  }
}
