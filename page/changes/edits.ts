// Owns: changing and deleting books: changes that are on their way, those that could not be stored, and conflicts with those of others.
// Does not: overwrite another person's change. It stores only the fields that this person has changed, and only if they are still as
// this person saw them. It deletes a book only as this person saw it.

import type { Book, BookChanges } from '../../client/src/book.ts';
import { type BookCatalogue, BookChanged } from '../../client/src/book-catalogue.ts';
import type { Log, State } from '../catalogue/log.ts';
import { isRefusal } from '../catalogue/refusal.ts';
import type { Session } from '../catalogue/session.ts';
import { ask, find, make } from '../elements/dom.ts';
import { announce, show } from '../elements/messages.ts';
import { FIELDS, type Field, fieldText, titleOf } from '../elements/text.ts';
import type { Refused } from '../list/cell-editor.ts';
import type { RowState } from '../list/row.ts';
import type { Shelf } from '../list/shelf.ts';
import { CATALOGUE } from '../texts/catalogue.ts';
import { CHANGES } from '../texts/changes.ts';
import { ELEMENTS } from '../texts/elements.ts';
import { AS_IT_IS } from '../texts/sentence.ts';
import type { Undo } from './undo.ts';

/** Milliseconds in which a row shows that it has been saved. */
const SAVED_TIME = 1500;

/** Changes of a book that are not stored yet. */
interface Edit {
  /** The book before them, as the person saw it. */
  readonly before: Book;
  readonly changes: BookChanges;
  /** Changes that were sent and got no answer: each of them may be stored. */
  readonly unanswered: readonly BookChanges[];
  /** The book is to be deleted as soon as they are stored. */
  readonly isDeletion: boolean;
  readonly kind: 'saving' | 'unsaved' | 'changed';
  /** If `changed`: the book as somebody else has changed it. */
  readonly theirs?: Book;
}

export class Edits {
  /** Called when the row of a book must be shown again. */
  onRow: (id: number) => void = () => {};
  /** Called with a book that has been changed, as it is now; undefined if it is gone. */
  onStored: (id: number, book: Book | undefined) => void = () => {};
  readonly #session: Session;
  readonly #shelf: Shelf;
  readonly #log: Log;
  readonly #undo: Undo;
  readonly #edits = new Map<number, Edit>();
  /** The work on each book whose changes are on their way. */
  readonly #storing = new Map<number, Promise<void>>();
  /** Texts that cannot be stored, of each book: until they are corrected or given up. */
  readonly #refused = new Map<number, Readonly<Partial<Record<Field, Refused>>>>();
  readonly #saved = new Set<number>();
  /** Books that are gone, since when, and with which changes they are shown: their rows stay until another search. */
  readonly #gone = new Map<number, { readonly at: number; readonly changes?: BookChanges | undefined }>();

  constructor(session: Session, shelf: Shelf, log: Log, undo: Undo) {
    this.#session = session;
    this.#shelf = shelf;
    this.#log = log;
    this.#undo = undo;
    addEventListener('beforeunload', (event) => {
      if (this.#edits.size + this.#refused.size > 0) event.preventDefault(); // the browser asks whether to stay
    });
  }

  stateOf(book: Book): RowState | undefined {
    const edit = this.#edits.get(book.id);
    const refused = this.#refused.get(book.id);
    const gone = this.#gone.get(book.id);
    const undo = this.#log.isOff ? {} : { action: CHANGES.undo };
    if (gone !== undefined) return { kind: 'deleted', book: { ...book, ...gone.changes }, ...undo };
    if (edit !== undefined) {
      const { kind, changes, isDeletion } = edit;
      const unsaved = { action: kind === 'unsaved' ? ELEMENTS.tryAgain : CHANGES.compare };
      const settles = kind !== 'saving' ? unsaved : isDeletion ? undo : {};
      const shown = { kind: isDeletion ? 'deleted' : kind, book: { ...book, ...changes } } as const;
      return { ...shown, ...settles, ...(refused !== undefined && { refused }) };
    }
    const corrects = FIELDS.find((field) => refused?.[field] !== undefined);
    if (refused !== undefined && corrects !== undefined)
      return { kind: 'unsaved', action: CHANGES.correct, refused, corrects };
    return this.#saved.has(book.id) ? { kind: 'saved' } : undefined;
  }

  change(book: Book, changes: BookChanges): void {
    for (const field of fieldsOf(changes)) this.keep(book, field, undefined);
    this.#begin(book, changes);
  }

  /** Deletes a book as the person sees it, and drops its texts that cannot be stored. */
  delete(book: Book): void {
    this.#refused.delete(book.id);
    this.#begin(book, {}, true);
  }

  /** Keeps a text that cannot be stored in the row of its book; undefined gives it up. */
  keep({ id }: Book, field: Field, refused: Refused | undefined): void {
    const { [field]: before, ...others } = this.#refused.get(id) ?? {};
    if (before === refused) return;
    const texts = refused === undefined ? others : { ...others, [field]: refused };
    if (Object.keys(texts).length === 0) this.#refused.delete(id);
    else this.#refused.set(id, texts);
    this.onRow(id);
  }

  #begin(book: Book, changes: BookChanges, isDeletion = false): void {
    const earlier = this.#edits.get(book.id);
    const { before, unanswered } = earlier ?? { before: book, unanswered: [] };
    const edit = { before, changes: { ...earlier?.changes, ...changes }, unanswered, isDeletion };
    // A change that is on its way takes later ones with it when it has been answered.
    if (earlier?.kind === 'saving') this.#set({ ...edit, kind: 'saving' });
    else this.#send(edit);
  }

  #set(edit: Edit): void {
    this.#edits.set(edit.before.id, edit);
    this.onRow(edit.before.id);
  }

  #forget(id: number): void {
    this.#edits.delete(id);
    this.onRow(id);
  }

  /** Waits for all that is on its way. @returns the title of a book with changes that are not stored yet. */
  async settled(): Promise<string | undefined> {
    while (this.#storing.size > 0) await Promise.all(this.#storing.values());
    const [left] = this.#edits.values();
    return left && titleOf(left.before);
  }

  /** Shows a book as it is by now; undefined if it is gone, with changes that are not stored. */
  restore(id: number, book: Book | undefined, changes?: BookChanges): void {
    if (book === undefined) {
      this.#gone.set(id, { at: performance.now(), changes });
      this.#shelf.remove(id);
    } else {
      this.#gone.delete(id);
      this.#shelf.replace(id, book);
    }
    this.onRow(id);
    this.onStored(id, book);
  }

  /** A book was taken back here. Changes that have waited for this are of the book as it is now. */
  takenBack(id: number, book: Book | undefined, changes?: BookChanges): void {
    const edit = this.#edits.get(id);
    if (edit !== undefined && book !== undefined) this.#edits.set(id, { ...edit, before: book });
    this.restore(id, book);
    if (book !== undefined && changes !== undefined) this.change(book, changes);
  }

  /** Drops the books that were gone before that moment: a search that began then does not find them. */
  forgetGone(before: number): void {
    for (const [id, { at }] of this.#gone) if (at < before) this.#gone.delete(id);
  }

  /** Tries all changes again that could not be stored. Call it when the service answers again. */
  retry(): void {
    for (const edit of this.#edits.values()) if (edit.kind === 'unsaved') this.#send(edit);
  }

  #send(edit: Omit<Edit, 'kind'>): void {
    const { id } = edit.before;
    this.#set({ ...edit, kind: 'saving' });
    const storing = this.#store(id).finally(() => this.#storing.delete(id));
    this.#storing.set(id, storing);
  }

  /** Stores the changes of a book, then deletes it if it is to be deleted, as long as the catalogue takes them. */
  async #store(id: number): Promise<void> {
    for (;;) {
      await this.#undo.idle;
      const edit = this.#edits.get(id);
      if (edit?.kind !== 'saving') return;
      const { before, changes } = edit;
      const options = { expected: before };
      try {
        if (fieldsOf(changes).length > 0) {
          const update = (catalogue: BookCatalogue) => catalogue.update(id, changes, options);
          this.#stored(await this.#session.call(update), edit);
        } else {
          const isOwn = await this.#session.call((catalogue) => catalogue.remove(id, options));
          this.#deleted(before, isOwn ? before : {});
        }
      } catch (error) {
        const now = this.#edits.get(id);
        if (now !== undefined) this.#failed(now, changes, error);
      }
    }
  }

  /** @param before the book in the log before it was deleted: any, if another person may have deleted it. */
  #deleted(book: Book, before: State, changes?: BookChanges): void {
    const { id } = book;
    this.#undo.push({ id, name: titleOf(book), before, after: null, changes });
    this.#edits.delete(id);
    this.#refused.delete(id);
    this.restore(id, undefined, changes);
    const hasLog = !this.#log.isOff;
    if (changes === undefined) announce(CHANGES.deleted(titleOf(book), hasLog));
    else show(CHANGES.deletedByOthers(titleOf(book), hasLog));
  }

  /** Fields of a book have been stored. */
  #note(before: Book, after: Book, fields: readonly Field[]): void {
    const states = { before: pick(before, fields), after: pick(after, fields) };
    if (fields.length > 0) this.#undo.push({ id: after.id, name: titleOf(after), ...states });
  }

  /** The book is stored, with the changes of this edit; the person may have made others meanwhile. */
  #stored(book: Book, { before, changes }: Edit): void {
    const { id } = book;
    this.#shelf.replace(id, book);
    this.#note(before, book, fieldsOf(changes));
    const now = this.#edits.get(id);
    const { changes: all = {} } = now ?? {};
    const later = fieldsOf(all).filter((field) => all[field] !== book[field]);
    if (now !== undefined && (later.length > 0 || now.isDeletion)) {
      this.#set({ ...now, before: book, changes: pick(all, later), unanswered: [] });
      return;
    }
    this.#saved.add(id);
    setTimeout(() => {
      this.#saved.delete(id);
      this.onRow(id);
    }, SAVED_TIME);
    this.#forget(id);
    announce(CHANGES.saved);
    this.onStored(id, book);
  }

  /** @param sent the changes that were sent; the person may have made others meanwhile. */
  #failed(edit: Edit, sent: BookChanges, error: unknown): void {
    const { before, changes, isDeletion } = edit;
    if (error instanceof BookChanged && error.current !== undefined) {
      this.#changedBySomebodyElse(edit, error.current);
    } else if (isRefusal(error) && error.status === 404) {
      this.#deleted(before, {}, isDeletion ? undefined : changes);
    } else if (isRefusal(error) && error.status === 200) {
      this.#set({ ...edit, kind: 'unsaved' }); // until the person tries again: the next answer would be the same
      show(CHANGES.altered(titleOf(before), isDeletion, CATALOGUE.troubles.altered));
    } else if (isRefusal(error)) {
      this.#forget(before.id); // there is nothing to undo
      show(CHANGES.refused(titleOf(before), isDeletion, error.message));
    } else {
      this.#set({ ...edit, unanswered: [...edit.unanswered, sent], kind: 'unsaved' });
    }
  }

  #changedBySomebodyElse(edit: Edit, theirs: Book): void {
    const { before, changes, unanswered, isDeletion } = edit;
    const fields = fieldsOf(changes);
    const own = [before, changes, ...unanswered];
    const isOwn = (field: Field) => own.some((one) => one[field] === theirs[field]);
    this.#shelf.replace(before.id, theirs);
    if (isDeletion && !FIELDS.every(isOwn)) {
      show(CHANGES.notDeleted(titleOf(before)));
      if (fields.length === 0) this.#forget(before.id);
      else this.#set({ ...edit, isDeletion: false }); // the next answer leads here again
    } else if (fields.every((field) => theirs[field] === changes[field])) {
      this.#stored(theirs, edit); // an answer was lost, or somebody else had the same idea
    } else if (fields.every(isOwn)) {
      const arrived = fields.filter((field) => theirs[field] !== before[field]); // of changes whose answers were lost
      this.#note(before, theirs, arrived);
      this.#set({ ...edit, before: theirs, kind: 'saving' }); // other fields: both changes are kept
    } else {
      const asked = { ...edit, kind: 'changed', theirs } as const;
      this.#set(asked);
      void this.#askWhich(asked);
    }
  }

  /** Shows both texts, unless the person is busy in another dialog: the button in the row also asks. */
  async #askWhich({ before, changes, theirs = before }: Edit): Promise<void> {
    if (document.querySelector('dialog[open]') !== null) return;
    const mine = { ...theirs, ...changes };
    const rows = FIELDS.filter((field) => mine[field] !== theirs[field]).map((field) => {
      const cells = [before, theirs, mine].map((book) =>
        make('td', AS_IT_IS, fieldText(book, field) || ELEMENTS.noValues[field]),
      );
      return make('tr', {}, make('th', { scope: 'row' }, ELEMENTS.fields[field]), ...cells);
    });
    find('#conflict-fields').replaceChildren(...rows);
    const kept = await ask(find('#conflict'));
    const edit = this.#edits.get(theirs.id);
    if (edit?.kind !== 'changed') return;
    if (kept === 'mine') this.#send({ ...edit, before: theirs });
    if (kept !== 'theirs') return;
    this.#forget(theirs.id);
    announce(CHANGES.theirsKept);
  }

  /** The button in the row of a book. */
  settle(book: Book): void {
    const edit = this.#edits.get(book.id);
    if (edit?.kind === 'unsaved') this.#send(edit);
    else if (edit?.kind === 'changed') void this.#askWhich(edit);
    else void this.#undo.bringBack(book);
  }
}

const fieldsOf = (changes: BookChanges) => FIELDS.filter((field) => field in changes);

const pick = (from: BookChanges, fields: readonly Field[]): BookChanges =>
  Object.fromEntries(fields.map((field) => [field, from[field]]));
