// Owns: the connection that reads single books of a SQLite file, on the calling thread: a read costs microseconds. It sees
// what is durable: from before a commit until the sync of the WAL has ended, it stays at the snapshot of before. If another
// process commits meanwhile, it moves on, since that process may answer at once (rule 28). And other connections that keep a snapshot.

import { DatabaseSync } from 'node:sqlite';
import { StoreUnavailable } from '../../books/store.ts';
import type { Times } from '../../times.ts';
import { OpenFile } from './file.ts';

export class DurableReads {
  readonly db: DatabaseSync;
  readonly file: OpenFile;
  readonly #timeout: number;
  readonly #begin;
  readonly #touch;
  readonly #commit;
  readonly #readVersion;
  readonly #syncing: Int32Array;
  #isHeld = false;
  /** Of the file at the commit; it changes with each commit of another connection. */
  #version: unknown;

  /**
   * @param writing the connection whose commits are held back.
   * @param syncing of `ThreadData`.
   */
  constructor(path: string, writing: DatabaseSync, syncing: Int32Array, { read: timeout }: Times['sqlite']) {
    this.file = new OpenFile(path);
    this.#timeout = timeout;
    this.db = new DatabaseSync(path, { readOnly: true, timeout });
    this.#begin = this.db.prepare('begin');
    this.#touch = this.db.prepare('select 1 from books limit 1');
    this.#commit = this.db.prepare('commit');
    this.#readVersion = writing.prepare('pragma data_version');
    this.#syncing = syncing;
  }

  /** Reads one state of the books. @throws StoreUnavailable */
  read<Result>(work: (db: DatabaseSync) => Result): Result {
    try {
      if (this.#isHeld && this.version !== this.#version) this.release();
      if (!this.#isHeld) this.#begin.run();
      else if (!this.db.isTransaction) throw new Error('the snapshot of what is durable was lost');
      return work(this.db);
    } catch (error) {
      throw new StoreUnavailable(error);
    } finally {
      if (!this.#isHeld) this.#end();
    }
  }

  /** What is committed at this moment, on a connection that the caller closes. @throws StoreUnavailable */
  snapshot(): DatabaseSync {
    try {
      this.file.assertInPlace(); // else its books would be those of another file
      const db = new DatabaseSync(this.file.path, { readOnly: true, timeout: this.#timeout });
      db.exec('begin');
      return db;
    } catch (error) {
      throw new StoreUnavailable(error);
    }
  }

  /** Of the file: another one after each commit of a connection other than the writing one. */
  get version(): unknown {
    return this.#readVersion.get()?.data_version;
  }

  /** Keeps to what is committed now, until `release`. To be called before a commit, in its transaction. */
  hold(): void {
    this.#begin.run();
    this.#touch.get(); // a snapshot begins with the first read
    this.#version = this.version;
    Atomics.store(this.#syncing, 0, 1);
    this.#isHeld = true;
  }

  /** May be called again. */
  release(): void {
    this.#isHeld = false;
    Atomics.store(this.#syncing, 0, 0);
    Atomics.notify(this.#syncing, 0);
    this.#end();
  }

  #end(): void {
    if (this.db.isTransaction) this.#commit.run(); // SQLite ends it itself after some errors
  }
}
