// Owns: the history of a book: its states, the newest first, and bringing an older one back.

import { type Book, type BookChanges, isSameBook } from '../../client/src/book.ts';
import type { BookState } from '../../client/src/book-catalogue.ts';
import type { Log } from '../catalogue/log.ts';
import type { Undo } from '../changes/undo.ts';
import { button, find, make, warning } from '../elements/dom.ts';
import { bookText, FIELDS, titleOf } from '../elements/text.ts';
import { dayText, timeText } from '../texts/english.ts';
import { LOG } from '../texts/log.ts';
import { asItIs } from '../texts/sentence.ts';
import { changeText } from './words.ts';

const dialog = find<HTMLDialogElement>('#log');
const content = find('#log-content');

/** Changes a book, as a person does. */
export type Change = (book: Book, fields: BookChanges) => void;

export class BookHistory {
  readonly #log: Log;
  readonly #undo: Undo;
  readonly #change: Change;
  readonly #all: () => void;
  #request = new AbortController();

  /** @param all shows the changes of all books. */
  constructor(log: Log, undo: Undo, change: Change, all: () => void) {
    this.#log = log;
    this.#undo = undo;
    this.#change = change;
    this.#all = all;
    dialog.addEventListener('close', () => this.leave());
  }

  /** A late answer changes nothing from now on. */
  leave(): void {
    this.#request.abort();
  }

  async open(id: number): Promise<void> {
    this.#request.abort();
    this.#request = new AbortController();
    const { signal } = this.#request;
    const title = find('#log-title');
    title.textContent = LOG.history;
    const all = button(LOG.allBooks, this.#all, { class: 'link' });
    const show = (part: Node) => content.replaceChildren(part, make('section', {}, all));
    show(make('p', { class: 'hint' }, LOG.looking));
    if (!dialog.open) dialog.showModal();
    title.focus();
    try {
      const states = await this.#log.history(id, signal);
      const { book } = states.find((state) => state.book !== null) ?? {};
      if (book) title.replaceChildren(...LOG.historyOf(titleOf(book)));
      const lines = states.map((_, at) => this.#lineOf(states, at));
      show(make('ul', { class: 'events' }, ...lines));
    } catch (error) {
      if (!signal.aborted) show(warning((error as Error).message));
    }
  }

  #lineOf(states: readonly BookState[], at: number): HTMLElement {
    const { change, at: moment, book } = states[at] as BookState;
    const before = states[at + 1]?.book ?? null;
    const isFirst = at === states.length - 1;
    const what = isFirst && change === null ? [LOG.asItWas] : changeText({ id: 0, before, book });
    const time = make('time', { datetime: moment }, LOG.dayAndTime(dayText(moment), timeText(moment)));
    const text = make('p', { class: 'hint' }, time);
    if (book !== null) text.append(': ', asItIs(bookText(book)));
    const line = make('li', {}, make('div', {}, make('p', {}, make('b', {}, ...what)), text));
    const latest = states[0]?.book ?? null;
    if (book === null || (latest !== null && isSameBook(book, latest))) return line;
    const label = LOG.buttonOf(LOG.bringBack, bookText(book));
    const bringBack = () => void this.#bringBack(latest, book);
    line.append(button(LOG.bringBack, bringBack, { class: 'link', 'aria-label': label }));
    return line;
  }

  async #bringBack(latest: Book | null, book: Book): Promise<void> {
    dialog.close();
    if (latest === null) await this.#undo.bringBack(book); // in its state before the removal
    const now = latest ?? (await this.#log.find(book.id));
    if (now === undefined || isSameBook(now, book)) return;
    const fields = FIELDS.filter((field) => now[field] !== book[field]);
    this.#change(now, Object.fromEntries(fields.map((field) => [field, book[field]])));
  }
}
