// Owns: changing books: what is on its way, what could not be stored, and what somebody else has changed meanwhile.
// Does not: overwrite someone else's change. Only the fields that a person has changed are stored, and only if
// nobody else has changed them since that person saw them.

import type { Book, BookChanges } from '../../client/src/book.ts';
import { BookChanged } from '../../client/src/book-catalogue.ts';
import { ALTERED, isRefusal } from '../catalogue/refusal.ts';
import type { Session } from '../catalogue/session.ts';
import { AS_IT_IS, find, make, refocus, sentence } from '../elements/dom.ts';
import { announce, show } from '../elements/messages.ts';
import { bookText, FIELD_NAMES, FIELDS, type Field, fieldText, NO_VALUE, titleOf } from '../elements/text.ts';
import type { Refused } from '../list/cell-editor.ts';
import type { RowState } from '../list/row.ts';
import type { Shelf } from '../list/shelf.ts';
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
  /** They take these changes back. */
  readonly takeBacks: readonly (() => void)[];
  readonly kind: 'saving' | 'unsaved' | 'changed';
  /** If `changed`: the book as somebody else has changed it. */
  readonly theirs?: Book;
}

const conflict = find<HTMLDialogElement>('#conflict');

export class Edits {
  /** Called when the row of a book must be shown again. */
  onRow: (id: number) => void = () => {};
  /** Called with a book that has been changed, as it is now. */
  onStored: (book: Book) => void = () => {};
  /** Called with a book, as it was to be, that somebody else has deleted. */
  onGone: (book: Book) => void = () => {};
  readonly #session: Session;
  readonly #shelf: Shelf;
  readonly #undo: Undo;
  readonly #edits = new Map<number, Edit>();
  /** The work on each book whose changes are on their way. */
  readonly #storing = new Map<number, Promise<void>>();
  /** Texts that cannot be stored, of each book: until they are corrected or given up. */
  readonly #refused = new Map<number, Readonly<Partial<Record<Field, Refused>>>>();
  readonly #saved = new Set<number>();
  /** The books that were changed here, as the service has answered. */
  readonly #latest = new Map<number, Book>();
  /** The book of the open dialog. */
  #asked: number | undefined;

  constructor(session: Session, shelf: Shelf, undo: Undo) {
    this.#session = session;
    this.#shelf = shelf;
    this.#undo = undo;
    find('#keep-mine').addEventListener('click', () => this.#settleConflict(true));
    find('#keep-theirs').addEventListener('click', () => this.#settleConflict(false));
    addEventListener('beforeunload', (event) => {
      if (this.#edits.size + this.#refused.size > 0) event.preventDefault(); // the browser asks whether to stay
    });
  }

  stateOf(book: Book): RowState | undefined {
    const edit = this.#edits.get(book.id);
    const refused = this.#refused.get(book.id);
    if (edit === undefined) {
      const corrects = FIELDS.find((field) => refused?.[field] !== undefined);
      if (refused !== undefined && corrects !== undefined)
        return { kind: 'unsaved', action: 'Correct', refused, corrects };
      return this.#saved.has(book.id) ? { kind: 'saved' } : undefined;
    }
    const { kind, changes } = edit;
    const action = { saving: undefined, unsaved: 'Try again', changed: 'Compare' }[kind];
    return {
      kind,
      book: { ...book, ...changes },
      ...(action !== undefined && { action }),
      ...(refused !== undefined && { refused }),
    };
  }

  /**
   * @param book as the person sees it.
   * @returns takes this change back.
   */
  change(book: Book, changes: BookChanges): () => void {
    const takeBack = this.#noteUndo(book, changes);
    for (const field of FIELDS) if (field in changes) this.keep(book, field, undefined);
    this.#begin(book, changes, takeBack);
    return takeBack;
  }

  /** @returns takes a change back: the fields get the values of the book before it. */
  #noteUndo(book: Book, changes: BookChanges): () => void {
    const values = pick(
      book,
      FIELDS.filter((field) => field in changes),
    );
    const takeBack = () => {
      const now = this.#now(book);
      show(sentence`Taken back: ${bookText({ ...now, ...values })}`); // its row may be out of sight
      this.#begin(now, values);
    };
    this.#undo.push(takeBack);
    return takeBack;
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

  #begin(book: Book, changes: BookChanges, ...takeBacks: (() => void)[]): void {
    const earlier = this.#edits.get(book.id);
    this.#set({
      before: earlier?.before ?? book,
      changes: { ...earlier?.changes, ...changes },
      unanswered: earlier?.unanswered ?? [],
      takeBacks: [...(earlier?.takeBacks ?? []), ...takeBacks],
      kind: 'saving',
    });
    // A change that is on its way takes later ones with it when it has been answered.
    if (earlier?.kind !== 'saving') this.#start(book.id);
  }

  #set(edit: Edit): void {
    this.#edits.set(edit.before.id, edit);
    this.onRow(edit.before.id);
  }

  #forget(id: number): void {
    this.#edits.delete(id);
    this.onRow(id);
  }

  /** Forgets changes that were not stored: there is nothing to undo. */
  #discard({ before: { id }, takeBacks }: Edit): void {
    for (const takeBack of takeBacks) this.#undo.drop(takeBack);
    this.#forget(id);
  }

  /**
   * Stores the changes of a book that is to be deleted: they may be stored already, and then it is no longer as it was.
   * @returns undefined if none of them is left; else why.
   */
  async finish(id: number): Promise<Edit['kind'] | undefined> {
    const edit = this.#edits.get(id);
    if (edit?.kind === 'unsaved') this.#again(edit);
    await this.#storing.get(id);
    return this.#edits.get(id)?.kind;
  }

  /** Gives up what cannot be stored of a book, which is to be deleted. */
  giveUp(id: number): void {
    this.#refused.delete(id);
  }

  /** A book that was deleted has been stored again, with another id: earlier changes are taken back there. */
  follow(id: number, book: Book): void {
    this.#latest.set(id, book).set(book.id, book);
  }

  /** The id that a book has now. */
  idOf(id: number): number {
    const now = this.#latest.get(id)?.id ?? id;
    return now === id ? id : this.idOf(now);
  }

  /** A book as the service last answered it, under the id that it has now. */
  #now(book: Book): Book {
    return this.#latest.get(this.idOf(book.id)) ?? book;
  }

  /** Tries all changes again that could not be stored. Call it when the service answers again. */
  retry(): void {
    for (const edit of this.#edits.values()) if (edit.kind === 'unsaved') this.#again(edit);
  }

  #again(edit: Edit): void {
    this.#set({ ...edit, kind: 'saving' });
    this.#start(edit.before.id);
  }

  #start(id: number): void {
    const storing = this.#store(id).finally(() => this.#storing.delete(id));
    this.#storing.set(id, storing);
  }

  /** Stores the changes of a book, until none is left or they cannot be stored. */
  async #store(id: number): Promise<void> {
    for (;;) {
      const edit = this.#edits.get(id);
      if (edit?.kind !== 'saving') return;
      const { before, changes } = edit;
      try {
        const options = { expected: before };
        this.#stored(await this.#session.call((catalogue) => catalogue.update(id, changes, options)), edit);
      } catch (error) {
        const now = this.#edits.get(id);
        if (now !== undefined) this.#failed(now, changes, error);
      }
    }
  }

  /** The book is stored, with the changes of this edit; others may have been made meanwhile. */
  #stored(book: Book, { changes, takeBacks: stored }: Edit): void {
    const { id } = book;
    this.#latest.set(id, book);
    this.#shelf.replace(id, book);
    const now = this.#edits.get(id);
    if (now !== undefined && now.changes !== changes) {
      const later = FIELDS.filter((field) => field in now.changes && now.changes[field] !== book[field]);
      if (later.length > 0) {
        const takeBacks = now.takeBacks.filter((takeBack) => !stored.includes(takeBack));
        this.#set({
          before: book,
          changes: pick(now.changes, later),
          unanswered: [],
          takeBacks,
          kind: 'saving',
        });
        return;
      }
    }
    this.#saved.add(id);
    setTimeout(() => {
      this.#saved.delete(id);
      this.onRow(id);
    }, SAVED_TIME);
    this.#forget(id);
    announce('Saved');
    this.onStored(book);
  }

  /** @param sent the changes that were sent; others may have been made meanwhile. */
  #failed(edit: Edit, sent: BookChanges, error: unknown): void {
    const { before, changes } = edit;
    const { id } = before;
    if (error instanceof BookChanged && error.current !== undefined) {
      this.#changedBySomebodyElse(edit, error.current);
    } else if (isRefusal(error) && error.status === 404) {
      this.#edits.delete(id);
      this.#refused.delete(id);
      this.onGone({ ...before, ...changes });
    } else if (isRefusal(error) && error.status === 200) {
      this.#set({ ...edit, kind: 'unsaved' }); // until the person tries again: the next answer is no other
      show([...sentence`“${titleOf(before)}” is not stored. `, ALTERED]);
    } else if (isRefusal(error)) {
      this.#discard(edit);
      show([...sentence`“${titleOf(before)}” was not changed: `, `${error.message}.`]);
    } else {
      this.#set({ ...edit, unanswered: [...edit.unanswered, sent], kind: 'unsaved' });
    }
  }

  #changedBySomebodyElse(edit: Edit, theirs: Book): void {
    const { before, changes, unanswered } = edit;
    const fields = FIELDS.filter((field) => field in changes);
    const own = [before, changes, ...unanswered];
    this.#shelf.replace(before.id, theirs);
    if (fields.every((field) => theirs[field] === changes[field])) {
      this.#stored(theirs, edit); // an answer was lost, or somebody else had the same idea
    } else if (fields.every((field) => own.some((one) => one[field] === theirs[field]))) {
      this.#set({ ...edit, before: theirs, kind: 'saving' }); // other fields: both changes are kept
    } else {
      this.#set({ ...edit, kind: 'changed', theirs });
      this.#askWhich(before.id);
    }
  }

  /** Shows both texts, unless the person is busy in another dialog: the button in the row also asks. */
  #askWhich(id: number): void {
    const { before, theirs, changes } = this.#edits.get(id) ?? {};
    if (before === undefined || theirs === undefined || document.querySelector('dialog[open]') !== null)
      return;
    const mine = { ...theirs, ...changes };
    const rows = FIELDS.filter((field) => mine[field] !== theirs[field]).map((field) => {
      const cells = [before, theirs, mine].map((book) =>
        make('td', AS_IT_IS, fieldText(book, field) || NO_VALUE[field]),
      );
      return make('tr', {}, make('th', { scope: 'row' }, FIELD_NAMES[field]), ...cells);
    });
    find('#conflict-fields').replaceChildren(...rows);
    this.#asked = id;
    conflict.showModal();
  }

  #settleConflict(isMine: boolean): void {
    conflict.close();
    refocus();
    const edit = this.#edits.get(this.#asked ?? 0);
    if (edit?.theirs === undefined) return;
    if (isMine) {
      for (const takeBack of edit.takeBacks) this.#undo.drop(takeBack);
      const takeBacks = [this.#noteUndo(edit.theirs, edit.changes)]; // to theirs, which stood there
      this.#again({ ...edit, before: edit.theirs, takeBacks });
    } else {
      this.#discard(edit);
      announce('Theirs was kept');
    }
  }

  /** The button in the row of a book with changes that are not stored. */
  settle({ id }: Book): void {
    const edit = this.#edits.get(id);
    if (edit?.kind === 'unsaved') this.#again(edit);
    else this.#askWhich(id);
  }
}

/** The values of some fields. */
function pick(from: BookChanges, fields: readonly Field[]): BookChanges {
  return Object.fromEntries(fields.map((field) => [field, from[field]]));
}
