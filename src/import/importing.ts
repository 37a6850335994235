// Owns: the way of a file's books into a store, in small batches, of which many become durable together: small ones for
// the sake of memory, whose garbage is then collected before it spreads; together for the sake of the disk. Tells how
// far it came, whatever ended it.

import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
import { type BookFields, FIELD_NAMES } from '../books/book.ts';
import type { Reading } from '../files/reading.ts';
import type { ReadBatch, RefusedRecord } from '../files/rows.ts';
import type { Progress } from '../terminal/progress.ts';
import type { Intake, Target } from './intake.ts';

/** Batches of one transaction. */
const GROUP_BATCHES = 40;

/** Milliseconds to wait for more of the file with a transaction open, in which nobody else may be able to write. */
const PATIENCE = 20;

/** How far it is. What is stored is durable, or would be. */
export class Tally {
  read = 0;
  /** Of the records that were read. */
  refused = 0;
  /** The line of the last book. */
  line = 0;
  books = 0;
  /** Books that lack a field, by its name. */
  lacking = Object.fromEntries(FIELD_NAMES.map((name) => [name, 0])) as Record<keyof BookFields, number>;
  /** Of the refused ones, those whose ids belong to other books. */
  withTakenId = 0;

  store(books: readonly BookFields[]): void {
    this.books += books.length;
    for (const book of books) {
      for (const name of FIELD_NAMES) if (!book[name]) this.lacking[name] += 1;
    }
  }

  /** A copy to go on with. */
  copy(): Tally {
    return Object.assign(new Tally(), this, { lacking: { ...this.lacking } });
  }
}

export interface Outcome {
  readonly tally: Tally;
  /** Why the file could not be read to its end. What comes before that is done. */
  readonly fault: unknown;
  /** Why not all is done that was read. */
  readonly failure: unknown;
}

/** Takes refused records, and how to print a line; resolves when it can take more. */
export type Refuse = (records: readonly RefusedRecord[], print: (line: string) => void) => Promise<void>;

/** One import, from the first row to the last. */
export class Import {
  readonly #reading: Reading;
  readonly #intake: Intake;
  readonly #target: Target;
  readonly #refuse: Refuse;
  #done = new Tally();
  #fault: unknown;

  constructor(reading: Reading, intake: Intake, target: Target, refuse: Refuse) {
    this.#reading = reading;
    this.#intake = intake;
    this.#target = target;
    this.#refuse = refuse;
  }

  /** @param size bytes of the file, if known. */
  async run(size: number | undefined): Promise<Outcome> {
    let failure: unknown;
    try {
      await this.#intake.begin();
      await this.#read(size);
      await this.#storeRest();
    } catch (error) {
      failure = error;
    }
    return { tally: this.#done, fault: this.#fault, failure };
  }

  async #read(size: number | undefined): Promise<void> {
    const progress = this.#target.startProgress('rows', size);
    const batches = this.#reading.batches[Symbol.asyncIterator]();
    let next = this.#next(batches);
    try {
      for (let batch = await next; batch !== undefined; ) {
        await this.#together(async (tally) => {
          for (let count = 1; batch !== undefined; count += 1) {
            const taking = this.#take(batch, tally, progress);
            next = this.#next(batches);
            await taking;
            if (count === GROUP_BATCHES || this.#target.signal.aborted || !(await isAtHand(next))) break;
            batch = await next;
          }
        });
        batch = await next;
      }
    } finally {
      progress.end();
    }
  }

  /** @returns undefined at the end of the file, and where it cannot be read any further. */
  async #next(batches: AsyncIterator<ReadBatch>): Promise<ReadBatch | undefined> {
    try {
      return (await batches.next()).value;
    } catch (error) {
      this.#fault = error;
      return undefined;
    }
  }

  async #take(batch: ReadBatch, tally: Tally, progress: Progress): Promise<void> {
    const { books, refused, position } = batch;
    const taken = await this.#intake.take(books);
    tally.store(taken.stored);
    const refusals = [...refused, ...taken.refused].sort((one, other) => one.line - other.line);
    tally.read += books.length + refused.length;
    tally.refused += refusals.length;
    tally.withTakenId += taken.refused.length;
    tally.line = books.at(-1)?.line ?? tally.line;
    await this.#refuse(refusals, (text) => progress.line(text));
    progress.at(position, tally.read);
  }

  async #storeRest(): Promise<void> {
    const { store, isDryRun, startProgress } = this.#target;
    const { count, batches } = await this.#intake.rest();
    const progress = startProgress('books stored', count);
    try {
      let stored = 0;
      for (const books of batches) {
        await this.#together(async (tally) => {
          if (!isDryRun) await store?.insert(books);
          tally.store(books);
        });
        stored += books.length;
        progress.at(stored);
        await turn();
      }
    } finally {
      progress.end();
    }
  }

  /** What work counts becomes true when all of it is durable. */
  async #together(work: (tally: Tally) => Promise<void>): Promise<void> {
    const { store, isDryRun, signal } = this.#target;
    const tally = this.#done.copy();
    if (store === undefined || isDryRun) await work(tally);
    else await store.inTransaction(() => work(tally));
    this.#done = tally;
    signal.throwIfAborted();
  }
}

async function isAtHand(next: Promise<unknown>): Promise<boolean> {
  return Promise.race([next.then(() => true), pause(PATIENCE, false, { ref: false })]);
}
