// Owns: the history of a book: its states, the newest first, and bringing an older one back.

import type { Book, BookChanges, BookState } from '../../client/src/book-catalogue.ts';
import type { Log } from '../catalogue/log.ts';
import { Complaint } from '../catalogue/persist.ts';
import type { Undo } from '../changes/undo.ts';
import { AS_IT_IS, button, find, make, sentence, warning } from '../elements/dom.ts';
import { bookText, FIELDS, titleOf } from '../elements/text.ts';
import { changeText, dayText, timeText } from './words.ts';

const dialog = find<HTMLDialogElement>('#log');
const content = find('#log-content');

export interface HistoryEvents {
  /** Change a book. */
  change(book: Book, fields: BookChanges): void;
  /** Show what changed in all books. */
  all(): void;
}

export class BookHistory {
  readonly #log: Log;
  readonly #undo: Undo;
  readonly #events: HistoryEvents;
  #request = new AbortController();

  constructor(log: Log, undo: Undo, events: HistoryEvents) {
    this.#log = log;
    this.#undo = undo;
    this.#events = events;
    dialog.addEventListener('close', () => this.#request.abort());
  }

  async open(id: number): Promise<void> {
    this.#request.abort();
    this.#request = new AbortController();
    const { signal } = this.#request;
    const title = find('#log-title');
    title.textContent = 'History';
    const all = button('What changed in all books', () => this.#events.all(), { class: 'link' });
    const show = (part: Node) => content.replaceChildren(part, make('footer', {}, all));
    show(make('p', { class: 'hint' }, 'Looking …'));
    if (!dialog.open) dialog.showModal();
    try {
      const states = await this.#log.history(id, signal);
      const { book } = states.find((state) => state.book !== null) ?? {};
      if (book) title.replaceChildren(...sentence`History of “${titleOf(book)}”`);
      const lines = states.map((_, at) => this.#lineOf(states, at));
      show(
        lines.length > 0
          ? make('ul', { class: 'events' }, ...lines)
          : make('p', {}, 'Nothing is known of this book.'),
      );
    } catch (error) {
      if (!signal.aborted) show(warning(error instanceof Complaint ? error.message : String(error)));
    }
  }

  #lineOf(states: readonly BookState[], at: number): HTMLElement {
    const { change, at: moment, book } = states[at] as BookState;
    const before = states[at + 1]?.book ?? null;
    const isFirst = at === states.length - 1;
    const what = isFirst && change === null ? ['as it was before'] : changeText({ id: 0, before, book });
    const time = make('time', { datetime: moment }, `${dayText(moment)}, ${timeText(moment)}`);
    const text = make('p', { class: 'hint' }, time);
    if (book !== null) text.append(': ', make('bdi', AS_IT_IS, bookText(book)));
    const line = make('li', {}, make('div', {}, make('p', {}, make('b', {}, ...what)), text));
    const latest = states[0]?.book ?? null;
    if (book === null || isSame(book, latest)) return line;
    line.append(
      button('Bring back', () => void this.#bringBack(latest, book), {
        ...{ class: 'link', 'aria-label': `Bring back: ${bookText(book)}` },
      }),
    );
    return line;
  }

  async #bringBack(latest: Book | null, book: Book): Promise<void> {
    dialog.close();
    if (latest === null) await this.#undo.bringBack(book); // as it was when it was removed
    const now = latest ?? (await this.#log.find(book.id));
    if (now === undefined || isSame(now, book)) return;
    const fields = FIELDS.filter((field) => now[field] !== book[field]);
    this.#events.change(now, Object.fromEntries(fields.map((field) => [field, book[field]])));
  }
}

function isSame(one: Book, other: Book | null): boolean {
  return FIELDS.every((field) => one[field] === other?.[field]);
}
