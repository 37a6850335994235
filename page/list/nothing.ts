// Owns: what stands in place of the list if there are no books: why, words nearby that find some, and what else to do.

import type { Suggestion } from '../../client/src/search.ts';
import type { Session } from '../catalogue/session.ts';
import { button, find, make } from '../elements/dom.ts';
import { announce } from '../elements/messages.ts';
import { LIST } from '../texts/list.ts';
import { AS_IT_IS } from '../texts/sentence.ts';
import { correctionOf, isFiltered, type View } from './view.ts';

const root = find('#grid');
const place = find('#nothing');
const near = find('#nothing-near');

export class Nothing {
  readonly #session: Session;
  readonly #search: (words: string) => void;
  #view: View | undefined;

  /** @param search shows what other words find. */
  constructor(session: Session, search: (words: string) => void) {
    this.#session = session;
    this.#search = search;
  }

  /**
   * @param view undefined if there are books.
   * @returns whether the list has taken the place of something that had the focus.
   */
  draw(view: View | undefined): boolean {
    const hadFocus = place.contains(document.activeElement);
    const isOther = view !== this.#view;
    this.#view = view;
    root.classList.toggle('nothing', view !== undefined);
    place.hidden = view === undefined;
    if (isOther) near.hidden = true;
    const isEmpty = view !== undefined && !isFiltered(view);
    find('#chips').hidden = isEmpty;
    if (view === undefined) return hadFocus;
    const name = view.words.trim();
    const { event, year, isAuthorless } = view;
    const isPart = event !== undefined || year !== undefined || isAuthorless;
    const isGone = event !== undefined && name === '';
    const found = isGone ? LIST.goneEvent : isPart ? LIST.notInPart : LIST.notFound;
    const { title, advice } = isEmpty ? LIST.empty : found;
    find('#nothing-title').replaceChildren(...(name === '' ? [title] : LIST.nothingMatches(name)));
    find('#nothing-advice').textContent = advice;
    const add = find('#nothing-add');
    add.className = isEmpty ? 'primary' : 'link';
    add.replaceChildren(make('span', {}, ...(name === '' ? [LIST.add] : LIST.addNamed(name))));
    for (const id of ['import', 'examples']) find(`#nothing-${id}`).hidden = !isEmpty;
    find('#nothing-all').hidden = isEmpty;
    return false;
  }

  /** Asks the service which words were meant in the view that finds nothing. */
  async suggest(signal: AbortSignal): Promise<void> {
    const correction = this.#view && correctionOf(this.#view);
    if (correction === undefined) return;
    const { search, wordsWith } = correction;
    const suggestions = await this.#session
      .call((catalogue) => catalogue.suggest(search, { signal }))
      .catch(() => []);
    if (signal.aborted || suggestions.length === 0) return;
    const offers = suggestions.map(({ value, books }: Suggestion) => {
      const search = () => this.#search(wordsWith(value));
      return [button(value, search, { ...AS_IT_IS, class: 'link' }), books] as const;
    });
    near.replaceChildren(...LIST.didYouMean(offers));
    near.hidden = false;
    announce(near.textContent);
  }
}
