// Owns: following what others change while the page is in sight: the rows of their books, and one message about them.
// Does not: count what was changed here, or change a row that is being edited.

import {
  type Book,
  type BookCatalogue,
  type Change,
  CursorExpired,
  WrongCredentials,
} from '../../client/src/book-catalogue.ts';
import type { Session } from '../catalogue/session.ts';
import { show } from '../elements/messages.ts';
import { counted, FIELDS } from '../elements/text.ts';
import type { Shelf } from '../list/shelf.ts';

/** Changes of a page of the log. So many are not shown row by row. */
const MANY = 1000;

/** Milliseconds before the catalogue is asked again after a failure: doubled each time, up to a longest. */
const FIRST_PAUSE = 2000;
const LONGEST_PAUSE = 60_000;

/** Milliseconds between two looks whether the page's own work is answered. */
const LOOK = 50;

export interface OthersEvents {
  /** While a book is being edited: resolves when it is not. */
  editing(id: number): Promise<void> | undefined;
  /** A book is to be shown as it is now; undefined if it is gone. */
  changed(id: number, book: Book | undefined): void;
  /** So many books were changed that the list must be read again. */
  many(): void;
  /** Show all changes. */
  show(): void;
}

export class Others {
  readonly #session: Session;
  readonly #shelf: Shelf;
  readonly #events: OthersEvents;
  #work = new AbortController();
  #cursor = 'now';
  /** Books as the page knows them; undefined if they are gone. */
  readonly #known = new Map<number, Book | undefined>();
  /** What the message is about. */
  readonly #changed = new Set<number>();
  #isMany = false;
  #message: HTMLElement | undefined;

  constructor(session: Session, shelf: Shelf, events: OthersEvents) {
    this.#session = session;
    this.#shelf = shelf;
    this.#events = events;
    document.addEventListener('visibilitychange', () => this.stop());
    document.addEventListener('close', () => this.#say(), true); // nobody reaches a message while a dialog is open
  }

  /** The page knows a book: it has stored it, for example. @param book undefined if it is gone. */
  note(id: number, book: Book | undefined): void {
    this.#known.set(id, book);
  }

  /** The page knows all that has changed up to now. */
  skip(): void {
    this.#cursor = 'now';
    this.#forget();
    this.stop();
  }

  /** Ends the request. Another one begins as soon as the page is in sight and somebody is logged in. */
  stop(): void {
    this.#work.abort();
  }

  /** Follows until the page is closed. */
  async follow(): Promise<void> {
    for (let pause = FIRST_PAUSE; ; ) {
      while (document.hidden)
        await new Promise((seen) => document.addEventListener('visibilitychange', seen, { once: true }));
      const catalogue = await this.#session.call(async (known) => known);
      this.#work = new AbortController();
      const { signal } = this.#work;
      try {
        if (this.#cursor === 'now') this.#cursor = await begin(catalogue, signal);
        for await (const { changes, cursor } of catalogue.changes(this.#cursor, { follow: true, signal })) {
          pause = FIRST_PAUSE;
          if (changes.length > 0) await this.#settled();
          signal.throwIfAborted();
          this.#cursor = cursor;
          this.#notice(changes);
        }
      } catch (error) {
        if (signal.aborted) continue;
        if (error instanceof CursorExpired) this.#noticeMany();
        else if (error instanceof WrongCredentials) {
          await this.#session.call(async (known) => {
            if (known === catalogue) throw error; // which asks for another login
          });
        } else {
          await new Promise((over) => setTimeout(over, pause));
          pause = Math.min(2 * pause, LONGEST_PAUSE);
        }
      }
    }
  }

  /** Waits until the page's own work is answered: its changes may come here before that. */
  async #settled(): Promise<void> {
    do await new Promise((over) => setTimeout(over, LOOK));
    while (!this.#session.isIdle);
  }

  #notice(changes: readonly Change[]): void {
    if (this.#message?.isConnected === false) this.#forget(); // a person has seen it
    if (changes.length >= MANY) this.#noticeMany();
    else for (const change of changes) this.#noticeOne(change);
    this.#say();
  }

  #noticeOne({ id, book }: Change): void {
    const now = book ?? undefined;
    const shown = this.#shelf.at(this.#shelf.placeOf(id) ?? -1);
    if (this.#known.has(id) ? isSame(this.#known.get(id), now) : now && isSame(shown, now)) return;
    this.#changed.add(id);
    this.#known.set(id, now);
    const update = () => this.#events.changed(id, now);
    if (shown !== undefined) void (this.#events.editing(id)?.then(update) ?? update());
  }

  #noticeMany(): void {
    this.#cursor = 'now';
    this.#isMany = true;
    this.stop();
    this.#events.many();
  }

  #forget(): void {
    this.#changed.clear();
    this.#isMany = false;
    this.#message = undefined;
  }

  #say(): void {
    const isNew = this.#changed.size > 0 || this.#isMany;
    if (!isNew || document.querySelector('dialog[open]') !== null) return;
    const books = this.#isMany ? 'Many books were' : counted(this.#changed.size, 'book was', 'books were');
    const action = { label: 'Show', run: () => this.#events.show() };
    this.#message = show(`${books} changed by others`, action, this.#message);
  }
}

/** @returns where the changes from now on begin. */
async function begin(catalogue: BookCatalogue, signal: AbortSignal): Promise<string> {
  for await (const { cursor } of catalogue.changes('now', { signal })) return cursor;
  return 'now';
}

function isSame(one: Book | undefined, other: Book | undefined): boolean {
  return one === other || FIELDS.every((field) => one?.[field] === other?.[field]);
}
