// Owns: the dialog "What changed": the events of the log by day, their books, and undo, also of all since a time.

import type { ChangedBook, EventName, ListedEvent, UndoRequest } from '../../client/src/book-catalogue.ts';
import { Log } from '../catalogue/log.ts';
import type { Session } from '../catalogue/session.ts';
import type { Undo } from '../changes/undo.ts';
import { AS_IT_IS, button, find, make, warning } from '../elements/dom.ts';
import { show as showMessage } from '../elements/messages.ts';
import { counted, numberText } from '../elements/text.ts';
import { BookHistory, type Change } from './history.ts';
import { Undoing } from './undoing.ts';
import { agoText, changeText, dayText, eventText, momentText, nameOf, sinceText, timeText } from './words.ts';

/** Events that are shown at once, and books of one. */
const EVENTS = 20;
const BOOKS = 100;

const dialog = find<HTMLDialogElement>('#log');
const content = find('#log-content');

export class WhatChanged {
  readonly history: BookHistory;
  readonly #session: Session;
  readonly #undoing: Undoing;
  readonly #showBooks: (event: EventName) => void;
  readonly #older = button('Older', () => void this.#load());
  /** The days, and the lines of the last one. */
  #days = make('div');
  #lines = make('ul');
  #rest: AsyncGenerator<ListedEvent> | undefined;

  /** @param show shows the books of an event in the list. */
  constructor(session: Session, undo: Undo, change: Change, show: (event: EventName) => void) {
    this.#session = session;
    this.#undoing = new Undoing(session, undo);
    this.#showBooks = show;
    this.history = new BookHistory(new Log(session), undo, change, () => this.open());
  }

  open(): void {
    const title = find('#log-title');
    title.textContent = 'What changed';
    if (!dialog.open) dialog.showModal();
    title.focus();
    void this.#begin();
  }

  /** @param outcome of an undo. */
  async #begin(outcome = ''): Promise<void> {
    this.#rest = undefined;
    this.#days = make('div');
    const note = make('p', { class: 'note', tabindex: -1 }, outcome);
    const goBack = make('section');
    goBack.append(button('Go back to a time …', () => this.#askTime(goBack), { class: 'link' }));
    content.replaceChildren(
      make('p', { class: 'hint' }, 'Everything that was changed, by anybody. An undo can be undone as well.'),
      ...[note, this.#days, make('section', {}, this.#older), goBack],
    );
    if (this.#undoing.isRunning) note.after(this.#undoing.place);
    if (outcome !== '') note.focus();
    await this.#load();
  }

  async #load(): Promise<void> {
    const days = this.#days;
    const isFirst = this.#rest === undefined;
    const events: ListedEvent[] = [];
    this.#older.ariaDisabled = 'true';
    try {
      await this.#session.call(async (catalogue) => {
        this.#rest ??= catalogue.events({ limit: EVENTS });
        await take(this.#rest, EVENTS, events);
      });
    } catch {
      this.#rest = undefined; // Older begins again
      days.replaceChildren(warning(this.#session.trouble || 'The catalogue does not answer.'));
    }
    this.#older.ariaDisabled = null;
    if (days !== this.#days) return; // it was opened again meanwhile
    if (isFirst && events.length > 0) days.replaceChildren();
    for (const event of events) this.#add(event);
    const hadFocus = this.#older === document.activeElement;
    this.#older.hidden = events.at(-1)?.kind === 'beginning';
    if (hadFocus && this.#older.hidden) (days.lastElementChild as HTMLElement | null)?.focus();
  }

  #add(event: ListedEvent): void {
    if (event.kind === 'beginning') {
      this.#days.append(make('p', { class: 'hint', tabindex: -1 }, sinceText(event.at)));
      return;
    }
    const day = dayText(event.until);
    if (this.#days.querySelector('h3:last-of-type')?.textContent !== day) {
      this.#lines = make('ul', { class: 'events' });
      this.#days.append(make('h3', {}, day), this.#lines);
    }
    this.#lines.append(this.#lineOf(event, event.event ?? 0));
  }

  #lineOf(event: ListedEvent, name: EventName): HTMLElement {
    const heading = make('p', {}, make('b', {}, ...eventText(event)));
    const text = heading.textContent;
    const books = make('ul', {}, ...event.first.map((one) => this.#bookOf(one)));
    const rest = this.#moreOf(event, name, books);
    const link = (label: string, click: () => void) =>
      button(label, click, { class: 'link', 'aria-label': `${label}: ${text}` });
    const show = link('Show', () => void this.#show(event, name, line));
    const undo = link('Undo', () => void this.#undo({ event: name }, text, line));
    const [from, until] = [timeText(event.at), timeText(event.until)];
    const time = make(
      'time',
      { class: 'hint', datetime: event.until },
      from === until ? until : `${from} – ${until}`,
    );
    const line = make('li', {}, time, make('div', {}, heading, books, rest), make('div', {}, show, undo));
    return line;
  }

  #bookOf(changed: ChangedBook): HTMLElement {
    const open = () => void this.history.open(changed.id);
    const name = button(nameOf(changed), open, { class: 'link', ...AS_IT_IS });
    return make('li', {}, name, ' ', ...changeText(changed));
  }

  /** The button for the books that are not shown yet; hidden if there are none. */
  #moreOf({ books, first }: ListedEvent, name: EventName, list: HTMLElement): HTMLButtonElement {
    let all: AsyncGenerator<ChangedBook> | undefined;
    const click = async () => {
      const found: ChangedBook[] = [];
      const isFirst = all === undefined;
      try {
        await this.#session.call(async (catalogue) => {
          all ??= catalogue.booksOfEvent(name, { limit: BOOKS });
          await take(all, BOOKS, found);
        });
      } catch {
        all = undefined; // it begins again
        return;
      }
      const lines = found.map((one) => this.#bookOf(one));
      if (isFirst) list.replaceChildren(...lines);
      else list.append(...lines);
      more.textContent = 'More';
      more.hidden = found.length < BOOKS || list.children.length === books;
      find('button', lines[isFirst ? first.length : 0] ?? list).focus();
    };
    const text = books === null ? 'All of them' : `All ${counted(books, 'book')}`;
    const more = button(text, () => void click(), { class: 'link', hidden: books === first.length });
    return more;
  }

  async #show({ books }: ListedEvent, name: EventName, line: HTMLElement): Promise<void> {
    const work = this.#session.call((catalogue) => catalogue.count({ event: name }));
    const count = await work.catch(() => undefined); // it takes the service too long, for example
    if (!dialog.open) return;
    if (count === 0) return this.#undoing.say('None of these books is here now.', line);
    dialog.close();
    this.#showBooks(name);
    if (books === null || count === undefined || count >= books) return;
    const text = `${numberText(books - count)} of these ${counted(books, 'book')}`;
    showMessage(`${text} are not here now: “What changed” lists them.`);
  }

  async #undo(request: UndoRequest, name: string, line: HTMLElement): Promise<void> {
    const pressed = document.activeElement as HTMLElement | null;
    const outcome = await this.#undoing.run(request, name, line);
    if (outcome === undefined) {
      if (!line.contains(document.activeElement)) pressed?.focus();
    } else if (dialog.open && this.#undoing.place.isConnected) await this.#begin(outcome);
    else showMessage(outcome);
  }

  #askTime(section: HTMLElement): void {
    const field = make('input', { id: 'log-time', type: 'datetime-local', required: true });
    const submit = (event: Event) => {
      event.preventDefault();
      const time = new Date(field.value);
      void this.#undo({ since: time }, `All changes since ${momentText(time)} (${agoText(time)})`, form);
    };
    const label = make('label', { for: field.id }, 'Go back to this time');
    const check = make('button', { type: 'submit' }, 'Check');
    const form = make('form', { submit }, label, field, make('section', {}, check));
    section.replaceChildren(form);
    field.focus();
  }
}

/** Adds the next of a list, up to a number. */
async function take<Item>(list: AsyncGenerator<Item>, most: number, items: Item[]): Promise<void> {
  while (items.length < most) {
    const { value, done } = await list.next();
    if (done) return;
    items.push(value);
  }
}
