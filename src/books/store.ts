// Owns: what a store of books promises. Every operation takes a batch and answers in its order.
// A store gets only what `book.ts` let through, so whatever fails here is the store's own fault.

import type { Metric } from '../metrics/prometheus.ts';
import type { Book, BookChanges, BookFields } from './book.ts';

/** How a store takes its batches. */
export interface BatchLimits {
  /** Items of one batch. */
  readonly size: number;
  /** What the items of one batch weigh together, the last one not counted. */
  readonly weight: number;
  /** Batches under way at once. */
  readonly inFlight: number;
}

/** One book's changes; fields that are absent keep their stored values. */
export interface BookUpdate {
  readonly id: number;
  readonly changes: BookChanges;
}

/**
 * An answer, or the promise of one that has to wait for a lock somebody else holds on its book,
 * so that it holds up none of its neighbours in the batch.
 */
export type Eventual<Answer> = Answer | Promise<Answer>;

/** Every book of one consistent snapshot, which is held until the list is closed. */
export interface BookList {
  /** JSON text of the books, ascending by id, a comma between two (rule 13). Chunks end anywhere. */
  readonly chunks: AsyncIterable<string | Uint8Array>;
  /** Gives the snapshot up, read to its end or not. May be called again. */
  close(): void;
}

/** The store is away, too slow or cannot write (rule 23). The cause is for the log, never for a client. */
export class StoreUnavailable extends Error {
  readonly kind: StoreFault;

  constructor(cause: unknown, kind: StoreFault = 'failure') {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.kind = kind;
  }
}

/** It failed, gave no answer in time, or was not asked since too much waited for it. */
export type StoreFault = 'failure' | 'late' | 'overload';

/**
 * A store of books. Every method rejects with StoreUnavailable when it cannot keep its promise, and
 * then it has either done nothing or nobody can tell; a write that resolves is durable. Nothing is begun after a
 * deadline, given on the clock of `performance.now()`: nobody waits for it, and it might undo what came later.
 */
export interface BookStore {
  /** Of each kind of batch; texts weigh a unit a character. */
  readonly limits: Readonly<Record<'find' | 'insert' | 'update' | 'remove', BatchLimits>>;

  /** The books of these ids, undefined where there is none. Ids may repeat. */
  find(ids: readonly number[], deadline: number): Promise<readonly (Book | undefined)[]>;

  /** Stores new books and returns their ids: never used before, at most 2^53−1 (rule 12). */
  insert(books: readonly BookFields[], deadline: number): Promise<readonly number[]>;

  /**
   * Applies changes in the order given, each atomically (rule 9), and returns each book as its own
   * change left it, undefined where there is none.
   */
  update(updates: readonly BookUpdate[], deadline: number): Promise<readonly Eventual<Book | undefined>[]>;

  /** Removes books and tells of each id whether this very call removed it (rule 11). */
  remove(ids: readonly number[], deadline: number): Promise<readonly Eventual<boolean>[]>;

  /** Opens a list; resolves once its first chunk is at hand, so that nothing is sent in vain. */
  list(): Promise<BookList>;

  /** What is to be seen of it at this moment, beside the batches it is given. */
  metrics(): Metric[];

  /** Waits for what is under way, then lets go of files and connections. */
  close(): Promise<void>;
}
