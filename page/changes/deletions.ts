// Owns: deleting books. A deletion is shown at once and sent later, so that Undo keeps the book with its id; afterwards
// the book can be put back as a new entry.
// Does not: delete a book that someone else has changed, even when the page is left: then there is time for
// one request and for no answer, so the book is read as soon as it is struck through.

import type { Book } from '../../client/src/book.ts';
import { BookChanged, CatalogueError } from '../../client/src/book-catalogue.ts';
import { isRefusal } from '../catalogue/refusal.ts';
import { randomKey } from '../catalogue/request-key.ts';
import type { Session } from '../catalogue/session.ts';
import { sentence } from '../elements/dom.ts';
import { announce, show } from '../elements/messages.ts';
import { FIELDS, titleOf } from '../elements/text.ts';
import type { RowState } from '../list/row.ts';
import type { Shelf } from '../list/shelf.ts';
import type { Undo } from './undo.ts';

/** Milliseconds before a deletion is sent. */
const UNDO_TIME = 10_000;

interface Deletion {
  readonly book: Book;
  /** `sent` waits for its answer; `unanswered` will not get one, so the book may or may not be gone. */
  readonly stage: 'waiting' | 'sent' | 'unanswered' | 'done';
  /** The book is an answer of the client, which knows its tag: one request deletes it, if it is still the same. */
  readonly isRead?: boolean;
  /** Until it is sent. */
  readonly timer?: ReturnType<typeof setTimeout> | undefined;
  /** If `sent` or `unanswered`: the book is to be stored again as soon as it is deleted. */
  readonly isTakenBack?: boolean;
  /** If `done`: when. */
  readonly doneAt?: number;
  readonly takeBack: () => Promise<void>;
}

export class Deletions {
  /** Called when the row of a book must be shown again. */
  onRow: (id: number) => void = () => {};
  /** Stores changes of a book that is to be deleted. @returns undefined if none of them is left; else why. */
  finishEdits: (id: number) => Promise<'changed' | 'unsaved' | 'saving' | undefined> = async () => undefined;
  /** Called when books have been removed or put back. */
  onStored: () => void = () => {};
  /** Called when the book with this id has been stored again, with another id. */
  onPutBack: (id: number, book: Book) => void = () => {};
  readonly #session: Session;
  readonly #shelf: Shelf;
  readonly #undo: Undo;
  readonly #deletions = new Map<number, Deletion>();
  readonly #sending = new Map<number, Promise<void>>();
  /** The books that are gone, as they were. */
  readonly #gone = new Map<number, Book>();
  /** Books that are being stored again. */
  readonly #returning = new Set<number>();
  /** The keys of books that are to be stored again, since an attempt without an answer may have stored one. */
  readonly #keys = new Map<number, string>();

  constructor(session: Session, shelf: Shelf, undo: Undo) {
    this.#session = session;
    this.#shelf = shelf;
    this.#undo = undo;
    addEventListener('beforeunload', (event) => {
      if (!this.#canBeLeft()) event.preventDefault(); // the browser asks whether to stay
    });
    addEventListener('pagehide', () => void this.send());
  }

  stateOf({ id }: Book): RowState | undefined {
    const deletion = this.#deletions.get(id);
    if (deletion === undefined) return undefined;
    const actions = { waiting: 'Undo', sent: undefined, unanswered: 'Try again', done: 'Put back' };
    const action = actions[deletion.stage];
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
    this.#read(book.id).catch(() => {}); // it is read again when the deletion is sent
  }

  /** A book that has changed or is gone does not wait for Undo: its deletion is refused or done. */
  async #read(id: number): Promise<void> {
    const deletion = this.#deletions.get(id);
    const found = await this.#session.call((catalogue) => catalogue.find(id));
    await this.finishEdits(id); // the book may have changed by them
    if (deletion === undefined || deletion !== this.#deletions.get(id)) return;
    const isSame = FIELDS.every((field) => found?.[field] === deletion.book[field]);
    if (found !== undefined && isSame) this.#deletions.set(id, { ...deletion, book: found, isRead: true });
    else void this.#send(id);
  }

  /** Whether nothing is lost if the page is left now. */
  #canBeLeft(): boolean {
    const isSure = ({ stage, isRead }: Deletion) =>
      stage === 'done' || (stage === 'waiting' && isRead === true && this.#session.reach === 'here');
    return this.#returning.size === 0 && [...this.#deletions.values()].every(isSure);
  }

  /** A change was on its way when the book was deleted: the book is deleted as it is now. */
  noticeChange(book: Book): void {
    const deletion = this.#deletions.get(book.id);
    if (deletion !== undefined && deletion.stage !== 'done') this.#set({ ...deletion, book, isRead: true });
  }

  /** Somebody else has deleted the book. */
  noticeGone(book: Book): void {
    const deletion = this.#deletions.get(book.id);
    clearTimeout(deletion?.timer);
    const takeBack = deletion?.takeBack ?? (() => this.takeBack(book));
    if (deletion === undefined) this.#undo.push(takeBack);
    this.#done(book, takeBack);
    show(sentence`Somebody else has deleted “${titleOf(book)}”. “Put back” in its row stores it again.`);
  }

  #set(deletion: Deletion): void {
    this.#deletions.set(deletion.book.id, deletion);
    this.onRow(deletion.book.id);
  }

  #forget(id: number): void {
    this.#deletions.delete(id);
    this.onRow(id);
  }

  #done(book: Book, takeBack: () => Promise<void>): void {
    this.#shelf.remove(book.id);
    this.#gone.set(book.id, book);
    this.#set({ book, stage: 'done', doneAt: performance.now(), takeBack });
  }

  /** Forgets the books that were gone before that moment: a search that began then does not find them. */
  forgetDone(before: number): void {
    for (const [id, { doneAt = Infinity }] of this.#deletions)
      if (doneAt < before) this.#deletions.delete(id);
  }

  /** Sends the deletions that wait or have no answer, and resolves when they are answered. */
  async send(): Promise<void> {
    await Promise.all([...this.#deletions.keys()].map((id) => this.#send(id)));
  }

  #send(id: number): Promise<void> {
    const sending = this.#sending.get(id) ?? this.#carryOut(id).finally(() => this.#sending.delete(id));
    this.#sending.set(id, sending);
    return sending;
  }

  async #carryOut(id: number): Promise<void> {
    const deletion = this.#deletions.get(id);
    if (deletion?.stage !== 'waiting' && deletion?.stage !== 'unanswered') return;
    clearTimeout(deletion.timer);
    this.#set({ ...deletion, timer: undefined, stage: 'sent' });
    try {
      const left = await this.finishEdits(id);
      const sent = this.#deletions.get(id);
      if (sent?.stage !== 'sent') return; // somebody else has deleted it
      if (left === 'changed') throw new BookChanged('by somebody else', undefined, {});
      if (left !== undefined) throw new CatalogueError('its changes are not stored', {});
      await this.#session.call((catalogue) => catalogue.remove(id, { expected: sent.book }));
      const { isTakenBack = false } = this.#deletions.get(id) ?? {};
      this.#done(sent.book, sent.takeBack);
      this.onStored();
      if (isTakenBack) await this.#storeAgain(sent.book);
    } catch (error) {
      this.#failed({ ...deletion, ...this.#deletions.get(id) }, deletion.stage, error);
    }
  }

  /** @param before it was sent: without an answer to an earlier attempt, the book may be gone. */
  #failed(deletion: Deletion, before: Deletion['stage'], error: unknown): void {
    const { book, takeBack, isTakenBack = false } = deletion;
    const isChanged = error instanceof BookChanged;
    if (isChanged || isRefusal(error)) {
      if (isChanged && error.current !== undefined) this.#shelf.replace(book.id, error.current);
      this.#undo.drop(takeBack);
      this.#forget(book.id);
      const reason = isChanged ? 'somebody else has changed it' : error.message;
      show([...sentence`“${titleOf(book)}” was not deleted: `, `${reason}.`]);
      return;
    }
    const mayBeGone = before === 'unanswered' || (error instanceof CatalogueError && error.mayBeDone);
    this.#set({ ...deletion, stage: mayBeGone ? 'unanswered' : 'waiting' });
    if (isTakenBack && !mayBeGone) void this.takeBack(book);
    else
      show(
        sentence`“${titleOf(book)}” is not deleted yet: the catalogue does not answer. This page tries again.`,
      );
  }

  /** Sends again the deletions that failed. Call it when the service answers again. */
  retry(): void {
    for (const [id, { timer }] of this.#deletions) if (timer === undefined) void this.#send(id);
  }

  /** The button in the row of a book. */
  settle(book: Book): void {
    if (this.#deletions.get(book.id)?.stage === 'unanswered') void this.#send(book.id);
    else this.#undo.runThis(() => this.takeBack(book));
  }

  /** Keeps a book whose deletion has not been sent; stores it again otherwise. */
  async takeBack(book: Book): Promise<void> {
    const deletion = this.#deletions.get(book.id);
    if (deletion?.stage === 'sent' || deletion?.stage === 'unanswered') {
      this.#set({ ...deletion, isTakenBack: true });
      return this.#send(book.id);
    }
    if (deletion !== undefined) this.#undo.drop(deletion.takeBack);
    if (deletion?.stage === 'waiting') {
      clearTimeout(deletion.timer);
      this.#forget(book.id);
      announce(`${titleOf(book)} was kept`);
    } else {
      await this.#storeAgain(this.#gone.get(book.id) ?? book);
    }
  }

  async #storeAgain(book: Book): Promise<void> {
    const { id, ...fields } = book;
    if (this.#returning.has(id)) return;
    this.#returning.add(id);
    const idempotencyKey = this.#keys.get(id) ?? randomKey();
    this.#keys.set(id, idempotencyKey);
    try {
      const created = await this.#session.call((catalogue) => catalogue.create(fields, { idempotencyKey }));
      this.#keys.delete(id);
      this.#shelf.putBack(id, created);
      this.onPutBack(id, created);
      this.#forget(id);
      this.onRow(created.id);
      this.onStored();
      show(sentence`“${titleOf(created)}” is back, as a new entry.`);
    } catch (error) {
      const { takeBack = () => this.takeBack(book) } = this.#deletions.get(id) ?? {};
      this.#undo.push(takeBack); // the same one, which the button in the row drops
      const isUnknown = error instanceof CatalogueError && error.mayBeDone;
      const state = isUnknown ? 'may be back' : 'was not put back';
      show([
        ...sentence`“${titleOf(book)}” `,
        `${state}: the catalogue does not answer. Try again in a moment.`,
      ]);
    } finally {
      this.#returning.delete(id);
    }
  }
}
