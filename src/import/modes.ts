// Owns: which rows of a file are stored: all of them, only new ones, or each with its id.

import { type Book, type BookFields, isSameBook, LAST_SEQUENTIAL_ID } from '../books/book.ts';
import { type ReadBook, type RefusedRecord, shorten } from '../files/rows.ts';
import { type BulkStore, countBooks, type StoredBooks } from '../stores/bulk.ts';
import { TIMES } from '../times.ts';

/** Rows that are stored together, batch by batch. */
export type Group = AsyncIterable<readonly ReadBook[]>;

export interface ImportMode {
  /** Batches of a group. */
  readonly groupSize: number;
  /** Milliseconds to wait for more of the file, and for the reader of the messages, before a smaller group is stored. */
  readonly patience: number;
  /**
   * Stores those rows of a group that this mode selects.
   * @param refuse takes rows whose ids belong to other books, before the next batch of the group is requested.
   * @yields the books that are durable; in a dry run, those that would be.
   */
  take(group: Group, refuse: (records: readonly RefusedRecord[]) => void): AsyncIterable<StoredBooks>;
}

export interface Target {
  readonly store: BulkStore;
  /** In a dry run: a store, empty at first, for the rows that would be stored. */
  readonly scratch: BulkStore | undefined;
}

/** Batches of one transaction. Until it ends, it may block other writers. */
const TRANSACTION_SIZE = 40;

/** Batches of one comparison with all books. A larger one needs more temporary space. */
const COMPARISON_SIZE = 8000;

/** Stores every row as a new book. */
export class AddAll implements ImportMode {
  readonly groupSize = TRANSACTION_SIZE;
  readonly patience = TIMES.import.transaction;
  readonly #sink: BulkStore;

  constructor({ store, scratch }: Target) {
    this.#sink = scratch ?? store;
  }

  async *take(group: Group): AsyncGenerator<StoredBooks, void, void> {
    yield* await storeEach(this.#sink, group, async (rows) => {
      await this.#sink.insert(rows);
      return rows;
    });
  }
}

/** Stores the rows that equal neither a book of the store nor an earlier row of the file. */
export class SkipExisting implements ImportMode {
  readonly groupSize: number;
  readonly patience: number;
  readonly #target: Target;

  constructor(target: Target) {
    this.#target = target;
    // A dry run has one group: its rows are not stored, so later groups could not be compared with them.
    const isDryRun = target.scratch !== undefined;
    this.groupSize = isDryRun ? Number.POSITIVE_INFINITY : COMPARISON_SIZE;
    this.patience = isDryRun ? Number.POSITIVE_INFINITY : TIMES.import.comparison;
  }

  async *take(group: Group): AsyncGenerator<StoredBooks, void, void> {
    const { store, scratch } = this.#target;
    if (scratch === undefined) yield* store.insertNew(group);
    else yield await store.countNew(group);
  }
}

/** Stores books with the ids of the file. A row is skipped if the book with its id equals it, and rejected if not. */
export class KeepIds implements ImportMode {
  readonly groupSize = TRANSACTION_SIZE;
  readonly patience = TIMES.import.transaction;
  readonly #store: BulkStore;
  readonly #scratch: BulkStore | undefined;
  /** Books that are created in the meantime get no ids up to this one. Undefined before the first group. */
  #reservedThrough: number | undefined;

  constructor({ store, scratch }: Target) {
    this.#store = store;
    this.#scratch = scratch;
  }

  async *take(
    group: Group,
    refuse: (records: readonly RefusedRecord[]) => void,
  ): AsyncGenerator<StoredBooks, void, void> {
    const sink = this.#scratch ?? this.#store;
    yield* await storeEach(sink, group, async (rows) => {
      const { fresh, refused } = judge(rows, await this.#findThere(rows));
      await sink.insertWithIds(fresh);
      refuse(refused);
      return fresh;
    });
  }

  /** @returns the books that have ids of these rows; from now on, no other book gets one of them. */
  async #findThere(rows: readonly ReadBook[]): Promise<readonly Book[]> {
    const ids = rows.map(({ id }) => id as number);
    this.#reservedThrough ??= await this.#store.lastId();
    let given = this.#reservedThrough; // the store has no sequential book beyond it
    const highest = Math.max(0, ...ids.filter(isSequential));
    if (this.#scratch === undefined && highest > given) {
      given = await this.#store.reserveIdsThrough(highest); // before the search, so that free ids stay free
      this.#reservedThrough = highest;
    }
    const perhapsTaken = ids.filter((id) => id <= given || !isSequential(id));
    const stored = perhapsTaken.length > 0 ? await this.#store.find(perhapsTaken) : [];
    return this.#scratch === undefined ? stored : [...stored, ...(await this.#scratch.find(ids))];
  }
}

/** Whether new books get ids after this one. */
const isSequential = (id: number) => id <= LAST_SEQUENTIAL_ID;

/**
 * Stores a group in one transaction.
 * @param storeRows returns the books that it stored.
 */
async function storeEach(
  sink: BulkStore,
  group: Group,
  storeRows: (rows: readonly ReadBook[]) => Promise<readonly BookFields[]>,
): Promise<readonly StoredBooks[]> {
  return sink.inTransaction(async () => {
    const stored: StoredBooks[] = [];
    for await (const rows of group) stored.push(countBooks(await storeRows(rows)));
    return stored;
  });
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
