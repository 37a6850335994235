// Owns: the log of changes of a served PostgreSQL: reading it, following it, and undoing by it. Twin of `sqlite/served-log.ts`.

import type { Changes, LogReader, LogWriter, ServedLog, States } from '../../books/change-log.ts';
import type { Times } from '../../times.ts';
import type { PostgresBooks } from './books.ts';
import type { Connections } from './connections.ts';
import { History } from './history.ts';
import type { LogPlaces, PlaceOfLog } from './log.ts';
import type { LogKeeper } from './log-keeper.ts';
import type { Query } from './query.ts';
import { PostgresLogReader, PostgresLogWriter } from './undo.ts';

export class PostgresLog implements ServedLog {
  readonly #connections: Connections;
  readonly #keeper: LogKeeper | undefined;
  readonly #books: PostgresBooks;
  readonly #logAt: LogPlaces;
  readonly #history: History;

  /** @param keeper undefined on Citus. */
  constructor(
    connections: Connections,
    keeper: LogKeeper | undefined,
    books: PostgresBooks,
    places: readonly PlaceOfLog[],
    logAt: LogPlaces,
    times: Times['postgres'],
  ) {
    this.#connections = connections;
    this.#keeper = keeper;
    this.#books = books;
    this.#logAt = logAt;
    const find = books.find.bind(books);
    this.#history = new History(connections, times, places, logAt.of, find, books.watches);
  }

  async changes(cursor: unknown, most: number, deadline: number): Promise<Changes | 'gone'> {
    await this.#keeper?.keep(deadline);
    return this.#history.changes(cursor, most, deadline);
  }

  async states(id: number, before: number | undefined, most: number, deadline: number): Promise<States> {
    await this.#keeper?.keep(deadline);
    return this.#history.states(id, before, most, deadline);
  }

  watch(onChange: () => void): () => void {
    return this.#history.watch(onChange);
  }

  async read<Result>(
    read: (log: LogReader) => Promise<Result>,
    deadline = Number.POSITIVE_INFINITY,
  ): Promise<Result> {
    await this.#keeper?.keep(deadline);
    const work = (query: Query) => read(new PostgresLogReader(query, this.#logAt));
    return this.#connections.transaction('batches', deadline, work);
  }

  async write<Result>(
    write: (log: LogWriter) => Promise<Result>,
    deadline = Number.POSITIVE_INFINITY,
  ): Promise<Result> {
    await this.#keeper?.keep(deadline);
    const work = (query: Query) => write(new PostgresLogWriter(query, this.#logAt, this.#books.statements));
    return this.#books.written(this.#connections.transaction('batches', deadline, work));
  }
}
