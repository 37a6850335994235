// Owns: the connection that reads single books of a SQLite file, on the calling thread: a read costs microseconds. It sees
// what is durable: from before a commit until the sync of the log has ended, it stays at the snapshot of before.

import { DatabaseSync } from 'node:sqlite';
import type { Times } from '../../times.ts';

export class DurableReads {
  readonly db: DatabaseSync;
  readonly #begin;
  readonly #touch;
  readonly #commit;
  #isHeld = false;

  constructor(path: string, { read: timeout }: Times['sqlite']) {
    this.db = new DatabaseSync(path, { readOnly: true, timeout });
    this.#begin = this.db.prepare('begin');
    this.#touch = this.db.prepare('select 1 from books limit 1');
    this.#commit = this.db.prepare('commit');
  }

  /** Reads one state of the books. @throws the error of SQLite. */
  read<Result>(work: () => Result): Result {
    if (this.#isHeld) {
      if (!this.db.isTransaction) throw new Error('the snapshot of what is durable was lost');
      return work();
    }
    this.#begin.run();
    try {
      return work();
    } finally {
      this.#end();
    }
  }

  /** Keeps to what is committed now, until `release`. */
  hold(): void {
    this.#begin.run();
    this.#touch.get(); // a snapshot begins with the first read
    this.#isHeld = true;
  }

  /** May be called again. */
  release(): void {
    this.#isHeld = false;
    this.#end();
  }

  #end(): void {
    if (this.db.isTransaction) this.#commit.run(); // SQLite ends it itself after some errors
  }
}
