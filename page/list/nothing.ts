// Owns: what stands in place of the list if there are no books: why, words nearby that find some, and what else to do.

import type { Suggestion } from '../../client/src/search.ts';
import type { Session } from '../catalogue/session.ts';
import { AS_IT_IS, button, find, make, sentence } from '../elements/dom.ts';
import { announce } from '../elements/messages.ts';
import { counted } from '../elements/text.ts';
import { correctionOf, isFiltered, type View } from './view.ts';

const EMPTY = [
  'No books yet',
  'Add the first book, or import a file. Import can also undo the examples.',
] as const;
const NOT_FOUND = ['No such books', 'Try fewer letters, or another spelling.'] as const;
const NOT_IN_PART = [
  'No such books',
  'Press the chosen button above the list again to search all books.',
] as const;
const NO_EVENT = [
  'No books of this change are here',
  'They were removed since, or the log of changes no longer has it.',
] as const;

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
    const found = event !== undefined && name === '' ? NO_EVENT : isPart ? NOT_IN_PART : NOT_FOUND;
    const [title, advice] = isEmpty ? EMPTY : found;
    find('#nothing-title').replaceChildren(...(name === '' ? [title] : sentence`Nothing matches “${name}”`));
    find('#nothing-advice').textContent = advice;
    const add = find('#nothing-add');
    add.className = isEmpty ? 'primary' : 'link';
    add.replaceChildren(make('span', {}, ...(name === '' ? ['Add a book'] : sentence`Add “${name}”`)));
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
    const offers = suggestions.flatMap(({ value, books }: Suggestion, at: number) => [
      at === 0 ? 'Did you mean ' : at === suggestions.length - 1 ? ' or ' : ', ',
      button(value, () => this.#search(wordsWith(value)), { ...AS_IT_IS, class: 'link' }),
      ` (${books === null ? 'more than 1,000 books' : counted(books, 'book')})`,
    ]);
    near.replaceChildren(...offers, '?');
    near.hidden = false;
    announce(near.textContent);
  }
}
