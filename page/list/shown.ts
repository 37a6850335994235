// Owns: the view that a person wants, and the one that is shown until its books are here: the words, the chips, the order, the rows,
// the address, the count, and the steps back.

import type { CatalogueEvent } from '../../client/src/book-catalogue.ts';
import { termsOf } from '../../src/books/words.ts';
import type { Session } from '../catalogue/session.ts';
import { find } from '../elements/dom.ts';
import { Chips } from './chips.ts';
import { showCount } from './count.ts';
import type { Grid } from './grid.ts';
import { Nothing } from './nothing.ts';
import type { Found, Shelf } from './shelf.ts';
import { type Spot, Steps } from './steps.ts';
import { ALL, isFiltered, ORDERS, type Order, searchesOf, shownOrder, type View, viewOf } from './view.ts';

/** Milliseconds after the last key before the service is asked. */
const TYPING_PAUSE = 60;

/** Milliseconds before the list turns paler because the next one is late. */
const SLOW = 150;

/** Milliseconds before a search that failed is tried again. */
const RETRY_PAUSE = 2000;

/** Shown while the service makes the index that other views need (rule F11). */
const ENTRIES: View = { ...ALL, order: 'id' };

const root = find('#grid');
const words = find<HTMLInputElement>('#words');
const order = find<HTMLSelectElement>('#order');

export class Shown {
  /** Called when other books are in the list, before they are drawn. @param began when they were asked for, by `performance.now()`. */
  onBooks: (began: number) => void = () => {};
  /** Whose books are in the list: the address, the arrow, the chips, the count and the rows change together, and with it. */
  #view = viewOf(new URL(location.href).searchParams);
  /** Whose books are asked for. */
  #wanted = this.#view;
  /** Where in its list; undefined is the beginning. */
  #spot: Spot | undefined;
  /** Where the reader was when a key in the list went to the search. */
  #strayed: { readonly view: View; readonly spot: Spot; readonly taken: number } | undefined;
  /** Whether the step back leads to the list. */
  #returns = false;
  #request = new AbortController();
  #isSearching = false;
  #isAskingForEntries = false;
  #typing: ReturnType<typeof setTimeout> | undefined;
  readonly #session: Session;
  readonly #shelf: Shelf;
  readonly #grid: Grid;
  readonly #chips: Chips;
  readonly #nothing: Nothing;
  readonly #steps = new Steps((view, spot) => {
    const returns = this.#returns;
    this.#returns = false;
    void this.#showFrom(view, spot).then(() => returns && this.#grid.focus());
  });

  /** @param eventText what an event is called. */
  constructor(
    session: Session,
    shelf: Shelf,
    grid: Grid,
    eventText: (event: CatalogueEvent) => readonly (string | Node)[],
  ) {
    this.#session = session;
    this.#shelf = shelf;
    this.#grid = grid;
    this.#chips = new Chips(
      session,
      () => this.#viewWithWords(),
      (view) => this.show(view),
      eventText,
    );
    this.#nothing = new Nothing(session, (text) => this.show({ ...this.#wanted, words: text }));
    words.value = this.#view.words;
    this.#showOrder();
    words.addEventListener('input', () => {
      root.ariaBusy = 'true';
      clearTimeout(this.#typing);
      this.#typing = setTimeout(() => this.#showTyped(), TYPING_PAUSE);
    });
    words.addEventListener('blur', () => {
      if (this.#typing !== undefined) this.#showTyped(); // later, it would close a field that was opened meanwhile
      this.#strayed = undefined;
      this.#steps.settle();
    });
    words.addEventListener('keydown', (event) => this.#key(event));
    find('.head', root).addEventListener('click', ({ target }) => {
      const field =
        target instanceof Element ? target.closest<HTMLElement>('[data-field]')?.dataset.field : undefined;
      const isUp = shownOrder(this.#wanted) === field;
      const next = ORDERS.find((known) => known === (isUp ? `-${field}` : field));
      if (next !== undefined) this.show({ ...this.#viewWithWords(), order: next });
    });
    order.addEventListener('change', () => {
      this.#steps.want('typing'); // with the keyboard, a person passes through other orders
      void this.#showFrom({ ...this.#viewWithWords(), order: order.value as Order });
    });
    order.addEventListener('blur', () => this.#steps.settle());
  }

  get view(): View {
    return this.#view;
  }

  /** A person has chosen other books. */
  show(view: View): void {
    this.#steps.want('choice');
    void this.#showFrom(view);
  }

  /** Shows all books, in the present order if no other one is given. */
  showAll(order: Order = this.#wanted.order): void {
    this.show({ ...ALL, order });
  }

  /** Shows all books, with the focus in the search. */
  clear(): void {
    words.value = '';
    words.focus();
    this.showAll();
  }

  /** Shows the same view again, at the same place: books have come or gone. */
  reload(): void {
    void this.#search(true);
    this.#chips.countSoon();
  }

  /** Books that were changed here have moved others: shows the list as it is now. */
  follow(): void {
    if (root.ariaBusy !== 'true') void this.#search(true); // one at a time, however far the reader scrolls
  }

  /** Shows the view of the address, the first time. */
  async begin(): Promise<void> {
    await this.#search(false);
    void this.#chips.count();
  }

  /** A character that is typed in the list goes to the search. */
  stray(): void {
    this.#strayed = { view: this.#view, spot: this.#grid.spot, taken: this.#steps.taken };
    words.focus();
    words.setSelectionRange(words.value.length, words.value.length);
  }

  /** Shows how many books are in the list. @param isSaid whether a screen reader says it. */
  count(isSaid = true): void {
    const isOther = this.#view === ENTRIES ? isFiltered(this.#wanted) : !this.#session.reach.isHere;
    const isLate = this.#wanted !== this.#view && isOther;
    showCount(this.#shelf, this.#view, { isLate, isSaid, isMaking: this.#view === ENTRIES });
    if (this.#nothing.draw(this.#shelf.total === 0 ? this.#view : undefined)) this.#grid.focus();
    this.#chips.draw(this.#view, this.#shelf);
  }

  /** Counts again: books were changed, which has been said, or the service is back. */
  countAgain(): void {
    this.count(false);
    this.#chips.countSoon();
  }

  /** Shows other books, from the beginning or from a spot. A field is left: it stops nothing. */
  #showFrom(view: View, spot?: Spot): Promise<void> {
    clearTimeout(this.#typing);
    this.#typing = undefined;
    this.#grid.leaveField();
    this.#wanted = view;
    this.#spot = spot;
    if (words.value.trim() !== view.words.trim()) words.value = view.words;
    return this.#search(false);
  }

  #showTyped(): void {
    this.#steps.want('typing');
    void this.#showFrom(this.#viewWithWords());
  }

  /** What is wanted, with the words as they are in the field: somebody may be typing them. */
  #viewWithWords(): View {
    return { ...this.#wanted, words: words.value };
  }

  /**
   * Searches for what is wanted. Everything stays as it is until the answer is here.
   * @param staysInPlace whether the reader's place is kept.
   */
  async #search(staysInPlace: boolean): Promise<void> {
    this.#request.abort();
    this.#request = new AbortController();
    const { signal } = this.#request;
    const grid = this.#grid;
    const next = this.#wanted;
    const staysHere = staysInPlace && next === this.#view; // the place in other books means nothing
    const isSlow = () => this.#session.reach.isHere && root.ariaBusy === 'true';
    const slow = setTimeout(() => root.classList.toggle('slow', isSlow()), SLOW);
    root.ariaBusy = 'true';
    this.#isSearching = true;
    const began = performance.now();
    let found: Found;
    try {
      found = await this.#find(next, staysHere ? grid.first : (this.#spot?.first ?? 0), signal);
    } catch {
      if (!signal.aborted) setTimeout(() => !signal.aborted && void this.#search(staysInPlace), RETRY_PAUSE);
      return;
    } finally {
      clearTimeout(slow);
    }
    if (signal.aborted) return;
    root.classList.remove('slow');
    const { editing } = grid;
    if (editing !== undefined) {
      // A field that is being edited stays where it is. Once it is closed, the search is repeated, since a book may have changed.
      await editing;
      if (!signal.aborted) await this.#search(staysInPlace);
      return;
    }
    this.#isSearching = false;
    const left = grid.spot;
    this.#put(next, found, began, staysHere);
    this.#spot = undefined;
    this.#steps.show(next, left);
    void this.#nothing.suggest(signal);
    // Looks for books that were not indexed yet, as long as nothing else is shown.
    if (this.#shelf.unindexed > 0) setTimeout(() => !signal.aborted && this.reload(), RETRY_PAUSE);
  }

  /** The service cannot answer a search for now. If it makes its index, all books are shown until it can, in an order without one. */
  async showEntries(): Promise<void> {
    if (!this.#isSearching || this.#isAskingForEntries) return;
    const { signal } = this.#request;
    const staysHere = this.#view === ENTRIES;
    this.#isAskingForEntries = true;
    const began = performance.now();
    const found = await this.#find(ENTRIES, staysHere ? this.#grid.first : 0, signal).catch(() => undefined);
    this.#isAskingForEntries = false;
    if (!this.#isSearching || signal.aborted || this.#grid.editing !== undefined) return;
    if (found !== undefined && found.page.unindexed > 0) this.#put(ENTRIES, found, began, staysHere);
  }

  /** Puts a view in the place of the one that is shown. */
  #put(view: View, found: Found, began: number, staysHere: boolean): void {
    const grid = this.#grid;
    const hadFocus = root.contains(document.activeElement);
    root.ariaBusy = 'false';
    root.classList.remove('slow');
    this.#shelf.show(found);
    this.#view = view;
    this.onBooks(began);
    grid.wanted = termsOf(this.#shelf.shown.q ?? '');
    if (staysHere) grid.redraw();
    else grid.restart(view === ENTRIES ? undefined : this.#spot);
    this.#showOrder();
    this.count(!staysHere);
    if (hadFocus && this.#shelf.total === 0) words.focus();
  }

  /** Of the searches for a view, the first that finds books counts. */
  async #find(view: View, place: number, signal: AbortSignal): Promise<Found> {
    let found: Found | undefined;
    for (const search of searchesOf(view)) {
      found = await this.#shelf.find(search, place, signal);
      if (found.page.books.length > 0) break;
    }
    return found as Found;
  }

  #showOrder(): void {
    const shown = shownOrder(this.#view);
    order.value = shown;
    find('[value=best]', order).hidden = shown !== 'best' && this.#view.words === '';
    for (const header of root.querySelectorAll<HTMLElement>('[data-field]')) {
      const isUp = shown === header.dataset.field;
      const isDown = shown === `-${header.dataset.field}`;
      header.ariaSort = isUp ? 'ascending' : isDown ? 'descending' : 'none';
    }
  }

  #key(event: KeyboardEvent): void {
    if (event.key === 'Escape' && this.#strayed !== undefined) {
      event.preventDefault();
      const { view, spot, taken } = this.#strayed;
      this.#strayed = undefined;
      if (this.#steps.taken > taken) {
        this.#returns = true;
        history.back();
      } else void this.#showFrom(view, spot).then(() => this.#grid.focus());
    } else if (event.key === 'Escape' && words.value !== '') {
      event.preventDefault();
      this.clear();
    } else if (event.key === 'ArrowDown' || event.key === 'Enter') {
      event.preventDefault();
      this.#grid.focus();
    }
  }
}
