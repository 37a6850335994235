// Owns: the books of a served PostgreSQL, in batches of one shard. Twin of `sqlite/books.ts`. A batch is one statement, or one
// transaction if its changes have conditions or several are of one book: few round trips, one commit, and it works through a
// pooler in transaction mode.

import type { Book, BookFields } from '../../books/book.ts';
import {
  type Answers,
  type BookGroup,
  type BookList,
  type Books,
  type BookUpdate,
  type ConditionalChange,
  type ConditionalOutcome,
  type GroupOutcome,
  HEAVY,
  type NotAnswered,
  type Shard,
} from '../../books/store.ts';
import type { Times } from '../../times.ts';
import type { OpenLists } from '../open-lists.ts';
import type { Query } from '../query.ts';
import { BookChanger } from './changes.ts';
import type { Connections } from './connections.ts';
import { listBooks } from './lists.ts';
import { NewBooks } from './new-books.ts';
import type { Shards } from './shards.ts';
import type { Standby } from './standby.ts';

const COUNT_UP_TO = 'select count(*) as books from (select 1 from books limit $1) as found';

/** A book as it is found for many calls. */
interface LightBook extends Book {
  /** Bytes of the texts of a large book, whose fields are then null. */
  readonly weight: number | null;
}

export class PostgresBooks implements Books {
  readonly #connections: Connections;
  readonly #standby: Standby | undefined;
  readonly #shards: Shards;
  readonly #times: Times;
  readonly #lists: OpenLists;
  readonly #changes: BookChanger;
  readonly #newBooks: NewBooks;
  /** Called after each write of this process. */
  readonly watches = new Set<() => void>();

  constructor(
    connections: Connections,
    standby: Standby | undefined,
    shards: Shards,
    lists: OpenLists,
    times: Times,
  ) {
    this.#connections = connections;
    this.#standby = standby;
    this.#shards = shards;
    this.#times = times;
    this.#lists = lists;
    this.#changes = new BookChanger(connections, shards.statements);
    this.#newBooks = new NewBooks(connections, times.keys);
  }

  shardOf(id: number): Shard | undefined {
    return this.#shards.shardOf(id);
  }

  async countUpTo(most: number): Promise<number> {
    const deadline = performance.now() + this.#times.postgres.count;
    const [found] = await this.#connections.query<{ books: number }>(
      'batches',
      COUNT_UP_TO,
      [most],
      deadline,
    );
    return Number(found?.books);
  }

  find(ids: readonly number[], deadline: number): Promise<readonly (Book | undefined | NotAnswered)[]> {
    return this.#onShard(this.#find(ids, deadline));
  }

  insert(books: readonly BookFields[], deadline: number): Promise<readonly number[]> {
    return this.#noted(this.#newBooks.insert(books, deadline));
  }

  insertGroups(groups: readonly BookGroup[], deadline: number): Promise<readonly GroupOutcome[]> {
    return this.#noted(this.#newBooks.insertGroups(groups, deadline));
  }

  update(updates: readonly BookUpdate[], deadline: number): Answers<Book | undefined> {
    return this.written(this.#changes.update(updates, deadline));
  }

  remove(ids: readonly number[], deadline: number): Answers<boolean> {
    return this.written(this.#changes.remove(ids, deadline));
  }

  changeIf(changes: readonly ConditionalChange[], deadline: number): Answers<ConditionalOutcome> {
    return this.written(this.#changes.changeIf(changes, deadline));
  }

  list(): Promise<BookList> {
    const signal = AbortSignal.timeout(this.#times.lists.firstChunk); // which the wait for room is a part of
    const { areSeveral } = this.#shards;
    return this.#lists.open(() =>
      listBooks(this.#connections, this.#standby, areSeveral, this.#times, signal),
    );
  }

  /** Follows a write to books that are there already. */
  written<Result>(work: Promise<Result>): Promise<Result> {
    return this.#noted(this.#onShard(work));
  }

  async #noted<Result>(work: Promise<Result>): Promise<Result> {
    const result = await work;
    for (const onWrite of this.watches) onWrite();
    return result;
  }

  /** Follows work on books of one shard. It may have failed because they are on another server by now. */
  #onShard<Result>(work: Promise<Result>): Promise<Result> {
    const read: Query = (text) =>
      this.#connections.query('batches', text, [], performance.now() + this.#times.postgres.describe);
    work.catch(() => this.#shards.renew(read));
    return work;
  }

  /** The books of these ids. Of large ones, those are left out that come after others which are heavy together. */
  async #find(
    ids: readonly number[],
    deadline: number,
  ): Promise<readonly (Book | undefined | NotAnswered)[]> {
    const { find, findInFull } = this.#shards.statements;
    const read = <Row extends Book>(text: string, ids: readonly number[]) =>
      this.#connections.query<Row>('batches', text, [ids], deadline);
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
}
