// Owns: the interface of a store of books. Every operation takes a batch and answers in its order.
// A store gets only input that `book.ts` has accepted, so every failure here is a fault of the store.

import type { Counts } from '../counts.ts';
import { type Book, type BookChanges, type BookFields, TEXT_NAMES, type TextName } from './book.ts';
import type { Condition } from './condition.ts';
import type { IdRange } from './id-ranges.ts';
import type { Page, Search } from './search.ts';

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

/** Lets a group be stored once, however often it is sent (rules I1 to I4). */
export interface Once {
  readonly key: string;
  /** Equal for equal requests only. */
  readonly fingerprint: string;
}

/** The ids of the books in their order; or `conflict`, if the key has been used for another request. */
export type GroupOutcome =
  | {
      readonly ids: readonly number[];
      /** Whether an earlier call stored them. */
      readonly isReplay: boolean;
    }
  | 'conflict';

/**
 * A key is removed when it is older than its lifetime and so many newer ones exist: a clock that is set forward must not let
 * a request that is sent again store its books twice (rule I4).
 */
export const KEPT_KEYS = 10_000;

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
export type LongSearch = () => Promise<Page>;

/** Every book of one consistent snapshot, which is held until the list is closed. */
export interface BookList {
  /** JSON text of the books, ascending by id, separated by commas (rule 13). A chunk may end anywhere. */
  readonly chunks: AsyncIterable<string | Uint8Array>;
  /** Releases the snapshot, whether or not the list was read to its end. May be called again. */
  close(): void;
}

/** A book that has changed. */
export interface Change {
  readonly id: number;
  /** When its latest change was noted: milliseconds since 1970. */
  readonly at: number;
  /** As it is now; undefined if it is gone. */
  readonly book: Book | undefined;
}

/** Each book once. Without any, nothing has changed so far. */
export interface PageOfChanges {
  readonly changes: readonly Change[];
  /** Where the next ones begin: values that JSON has, which mean something to the store only. */
  readonly cursor: readonly unknown[];
}

/** A state of a book. */
export interface State {
  /**
   * The number of the change that led to it; null if that was before the log, or what is kept of it, or if many books were stored
   * together.
   */
  readonly change: number | null;
  /** When that change was noted, or the log begins: milliseconds since 1970. */
  readonly at: number;
  /** Undefined if the book was gone then. */
  readonly book: Book | undefined;
}

/** States of a book. The log knows of none if there never was such a book. */
export interface States {
  readonly states: readonly State[];
  /** The number after whose state older ones follow; undefined if none do. */
  readonly next: number | undefined;
}

/**
 * Which changes are taken back: that of a number, which may be an import or an undo as a whole; those of an import; all since a
 * time, in milliseconds since 1970, without those that an undo has made.
 */
export type UndoRequest =
  | { readonly change: number }
  | { readonly import: number }
  | { readonly since: number };

/** Why nothing was taken back: the log has no such change; or it begins later. */
export type NotUndone = 'unknown' | 'beyond';

/**
 * Changes that are taken back: the parts of an event; the change of one book; or all between a time, in milliseconds since 1970,
 * and a position of the store, without those of undos.
 */
export type Selection =
  | { readonly event: number }
  | { readonly change: number; readonly book: number }
  | { readonly since: number; readonly before?: number };

/** Something that changes many books at once. */
export interface CatalogueEvent {
  /** Numbered like a change. */
  readonly number: number;
  readonly kind: 'import' | 'undo';
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Of an import, its file. */
  readonly name: string | null;
  /** How many books it has changed so far. */
  readonly books: number;
  /** What it is to do and how far it is: values that JSON has. */
  readonly work: unknown;
}

/** What is kept with the key of a request. */
export interface KnownRequest {
  readonly fingerprint: string;
  /** Those of its books, or the number of its event. */
  readonly ids: readonly number[];
}

/** A book with the changes of it since the first one that is taken back. */
export interface PastBook {
  readonly id: number;
  /** In their order, with the book before each: equal texts for equal states; null if there was none. */
  readonly changes: readonly {
    readonly number: number;
    readonly state: string | null;
    readonly isSelected: boolean;
  }[];
  readonly present: string | null;
  /** Bytes of the texts that were looked through. */
  readonly bytes: number;
}

/** A book that becomes what it was before a change. */
export interface Restored {
  readonly id: number;
  readonly change: number;
  /** Whether it was not there then; and whether it is not there now. */
  readonly isRemoved: boolean;
  readonly isNew: boolean;
}

/** Reads the log of changes. */
export interface LogReader {
  known(key: string): Promise<KnownRequest | undefined>;
  select(request: UndoRequest): Promise<Selection | NotUndone>;
  /** The books that the changes are about, in their order, each once. */
  booksOf(selection: Selection): Promise<IdRange[]>;
  event(number: number): Promise<CatalogueEvent | undefined>;
  /** The number of the newest change of a book; undefined if the log has none. */
  newestChange(id: number): Promise<number | undefined>;
  /** The newest events that have changed books, the newest first. */
  events(most: number): Promise<readonly CatalogueEvent[]>;
  /** Looks through the past of the first of these books, at least one. Of a writer, nobody else changes them then. */
  past(ids: readonly number[], selection: Selection): Promise<readonly PastBook[]>;
}

/** Writes to the log and to books in one transaction. The books that it writes between the beginning and the end of an event are a part of it. */
export interface LogWriter extends LogReader {
  /** Waits for other requests with the key. @returns whether this one has it now. */
  claim(once: Once): Promise<boolean>;
  keep(key: string, ids: readonly number[]): Promise<void>;
  /** @returns its number, and the position of the store that all earlier changes are before. */
  begin(
    kind: CatalogueEvent['kind'],
    name: string | null,
  ): Promise<{ readonly number: number; readonly before: number }>;
  /** Continues an event, after others who do. */
  resume(number: number): Promise<CatalogueEvent | undefined>;
  /** @param books that it has changed since it was started or continued. */
  end(number: number, books: number, work?: unknown): Promise<void>;
  restore(books: readonly Restored[]): Promise<void>;
  /** Removes a book, and from the log all that it was. */
  forget(id: number): Promise<void>;
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
 * A store of books. A method that cannot keep its promise rejects with StoreUnavailable; then it has had no effect, or
 * its effect is unknown. A write that resolves is durable. No work begins after a deadline (on the clock of
 * `performance.now()`): no caller waits for it, and it might undo later changes.
 */
export interface BookStore {
  /** Batches of reads, of new books, and reads of the log, in progress at the same time, for each server. Others come one by one. */
  readonly inFlight: number;

  /** Whether it was made when it was opened. */
  readonly isNew: boolean;

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

  /**
   * Finds a page of books. It sees every write that any process has acknowledged before; if there are too many to be indexed
   * in time, the page says so.
   * @param most milliseconds after which the search is given up, and a long one is returned.
   */
  search(search: Search, deadline: number, most: number): Promise<Page | LongSearch>;

  /**
   * The changes after those of a page, of any program (rules H1 and H2): no more books than `most`, and none after heavy ones.
   * @param cursor of that page; undefined to begin with all books.
   * @returns `gone` if the log does not have all that follows, or the cursor is another store's.
   */
  changes(cursor: unknown, most: number, deadline: number): Promise<PageOfChanges | 'gone'>;

  /**
   * Looks for changes of any program, until the returned function is called.
   * @param onChange called after each change, and perhaps without one.
   */
  watch(onChange: () => void): () => void;

  /**
   * States of a book, the newest first (rule H4): no more than `most`, and none after heavy ones.
   * @param before the number of a change: the states before it. Undefined to begin with the present one.
   */
  states(id: number, before: number | undefined, most: number, deadline: number): Promise<States>;

  /** Reads the log, without holding up those who write. */
  readLog<Result>(read: (log: LogReader) => Promise<Result>, deadline: number): Promise<Result>;

  /** Writes in one transaction, which happens as a whole or not at all. @param write may be called again. */
  writeLog<Result>(write: (log: LogWriter) => Promise<Result>, deadline: number): Promise<Result>;

  /** Opens a list; resolves once its first chunk is available, so that no answer begins before that. */
  list(): Promise<BookList>;

  /** What it counts, by the names of metrics. */
  counts(): Readonly<Record<string, Counts>>;

  /** Whether the process cannot exit before it is closed, since a thread may wait for a disk. */
  readonly holdsProcess: boolean;

  /** Waits for work in progress, then closes files and connections. */
  close(): Promise<void>;
}
