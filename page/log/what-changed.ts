// Owns: the dialog "What changed": the events of the log by day, their books, and undo, also of all since a time.

import type { ChangedBook, EventName, ListedEvent, UndoRequest } from '../../client/src/book-catalogue.ts';
import { BOOKS, type Log } from '../catalogue/log.ts';
import type { Undo } from '../changes/undo.ts';
import { button, find, make } from '../elements/dom.ts';
import { show as showMessage } from '../elements/messages.ts';
import { agoText, dayText, momentText, timeText } from '../texts/english.ts';
import { LOG } from '../texts/log.ts';
import { AS_IT_IS } from '../texts/sentence.ts';
import { BookHistory, type Change } from './history.ts';
import { nextPartButton } from './next-part.ts';
import { Undoing } from './undoing.ts';
import { changeText, eventText, nameOf } from './words.ts';

const dialog = find<HTMLDialogElement>('#log');
const content = find('#log-content');

export class WhatChanged {
  readonly history: BookHistory;
  readonly #log: Log;
  readonly #undoing: Undoing;
  readonly #showBooks: (event: EventName) => void;

  /** @param show shows the books of an event in the list. */
  constructor(log: Log, undo: Undo, change: Change, show: (event: EventName) => void) {
    this.#log = log;
    this.#undoing = new Undoing(log, undo);
    this.#showBooks = show;
    this.history = new BookHistory(log, undo, change, () => this.open());
  }

  open(): void {
    this.history.leave();
    const title = find('#log-title');
    title.textContent = LOG.whatChanged;
    if (!dialog.open) dialog.showModal();
    title.focus();
    this.#begin();
  }

  /** @param outcome of an undo. */
  #begin(outcome = ''): void {
    const note = make('p', { class: 'note', tabindex: -1 }, outcome);
    const days = make('div');
    const older = nextPartButton(LOG.older, LOG.older, this.#log.events(), (events) => {
      for (const event of events) this.#add(event, days);
      const isLast = events.at(-1)?.kind === 'beginning';
      if (isLast && older === document.activeElement) find('p:last-child', days).focus();
      return isLast;
    });
    const goBack = make('section');
    goBack.append(button(LOG.goBack, () => this.#askTime(goBack), { class: 'link' }));
    content.replaceChildren(
      make('p', { class: 'hint' }, LOG.everything),
      ...[note, days, make('section', {}, older), goBack],
    );
    if (this.#undoing.isRunning) note.after(this.#undoing.place);
    if (outcome !== '') note.focus();
    older.click();
  }

  #add(event: ListedEvent, days: HTMLElement): void {
    if (event.kind === 'beginning') {
      days.append(make('p', { class: 'hint', tabindex: -1 }, LOG.begins(event.at)));
      return;
    }
    const day = dayText(event.until);
    if (days.querySelector('h3:last-of-type')?.textContent !== day)
      days.append(make('h3', {}, day), make('ul', { class: 'events' }));
    days.lastElementChild?.append(this.#lineOf(event, event.event ?? 0));
  }

  #lineOf(event: ListedEvent, name: EventName): HTMLElement {
    const heading = make('p', {}, make('b', {}, ...eventText(event)));
    const text = heading.textContent;
    const books = make('ul', {}, ...event.first.map((one) => this.#bookOf(one)));
    const link = (label: string, click: () => void) =>
      button(label, click, { class: 'link', 'aria-label': LOG.buttonOf(label, text) });
    const show = link(LOG.show, () => void this.#show(event, name, line));
    const undo = link(LOG.undo, () => void this.#undo({ event: name }, text, line));
    const times = LOG.fromUntil(timeText(event.at), timeText(event.until));
    const time = make('time', { class: 'hint', datetime: event.until }, times);
    const rest = this.#restOf(event, name, books);
    const line = make('li', {}, time, make('div', {}, heading, books, rest), make('div', {}, show, undo));
    return line;
  }

  #bookOf(changed: ChangedBook): HTMLElement {
    const open = () => void this.history.open(changed.id);
    const name = button(nameOf(changed), open, { class: 'link', ...AS_IT_IS });
    return make('li', {}, name, ' ', ...changeText(changed));
  }

  /** The button for the books that are not shown yet; hidden if all are shown. */
  #restOf({ books, first }: ListedEvent, name: EventName, list: HTMLElement): HTMLElement {
    let known = first.length;
    const rest = nextPartButton(LOG.all(books), LOG.more, this.#log.booksOf(name), (part) => {
      const lines = part.map((one) => this.#bookOf(one));
      if (known > 0) list.replaceChildren(); // the first part has them again
      list.append(...lines);
      find('button', lines[known] ?? list).focus();
      known = 0;
      return part.length < BOOKS || list.children.length === books;
    });
    rest.className = 'link';
    rest.hidden = books === first.length;
    return rest;
  }

  async #show({ books }: ListedEvent, name: EventName, line: HTMLElement): Promise<void> {
    const count = await this.#log.countOf(name);
    if (!dialog.open) return;
    if (count === 0) return this.#undoing.say(LOG.noneIsHere, line);
    dialog.close();
    this.#showBooks(name);
    if (books === null || count === undefined || count >= books) return;
    showMessage(LOG.notHere(books - count, books));
  }

  async #undo(request: UndoRequest, name: string, line: HTMLElement): Promise<void> {
    const pressed = document.activeElement as HTMLElement | null;
    const outcome = await this.#undoing.run(request, name, line);
    if (outcome === undefined) {
      if (!line.contains(document.activeElement)) pressed?.focus();
    } else if (dialog.open && this.#undoing.place.isConnected) this.#begin(outcome);
    else showMessage(outcome);
  }

  #askTime(section: HTMLElement): void {
    const field = make('input', { id: 'log-time', type: 'datetime-local', required: true });
    const submit = (event: Event) => {
      event.preventDefault();
      const time = new Date(field.value);
      if (time.getTime() > Date.now()) this.#undoing.say(LOG.inFuture, form);
      else void this.#undo({ since: time }, LOG.allSince(momentText(time), agoText(time)), form);
    };
    const label = make('label', { for: field.id }, LOG.goBackTo);
    const check = make('button', { type: 'submit' }, LOG.check);
    const form = make('form', { submit }, label, field, make('section', {}, check));
    section.replaceChildren(form);
    field.focus();
  }
}
