// Owns: which rows of a file are stored: all of them, only new ones, or each with its id.

import { type Book, type BookFields, isSameBook } from '../books/book.ts';
import type { ReadBook, RefusedRecord } from '../files/format.ts';
import { shorten } from '../files/rows.ts';
import { type BulkStore, countBooks, type StoredBooks } from '../stores/bulk.ts';
import type { Times } from '../times.ts';

/** Rows that are stored together, batch by batch. */
export type Group = AsyncIterable<readonly ReadBook[]>;

export interface ImportMode {
  /** Pieces of the file that a group has at most; and milliseconds after which it takes no more batches of one. */
  readonly pieces: number;
  readonly time: number;
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
  readonly times: Times['import'];
}

/** Pieces that are compared with all books together. More need more temporary space. */
const COMPARED_PIECES = 64;

/** Stores every row as a new book. */
export function addAll({ store, scratch: sink = store, times }: Target): ImportMode {
  return {
    ...oneTransaction(times),
    take: (group) => storeTogether(sink, (stored) => sink.insert(noted(group, stored))),
  };
}

/** Stores the rows that equal neither a book of the store nor an earlier row of the file. */
export function skipExisting({ store, scratch }: Target): ImportMode {
  const isDryRun = scratch !== undefined;
  return {
    // A dry run has one group: its rows are not stored, so later groups could not be compared with them.
    pieces: isDryRun ? Number.POSITIVE_INFINITY : COMPARED_PIECES,
    time: Number.POSITIVE_INFINITY,
    take: (group) => store.insertNew(group, isDryRun),
  };
}

/** Stores books with the ids of the file. A row is skipped if the book with its id equals it, and rejected if not. */
export function keepIds({ store, scratch, times }: Target): ImportMode {
  const sink = scratch ?? store;
  /** Books that are created in the meantime get no ids up to this one. Undefined before the first group. */
  let reservedThrough: number | undefined;

  /** @returns the books that have ids of these rows; from now on, no other book gets one of them. */
  async function findThere(rows: readonly ReadBook[]): Promise<readonly Book[]> {
    const ids = rows.map(({ id }) => id as number);
    reservedThrough ??= await store.lastId();
    let given = reservedThrough; // no book of the store has a higher id that a file may have
    const highest = Math.max(0, ...ids);
    if (scratch === undefined && highest > given) {
      given = await store.reserveIdsThrough(highest); // before the search, so that free ids stay free
      reservedThrough = highest;
    }
    const perhapsTaken = ids.filter((id) => id <= given);
    const stored = perhapsTaken.length > 0 ? await store.find(perhapsTaken) : [];
    return scratch === undefined ? stored : [...stored, ...(await scratch.find(ids))];
  }

  return {
    ...oneTransaction(times),
    take: (group, refuse) =>
      storeTogether(sink, async (stored) => {
        for await (const rows of group) {
          const { fresh, refused } = judge(rows, await findThere(rows));
          await sink.insertWithIds([fresh]);
          refuse(refused);
          stored.push(...fresh);
        }
      }),
  };
}

/** A group is one transaction, and others that write to the store may wait for it: nothing is read from the file meanwhile. */
function oneTransaction({ transaction: time }: Times['import']) {
  return { pieces: 1, time };
}

/**
 * Stores books in one transaction.
 * @param store adds those that it stores.
 */
async function* storeTogether(
  sink: BulkStore,
  store: (stored: BookFields[]) => Promise<void>,
): AsyncGenerator<StoredBooks, void, void> {
  yield await sink.inTransaction(async () => {
    const stored: BookFields[] = [];
    await store(stored);
    return countBooks(stored);
  });
}

async function* noted(group: Group, rows: BookFields[]): Group {
  for await (const batch of group) {
    rows.push(...batch);
    yield batch;
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
