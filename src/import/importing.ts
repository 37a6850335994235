// Owns: the way of a file's books into a store, group by group. Knows how far it came, whatever ended it.

import { type BookFields, FIELD_NAMES } from '../books/book.ts';
import type { Reading } from '../files/reading.ts';
import type { ReadBatch, ReadBook, RefusedRecord } from '../files/rows.ts';
import type { StoredBooks } from '../stores/bulk.ts';
import type { Progress } from '../terminal/progress.ts';
import type { ImportMode } from './modes.ts';

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

  add({ count, lacking }: StoredBooks): void {
    this.books += count;
    for (const name of FIELD_NAMES) this.lacking[name] += lacking[name];
  }

  /** A copy to go on with. */
  copy(): Tally {
    return Object.assign(new Tally(), this, { lacking: { ...this.lacking } });
  }
}

export interface Outcome {
  readonly tally: Tally;
  /** Why the file could not be read to its end. What comes before that is done. */
  readonly inputError: unknown;
  /** Why not all is done that was read. */
  readonly failure: unknown;
}

/** Takes refused records, and how to print a line; resolves when it can take more. */
export type Refuse = (records: readonly RefusedRecord[], print: (line: string) => void) => Promise<void>;

/** One import, from the first row to the last. */
export class Import {
  readonly #batches: AsyncIterator<ReadBatch>;
  readonly #mode: ImportMode;
  readonly #signal: AbortSignal;
  readonly #refuse: Refuse;
  #done = new Tally();
  #inputError: unknown;
  /** The batch that is read while the one before it is stored. */
  #next: Promise<ReadBatch | undefined>;
  /** Whose ids belong to other books: refused by the mode, not yet by this import. */
  #withTakenId: RefusedRecord[] = [];

  /** @param signal ends the work where nothing is half done. */
  constructor(reading: Reading, mode: ImportMode, refuse: Refuse, signal: AbortSignal) {
    this.#batches = reading.batches[Symbol.asyncIterator]();
    this.#mode = mode;
    this.#refuse = refuse;
    this.#signal = signal;
    this.#next = this.#read();
  }

  async run(progress: Progress): Promise<Outcome> {
    let failure: unknown;
    try {
      while ((await this.#next) !== undefined) await this.#storeGroup(progress);
      this.#signal.throwIfAborted();
    } catch (error) {
      failure = error;
    }
    progress.end();
    return { tally: this.#done, inputError: this.#inputError, failure };
  }

  async #storeGroup(progress: Progress): Promise<void> {
    const tally = this.#done.copy();
    const group = this.#group(tally, progress);
    for await (const stored of this.#mode.take(group, (records) => this.#withTakenId.push(...records))) {
      tally.add(stored);
      this.#done = tally;
      this.#signal.throwIfAborted();
    }
    this.#done = tally;
  }

  /** @yields the books of the next batches; each is stored, or put aside to be, when the next one is asked for. */
  async *#group(tally: Tally, progress: Progress): AsyncGenerator<readonly ReadBook[], void, void> {
    for (let size = 1; ; size += 1) {
      const batch = await this.#next;
      this.#signal.throwIfAborted();
      if (batch === undefined) return;
      this.#next = this.#read();
      if (batch.books.length > 0) yield batch.books;
      await this.#note(batch, tally, progress);
      if (size === this.#mode.groupSize || !(await isAtHand(this.#next, this.#mode.patience))) return;
    }
  }

  async #note({ books, refused, position }: ReadBatch, tally: Tally, progress: Progress): Promise<void> {
    const withTakenId = this.#withTakenId;
    this.#withTakenId = [];
    const refusals = [...refused, ...withTakenId].sort((one, other) => one.line - other.line);
    tally.read += books.length + refused.length;
    tally.refused += refusals.length;
    tally.withTakenId += withTakenId.length;
    tally.line = books.at(-1)?.line ?? tally.line;
    await this.#refuse(refusals, (text) => progress.line(text));
    progress.at(position, tally.read);
  }

  /** @returns undefined at the end of the file, and where it cannot be read any further. */
  async #read(): Promise<ReadBatch | undefined> {
    try {
      return (await this.#batches.next()).value;
    } catch (error) {
      this.#inputError = error;
      return undefined;
    }
  }
}

/** @param patience milliseconds. */
async function isAtHand(next: Promise<unknown>, patience: number): Promise<boolean> {
  if (patience === Number.POSITIVE_INFINITY) return true;
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(resolve, patience, false);
  next.then(() => {
    clearTimeout(timer);
    resolve(true);
  });
  return promise;
}
