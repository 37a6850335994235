// Owns: following the changes of others while the page is in sight: the rows of their books, and one message about them.
// Does not: count changes of this page, or change a row that is being edited.

import { isSameBook } from '../../client/src/book.ts';
import { type Book, type Change, CursorExpired, WrongCredentials } from '../../client/src/book-catalogue.ts';
import type { Session } from '../catalogue/session.ts';
import { show } from '../elements/messages.ts';
import type { Shelf } from '../list/shelf.ts';
import { LOG } from '../texts/log.ts';

/** Changes of one page of the log, from which on the page reloads its list instead of single rows. */
const MANY = 1000;

/** Milliseconds between a failure and the next request: doubled each time, up to a longest. */
const FIRST_PAUSE = 2000;
const LONGEST_PAUSE = 60_000;

const SEEN = 'visibilitychange';

export interface OthersEvents {
  /** Resolves when a book is no longer being edited; undefined if it is not. */
  editing(id: number): Promise<void> | undefined;
  /** Show a book as it is now; undefined if it is gone. */
  changed(id: number, book: Book | undefined): void;
  reload(): void;
  showLog(): void;
}

export class Others {
  readonly #session: Session;
  readonly #shelf: Shelf;
  readonly #events: OthersEvents;
  #work = new AbortController();
  #cursor = '';
  /** Books as the page last had them, undefined if they are gone; and the time of that. */
  readonly #known = new Map<number, { readonly book: Book | undefined; readonly at: number }>();
  /** The books of the message. */
  readonly #changed = new Set<number>();
  #isMany = false;
  /** Whether the message does not say all of it yet. */
  #isNew = false;
  #message: HTMLElement | undefined;

  constructor(session: Session, shelf: Shelf, events: OthersEvents) {
    this.#session = session;
    this.#shelf = shelf;
    this.#events = events;
    document.addEventListener(SEEN, () => this.stop());
    document.addEventListener('close', () => this.#say(), true); // an open dialog covers messages
  }

  /** The page has the present state of a book, since it has stored it, for example. @param book undefined if it is gone. */
  note(id: number, book: Book | undefined): void {
    this.#known.set(id, { book, at: performance.now() });
  }

  /** The page has read all that has changed up to now. */
  skip(): void {
    this.#cursor = 'now';
    this.#forget();
    this.stop();
  }

  /** Ends the request. Another one begins as soon as the page is in sight and somebody is logged in. */
  stop(): void {
    this.#work.abort();
  }

  /** Follows the changes after a cursor until the page is closed. */
  async follow(cursor: string): Promise<void> {
    this.#cursor ||= cursor; // the page may have skipped changes before
    for (let pause = FIRST_PAUSE; ; ) {
      while (document.hidden)
        await new Promise((seen) => document.addEventListener(SEEN, seen, { once: true }));
      const catalogue = await this.#session.client();
      this.#work = new AbortController();
      const { signal } = this.#work;
      const follow = this.#cursor !== 'now'; // the first answer comes at once
      if (!follow) this.#known.clear();
      try {
        for await (const { changes, cursor } of catalogue.changes(this.#cursor, { follow, signal })) {
          pause = FIRST_PAUSE;
          const readAt = performance.now();
          // A change of this page may come here before the answer to its request.
          while (changes.length > 0 && !this.#session.isIdle) await wait(50);
          signal.throwIfAborted();
          this.#cursor = cursor;
          this.#notice(changes, readAt);
        }
      } catch (error) {
        if (signal.aborted) continue;
        if (error instanceof CursorExpired) this.#noticeMany();
        if (error instanceof WrongCredentials)
          await this.#session.call(async (known) => {
            if (known === catalogue) throw error; // the session then asks for another login
          });
        await wait(pause);
        pause = Math.min(2 * pause, LONGEST_PAUSE);
      }
    }
  }

  #notice(changes: readonly Change[], readAt: number): void {
    if (!this.#isNew && this.#message?.isConnected === false) this.#forget(); // a person has seen it
    if (changes.length >= MANY) this.#noticeMany();
    else for (const change of changes) this.#noticeOne(change, readAt);
    this.#say();
  }

  #noticeOne({ id, book }: Change, readAt: number): void {
    const now = book ?? undefined;
    const shown = this.#shelf.at(this.#shelf.placeOf(id) ?? -1);
    const known = this.#known.get(id) ?? { book: shown ?? null, at: 0 };
    // This page has changed the book since the changes were read. A later change of others comes again.
    if (known.at > readAt || known.book === now) return;
    if (known.book && now && isSameBook(known.book, now)) return;
    this.#changed.add(id);
    this.#isNew = true;
    this.note(id, now);
    const update = () => this.#events.changed(id, now);
    if (shown !== undefined) void (this.#events.editing(id)?.then(update) ?? update());
  }

  #noticeMany(): void {
    this.#cursor = 'now';
    this.#isMany = true;
    this.#isNew = true;
    this.stop();
    this.#events.reload();
  }

  #forget(): void {
    this.#changed.clear();
    this.#isMany = false;
    this.#isNew = false;
    this.#message = undefined;
  }

  #say(): void {
    if (!this.#isNew || document.querySelector('dialog[open]') !== null) return;
    this.#isNew = false;
    const text = LOG.othersChanged(this.#isMany ? undefined : this.#changed.size);
    const action = { label: LOG.show, run: () => this.#events.showLog() };
    this.#message = show(text, action, this.#message);
  }
}

const wait = (time: number) => new Promise((over) => setTimeout(over, time));
