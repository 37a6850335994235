// Owns: the rows in sight, of however many there are; the cell with the focus, and the keys of the list.
// Does not: write a book into its row (row.ts), or store changes: it reports edits and deletions to its caller.

import type { Book } from '../../client/src/book.ts';
import type { Term } from '../../src/books/words.ts';
import { find } from '../elements/dom.ts';
import { goalOf, typesCharacter } from '../elements/keyboard.ts';
import { FIELDS, type Field, fieldText } from '../elements/text.ts';
import { ELEMENTS } from '../texts/elements.ts';
import { LIST } from '../texts/list.ts';
import { CellEditor, type Onward, type Refused } from './cell-editor.ts';
import { LongScroll } from './long-scroll.ts';
import { ACTIONS, isOnPhone, Row, type RowState } from './row.ts';
import type { Shelf } from './shelf.ts';
import { type Spot, TOP } from './steps.ts';

/** Rows above and below those in sight, so that a move finds them ready. */
const SPARE_ROWS = 8;

/** Milliseconds that a place must stay in sight after a long move before its books are requested, and texts are measured. */
const SETTLE = 60;

/** What a person wants of the list. */
export interface GridEvents {
  stateOf(book: Book): RowState | undefined;
  /** @returns why the text cannot be the value of this field; undefined if it can. */
  edit(book: Book, field: Field, text: string): string | undefined;
  /** A field was closed. @param refused its text, if that cannot be stored. */
  leave(book: Book, field: Field, refused: Refused | undefined): void;
  /** Edit a book in a dialog: there is no room in the row. */
  open(book: Book): void;
  delete(book: Book): void;
  history(book: Book): void;
  /** The button of the row's state. */
  settle(book: Book): void;
  /** A character is being typed on a cell: it goes to the field that gets the focus. */
  type(): void;
  /** The reader has scrolled. */
  moved(first: number, isLong: boolean): void;
}

export class Grid {
  /** Words to be marked. */
  wanted: readonly Term[] = [];
  readonly #root: HTMLElement;
  readonly #body: HTMLElement;
  readonly #all: HTMLElement;
  readonly #shelf: Shelf;
  readonly #events: GridEvents;
  readonly #scroll: LongScroll;
  readonly #editor = new CellEditor();
  readonly #rows = new Map<number, Row>();
  readonly #spare: Row[] = [];
  #rowHeight = 46; // pixels
  #active = { index: 0, column: 0 };
  #frame = 0;
  #settle: ReturnType<typeof setTimeout> | undefined;
  #explaining: ReturnType<typeof setTimeout> | undefined;
  /** The cell that had the focus when the pointer went down. */
  #pressed: Element | null = null;

  constructor(root: HTMLElement, shelf: Shelf, events: GridEvents) {
    this.#root = root;
    this.#body = find('.body', root);
    this.#all = find('.all', root);
    this.#shelf = shelf;
    this.#events = events;
    this.#scroll = new LongScroll(this.#body, this.#all, (isLong) => {
      events.moved(this.first, isLong);
      this.#frame ||= requestAnimationFrame(() => {
        this.#frame = 0;
        this.#render(isLong);
      });
    });
    new ResizeObserver(() => this.layOut()).observe(this.#body);
    this.#body.addEventListener('keydown', (event) => this.#key(event));
    this.#body.addEventListener('pointerdown', () => {
      this.#pressed = document.activeElement;
    });
    this.#body.addEventListener('click', (event) => this.#click(event));
    this.#body.addEventListener('focusin', (event) => this.#focused(event));
  }

  /** The index of the first row in sight. */
  get first(): number {
    return Math.floor(this.#scroll.top / this.#rowHeight);
  }

  /** While a cell is a field: resolves when it is not. */
  get editing(): Promise<void> | undefined {
    return this.#editor.closing;
  }

  /** The book of the row that an element is in. */
  bookOf(element: Element | null): Book | undefined {
    return this.#placeOf(element)?.row.book;
  }

  /** Closes the field, if there is one, as if the focus had left it. */
  leaveField(): void {
    this.#editor.leave();
  }

  /**
   * Measures the rows and shows those in sight. A focus in the list stays in it. Call it after the number of books has
   * changed.
   */
  layOut(): void {
    const height = find('.one', this.#root).getBoundingClientRect().height;
    const { top } = this.#scroll;
    if (height > 0 && height !== this.#rowHeight) {
      this.#scroll.top = (top / this.#rowHeight) * height;
      this.#rowHeight = height;
    }
    this.#scroll.resize(this.#shelf.total * this.#rowHeight);
    this.#root.classList.toggle('long', this.#body.scrollHeight > this.#body.clientHeight);
    this.#root.setAttribute('aria-rowcount', this.#shelf.isCounted ? String(this.#shelf.total + 1) : '-1');
    const hadFocus = this.#body.contains(document.activeElement);
    this.#render();
    this.#explainSoon(); // the columns may have become wider or narrower
    if (hadFocus && !this.#body.contains(document.activeElement)) this.focus();
  }

  get spot(): Spot {
    return { first: this.first, ...this.#active };
  }

  /** Shows the list of another search, from its beginning or from where the reader was. */
  restart({ first, index, column }: Spot = { ...TOP, column: this.#active.column }): void {
    this.#active = { index, column };
    const hadFocus = this.#body.contains(document.activeElement);
    this.#scroll.moveTo(0);
    this.redraw();
    this.#scroll.moveTo(first * this.#rowHeight);
    this.#render();
    this.#events.moved(this.first, false);
    if (hadFocus) this.focus();
  }

  /** Lays the list out and fills every row again. */
  redraw(): void {
    this.layOut();
    this.refresh();
  }

  /** Fills rows again: those from one place up to before another. */
  refresh(from = 0, to = Number.POSITIVE_INFINITY): void {
    for (const row of this.#rows.values())
      if (row.index >= from && row.index < to) this.#fill(row, row.index);
  }

  /** Fills the row of a book again, if it is in sight. */
  refreshBook(id: number): void {
    for (const row of this.#rows.values())
      if (this.#shelf.at(row.index)?.id === id) this.#fill(row, row.index);
  }

  /** Moves the focus into the list. */
  focus(): void {
    this.#show(this.#active.index, this.#active.column);
  }

  #render(isLong = false): void {
    const { total } = this.#shelf;
    const visible = Math.ceil(this.#body.clientHeight / this.#rowHeight);
    const first = Math.max(0, this.first - SPARE_ROWS);
    const last = Math.min(total - 1, this.first + visible + SPARE_ROWS);
    for (const [index, row] of this.#rows) {
      if (index >= first && index <= last) continue;
      // The row with the focus or a field stays, however far the reader scrolls.
      const isInUse =
        row.element.contains(document.activeElement) || row.element.contains(this.#editor.cell ?? null);
      if (index < total && isInUse) continue;
      this.#rows.delete(index);
      row.element.remove();
      this.#spare.push(row);
    }
    // The rows are in the same order in the document, where screen readers read them one after the other.
    let after = this.#rows.values().find(({ index }) => index > last)?.element ?? null;
    for (let index = last; index >= first; index -= 1) {
      let row = this.#rows.get(index);
      if (row === undefined) {
        row = this.#spare.pop() ?? new Row();
        this.#rows.set(index, row);
        this.#fill(row, index);
        this.#all.insertBefore(row.element, after);
      }
      after = row.element;
    }
    const { shift } = this.#scroll;
    for (const [index, row] of this.#rows) {
      row.element.style.transform = `translateY(${index * this.#rowHeight + shift}px)`;
    }
    clearTimeout(this.#settle);
    if (isLong) this.#settle = setTimeout(() => this.#shelf.want(first, last), SETTLE);
    else this.#shelf.want(first, last);
  }

  #fill(row: Row, index: number): void {
    const stored = this.#shelf.at(index);
    row.fill(index, stored, stored && this.#events.stateOf(stored), this.wanted);
    row.reach(index === this.#active.index ? this.#active.column : undefined);
    this.#explainSoon();
  }

  /** Later, since measuring takes a layout of all rows. */
  #explainSoon(): void {
    this.#explaining ??= setTimeout(() => {
      this.#explaining = undefined;
      for (const row of this.#rows.values()) row.explain();
    }, SETTLE);
  }

  /** Moves the focus to a cell, and the list so that it is in sight. */
  #show(index: number, column: number): void {
    const { total } = this.#shelf;
    if (total === 0) return;
    this.#setActive(Math.max(0, Math.min(index, total - 1)), Math.max(0, Math.min(column, ACTIONS)));
    const top = this.#active.index * this.#rowHeight;
    const height = this.#body.clientHeight;
    if (top < this.#scroll.top) this.#scroll.moveTo(top);
    else if (top + this.#rowHeight > this.#scroll.top + height)
      this.#scroll.moveTo(top + this.#rowHeight - height);
    this.#render();
    this.#events.moved(this.first, false);
    this.#rows.get(this.#active.index)?.focus(this.#active.column);
  }

  /** The one cell that Tab reaches. */
  #setActive(index: number, column: number): void {
    this.#rows.get(this.#active.index)?.reach(undefined);
    this.#active = { index, column };
    this.#rows.get(index)?.reach(column);
  }

  #placeOf(target: EventTarget | null): { readonly row: Row; readonly column: number } | undefined {
    const element = target instanceof Element ? target.closest<HTMLElement>('.row') : null;
    const row = this.#rows.get(Number(element?.dataset.index ?? -1));
    if (row === undefined || row.element !== element) return undefined;
    return { row, column: row.cells.findIndex((cell) => cell.contains(target as Node)) };
  }

  #focused({ target }: FocusEvent): void {
    const place = this.#placeOf(target);
    if (place === undefined || place.column < 0) return;
    this.#setActive(place.row.index, place.column);
    const isLow = (place.row.index - this.first) * this.#rowHeight > this.#body.clientHeight / 2;
    place.row.element.classList.toggle('low', isLow);
  }

  #click({ target }: MouseEvent): void {
    const place = this.#placeOf(target);
    const book = place?.row.book;
    if (place === undefined || book === undefined || !(target instanceof Element)) return;
    const action = target.closest<HTMLElement>('[data-row-action]')?.dataset.rowAction;
    const cell = place.row.cells[place.column];
    if (action !== undefined) this.#act(action, place.row.index, book);
    else if (isOnPhone() || (cell !== undefined && cell === this.#pressed))
      this.#edit(place.row.index, place.column);
  }

  #act(action: string, index: number, book: Book): void {
    const { corrects } = this.#events.stateOf(book) ?? {};
    if (action === 'edit') this.#edit(index, 0);
    else if (action === 'history') this.#events.history(book);
    else if (action === 'settle' && corrects !== undefined) this.#edit(index, FIELDS.indexOf(corrects));
    else {
      if (action === 'delete') this.#events.delete(book);
      else this.#events.settle(book);
      this.#show(index, ACTIONS); // its button has been replaced
    }
  }

  #key(event: KeyboardEvent): void {
    const place = this.#placeOf(event.target);
    if (place === undefined) return;
    if (event.target instanceof HTMLInputElement) return; // the field's own
    const { index, book } = place.row;
    const { column } = place;
    const { key } = event;
    const isCommand = event.ctrlKey || event.metaKey;
    const onButton = event.target instanceof HTMLButtonElement;
    const screen = Math.max(1, Math.floor(this.#body.clientHeight / this.#rowHeight) - 1);
    const goal = goalOf(key, isCommand, [index, column], [this.#shelf.total - 1, ACTIONS], screen);
    if (goal !== undefined) {
      event.preventDefault();
      this.#show(...goal);
    } else if (onButton && key === 'Tab') {
      place.row.tabWithin(event);
    } else if (onButton && (key === 'Enter' || key === ' ')) {
      return; // the button's own
    } else if (book !== undefined && column !== ACTIONS && (key === 'Enter' || key === 'F2')) {
      event.preventDefault();
      this.#edit(index, column);
    } else if (book !== undefined && (key === 'Delete' || (key === 'Backspace' && isCommand))) {
      event.preventDefault();
      if (this.#isChangeable(book)) this.#events.delete(book);
    } else if (typesCharacter(event)) {
      this.#events.type();
    }
  }

  #isChangeable(book: Book): boolean {
    const kind = this.#events.stateOf(book)?.kind;
    return kind !== 'deleted' && kind !== 'changed';
  }

  /** Makes a field of a cell, or opens the book where there is no room for fields. */
  #edit(index: number, column: number): void {
    this.#show(index, column);
    const field = FIELDS[column];
    const row = this.#rows.get(index);
    const cell = row?.cells[column];
    const book = row?.book;
    if (book === undefined) return;
    if (this.#events.stateOf(book)?.kind === 'changed') this.#events.settle(book); // this comes first
    if (!this.#isChangeable(book)) return;
    if (isOnPhone()) return void this.#events.open(book);
    if (field === undefined || cell === undefined) return;
    this.#editor.open({
      cell,
      text: fieldText(book, field),
      refused: this.#events.stateOf(book)?.refused?.[field],
      label: LIST.fieldOf(ELEMENTS.fields[field], book.title),
      placeholder: field === 'year' ? '1605 or 750 BC' : '',
      store: (text) => this.#events.edit(book, field, text),
      closed: (onward, refused) => {
        this.#events.leave(book, field, refused);
        this.#edited(index, column, onward);
      },
    });
  }

  #edited(index: number, column: number, onward: Onward): void {
    const row = this.#rows.get(index);
    if (row !== undefined) this.#fill(row, index);
    const next = column + (onward === 'next' ? 1 : -1);
    if (onward === 'stay') this.#show(index, column);
    else if (onward !== 'elsewhere') {
      this.#show(index, next);
      if (FIELDS[next] !== undefined) this.#edit(index, next);
    }
  }
}
