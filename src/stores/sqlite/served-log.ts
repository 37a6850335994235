// Owns: the log of changes of a served SQLite file: reading it, following it, undoing by it, and removing old rows. Twin of
// `postgres/served-log.ts`.

import type { DatabaseSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import type { LogReader, LogWriter, PageOfChanges, ServedLog, States } from '../../books/change-log.ts';
import { StoreUnavailable } from '../../books/store.ts';
import type { Times } from '../../times.ts';
import { Turn } from '../turn.ts';
import type { SqliteBooks } from './books.ts';
import type { DurableReads } from './durable-reads.ts';
import type { GroupCommit } from './group-commit.ts';
import { History } from './history.ts';
import type { BookLog } from './log.ts';
import { mustPrune, type Pruning, prune } from './log-pruning.ts';
import { SqliteLogReader, SqliteLogWriter } from './undo.ts';

export class SqliteLog implements ServedLog {
  readonly #db: DatabaseSync;
  readonly #reads: DurableReads;
  readonly #commits: GroupCommit;
  readonly #log: BookLog;
  readonly #books: SqliteBooks;
  readonly #times: Times['sqlite'];
  readonly #writer: SqliteLogWriter;
  readonly #history: History;

  /** @param db of the writes. */
  constructor(
    db: DatabaseSync,
    log: BookLog,
    reads: DurableReads,
    commits: GroupCommit,
    books: SqliteBooks,
    times: Times['sqlite'],
  ) {
    this.#db = db;
    this.#reads = reads;
    this.#commits = commits;
    this.#log = log;
    this.#books = books;
    this.#times = times;
    this.#writer = new SqliteLogWriter(db, times.turn);
    this.#history = reads.read((durable) => new History(durable));
  }

  async changes(cursor: unknown, most: number, deadline: number): Promise<PageOfChanges | 'gone'> {
    await setImmediate(); // other work first: a thousand may have waited for the same change
    await this.#complete(deadline);
    const read = () => this.#reads.read(() => this.#history.changes(cursor, most, this.#times.page));
    const changes = read();
    if (changes !== 'gone') return changes;
    await this.#commits.durable(deadline); // another process may have shown a write whose sync is in progress here
    return read();
  }

  async states(id: number, before: number | undefined, most: number, deadline: number): Promise<States> {
    await this.#complete(deadline);
    return this.#reads.read(() => this.#history.states(id, before, most));
  }

  watch(onChange: () => void): () => void {
    const { watches } = this.#commits;
    watches.add(onChange);
    let before: unknown;
    const look = () => {
      try {
        const { version } = this.#reads;
        if (version !== before) onChange();
        before = version;
      } catch {} // the file is locked: the next look finds it
    };
    const timer = setInterval(look, this.#times.changesPause);
    return () => {
      clearInterval(timer);
      watches.delete(onChange);
    };
  }

  async read<Result>(
    read: (log: LogReader) => Promise<Result>,
    deadline = Number.POSITIVE_INFINITY,
  ): Promise<Result> {
    await this.#complete(deadline);
    const db = this.#reads.snapshot();
    try {
      return await read(new SqliteLogReader(db, this.#times.turn));
    } catch (error) {
      throw new StoreUnavailable(error);
    } finally {
      db.close();
    }
  }

  write<Result>(
    write: (log: LogWriter) => Promise<Result>,
    deadline = Number.POSITIVE_INFINITY,
  ): Promise<Result> {
    const writeAll = () => {
      this.#log.noteNew();
      this.#books.dropOldKeys();
      return write(this.#writer);
    };
    return this.#commits.write(writeAll, deadline, true);
  }

  /** Removes old rows. @param isClosing ends it. */
  async prune(pruning: Pruning, isClosing: () => boolean): Promise<void> {
    let isMore = this.#reads.read((db) => mustPrune(db, pruning));
    const pruneSome = () => {
      const turn = new Turn(this.#times.turn);
      return prune(this.#db, pruning, () => turn.isOver);
    };
    while (isMore && !isClosing()) isMore = await this.#commits.write(pruneSome, Number.POSITIVE_INFINITY);
  }

  /** Notes the new books of other programs, and begins the log again if they have changed it. */
  async #complete(deadline: number): Promise<void> {
    if (!this.#reads.read(() => this.#history.isIncomplete)) return;
    await this.#commits.write(() => this.#log.noteNew(), deadline);
    this.#reads.read(() => this.#history.guard.trust());
  }
}
