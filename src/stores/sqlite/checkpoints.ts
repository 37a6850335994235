// Owns: moving the write-ahead log (WAL) into the file (checkpoints), in a separate thread, so that no request waits for that. No
// other connection of the service moves it.

import { DatabaseSync } from 'node:sqlite';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import type { Times } from '../../times.ts';
import { isFailedSync } from './faults.ts';
import type { ThreadData } from './thread.ts';
import { LONG_WAL, WAL_SIZE } from './wal.ts';

/** A WAL with so many pages is moved: 16 MiB. With 4 MiB, a creation takes a fifth more processor time. */
const LONG_ENOUGH = 4096;

/** Up to this many pages may be moved while writers wait: 1 MiB. Of a WAL beyond LONG_WAL, any number may. */
const FEW = 256;
const TOO_LONG = LONG_WAL / 4096;

interface Progress {
  /** 1 if readers or writers have kept the checkpoint from its end. */
  readonly busy: 0 | 1;
  /** Pages in the WAL, and those of them that are moved. */
  readonly log: number;
  readonly checkpointed: number;
}

class Checkpoints {
  readonly #db: DatabaseSync;
  readonly #times: Times['sqlite'];
  readonly #syncing: Int32Array;
  /** Called if readers keep the WAL from starting over. */
  readonly #onKept: () => void;
  /** No attempt before this moment, on the clock of `performance.now()`. */
  #pausedUntil = 0;

  constructor({ path, times: { sqlite: times }, syncing }: ThreadData, onKept: () => void) {
    this.#db = new DatabaseSync(path, { timeout: times.walRestart });
    this.#db.exec(`pragma synchronous = normal; pragma journal_size_limit = ${WAL_SIZE}`);
    this.#times = times;
    this.#syncing = syncing;
    this.#onKept = onKept;
  }

  /**
   * Moves the WAL if it is long, and lets it start over.
   * @throws the error of a sync that has failed.
   */
  look(): void {
    if (performance.now() < this.#pausedUntil) return;
    try {
      if (this.#checkpoint('noop').log < LONG_ENOUGH) return;
      const { log, checkpointed } = this.#checkpoint('passive'); // beside readers and writers
      if (log - checkpointed <= FEW || log > TOO_LONG) this.#restart();
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('rollback');
      if (isFailedSync(error)) throw error;
      this.#pause(); // the disk is full, or another process moves the WAL
    }
  }

  /** @throws the error of a sync that has failed. */
  close(): void {
    try {
      this.#checkpoint('truncate');
    } catch (error) {
      if (isFailedSync(error)) throw error;
      // otherwise the WAL stays, with all that is acknowledged
    }
    this.#db.close();
  }

  /** Writers wait until nobody reads the WAL, but not for long. */
  #restart(): void {
    if (this.#checkpoint('restart').busy === 1) {
      this.#onKept();
      this.#pause();
      return;
    }
    // SQLite syncs the first page of a WAL at once. An empty transaction writes that page, so that no request waits for the sync.
    this.#db.exec('begin immediate');
    const { user_version: version } = this.#db.prepare('pragma user_version').get() ?? {};
    if (Atomics.load(this.#syncing, 0) === 1) this.#db.exec('rollback');
    else this.#db.exec(`pragma user_version = ${version}; commit`);
  }

  #pause(): void {
    this.#pausedUntil = performance.now() + this.#times.walPause;
  }

  #checkpoint(mode: 'noop' | 'passive' | 'restart' | 'truncate'): Progress {
    return this.#db.prepare(`pragma wal_checkpoint(${mode})`).get() as unknown as Progress;
  }
}

/** A failed sync ends the thread: it would move pages that the disk may not have. */
function serve(port: MessagePort, data: ThreadData): void {
  const checkpoints = new Checkpoints(data, () => port.postMessage('kept'));
  const timer = setInterval(() => checkpoints.look(), data.times.sqlite.walLook);
  port.on('message', () => {
    clearInterval(timer);
    checkpoints.close();
    port.close();
  });
  port.postMessage('ready');
}

if (parentPort !== null) serve(parentPort, workerData as ThreadData);
