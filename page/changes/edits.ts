// Owns: changing and deleting books: what is on its way, what could not be stored, what somebody else has changed meanwhile, and
// the rows of books that are gone.
// Does not: overwrite someone else's change. Only the fields that a person has changed are stored, and only if nobody else has
// changed them since that person saw them; a book is deleted only as that person saw it.

import type { Book, BookChanges } from '../../client/src/book.ts';
import { type BookCatalogue, BookChanged } from '../../client/src/book-catalogue.ts';
import type { State } from '../catalogue/log.ts';
import { ALTERED, isRefusal } from '../catalogue/refusal.ts';
import type { Session } from '../catalogue/session.ts';
import { AS_IT_IS, find, make, refocus, sentence } from '../elements/dom.ts';
import { announce, show } from '../elements/messages.ts';
import { FIELD_NAMES, FIELDS, type Field, fieldText, NO_VALUE, titleOf } from '../elements/text.ts';
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
  /** The book is to be deleted as soon as they are stored. */
  readonly isDeletion: boolean;
  readonly kind: 'saving' | 'unsaved' | 'changed';
  /** If `changed`: the book as somebody else has changed it. */
  readonly theirs?: Book;
}

const conflict = find<HTMLDialogElement>('#conflict');

export class Edits {
  /** Called when the row of a book must be shown again. */
  onRow: (id: number) => void = () => {};
  /** Called with a book that has been changed, as it is now; undefined if it is gone. */
  onStored: (id: number, book: Book | undefined) => void = () => {};
  readonly #session: Session;
  readonly #shelf: Shelf;
  readonly #undo: Undo;
  readonly #edits = new Map<number, Edit>();
  /** The work on each book whose changes are on their way. */
  readonly #storing = new Map<number, Promise<void>>();
  /** Texts that cannot be stored, of each book: until they are corrected or given up. */
  readonly #refused = new Map<number, Readonly<Partial<Record<Field, Refused>>>>();
  readonly #saved = new Set<number>();
  /** Books that are gone, and since when: their rows stay until another search. */
  readonly #gone = new Map<number, { readonly book: Book; readonly at: number }>();
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
    const gone = this.#gone.get(book.id);
    const undo = this.#undo.isOff ? {} : { action: 'Undo' };
    if (gone !== undefined) return { kind: 'deleted', book: gone.book, ...undo };
    if (edit === undefined) {
      const corrects = FIELDS.find((field) => refused?.[field] !== undefined);
      if (refused !== undefined && corrects !== undefined)
        return { kind: 'unsaved', action: 'Correct', refused, corrects };
      return this.#saved.has(book.id) ? { kind: 'saved' } : undefined;
    }
    const { kind, changes, isDeletion } = edit;
    const settles = {
      saving: isDeletion ? undo : {},
      unsaved: { action: 'Try again' },
      changed: { action: 'Compare' },
    };
    return {
      kind: isDeletion ? 'deleted' : kind,
      book: { ...book, ...changes },
      ...settles[kind],
      ...(refused !== undefined && { refused }),
    };
  }

  /** @param book as the person sees it. */
  change(book: Book, changes: BookChanges): void {
    for (const field of fieldsOf(changes)) this.keep(book, field, undefined);
    this.#begin(book, changes);
  }

  /** Deletes a book, with what cannot be stored of it. @param book as the person sees it. */
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
    this.#set({
      before: earlier?.before ?? book,
      changes: { ...earlier?.changes, ...changes },
      unanswered: earlier?.unanswered ?? [],
      isDeletion,
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

  /** Waits for all that is on its way. @returns the title of a book with changes that are not stored yet. */
  async settled(): Promise<string | undefined> {
    while (this.#storing.size > 0) await Promise.all(this.#storing.values());
    const [left] = this.#edits.values();
    return left && titleOf(left.before);
  }

  /**
   * Shows a book as it is after an undo.
   * @param book undefined if it is gone.
   * @param shown in its row then.
   */
  restore(id: number, book: Book | undefined, shown = this.#shelf.at(this.#shelf.placeOf(id) ?? -1)): void {
    this.#gone.delete(id);
    if (book !== undefined) this.#shelf.replace(id, book);
    else if (shown !== undefined) {
      this.#shelf.remove(id);
      this.#gone.set(id, { book: shown, at: performance.now() });
    }
    this.onRow(id);
    this.onStored(id, book);
  }

  /** Forgets the books that were gone before that moment: a search that began then does not find them. */
  forgetGone(before: number): void {
    for (const [id, { at }] of this.#gone) if (at < before) this.#gone.delete(id);
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

  /** Stores the changes of a book, and then its deletion, until none is left or they cannot be stored. */
  async #store(id: number): Promise<void> {
    for (;;) {
      const edit = this.#edits.get(id);
      if (edit?.kind !== 'saving') return;
      const { before, changes } = edit;
      const options = { expected: before };
      try {
        if (fieldsOf(changes).length > 0) {
          const update = (catalogue: BookCatalogue) => catalogue.update(id, changes, options);
          this.#stored(await this.#session.call(update), edit);
        } else {
          await this.#session.call((catalogue) => catalogue.remove(id, options));
          this.#deleted(before, before);
        }
      } catch (error) {
        const now = this.#edits.get(id);
        if (now !== undefined) this.#failed(now, changes, error);
      }
    }
  }

  /** @param before the book in the log before it was deleted. */
  #deleted(book: Book, before: State, changes?: BookChanges): void {
    const { id } = book;
    this.#undo.push({ id, name: titleOf(book), before, after: null, changes });
    this.#edits.delete(id);
    this.#refused.delete(id);
    this.restore(id, undefined, { ...book, ...changes });
    if (changes !== undefined) {
      show(
        sentence`Somebody else has deleted “${titleOf(book)}”. “Undo” in its row brings it back, with your change.`,
      );
    } else announce(`Deleted ${titleOf(book)}. ${this.#undo.isOff ? '' : 'Control Z brings it back.'}`);
  }

  /** Fields of a book have been stored: this can be taken back. */
  #note(before: Book, after: Book, fields: readonly Field[]): void {
    const states = { before: pick(before, fields), after: pick(after, fields) };
    if (fields.length > 0) this.#undo.push({ id: after.id, name: titleOf(after), ...states });
  }

  /** The book is stored, with the changes of this edit; others may have been made meanwhile. */
  #stored(book: Book, { before, changes }: Edit): void {
    const { id } = book;
    this.#shelf.replace(id, book);
    this.#note(before, book, fieldsOf(changes));
    const now = this.#edits.get(id);
    const isLater = now !== undefined && now.changes !== changes;
    const later = isLater ? fieldsOf(now.changes).filter((field) => now.changes[field] !== book[field]) : [];
    if (now !== undefined && (later.length > 0 || now.isDeletion)) {
      this.#set({ ...now, before: book, changes: pick(now.changes, later), unanswered: [] });
      return;
    }
    this.#saved.add(id);
    setTimeout(() => {
      this.#saved.delete(id);
      this.onRow(id);
    }, SAVED_TIME);
    this.#forget(id);
    announce('Saved');
    this.onStored(id, book);
  }

  /** @param sent the changes that were sent; others may have been made meanwhile. */
  #failed(edit: Edit, sent: BookChanges, error: unknown): void {
    const { before, changes, isDeletion } = edit;
    const done = isDeletion ? 'deleted' : 'stored';
    if (error instanceof BookChanged && error.current !== undefined) {
      this.#changedBySomebodyElse(edit, error.current);
    } else if (isRefusal(error) && error.status === 404) {
      this.#deleted(before, {}, isDeletion ? undefined : changes);
    } else if (isRefusal(error) && error.status === 200) {
      this.#set({ ...edit, kind: 'unsaved' }); // until the person tries again: the next answer is no other
      show([...sentence`“${titleOf(before)}” `, `is not ${done}. ${ALTERED}`]);
    } else if (isRefusal(error)) {
      this.#forget(before.id); // there is nothing to undo
      show([...sentence`“${titleOf(before)}” `, `was not ${done}: ${error.message}.`]);
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
      show(sentence`“${titleOf(before)}” was not deleted: somebody else has changed it.`);
      if (fields.length === 0) this.#forget(before.id);
      else this.#set({ ...edit, isDeletion: false }); // which comes back here
    } else if (fields.every((field) => theirs[field] === changes[field])) {
      this.#stored(theirs, edit); // an answer was lost, or somebody else had the same idea
    } else if (fields.every(isOwn)) {
      const arrived = fields.filter((field) => theirs[field] !== before[field]); // of changes whose answers were lost
      this.#note(before, theirs, arrived);
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
      this.#again({ ...edit, before: edit.theirs });
    } else {
      this.#forget(edit.before.id);
      announce('Theirs was kept');
    }
  }

  /** The button in the row of a book. */
  settle(book: Book): void {
    const edit = this.#edits.get(book.id);
    if (edit?.kind === 'unsaved') this.#again(edit);
    else if (edit?.kind === 'changed') this.#askWhich(book.id);
    else void this.#undo.bringBack(book);
  }
}

const fieldsOf = (changes: BookChanges) => FIELDS.filter((field) => field in changes);

/** The values of some fields. */
function pick(from: BookChanges, fields: readonly Field[]): BookChanges {
  return Object.fromEntries(fields.map((field) => [field, from[field]]));
}
