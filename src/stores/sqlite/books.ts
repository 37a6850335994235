// Owns: the books of a served SQLite file. Twin of `postgres/books.ts`. Reads and writes run on the calling thread. Each list
// has its own connection, since other reads would otherwise see its old snapshot.

import type { StatementSync } from 'node:sqlite';
import type { Book, BookFields } from '../../books/book.ts';
import {
  type BookGroup,
  type BookList,
  type Books,
  type BookUpdate,
  type ConditionalChange,
  type ConditionalOutcome,
  type GroupOutcome,
  type NotAnswered,
  untilHeavy,
} from '../../books/store.ts';
import type { Times } from '../../times.ts';
import type { OpenLists } from '../open-lists.ts';
import { listOf } from './lists.ts';
import type { Transactions } from './transactions.ts';
import type { Wal } from './wal.ts';
import { bookOf, FIND, type Writes } from './writes.ts';

export class SqliteBooks implements Books {
  readonly #transactions: Transactions;
  readonly #writes: Writes;
  readonly #lists: OpenLists;
  readonly #wal: Wal;
  readonly #times: Times['lists'];
  readonly #find: StatementSync;

  constructor(transactions: Transactions, writes: Writes, lists: OpenLists, wal: Wal, times: Times['lists']) {
    this.#transactions = transactions;
    this.#writes = writes;
    this.#lists = lists;
    this.#wal = wal;
    this.#times = times;
    this.#find = transactions.read((db) => db.prepare(FIND));
    this.#find.setReturnArrays(true);
  }

  async countUpTo(most: number): Promise<number> {
    const text = 'select count(*) as books from (select 1 from books limit ?)';
    return this.#transactions.read((db) => Number(db.prepare(text).get(most)?.books));
  }

  async find(ids: readonly number[]): Promise<readonly (Book | undefined | NotAnswered)[]> {
    return this.#transactions.read(() => untilHeavy(ids, (id) => bookOf(this.#find.get(id))));
  }

  insert(books: readonly BookFields[], deadline: number): Promise<readonly number[]> {
    return this.#transactions.write(() => this.#writes.insert(books), deadline);
  }

  insertGroups(groups: readonly BookGroup[], deadline: number): Promise<readonly GroupOutcome[]> {
    return this.#transactions.write(() => this.#writes.insertGroups(groups), deadline, true);
  }

  update(
    updates: readonly BookUpdate[],
    deadline: number,
  ): Promise<readonly (Book | undefined | NotAnswered)[]> {
    return this.#transactions.write(() => this.#writes.update(updates), deadline);
  }

  remove(ids: readonly number[], deadline: number): Promise<readonly (boolean | NotAnswered)[]> {
    return this.#transactions.write(() => this.#writes.remove(ids), deadline);
  }

  changeIf(
    changes: readonly ConditionalChange[],
    deadline: number,
  ): Promise<readonly (ConditionalOutcome | NotAnswered)[]> {
    return this.#transactions.write(() => this.#writes.changeIf(changes), deadline);
  }

  async list(): Promise<BookList> {
    const deadline = performance.now() + this.#times.firstChunk;
    await this.#wal.shorter();
    return this.#lists.open(async () => {
      await this.#transactions.durable(deadline); // until this function returns, nothing is committed
      return listOf(this.#transactions.snapshot());
    });
  }
}
