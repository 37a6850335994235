// Owns: committing and answering the writes to a SQLite file. Writes that wait together form one transaction (group commit). It
// runs on the calling thread, since it costs less than a message to another one. Then the system's thread pool syncs the WAL, and
// only after that the writes are answered. Meanwhile the next ones gather.
// Does not: depend on what a write does; or wait on this thread for a disk's sync or for another process.

import { closeSync, fdatasync, openSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { StoreUnavailable } from '../../books/store.ts';
import type { Times } from '../../times.ts';
import { within } from '../../within.ts';
import type { DurableReads } from './durable-reads.ts';
import { isFailedSync, isOfKind, SQLITE_BUSY, SQLITE_CONSTRAINT } from './faults.ts';
import { OpenStore } from './file.ts';
import type { BookLog } from './log.ts';

interface Write {
  readonly carryOut: () => unknown;
  /** On the clock of `performance.now()`. */
  readonly deadline: number;
  /** Whether no other write joins its transaction. */
  isAlone: boolean;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: StoreUnavailable) => void;
}

export class GroupCommit {
  readonly #db: DatabaseSync;
  readonly #begin;
  readonly #commit;
  readonly #store: OpenStore;
  /** A descriptor of the WAL. One of the file itself would release SQLite's locks on it when it is closed (POSIX). */
  readonly #wal: number;
  readonly #reads: DurableReads;
  readonly #log: BookLog;
  readonly #times: Times['sqlite'];
  readonly #onSyncFailed: (reason: string) => void;
  readonly #waiting: Write[] = [];
  /** Called after each transaction. */
  readonly watches = new Set<() => void>();
  #working: Promise<void> | undefined;
  #syncing: Promise<void> | undefined;

  /**
   * @param db that no other code uses.
   * @param reads of the same process, which see each commit once it is durable.
   * @param log which begins again before the next write if another program has damaged it.
   * @param onSyncFailed ends the process: the system may have dropped pages that it could not write, so that a second sync would
   *   succeed and prove nothing.
   */
  constructor(
    db: DatabaseSync,
    path: string,
    reads: DurableReads,
    log: BookLog,
    times: Times['sqlite'],
    onSyncFailed: (reason: string) => void,
  ) {
    this.#db = db;
    this.#begin = db.prepare('begin immediate');
    this.#commit = db.prepare('commit');
    this.#store = new OpenStore(path);
    this.#wal = openSync(`${path}-wal`, 'r+');
    this.#reads = reads;
    this.#log = log;
    this.#times = times;
    this.#onSyncFailed = onSyncFailed;
  }

  /**
   * Carries a write out within a transaction.
   * @param carryOut may be called again, if the transaction in which it was carried out has failed. If it takes long, it lets
   *   other work run.
   * @param deadline after which it is not started (on the clock of `performance.now()`). It waits no longer than `times.write`.
   * @param isAlone whether no other write may join its transaction.
   * @returns its answer, once it is durable.
   * @throws StoreUnavailable; the write has had no effect then.
   */
  write<Answer>(
    carryOut: () => Answer | Promise<Answer>,
    deadline: number,
    isAlone = false,
  ): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const latest = Math.min(performance.now() + this.#times.write, deadline);
    this.#waiting.push({ carryOut, deadline: latest, isAlone, resolve, reject });
    this.#working ??= this.#work();
    return promise as Promise<Answer>;
  }

  /**
   * Resolves at a moment at which everything that is committed is durable.
   * @param deadline on the clock of `performance.now()`.
   * @throws StoreUnavailable after it.
   */
  async durable(deadline: number): Promise<void> {
    while (this.#syncing !== undefined) {
      if (performance.now() >= deadline) throw new StoreUnavailable('a sync takes too long', 'late');
      await within(deadline - performance.now(), this.#syncing);
    }
  }

  /** Waits for the writes in progress. The connection stays open. */
  async close(): Promise<void> {
    await this.#working;
    closeSync(this.#wal);
  }

  async #work(): Promise<void> {
    await nextTurn(); // more may arrive with the first
    while (this.#waiting.length > 0) {
      const group = this.#takeGroup();
      try {
        if (await this.#tryToBegin(group)) await this.#carryOut(group);
      } catch (error) {
        this.#settleFailed(group, error as Error);
      }
      await nextTurn();
    }
    this.#working = undefined;
  }

  #takeGroup(): Write[] {
    const end = this.#waiting.findIndex(({ isAlone }) => isAlone);
    return this.#waiting.splice(0, end === -1 ? Number.POSITIVE_INFINITY : Math.max(end, 1));
  }

  /** @returns whether there is a transaction now. Otherwise the writes that are in time wait again. */
  async #tryToBegin(group: Write[]): Promise<boolean> {
    const inTime = group.filter(({ deadline }) => performance.now() < deadline);
    const late = group.filter((write) => !inTime.includes(write));
    for (const { reject } of late) reject(new StoreUnavailable('other writes took too long', 'late'));
    group.splice(0, group.length, ...inTime);
    if (group.length === 0) return false;
    try {
      this.#begin.run();
      return true;
    } catch (error) {
      if (!isOfKind(error, SQLITE_BUSY)) throw error;
      this.#waiting.unshift(...group);
      await pause(this.#times.busyPause);
      return false;
    }
  }

  async #carryOut(group: readonly Write[]): Promise<void> {
    const answers: unknown[] = [];
    try {
      this.#log.keep();
      for (const { carryOut } of group) answers.push(await carryOut());
      this.#store.assertInPlace();
      this.#reads.hold();
      this.#commit.run();
    } catch (error) {
      this.#reads.release();
      if (this.#db.isTransaction) this.#db.exec('rollback'); // SQLite has already rolled back if the disk is full
      throw error;
    }
    await this.#sync();
    this.#reads.release();
    for (const [position, { resolve }] of group.entries()) resolve(answers[position]);
    for (const onWrite of this.watches) onWrite();
  }

  /** Writes the WAL to disk. Never resolves if that fails. */
  async #sync(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#syncing = promise;
    fdatasync(this.#wal, (error) => (error === null ? resolve() : this.#onSyncFailed(error.message)));
    await promise;
    this.#syncing = undefined;
  }

  /** If something in one of several writes was refused, each is carried out alone. */
  #settleFailed(group: readonly Write[], error: Error): void {
    if (isFailedSync(error)) this.#onSyncFailed(error.message);
    const isRefused = isOfKind(error, SQLITE_CONSTRAINT);
    if (isRefused && group.length > 1) {
      for (const write of group) write.isAlone = true;
      this.#waiting.unshift(...group);
      return;
    }
    for (const { reject } of group) reject(new StoreUnavailable(error, isRefused ? 'refused' : 'failure'));
  }
}
