// Owns: the transactions of a served SQLite file: reads of what is durable, snapshots on separate connections, and writes.

import { DatabaseSync } from 'node:sqlite';
import { StoreUnavailable } from '../../books/store.ts';
import type { Times } from '../../times.ts';
import type { DurableReads } from './durable-reads.ts';
import { OpenFile } from './file.ts';
import type { GroupCommit } from './group-commit.ts';
import type { BookLog } from './log.ts';

export class Transactions {
  readonly #file: OpenFile;
  readonly #reads: DurableReads;
  readonly #commits: GroupCommit;
  readonly #log: BookLog;
  readonly #times: Times['sqlite'];
  /** Called after each write of this process. */
  readonly watches = new Set<() => void>();

  constructor(path: string, reads: DurableReads, commits: GroupCommit, log: BookLog, times: Times['sqlite']) {
    this.#file = new OpenFile(path);
    this.#reads = reads;
    this.#commits = commits;
    this.#log = log;
    this.#times = times;
  }

  /** @throws StoreUnavailable */
  read<Answer>(read: (db: DatabaseSync) => Answer): Answer {
    try {
      return this.#reads.read(() => read(this.#reads.db));
    } catch (error) {
      throw new StoreUnavailable(error);
    }
  }

  /** What is committed at this moment, on a connection that the caller closes. @throws StoreUnavailable */
  snapshot(): DatabaseSync {
    try {
      this.assertInPlace(); // else its books would be those of another file
      const db = new DatabaseSync(this.#file.path, { readOnly: true, timeout: this.#times.read });
      db.exec('begin');
      return db;
    } catch (error) {
      throw new StoreUnavailable(error);
    }
  }

  /** The parameters are those of `GroupCommit`. */
  async write<Answer>(
    carryOut: () => Answer | Promise<Answer>,
    deadline: number,
    isAlone?: boolean,
  ): Promise<Answer> {
    const latest = Math.min(performance.now() + this.#times.write, deadline);
    const write = () => {
      this.#log.keep();
      return carryOut();
    };
    const answer = await this.#commits.write(write, latest, isAlone);
    for (const onWrite of this.watches) onWrite();
    return answer;
  }

  /** Resolves when everything that is committed is durable. @throws StoreUnavailable */
  durable(deadline: number): Promise<void> {
    return this.#commits.durable(deadline);
  }

  /** @throws Error with what happened to the file. */
  assertInPlace(): void {
    this.#file.assertInPlace();
  }

  /** Differs after a commit of another process. */
  get version(): unknown {
    return this.#reads.version;
  }
}
