// Owns: the interface of a store that is served: its books, its search and its log. Every operation on books takes a batch and
// answers in its order.
// A store gets only input that `book.ts` has accepted, so every failure here is a fault of the store.

import type { Counts } from '../counts.ts';
import { type Book, type BookChanges, type BookFields, TEXT_NAMES, type TextName } from './book.ts';
import type { ChangedBook, ServedLog } from './change-log.ts';
import type { Condition } from './condition.ts';
import type { Once } from './once.ts';
import type { Misspelt, Page, Search, Suggestions } from './search.ts';

/**
 * Some of the books, which one server keeps. Only books of one shard are in one batch. The batches in progress are counted for each
 * server, so that one that does not answer delays only its own books.
 */
export interface Shard {
  readonly server: number;
}

/** One book's changes; fields that are absent keep their stored values. */
export interface BookUpdate {
  readonly id: number;
  readonly changes: BookChanges;
}

/** New books that are stored together: all of them or none. */
export interface BookGroup {
  readonly books: readonly BookFields[];
  /** Undefined if each call stores new books. */
  readonly once: Once | undefined;
}

/** The ids of the books in their order; or `conflict`, if the key has been used for another request. */
export type GroupOutcome =
  | {
      readonly ids: readonly number[];
      /** Whether an earlier call stored them. */
      readonly isReplay: boolean;
    }
  | 'conflict';

/** A change or a removal of one book, which takes effect only if the book meets the condition at that moment. */
export interface ConditionalChange {
  readonly id: number;
  readonly condition: Condition;
  /** Undefined to remove the book. */
  readonly changes: BookChanges | undefined;
}

/** The book as the change left it, or as it was before its removal; undefined if no book has the id. */
export type ConditionalOutcome = Book | 'unmet' | undefined;

/** Of a call that its batch has left out, since the books before it are heavy, or took long. It is sent again. */
export type NotAnswered = null;

/**
 * In the order of a batch. An answer that must wait for a lock on its book is a promise, so that it does not delay the others.
 * The first call is never left out.
 */
export type Answers<Answer> = Promise<readonly (Answer | Promise<Answer> | NotAnswered)[]>;

/** Characters of the texts of books that a batch answers, without the last one: in memory they take several times as much. */
export const HEAVY = 1024 * 1024;

/** Characters of text: nothing else makes one book heavier than another. */
export function weightOf(texts: Readonly<Partial<Record<TextName, string | null>>>): number {
  return TEXT_NAMES.reduce((weight, name) => weight + (texts[name]?.length ?? 0), 0);
}

export function weightOfChanged({ before, book }: ChangedBook): number {
  return weightOf(before ?? {}) + weightOf(book ?? {});
}

export function weightOfAnswer(answer: ConditionalOutcome | boolean): number {
  return typeof answer === 'object' ? weightOf(answer) : 0;
}

/**
 * The answers to items one after the other, until their books are heavy together, or it is late; the items after that are left
 * out.
 * @param answer executes one item.
 */
export function untilHeavy<Item, Answer extends ConditionalOutcome | boolean>(
  items: readonly Item[],
  answer: (item: Item) => Answer,
  isLate = () => false,
): (Answer | NotAnswered)[] {
  let weight = 0;
  return items.map((item, position) => {
    if (weight >= HEAVY || (position > 0 && isLate())) return null;
    const answered = answer(item);
    weight += weightOfAnswer(answered);
    return answered;
  });
}

/** Begins a search again that takes long, beside short ones, for as long as its caller waits. One at a time is carried out. */
export type LongSearch<Found> = () => Promise<Found>;

/** Every book of one consistent snapshot, which is held until the list is closed. */
export interface BookList {
  /** JSON text of the books, ascending by id, separated by commas (rule 13). A chunk may end anywhere. */
  readonly chunks: AsyncIterable<string | Uint8Array>;
  /** Releases the snapshot, whether or not the list was read to its end. May be called again. */
  close(): void;
}

/** The store is unreachable, too slow or cannot write (rule 23). The cause is for the log, never for a client. */
export class StoreUnavailable extends Error {
  readonly kind: StoreFault;

  constructor(cause: unknown, kind: StoreFault = 'failure') {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.kind = kind;
  }
}

/**
 * The store failed, did not answer in time, was not called because too many calls waited for it, cannot search before its
 * first index is complete, or refused a batch as a whole for something in it: an operator's constraint or trigger.
 */
export const STORE_FAULTS = ['failure', 'late', 'overload', 'indexing', 'refused'] as const;
export type StoreFault = (typeof STORE_FAULTS)[number];

/**
 * The books of a store, in batches. A method that cannot keep its promise rejects with StoreUnavailable; then it has had no
 * effect, or its effect is unknown. A write that resolves is durable. No work begins after a deadline (on the clock of
 * `performance.now()`): no caller waits for it, and it might undo later changes.
 */
export interface Books {
  /** The shard that the book of this id is in, or would be; undefined if there is only one. The answer may change. */
  shardOf?(id: number): Shard | undefined;

  /** How many books there are, up to a number. */
  countUpTo(most: number): Promise<number>;

  /** The books of these ids, undefined where there is none. Ids may repeat. */
  find(ids: readonly number[], deadline: number): Answers<Book | undefined>;

  /** Stores new books and returns their ids: never used before, at most 2^53−1 (rule 12). */
  insert(books: readonly BookFields[], deadline: number): Promise<readonly number[]>;

  /** Stores groups of new books, each of them in one step with its key. */
  insertGroups(groups: readonly BookGroup[], deadline: number): Promise<readonly GroupOutcome[]>;

  /**
   * Applies changes in the order given, each atomically (rule 9), and returns each book as its own
   * change left it, undefined where there is none.
   */
  update(updates: readonly BookUpdate[], deadline: number): Answers<Book | undefined>;

  /** Removes books and returns for each id whether this very call removed it (rule 11). */
  remove(ids: readonly number[], deadline: number): Answers<boolean>;

  /** Carries out each change in the order given, in one step with the test of its condition (rule E3). */
  changeIf(changes: readonly ConditionalChange[], deadline: number): Answers<ConditionalOutcome>;

  /** Opens a list; resolves once its first chunk is available, so that no answer begins before that. */
  list(): Promise<BookList>;
}

/**
 * Searches the index. It has every write that any process has acknowledged before; if there are too many to be indexed in
 * time, the answer says so.
 * @param most milliseconds after which the search is given up, and a long one is returned.
 */
export type SearchIndex<Wanted, Found> = (
  wanted: Wanted,
  deadline: number,
  most: number,
) => Promise<Found | LongSearch<Found>>;

export interface BookSearch {
  readonly page: SearchIndex<Search, Page>;
  readonly suggestions: SearchIndex<Misspelt, Suggestions>;
}

/** A store that is served. Commands open it as a `BulkStore`, which has the same log. */
export interface Store {
  readonly books: Books;
  /** Undefined with FIND=off. */
  readonly search: BookSearch | undefined;
  readonly log: ServedLog;

  /** Batches of reads, of new books, and reads of the log, in progress at the same time, for each server. Others come one by one. */
  readonly inFlight: number;

  /** Whether it was made when it was opened. */
  readonly isNew: boolean;

  /** What it counts, by the names of metrics. */
  counts(): Readonly<Record<string, Counts>>;

  /** Whether the process cannot exit before it is closed, since a thread may wait for a disk. */
  readonly holdsProcess: boolean;

  /** Waits for work in progress, then closes files and connections. */
  close(): Promise<void>;
}
