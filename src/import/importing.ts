// Owns: storing the books of a file, group by group, and the counts of an import, however it ends.

import { type BookFields, FIELD_NAMES } from '../books/book.ts';
import type { ReadBatch, ReadBook, Reading, RefusedRecord } from '../files/format.ts';
import { type StoredBooks, UnknownOutcome } from '../stores/bulk.ts';
import type { Times } from '../times.ts';
import type { ImportMode } from './modes.ts';

/** A later year is probably a date in digits, such as 20080914. */
const LAST_LIKELY_YEAR = 2100;

/** Bytes of a piece: it is read while the rows of the piece before it are stored. */
const PIECE_BYTES = 1024 * 1024;

/** The progress of an import. The books that it counts are durable; in a dry run, they would be. */
export class Tally {
  read = 0;
  /** How many of the records that were read are rejected. */
  refused = 0;
  /** The `line` of the last book. */
  line = 0;
  books = 0;
  /** Books of rows that end before a column that is used. */
  short = 0;
  /** Books of a year after `LAST_LIKELY_YEAR`. */
  ofTheFuture = 0;
  /** Books with a date on 31 December in UTC that is 1 January elsewhere, so that the year is the new one. */
  newYears = 0;
  /** How many books lack a field, by the name of the field. */
  lacking = Object.fromEntries(FIELD_NAMES.map((name) => [name, 0])) as Record<keyof BookFields, number>;
  /** Rejected records whose ids belong to other books. */
  withTakenId = 0;

  add({ count, lacking }: StoredBooks): void {
    this.books += count;
    for (const name of FIELD_NAMES) this.lacking[name] += lacking[name];
  }

  copy(): Tally {
    return Object.assign(new Tally(), this, { lacking: { ...this.lacking } });
  }
}

export interface Outcome {
  readonly tally: Tally;
  /** Why the file could not be read to its end. All rows before that point are stored. */
  readonly inputError: unknown;
  /** Why rows that were read are not stored. After an UnknownOutcome, the rows of the last group may be stored. */
  readonly failure: unknown;
  /** The line of the last book of that group. */
  readonly begunLine: number;
}

export interface BatchReport {
  /**
   * Reports rejected records, ascending by line, and the bytes and rows that were read. Resolves when the next report may follow, or
   * the process must end.
   */
  note(refused: readonly RefusedRecord[], position: number, rows: number): Promise<void>;
}

export interface ImportParts {
  readonly reading: Reading;
  readonly mode: ImportMode;
  readonly report: BatchReport;
  /** Ends the work at a point where nothing is half done. */
  readonly signal: AbortSignal;
  readonly times: Pick<Times['import'], 'confirmPause'>;
  /** @throws Error if stored books may be lost, since another host takes the writes by now. */
  assertNewest(): Promise<void>;
}

/** One import, from the first row to the last. */
export class Import {
  readonly #parts: ImportParts;
  readonly #batches: AsyncIterator<ReadBatch>;
  /** The stored rows. */
  #done = new Tally();
  /** The stored rows that stay. */
  #confirmed = this.#done;
  /** When that was asked last. */
  #confirmedAt = performance.now();
  /** The stored rows and those of the group in progress. */
  #begun = this.#done;
  #inputError: unknown;
  /** Batches that are read and not stored yet. */
  #ready: ReadBatch[] = [];
  /** The piece that is read while the one before it is stored. */
  #next: Promise<ReadBatch[]>;
  #position = 0;
  /** Rejected records that are not reported yet. */
  #refused: RefusedRecord[] = [];

  constructor(parts: ImportParts) {
    this.#parts = parts;
    this.#batches = parts.reading.batches[Symbol.asyncIterator]();
    this.#next = this.#readPiece();
  }

  async run(): Promise<Outcome> {
    let failure: unknown;
    try {
      while (await this.#hasMore()) {
        await this.#storeGroup();
        if (performance.now() > this.#confirmedAt + this.#parts.times.confirmPause) await this.#confirm();
      }
      this.#parts.signal.throwIfAborted();
    } catch (error) {
      failure = error;
    }
    try {
      await this.#confirm();
    } catch (error) {
      failure = new UnknownOutcome((error as Error).message);
    }
    return { tally: this.#confirmed, inputError: this.#inputError, failure, begunLine: this.#begun.line };
  }

  async #confirm(): Promise<void> {
    await this.#parts.assertNewest();
    this.#confirmed = this.#done;
    this.#confirmedAt = performance.now();
  }

  /** Whether there are rows that are not stored yet. Reads a piece of the file if needed. */
  async #hasMore(): Promise<boolean> {
    if (this.#ready.length === 0) {
      this.#ready = await this.#next;
      this.#next = this.#readPiece();
    }
    this.#parts.signal.throwIfAborted();
    return this.#ready.length > 0;
  }

  async #storeGroup(): Promise<void> {
    const tally = this.#done.copy();
    this.#begun = tally;
    const refuse = (records: readonly RefusedRecord[]) => {
      this.#refused.push(...records);
      tally.refused += records.length;
      tally.withTakenId += records.length;
    };
    try {
      for await (const stored of this.#parts.mode.take(this.#group(tally), refuse)) {
        tally.add(stored);
        this.#done = tally;
        this.#parts.signal.throwIfAborted();
      }
      this.#done = tally;
    } finally {
      await this.#note(tally); // no transaction is open, which would delay other writers
    }
  }

  /** @yields the books of the next batches. A batch is stored, or set aside to be stored, when the next one is requested. */
  async *#group(tally: Tally): AsyncGenerator<readonly ReadBook[], void, void> {
    const { pieces, time } = this.#parts.mode;
    const end = performance.now() + time;
    for (let piece = 1; await this.#hasMore(); piece += 1) {
      for (let batch = this.#ready.shift(); batch !== undefined; batch = this.#ready.shift()) {
        if (batch.books.length > 0) yield batch.books;
        this.#count(batch, tally);
        if (performance.now() > end) return;
      }
      if (piece === pieces) return;
      await this.#note(tally);
    }
  }

  #count({ books, refused, position }: ReadBatch, tally: Tally): void {
    this.#refused.push(...refused);
    this.#position = position;
    tally.read += books.length + refused.length;
    tally.refused += refused.length;
    tally.short += books.filter(({ isShort }) => isShort).length;
    tally.ofTheFuture += books.filter(({ year }) => year > LAST_LIKELY_YEAR).length;
    tally.newYears += books.filter(({ isNewYear }) => isNewYear).length;
    tally.line = books.at(-1)?.line ?? tally.line;
  }

  async #note({ read }: Tally): Promise<void> {
    const refused = this.#refused.sort((one, other) => one.line - other.line);
    this.#refused = [];
    await this.#parts.report.note(refused, this.#position, read);
  }

  /** @returns the next batches; none at the end of the file, or where it cannot be read further. */
  async #readPiece(): Promise<ReadBatch[]> {
    const piece: ReadBatch[] = [];
    try {
      for (let read = 0; read < PIECE_BYTES; ) {
        const { value: batch } = await this.#batches.next();
        if (batch === undefined) break;
        piece.push(batch);
        read = batch.position - (piece[0] as ReadBatch).position;
      }
    } catch (error) {
      this.#inputError = error;
    }
    return piece;
  }
}
