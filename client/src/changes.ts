// Owns: the answers of the log of changes: pages of changes, the states of a book, events, and undos (rules H1 to H5 and H7 to H9).

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
  /** Empty when all changes up to the reading of the page have come. */
  readonly changes: readonly Change[];
  /** For the changes after these, also in another run of the program. Its content is the service's. */
  readonly cursor: string;
}

/** A book as it was from some time on. */
export interface BookState {
  /**
   * The number of the change that led to it; null if that was before the log, or is no longer kept, or if many books
   * were new at once.
   */
  readonly change: number | null;
  /** When that change was noted, or the log began: UTC, such as `2026-11-27T08:00:00.123Z`. */
  readonly at: string;
  /** Null if the book was removed. */
  readonly book: Book | null;
}

/** The name of an event: the number of an import or of an undo; of a run of other changes a text. */
export type EventName = number | string;

/** Which changes are taken back: one of the three. */
export type UndoRequest =
  | {
      /** The number of a change in a history, or of an undo. */
      readonly change: number;
      readonly event?: undefined;
      readonly since?: undefined;
    }
  | {
      readonly event: EventName;
      readonly change?: undefined;
      readonly since?: undefined;
    }
  | {
      /** All changes noted at this time or later, by any program, without those of undos. A text has an offset, or `Z`. */
      readonly since: Date | string;
      readonly change?: undefined;
      readonly event?: undefined;
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

/** The outcome that an undo would have now. */
export interface UndoCheck {
  /** How many books the changes are of, and how many of these were checked: the first 10,000, or fewer if that takes long. */
  readonly books: number;
  readonly checked: number;
  /** How many of these would be as they were before the changes, and which would be left. */
  readonly undone: number;
  readonly left: readonly LeftBook[];
}

/** Something that has changed books together. */
export interface CatalogueEvent {
  readonly event: EventName;
  /** `changes` is a run of single changes, by any program, less than 5 minutes apart and on one day (UTC). */
  readonly kind: 'import' | 'undo' | 'changes';
  /** When it began: UTC, such as `2026-11-27T08:00:00.123Z`. */
  readonly at: string;
  /** Of a run, when its last change was noted; else `at`. */
  readonly until: string;
  /** Of an import, its file. */
  readonly name: string | null;
  /** How many books it has changed so far; null of a run that has more than 1,000 changes. */
  readonly books: number | null;
  /** Of an undo: it is complete when all its books are checked. */
  readonly undo: {
    readonly books: number;
    readonly checked: number;
    /** How many of these were left, since others have changed them; and the first 10,000 of them. */
    readonly changedLater: number;
    readonly left: readonly LeftBook[];
  } | null;
}

/** An event in the list of all; the last one is the beginning of the log, which has no name. */
export interface ListedEvent extends Omit<CatalogueEvent, 'event' | 'kind' | 'undo'> {
  readonly event: EventName | null;
  readonly kind: CatalogueEvent['kind'] | 'beginning';
  /** Up to three of its books. */
  readonly first: readonly ChangedBook[];
}

/** A book that an event has changed. */
export interface ChangedBook {
  readonly id: number;
  /** Null if the event has stored it. */
  readonly before: Book | null;
  /** As the event left it; null if it was removed. */
  readonly book: Book | null;
}

/** @throws CatalogueError when the answer is not a page of changes. */
export function changesOf(answer: Answer): Changes {
  const changes = dataOf(answer, 200) as readonly Change[];
  const cursor = nextOf(answer)?.get('cursor');
  // Without it, the program could only begin again, or miss changes.
  if (!cursor) throw new CatalogueError('the answer has no link to the next changes', answer);
  return { changes, cursor };
}
