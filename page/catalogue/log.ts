// Owns: the requests of the log of changes (rules H4 to H7): taking changes back, and finding the change that led to a state.
// Each is repeated until the catalogue answers it.

import type { Book, BookCatalogue, BookState, UndoRequest } from '../../client/src/book-catalogue.ts';
import { FIELDS } from '../elements/text.ts';
import { pause, persist } from './persist.ts';
import { randomKey } from './request-key.ts';
import type { Session } from './session.ts';

/** Fields of a book; null if there is none. */
export type State = Partial<Book> | null;

/** What became of an undo. */
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
  readonly signal?: AbortSignal | undefined;
  /** Called with how many books are checked, of how many. */
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

/** Milliseconds between two looks at an undo that continues. */
const POLL = 500;

/** The newest states of a book that are read. */
const STATES = 100;

export class Log {
  readonly #session: Session;
  #isKept: Promise<boolean> | undefined;

  constructor(session: Session) {
    this.#session = session;
  }

  /** Whether the catalogue has a log (not with `HISTORY=off`). It is asked once. */
  isKept(): Promise<boolean> {
    const { signal } = new AbortController();
    const ask = () => this.#session.send({ method: 'GET', path: 'changes?limit=1', signal });
    this.#isKept ??= persist(signal, ask).then(({ message }) => message !== 'Not found');
    return this.#isKept;
  }

  /**
   * Takes changes back, and waits until that is complete. The service continues it without the page.
   * @throws Complaint when the log does not have them; the reason of the signal.
   */
  async takeBack(request: UndoRequest, taking: TakingBack = {}): Promise<TakenBack> {
    const { idempotencyKey = randomKey(), signal, onProgress } = taking;
    let event = await this.#call(signal, (catalogue) => catalogue.undo(request, { idempotencyKey }));
    for (;;) {
      if ('undone' in event) return { ...event, left: event.left.length };
      const { event: change, undo, books } = event as typeof event & { event: number; books: number };
      if (undo === null || undo.checked >= undo.books)
        return { change, undone: books, left: undo?.changedLater ?? 0 };
      onProgress?.(undo.checked, undo.books);
      await pause(POLL, signal);
      event = await this.#call(signal, (catalogue) => catalogue.continueUndo(change));
    }
  }

  /** @returns undefined when no book has the id. */
  find(id: number): Promise<Book | undefined> {
    return this.#call(undefined, (catalogue) => catalogue.find(id));
  }

  /** The newest states of a book, the newest first. */
  history(id: number, signal?: AbortSignal): Promise<readonly BookState[]> {
    return this.#call(signal, async (catalogue) => {
      const states: BookState[] = [];
      for await (const state of catalogue.history(id, { signal })) {
        states.push(state);
        if (states.length === STATES) break;
      }
      return states;
    });
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

  #call<Result>(
    signal: AbortSignal | undefined,
    work: (catalogue: BookCatalogue) => Promise<Result>,
  ): Promise<Result> {
    return persist(signal, () => this.#session.call(work));
  }
}

/** Whether a book has these fields, or there is none. */
function isSame(fields: State, book: Book | null): boolean {
  if (fields === null || book === null) return fields === book;
  return FIELDS.every((field) => fields[field] === undefined || fields[field] === book[field]);
}
