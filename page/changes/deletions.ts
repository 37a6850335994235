// Owns: deleting books. A deletion is shown at once and sent later, so that Undo keeps the book with its id; afterwards
// the book can be put back as a new entry.
// Refuses: to delete a book that somebody else has changed meanwhile.

import type { Book } from '../../client/src/book.ts';
import { BookChanged } from '../../client/src/book-catalogue.ts';
import { randomKey } from '../catalogue/request-key.ts';
import type { Session } from '../catalogue/session.ts';
import { announce, show } from '../elements/messages.ts';
import { titleOf } from '../elements/text.ts';
import type { RowState } from '../list/grid.ts';
import type { Shelf } from '../list/shelf.ts';
import type { Undo } from './undo.ts';

/** Milliseconds before a deletion is sent. */
const UNDO_TIME = 10_000;

interface Deletion {
  readonly book: Book;
  /** `sent` has no answer yet. */
  readonly stage: 'waiting' | 'sent' | 'done';
  readonly timer?: ReturnType<typeof setTimeout>;
  /** If `sent`: the book is to be stored again as soon as it is deleted. */
  readonly isTakenBack?: boolean;
  readonly takeBack: () => void;
}

export class Deletions {
  /** Called when the row of a book must be shown again. */
  onRow: (id: number) => void = () => {};
  /** Called when books have been removed or put back. */
  onStored: () => void = () => {};
  /** Called when the book with this id has been stored again, with another id. */
  onPutBack: (id: number, book: Book) => void = () => {};
  readonly #session: Session;
  readonly #shelf: Shelf;
  readonly #undo: Undo;
  readonly #deletions = new Map<number, Deletion>();
  /** Of books that are to be stored again: an attempt without an answer may have stored one. */
  readonly #keys = new Map<number, string>();

  constructor(session: Session, shelf: Shelf, undo: Undo) {
    this.#session = session;
    this.#shelf = shelf;
    this.#undo = undo;
    addEventListener('pagehide', () => void this.send());
  }

  stateOf({ id }: Book): RowState | undefined {
    const deletion = this.#deletions.get(id);
    if (deletion === undefined) return undefined;
    const action = { waiting: 'Undo', sent: undefined, done: 'Put back' }[deletion.stage];
    return { kind: 'deleted', book: deletion.book, ...(action !== undefined && { action }) };
  }

  /** @param book as the person sees it. */
  delete(book: Book): void {
    if (this.#deletions.has(book.id)) return;
    const timer = setTimeout(() => void this.#send(book.id), UNDO_TIME);
    const takeBack = () => this.takeBack(book);
    this.#undo.push(takeBack);
    this.#set({ book, stage: 'waiting', timer, takeBack });
    announce(`Deleted ${titleOf(book)}. Control Z brings it back.`);
  }

  /** A change was on its way when the book was deleted: the book is deleted as it is now. */
  noticeChange(book: Book): void {
    const deletion = this.#deletions.get(book.id);
    if (deletion?.stage === 'waiting') this.#set({ ...deletion, book });
  }

  /** Somebody else has deleted the book. */
  noticeGone(book: Book): void {
    this.#shelf.remove(book.id);
    this.#set({ book, stage: 'done', takeBack: () => {} });
    show(`Somebody else has deleted “${titleOf(book)}”. “Put back” in its row stores it again.`);
  }

  #set(deletion: Deletion): void {
    this.#deletions.set(deletion.book.id, deletion);
    this.onRow(deletion.book.id);
  }

  #forget(id: number): void {
    this.#deletions.delete(id);
    this.onRow(id);
  }

  /** Forgets the books that are gone: another search does not find them. */
  forgetDone(): void {
    for (const [id, { stage }] of this.#deletions) if (stage === 'done') this.#deletions.delete(id);
  }

  /** Sends the deletions that wait, and resolves when they are answered. */
  async send(): Promise<void> {
    await Promise.all([...this.#deletions.keys()].map((id) => this.#send(id)));
  }

  async #send(id: number): Promise<void> {
    const deletion = this.#deletions.get(id);
    if (deletion?.stage !== 'waiting') return;
    clearTimeout(deletion.timer);
    this.#set({ ...deletion, stage: 'sent' });
    try {
      // On leaving, there is no time to read the book first.
      const options = this.#session.isLeaving ? {} : { expected: deletion.book };
      await this.#session.call((catalogue) => catalogue.remove(id, options));
      this.#shelf.remove(id);
      const isTakenBack = this.#deletions.get(id)?.isTakenBack;
      this.#set({ ...deletion, stage: 'done' });
      this.onStored();
      if (isTakenBack) void this.#storeAgain(deletion.book);
    } catch (error) {
      const isChanged = error instanceof BookChanged;
      if (isChanged && error.current !== undefined) this.#shelf.replace(id, error.current);
      this.#undo.drop(deletion.takeBack);
      this.#forget(id);
      const reason = isChanged ? 'somebody else has changed it' : 'the catalogue does not answer';
      show(`“${titleOf(deletion.book)}” was not deleted: ${reason}.`);
    }
  }

  /** Keeps a book whose deletion has not been sent; stores it again otherwise. */
  takeBack(book: Book): void {
    const deletion = this.#deletions.get(book.id);
    if (deletion?.stage === 'sent') {
      this.#set({ ...deletion, isTakenBack: true });
      return;
    }
    if (deletion !== undefined) this.#undo.drop(deletion.takeBack);
    if (deletion?.stage === 'waiting') {
      clearTimeout(deletion.timer);
      this.#forget(book.id);
      announce(`${titleOf(book)} was kept`);
    } else {
      void this.#storeAgain(deletion?.book ?? book);
    }
  }

  async #storeAgain(book: Book): Promise<void> {
    const { id, title, author, year } = book;
    const idempotencyKey = this.#keys.get(id) ?? randomKey();
    this.#keys.set(id, idempotencyKey);
    try {
      const created = await this.#session.call((catalogue) =>
        catalogue.create({ title, author, year }, { idempotencyKey }),
      );
      this.#keys.delete(id);
      this.#shelf.putBack(id, created);
      this.onPutBack(id, created);
      this.#forget(id);
      this.onRow(created.id);
      this.onStored();
      show(`“${titleOf(created)}” is back, as a new entry.`);
    } catch {
      this.#undo.push(() => this.takeBack(book));
      show(`“${titleOf(book)}” was not put back: the catalogue does not answer. Try again in a moment.`);
    }
  }
}
