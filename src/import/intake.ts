// Owns: what becomes of the books of a file, batch by batch: which are stored, which are there already.

import { Readable } from 'node:stream';
import { type Book, type BookFields, isSameBook } from '../books/book.ts';
import { type ReadBook, type RefusedRecord, shorten } from '../files/rows.ts';
import type { BulkStore } from '../stores/bulk.ts';
import type { Progress } from '../terminal/progress.ts';
import { Duplicates, TakenIds } from './duplicates.ts';

export interface Intake {
  /** Before the first batch. */
  begin(): Promise<void>;
  /** Stores what is new, within a transaction. */
  take(rows: readonly ReadBook[]): Promise<Taken>;
  /** After the last batch: what turns out to be new. */
  rest(): Promise<Rest>;
  close(): void;
}

export interface Taken {
  /** Stored, or would be. */
  readonly stored: readonly BookFields[];
  /** Rows whose ids belong to other books. */
  readonly refused: readonly RefusedRecord[];
}

export interface Rest {
  readonly count: number;
  readonly batches: Iterable<readonly BookFields[]>;
}

const NO_REST: Rest = { count: 0, batches: [] };

export interface Target {
  /** Undefined when there is none, and nothing shall be stored. */
  readonly store: BulkStore | undefined;
  /** Everything is as it would be, but nothing is stored. */
  readonly isDryRun: boolean;
  /** Ends the work between two batches. */
  readonly signal: AbortSignal;
  readonly startProgress: (unit: string, total: number | undefined) => Progress;
}

/** Every row is stored as a new book. */
export class EveryRow implements Intake {
  readonly #target: Target;

  constructor(target: Target) {
    this.#target = target;
  }

  async begin(): Promise<void> {}

  async take(rows: readonly ReadBook[]): Promise<Taken> {
    if (!this.#target.isDryRun) await this.#target.store?.insert(rows);
    return { stored: rows, refused: [] };
  }

  async rest(): Promise<Rest> {
    return NO_REST;
  }

  close(): void {}
}

/** Rows are stored that have no equal in the store nor before them in the file. */
export class NewRows implements Intake {
  readonly #target: Target;
  readonly #duplicates = new Duplicates();

  constructor(target: Target) {
    this.#target = target;
  }

  async begin(): Promise<void> {
    if (this.#target.isDryRun) return; // nothing is stored at once: all rows will be compared in the end
    await this.#withBooksOfStore(async (all) => {
      for await (const books of all) this.#duplicates.note(books);
    });
  }

  async take(rows: readonly ReadBook[]): Promise<Taken> {
    if (this.#target.isDryRun) {
      this.#duplicates.putAside(rows);
      return { stored: [], refused: [] };
    }
    const stored = this.#duplicates.takeNew(rows);
    if (stored.length > 0) await this.#target.store?.insert(stored);
    return { stored, refused: [] };
  }

  async rest(): Promise<Rest> {
    if (this.#duplicates.asideCount === 0) return NO_REST;
    await this.#withBooksOfStore((all) => this.#duplicates.drop(all));
    return { count: this.#duplicates.asideCount, batches: this.#duplicates.left() };
  }

  close(): void {
    this.#duplicates.close();
  }

  async #withBooksOfStore(work: (books: AsyncIterable<readonly Book[]>) => Promise<void>): Promise<void> {
    const { store, signal, startProgress } = this.#target;
    if (store === undefined) {
      await work(Readable.from([]));
      return;
    }
    await store.inSnapshot(async () => {
      const progress = startProgress('books compared', await store.count());
      await work(watched(store.books(), progress, signal));
      progress.end();
    });
  }
}

/** Books keep the ids that they have in the file. An id is of one book: equal ones are there already. */
export class KeptIds implements Intake {
  readonly #store: BulkStore | undefined;
  /** When nothing is stored. */
  readonly #taken: TakenIds | undefined;
  /** Ids up to this one are given to no book that somebody creates meanwhile. */
  #retired = 0;

  constructor({ store, isDryRun }: Target) {
    this.#store = store;
    this.#taken = isDryRun ? new TakenIds() : undefined;
  }

  async begin(): Promise<void> {
    this.#retired = (await this.#store?.lastId()) ?? 0;
  }

  async take(rows: readonly ReadBook[]): Promise<Taken> {
    if (rows.length === 0) return { stored: [], refused: [] };
    const ids = rows.map(({ id }) => id as number);
    const highest = Math.max(...ids);
    let given = this.#retired; // beyond it, the store has no book
    if (this.#taken === undefined && highest > given) {
      given = (await this.#store?.retireIds(highest)) ?? 0; // first of all, so that what is free stays free
      this.#retired = highest;
    }
    const perhapsTaken = ids.filter((id) => id <= given);
    const there = [
      ...((perhapsTaken.length > 0 && (await this.#store?.find(perhapsTaken))) || []),
      ...(this.#taken?.find(ids) ?? []),
    ];
    const { fresh, refused } = judge(rows, there);
    if (this.#taken !== undefined) this.#taken.put(fresh);
    else if (fresh.length > 0) await this.#store?.insertWithIds(fresh);
    return { stored: fresh, refused };
  }

  async rest(): Promise<Rest> {
    return NO_REST;
  }

  close(): void {
    this.#taken?.close();
  }
}

/** @param there books that have ids of these rows. */
function judge(
  rows: readonly ReadBook[],
  there: readonly Book[],
): { fresh: readonly Book[]; refused: readonly RefusedRecord[] } {
  const byId = new Map(there.map((book) => [book.id, book]));
  const fresh: Book[] = [];
  const refused: RefusedRecord[] = [];
  for (const { line, original = '', id = 0, ...fields } of rows) {
    const other = byId.get(id);
    if (other === undefined) {
      const book = { id, ...fields };
      byId.set(id, book);
      fresh.push(book);
    } else if (!isSameBook(other, fields)) {
      const reason = `belongs to another book: "${shorten(other.title)}"`;
      refused.push({ line, column: 'id', value: String(id), reason, original, takesReason: true });
    }
  }
  return { fresh, refused };
}

/** Passes batches on, until the work is to end. */
async function* watched(
  batches: AsyncIterable<readonly Book[]>,
  progress: Progress,
  signal: AbortSignal,
): AsyncGenerator<readonly Book[], void, void> {
  let done = 0;
  for await (const books of batches) {
    yield books;
    done += books.length;
    progress.at(done);
    signal.throwIfAborted();
  }
}
