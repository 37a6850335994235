// Owns: the requests of the log of changes (rules H1 and H4 to H9): its events, their books, the states of a book, and undo.

import {
  type Book,
  type BookCatalogue,
  type BookState,
  CatalogueError,
  type ChangedBook,
  type EventName,
  type ListedEvent,
  type UndoCheck,
  type UndoRequest,
} from '../../client/src/book-catalogue.ts';
import { randomKey } from '../../client/src/request.ts';
import { FIELDS } from '../elements/text.ts';
import { CATALOGUE } from '../texts/catalogue.ts';
import { LOG } from '../texts/log.ts';
import { Complaint, complaintOf, pause, persist } from './persist.ts';
import { isRefusal } from './refusal.ts';
import type { Session } from './session.ts';

/** Fields of a book; null if the book is not there. */
export type State = Partial<Book> | null;

/** The outcome of an undo. */
export interface TakenBack {
  /** Its number, with which it can be taken back itself; null if it changed no book. */
  readonly change: number | null;
  /** How many books are as before. */
  readonly undone: number;
  /** How many stay as they are, since others have changed them. */
  readonly left: number;
}

export interface TakingBack {
  /** Of this attempt: each repetition has the same. */
  readonly idempotencyKey?: string;
  /** Called with how many books are checked, of how many. */
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

/**
 * Reads the next part of a list. A call that fails can be repeated.
 * @throws Complaint
 */
export type NextPart<Item> = () => Promise<readonly Item[]>;

/** Milliseconds between two looks at an undo that continues. */
const POLL = 500;

/** The newest states of a book that are read. */
const STATES = 100;

/** Events of a part of their list, and books of one event. */
const EVENTS = 20;
export const BOOKS = 100;

const REASONS = { 404: LOG.notInLog };

export class Log {
  /** Whether the catalogue is known to have no log (`HISTORY=off`). */
  isOff = false;
  readonly #session: Session;
  #cursor: Promise<string | undefined> | undefined;

  constructor(session: Session) {
    this.#session = session;
  }

  /** Why the catalogue cannot be reached; '' if it can. */
  get trouble(): string {
    return this.#session.reach.trouble;
  }

  /** The cursor of the changes after the first call; undefined if the catalogue has no log. */
  cursor(): Promise<string | undefined> {
    this.#cursor ??= this.#call(cursorOf).then((cursor) => {
      this.isOff = cursor === undefined;
      return cursor;
    });
    return this.#cursor;
  }

  /** The events, the newest first; the last one is the beginning of the log. */
  events(): NextPart<ListedEvent> {
    return this.#inParts((catalogue) => catalogue.events({ limit: EVENTS }), EVENTS);
  }

  /** The books of an event, ascending by id. */
  booksOf(event: EventName): NextPart<ChangedBook> {
    return this.#inParts((catalogue) => catalogue.booksOfEvent(event, { limit: BOOKS }), BOOKS);
  }

  /** How many books of an event the catalogue has; undefined if it cannot say so in time. */
  countOf(event: EventName): Promise<number | undefined> {
    return this.#session.call((catalogue) => catalogue.count({ event })).catch(() => undefined);
  }

  /**
   * The outcome that an undo would have; the beginning of the log, if that lacks some of the changes.
   * @throws Complaint
   */
  checkUndo(request: UndoRequest): Promise<UndoCheck | { readonly beginning: string | undefined }> {
    const check = async (catalogue: BookCatalogue) => {
      try {
        return await catalogue.checkUndo(request);
      } catch (error) {
        if (!(error instanceof CatalogueError && error.status === 422)) throw error;
        let beginning: string | undefined;
        for await (const { at } of catalogue.events({ limit: 100 })) beginning = at;
        return { beginning };
      }
    };
    return this.#once(check, LOG.nothingUndone);
  }

  /**
   * Takes changes back, and waits until that is complete. The service continues it without the page.
   * @throws Complaint when the log does not have them.
   */
  takeBack(request: UndoRequest, taking: TakingBack = {}): Promise<TakenBack> {
    const { idempotencyKey = randomKey(), onProgress } = taking;
    return this.#session.during(async () => {
      let event = await this.#call((catalogue) => catalogue.undo(request, { idempotencyKey }));
      for (;;) {
        if ('undone' in event) return { ...event, left: event.left.length };
        const { event: change, undo, books } = event as typeof event & { event: number; books: number };
        if (undo === null || undo.checked >= undo.books)
          return { change, undone: books, left: undo?.changedLater ?? 0 };
        onProgress?.(undo.checked, undo.books);
        await pause(POLL);
        event = await this.#call((catalogue) => catalogue.continueUndo(change));
      }
    });
  }

  /** @returns undefined when no book has the id. */
  find(id: number): Promise<Book | undefined> {
    return this.#call((catalogue) => catalogue.find(id));
  }

  /** The newest states of a book, the newest first. */
  history(id: number, signal?: AbortSignal): Promise<readonly BookState[]> {
    return this.#call((catalogue) => take(catalogue.history(id, { signal }), STATES), signal);
  }

  /**
   * The number of the newest change of a book that led from one state to another.
   * @param after has the same fields as `before`, unless one of them is null.
   * @returns undefined if the newest states have no such change.
   */
  async changeOf(id: number, before: State, after: State): Promise<number | undefined> {
    const states = await this.history(id);
    const found = states.find(
      ({ book }, at) => isSame(after, book) && isSame(before, states[at + 1]?.book ?? null),
    );
    return found?.change ?? undefined;
  }

  /** After a failure, a list is read from its beginning, up to the items that the page does not have. */
  #inParts<Item>(list: (catalogue: BookCatalogue) => AsyncGenerator<Item>, size: number): NextPart<Item> {
    let rest: AsyncGenerator<Item> | undefined;
    let had = 0;
    const read = async (catalogue: BookCatalogue) => {
      try {
        if (rest === undefined) {
          rest = list(catalogue);
          await take(rest, had);
        }
        const part = await take(rest, size);
        had += part.length;
        return part;
      } catch (error) {
        rest = undefined;
        throw error;
      }
    };
    return () => this.#once(read);
  }

  /** Repeats a request until the catalogue answers it. */
  #call<Result>(work: (catalogue: BookCatalogue) => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    return persist(signal, () => this.#session.call(work), REASONS);
  }

  /** Sends a request that the person can repeat. */
  async #once<Result>(
    work: (catalogue: BookCatalogue) => Promise<Result>,
    consequence = '',
  ): Promise<Result> {
    try {
      return await this.#session.call(work);
    } catch (error) {
      if (isRefusal(error)) throw complaintOf(error, REASONS);
      throw new Complaint(`${this.trouble || CATALOGUE.troubles.away}${consequence}`);
    }
  }
}

async function cursorOf(catalogue: BookCatalogue): Promise<string | undefined> {
  try {
    const { value } = await catalogue.changes('now').next();
    return value?.cursor;
  } catch (error) {
    if (isRefusal(error) && error.message === 'Not found') return undefined;
    throw error;
  }
}

/** The next items of a list, up to a number. The list can be continued. */
async function take<Item>(list: AsyncGenerator<Item>, most: number): Promise<readonly Item[]> {
  const items: Item[] = [];
  while (items.length < most) {
    const { value, done } = await list.next();
    if (done) break;
    items.push(value);
  }
  return items;
}

/** Whether a book has these fields, or both are null. */
function isSame(fields: State, book: Book | null): boolean {
  if (fields === null || book === null) return fields === book;
  return FIELDS.every((field) => fields[field] === undefined || fields[field] === book[field]);
}
