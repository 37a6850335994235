// Owns: the chips above the list: those that narrow or order what is shown, and how many books lack something.

import type { CatalogueEvent } from '../../client/src/book-catalogue.ts';
import type { Session } from '../catalogue/session.ts';
import { find, icon, make } from '../elements/dom.ts';
import { LIST } from '../texts/list.ts';
import type { Shelf } from './shelf.ts';
import { ALL, isRange, searchesOf, type View, type Years, yearsIn } from './view.ts';

/** Milliseconds after a change before it is counted again what is missing. */
const COUNT_PAUSE = 200;

const LACKING = { 'no-year': LIST.withoutYear, 'no-author': LIST.withoutAuthor } as const;

type ChipName = 'newest' | 'no-year' | 'no-author' | 'year' | 'event';

export class Chips {
  readonly #session: Session;
  readonly #eventText: (event: CatalogueEvent) => readonly (string | Node)[];
  /** The event that its chip names. */
  #event: string | undefined;
  /** How many of the books that the words find lack something, as counted last. */
  readonly #missing = { 'no-year': 0, 'no-author': 0 };
  /** Asks for the numbers of the present words. */
  #request = new AbortController();
  #shown = ALL;
  #counting: ReturnType<typeof setTimeout> | undefined;

  /**
   * @param view that is shown, with the words as they are in the field.
   * @param show is called with the view that a chip leads to.
   * @param eventText what an event is called.
   */
  constructor(
    session: Session,
    view: () => View,
    show: (view: View) => void,
    eventText: (event: CatalogueEvent) => readonly (string | Node)[],
  ) {
    this.#session = session;
    this.#eventText = eventText;
    for (const element of document.querySelectorAll<HTMLElement>('[data-chip]'))
      element.addEventListener('click', () => show(viewAfter(element.dataset.chip as ChipName, view())));
  }

  /** Shows which chips a view has pressed. One that tells a number has that of the books found. */
  draw(view: View, { isCounted, count, shown }: Pick<Shelf, 'isCounted' | 'count' | 'shown'>): void {
    const { words, order, isAuthorless, event } = view;
    if (words !== this.#shown.words || event !== this.#shown.event) {
      this.#missing['no-year'] = 0; // those of other books
      this.#missing['no-author'] = 0;
      this.countSoon();
    }
    this.#shown = view;
    if (view.year === 0 && isCounted) this.#setMissing('no-year', count.found);
    if (isAuthorless && isCounted) this.#setMissing('no-author', count.found);
    const isOfYears = shown.year_gte !== undefined || shown.year_lte !== undefined;
    const year = yearChip(view);
    chip('year').replaceChildren(...(year === undefined ? [] : [make('span', {}, year)]));
    if (isOfYears) chip('year').append(icon('close-icon'));
    if (event !== this.#event) void this.#nameEvent(event);
    offer('newest', order === '-id', true);
    this.#offerMissing();
    offer('year', Boolean(view.year) || isOfYears, year !== undefined);
    offer('event', event !== undefined, false);
  }

  #offerMissing(): void {
    offer('no-year', this.#shown.year === 0, this.#missing['no-year'] > 0);
    offer('no-author', this.#shown.isAuthorless === true, this.#missing['no-author'] > 0);
  }

  async #nameEvent(event: string | undefined): Promise<void> {
    this.#event = event;
    const name = (...text: readonly (string | Node)[]) =>
      chip('event').replaceChildren(make('span', {}, ...text), icon('close-icon'));
    name(LIST.oneChange);
    const found = event && (await this.#session.call((one) => one.event(event)).catch(() => undefined));
    if (found && event === this.#event) name(...this.#eventText(found));
  }

  countSoon(): void {
    clearTimeout(this.#counting);
    this.#counting = setTimeout(() => void this.count(), COUNT_PAUSE);
  }

  /** Counts what is missing in the books that the words find: these chips are shown only if something is. */
  async count(): Promise<void> {
    this.#request.abort();
    this.#request = new AbortController();
    const { signal } = this.#request;
    const { words, event } = this.#shown;
    for (const [name, lacking] of [
      ['no-year', { year: 0 }],
      ['no-author', { isAuthorless: true }],
    ] as const) {
      const [first] = searchesOf({ ...ALL, ...lacking, words, event });
      const search = { ...first, sort: 'id', limit: 1 }; // in the order that costs the least
      const page = await this.#session
        .call((catalogue) => catalogue.page(search, { count: true, signal }))
        .catch(() => undefined);
      if (signal.aborted) return;
      if (page?.total === undefined) continue; // counting takes the service too long
      this.#setMissing(name, page.total);
      this.#offerMissing();
    }
  }

  #setMissing(name: keyof typeof LACKING, count: number): void {
    this.#missing[name] = count;
    chip(name).textContent = LACKING[name](count);
  }
}

function chip(name: ChipName): HTMLElement {
  return find(`[data-chip=${name}]`);
}

/** Shows a chip if it is useful. One that is pressed stays, so that it can be released. */
function offer(name: ChipName, isPressed: boolean, isUseful: boolean): void {
  const one = chip(name);
  const isHidden = one.textContent === '' || !(isUseful || isPressed);
  if (isHidden && one === document.activeElement) find('#words').focus();
  one.ariaPressed = String(isPressed);
  one.hidden = isHidden;
}

/** The years of a view, for its chip. */
function yearChip({ words, year }: View): string | undefined {
  if (year) return LIST.inYear(year);
  const years = yearsIn(words);
  return years && yearsText(years);
}

function yearsText({ from, to }: Years): string {
  if (from === undefined) return LIST.until(to as number);
  if (to === undefined) return LIST.since(from);
  return from === to ? LIST.inYear(from) : LIST.fromTo(from, to);
}

/** What a chip shows when it is pressed. */
function viewAfter(name: ChipName, view: View): View {
  const { words, order, year, isAuthorless, event } = view;
  const years = yearsIn(words);
  switch (name) {
    case 'newest':
      return { ...view, order: order === '-id' ? ALL.order : '-id' };
    case 'event':
      return { ...view, event: undefined };
    case 'no-year':
      return { words, order, event, year: year === 0 ? undefined : 0 };
    case 'no-author':
      return { words, order, event, isAuthorless: isAuthorless ? undefined : true };
    case 'year': // a range is taken off, a single year becomes a filter
      return {
        words: years?.others ?? words,
        order,
        event,
        year: years && !isRange(years) ? years.from : undefined,
      };
  }
}
