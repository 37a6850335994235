// Owns: what the log of changes answers: pages of changes, the states of a book, and what was taken back (rules H1 to H5 and H7).

import type { Book } from './book.ts';
import { CatalogueError } from './errors.ts';
import { type Answer, dataOf, nextOf } from './request.ts';

/** A book that may have changed. */
export interface Change {
  readonly id: number;
  /** When its latest change was noted, or the log began: UTC, such as `2026-11-27T08:00:00.123Z`. */
  readonly at: string;
  /** As it was when the page was read; null if it was gone. */
  readonly book: Book | null;
}

/** Some of the changes, each book once. */
export interface Changes {
  /** If there are none, all that had changed when the page was read has come. */
  readonly changes: readonly Change[];
  /** For the changes after these, also in another run of the program. Its content is the service's. */
  readonly cursor: string;
}

/** A book as it was from some time on. */
export interface BookState {
  /**
   * The number of the change that led to it; null if that was before the log, or before what is kept of it, or if many books
   * were new at once.
   */
  readonly change: number | null;
  /** When that change was noted, or the log began: UTC, such as `2026-11-27T08:00:00.123Z`. */
  readonly at: string;
  /** Null if the book was removed. */
  readonly book: Book | null;
}

/** Which changes are taken back: one of the three. */
export type UndoRequest =
  | {
      /** The number of a change in a history, or of an undo. */
      readonly change: number;
      readonly import?: undefined;
      readonly since?: undefined;
    }
  | {
      /** The number of an import by the service's command. */
      readonly import: number;
      readonly change?: undefined;
      readonly since?: undefined;
    }
  | {
      /** All changes noted at this time or later, by any program, without those of undos. A text has an offset, or `Z`. */
      readonly since: Date | string;
      readonly change?: undefined;
      readonly import?: undefined;
    };

/** A book that an undo has left, since others have changed it. */
export interface LeftBook {
  readonly id: number;
  readonly reason: string;
}

export interface Undone {
  /** The number of this undo, which can be taken back itself; null if no book was changed. */
  readonly change: number | null;
  /** How many books are now as they were before the changes. */
  readonly undone: number;
  readonly left: readonly LeftBook[];
}

/** An import by the service's command, or an undo. */
export interface CatalogueEvent {
  /** Its number, with which it can be taken back. */
  readonly event: number;
  /** UTC, such as `2026-11-27T08:00:00.123Z`. */
  readonly at: string;
  readonly kind: 'import' | 'undo';
  /** Of an import, its file. */
  readonly name: string | null;
  /** How many books it has changed so far. */
  readonly books: number;
  /** Of an undo: it is complete when all its books are checked. */
  readonly undo: {
    readonly books: number;
    readonly checked: number;
    /** How many of these were left, since others have changed them; and the first 10,000 of them. */
    readonly changedLater: number;
    readonly left: readonly LeftBook[];
  } | null;
}

/** @throws CatalogueError when the answer is not a page of changes. */
export function changesOf(answer: Answer): Changes {
  const changes = dataOf(answer, 200) as readonly Change[];
  const cursor = nextOf(answer)?.get('cursor');
  // Without it, the program could only begin again, or miss changes.
  if (!cursor) throw new CatalogueError('the answer has no link to the next changes', answer);
  return { changes, cursor };
}
