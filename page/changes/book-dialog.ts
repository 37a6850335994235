// Owns: the dialog for one book: adding one, with a warning if the catalogue has it, and changing one on a phone.

import type { Book, NewBook } from '../../client/src/book.ts';
import { randomKey } from '../../client/src/request.ts';
import { completeFields } from '../../src/books/book.ts';
import { persist } from '../catalogue/persist.ts';
import type { Session } from '../catalogue/session.ts';
import { ask, find, make } from '../elements/dom.ts';
import { show } from '../elements/messages.ts';
import { bookText, byField, FIELDS, type Field, fieldText, titleOf } from '../elements/text.ts';
import { CHANGES } from '../texts/changes.ts';
import { readFields } from './book-fields.ts';

/** Milliseconds after the last key before equal books and authors are looked up. */
const PAUSE = 200;

/** Letters of an author before others are suggested. */
const SHORTEST_AUTHOR = 2;

const SUGGESTED = 8;
const SHOWN = 3;
const ACTIONS = ['delete', 'history'] as const;

const dialog = find<HTMLDialogElement>('#book');
const form = find<HTMLFormElement>('form', dialog);
const inputs = byField((field) => find<HTMLInputElement>(`#book-${field}`));
const complaint = find('#book-complaint');
const same = find('#book-same');

export interface BookEvents {
  change(book: Book, changes: NewBook): void;
  delete(book: Book): void;
  history(book: Book): void;
  added(book: Book): void;
}

export class BookDialog {
  readonly #session: Session;
  readonly #events: BookEvents;
  /** The texts of the fields at first. */
  #before = byField(() => '');
  /** The book that is changed; undefined while one is added. */
  #book: Book | undefined;
  #lookup = new AbortController();
  readonly #adding = new Set<Promise<void>>();

  constructor(session: Session, events: BookEvents) {
    this.#session = session;
    this.#events = events;
    form.addEventListener('input', ({ target }) => this.#typed(target));
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#submit(false);
    });
    // Not a second submit button: Enter in a field presses the first one of them.
    find('#book-another').addEventListener('click', () => this.#submit(true));
    for (const action of ACTIONS) {
      find(`#book-${action}`).addEventListener('click', () => {
        this.#close();
        if (this.#book !== undefined) this.#events[action](this.#book);
      });
    }
    dialog.addEventListener('close', () => {
      this.#lookup.abort();
      if (this.#typedTexts().length === 0) return;
      dialog.showModal();
      void this.#mayDiscard();
    });
    dialog.addEventListener('cancel', (event) => {
      // Chromium closes a dialog in any case if nothing but Escape was pressed since it was refused (HTML, close watchers).
      if (this.#typedTexts().length === 0 || !event.cancelable) return;
      event.preventDefault();
      void this.#mayDiscard();
    });
    addEventListener('beforeunload', (event) => {
      const isTyped = dialog.open && this.#typedTexts().length > 0;
      if (isTyped || this.#adding.size > 0) event.preventDefault();
    });
  }

  add(title = ''): void {
    this.#open(undefined, { title });
    this.#typed(inputs.title);
  }

  change(book: Book): void {
    this.#open(book, book);
  }

  #open(book: Book | undefined, fields: NewBook): void {
    this.#book = book;
    this.#lookup.abort();
    const shown = completeFields(fields);
    for (const field of FIELDS) inputs[field].value = fieldText(shown, field);
    this.#before = textsOfInputs();
    find('#book-heading').textContent = book === undefined ? CHANGES.addHeading : CHANGES.changeHeading;
    for (const action of ACTIONS) find(`#book-${action}`).hidden = book === undefined;
    find('#book-another').hidden = book !== undefined;
    find('#book-save').textContent = book === undefined ? CHANGES.add : CHANGES.save;
    this.#complain(undefined);
    same.textContent = '';
    if (!dialog.open) dialog.showModal();
    inputs.title.focus();
  }

  async #mayDiscard(): Promise<void> {
    if ((await ask(find('#discard'))) !== '') this.#close();
  }

  /** Closes the dialog, whatever is typed in it. */
  #close(): void {
    this.#before = textsOfInputs();
    dialog.close();
  }

  #complain(reason: { readonly field: Field; readonly reason: string } | undefined): void {
    complaint.textContent = reason?.reason ?? '';
    for (const [field, input] of Object.entries(inputs))
      input.ariaInvalid = field === reason?.field ? 'true' : null;
    if (reason !== undefined) inputs[reason.field].focus();
  }

  /** The fields that are no longer as they were at first. */
  #typedTexts(): [string, string][] {
    return Object.entries(textsOfInputs()).filter(([field, text]) => text !== this.#before[field as Field]);
  }

  #submit(isAnotherWanted: boolean): void {
    const book = this.#book;
    const typed = this.#typedTexts();
    // A field that was not touched is not stored: it may not show the value as it is.
    const read = readFields(Object.fromEntries(book === undefined ? Object.entries(textsOfInputs()) : typed));
    if ('reason' in read) return void this.#complain(read);
    if (isAnotherWanted) this.add();
    else this.#close();
    if (book === undefined) {
      const adding = this.#add(read.fields).finally(() => this.#adding.delete(adding));
      this.#adding.add(adding);
    } else if (typed.length > 0) this.#events.change(book, read.fields);
  }

  /** Resolves when the books are stored that were added before. */
  settled(): Promise<unknown> {
    return Promise.all(this.#adding);
  }

  /** Stores a book once, however long that takes. */
  async #add(fields: NewBook): Promise<void> {
    const options = { idempotencyKey: randomKey() };
    try {
      const created = await persist(undefined, () =>
        this.#session.call((catalogue) => catalogue.create(fields, options)),
      );
      this.#events.added(created);
      this.#lookup.abort(); // it would take the place of the message below
      same.replaceChildren(...CHANGES.added(titleOf(created))); // messages are out of reach while a dialog is open
    } catch (error) {
      const text = CHANGES.notAdded(bookText(fields), (error as Error).message);
      if (document.querySelector('dialog[open]') !== null) return void show(text);
      this.#open(undefined, fields);
      complaint.replaceChildren(...text);
    }
  }

  #typed(target: EventTarget | null): void {
    this.#complain(undefined);
    this.#lookup.abort();
    this.#lookup = new AbortController();
    const { signal } = this.#lookup;
    setTimeout(() => {
      if (signal.aborted) return;
      // They are help: without them, everything still works.
      const work = target === inputs.author ? this.#suggest(signal) : this.#warn(signal);
      work.catch(() => {});
    }, PAUSE);
  }

  /** Shows which books have the same title. */
  async #warn(signal: AbortSignal): Promise<void> {
    const title = inputs.title.value.trim();
    if (this.#book !== undefined || title === '') {
      same.textContent = '';
      return;
    }
    const { books } = await this.#session.call((catalogue) =>
      catalogue.page({ title, limit: SHOWN + 1 }, { signal }),
    );
    const named = books.slice(0, SHOWN).map(bookText);
    same.replaceChildren(...(named.length === 0 ? [] : CHANGES.alreadyHere(named, books.length > SHOWN)));
  }

  /** Suggests authors as the catalogue spells them. */
  async #suggest(signal: AbortSignal): Promise<void> {
    const beginning = inputs.author.value.trim();
    if (beginning.length < SHORTEST_AUTHOR) return;
    const { books } = await this.#session.call((catalogue) =>
      catalogue.page({ author_starts_with: beginning, sort: 'author', limit: 100 }, { signal }),
    );
    const authors = [...new Set(books.map(({ author }) => author))].slice(0, SUGGESTED);
    find('#authors').replaceChildren(...authors.map((value) => make('option', { value })));
  }
}

const textsOfInputs = () => byField((field) => inputs[field].value);
