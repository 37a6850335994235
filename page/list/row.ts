// Owns: one row of the list: the texts of a book, what is special about it, its cells and buttons.
// Does not: know other rows, or what a button does.

import type { Book } from '../../client/src/book.ts';
import type { Term } from '../../src/books/words.ts';
import { find } from '../elements/dom.ts';
import { byField, FIELDS, type Field, fieldText, fillMarked, hueOf } from '../elements/text.ts';
import { ELEMENTS } from '../texts/elements.ts';
import type { Refused } from './cell-editor.ts';

/** The column of the buttons, after those of the fields. */
export const ACTIONS = FIELDS.length;

/** What is special about a row. */
export interface RowState {
  readonly kind: 'saving' | 'saved' | 'unsaved' | 'changed' | 'deleted';
  /** The label of the button that settles it. */
  readonly action?: string;
  /** The book as it is shown, with changes that are not stored yet. */
  readonly book?: Book;
  /** Texts of its fields that cannot be stored. */
  readonly refused?: Readonly<Partial<Record<Field, Refused>>>;
  /** The field that the button leads to. */
  readonly corrects?: Field;
}

export class Row {
  readonly element = find('.row', find<HTMLTemplateElement>('#row').content).cloneNode(true) as HTMLElement;
  readonly cells: readonly HTMLElement[] = [...this.element.children] as HTMLElement[];
  index = -1;
  /** The book as it is shown. */
  book: Book | undefined;
  readonly #texts = byField((field) => find(`.${field} .text`, this.element));
  readonly #settle = find('.settle', this.element);

  /** @param wanted words to be marked. */
  fill(index: number, stored: Book | undefined, state: RowState | undefined, wanted: readonly Term[]): void {
    const { element, cells } = this;
    const book = state?.book ?? stored;
    const hadFocus = cells[ACTIONS]?.contains(document.activeElement) === true;
    this.index = index;
    this.book = book;
    element.setAttribute('aria-rowindex', String(index + 2)); // the header is row 1
    element.dataset.index = String(index);
    element.dataset.state = book === undefined ? 'unknown' : (state?.kind ?? '');
    this.#settle.textContent = state?.action ?? '';
    this.#settle.hidden = state?.action === undefined;
    element.style.setProperty('--hue', String(hueOf(book?.author ?? '')));
    for (const [column, field] of FIELDS.entries()) {
      const shown = this.#texts[field];
      const refused = state?.refused?.[field]?.text;
      const text = refused ?? (book === undefined ? '' : fieldText(book, field));
      const isMissing = book !== undefined && text === '';
      shown.classList.toggle('missing', isMissing);
      shown.classList.toggle('refused', refused !== undefined);
      (cells[column] as HTMLElement).ariaInvalid = refused === undefined ? null : 'true';
      if (isMissing) shown.textContent = ELEMENTS.noValues[field];
      else fillMarked(shown, text, field === 'year' ? [] : wanted);
    }
    // The button with the focus may have been replaced by another one, or by none.
    if (hadFocus && this.#buttons.every((button) => button !== document.activeElement)) this.focus(ACTIONS);
  }

  /** Lets Tab reach one cell, or none. */
  reach(column: number | undefined): void {
    for (const [at, cell] of this.cells.entries()) cell.tabIndex = at === column ? 0 : -1;
  }

  /** Moves the focus to a cell, or to the first of its buttons. */
  focus(column: number): void {
    const button = column === ACTIONS ? this.#buttons[0] : undefined;
    (button ?? this.cells[column])?.focus({ preventScroll: true });
  }

  /** Tab goes through the buttons of a row before it leaves the list. */
  tabWithin(event: KeyboardEvent): void {
    const buttons = this.#buttons;
    const next = buttons[buttons.indexOf(event.target as HTMLElement) + (event.shiftKey ? -1 : 1)];
    if (next === undefined) return;
    event.preventDefault();
    next.focus();
  }

  /** Gives a text that is cut a tooltip. */
  explain(): void {
    for (const text of Object.values(this.#texts)) {
      if (text.scrollWidth > text.clientWidth) text.title = text.textContent;
      else text.removeAttribute('title');
    }
  }

  /** Those that can be seen. */
  get #buttons(): HTMLElement[] {
    const buttons = [...this.element.querySelectorAll<HTMLElement>('button')];
    return buttons.filter((button) => button.offsetParent !== null);
  }
}

/** Whether rows have two lines, and no room for fields and buttons (list.css). */
export function isOnPhone(): boolean {
  return matchMedia('(max-width: 40rem)').matches;
}
