// Owns: the dialog for one book: adding one, with a warning if the catalogue has it, and changing one on a phone.

import type { Book, NewBook } from '../../client/src/book.ts';
import { completeFields } from '../../src/books/book.ts';
import { isRefusal } from '../catalogue/refusal.ts';
import { randomKey } from '../catalogue/request-key.ts';
import type { Session } from '../catalogue/session.ts';
import { find, make, sentence } from '../elements/dom.ts';
import { show } from '../elements/messages.ts';
import { bookText, byField, FIELDS, type Field, fieldText, titleOf } from '../elements/text.ts';
import { readFields } from './book-fields.ts';

/** Milliseconds after the last key before equal books and authors are looked up. */
const PAUSE = 200;

/** Letters of an author before others are suggested. */
const SHORTEST_AUTHOR = 2;

const SUGGESTED = 8;
const SHOWN = 3;

const dialog = find<HTMLDialogElement>('#book');
const form = find<HTMLFormElement>('form', dialog);
const inputs = byField((field) => find<HTMLInputElement>(`#book-${field}`));
const complaint = find('#book-complaint');
const same = find('#book-same');

export interface BookEvents {
  change(book: Book, changes: NewBook): void;
  delete(book: Book): void;
  history(book: Book): void;
  /** A book has been added. */
  added(book: Book): void;
}

export class BookDialog {
  readonly #session: Session;
  readonly #events: BookEvents;
  /** The texts of the fields at first. */
  #before = byField(() => '');
  /** The book that is changed; undefined while one is added. */
  #book: Book | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #lookup = new AbortController();
  /** The same one until the book is stored or changes: an attempt without an answer may have stored it. */
  #key = randomKey();

  constructor(session: Session, events: BookEvents) {
    this.#session = session;
    this.#events = events;
    form.addEventListener('input', ({ target }) => {
      this.#renew();
      this.#typed(target);
    });
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#submit(false);
    });
    // Not a second submit button: Enter in a field presses the first one of them.
    find('#book-another').addEventListener('click', () => void this.#submit(true));
    for (const action of ['delete', 'history'] as const) {
      find(`#book-${action}`).addEventListener('click', () => {
        dialog.close();
        if (this.#book !== undefined) this.#events[action](this.#book);
      });
    }
    dialog.addEventListener('close', () => this.#lookup.abort());
    addEventListener('beforeunload', (event) => {
      if (dialog.open && this.#typedTexts().length > 0) event.preventDefault();
    });
  }

  /** Adds a book. */
  add(title = ''): void {
    this.#open(undefined, { title });
    this.#typed(inputs.title);
  }

  change(book: Book): void {
    this.#open(book, book);
  }

  #open(book: Book | undefined, fields: NewBook): void {
    this.#book = book;
    this.#renew();
    const shown = completeFields(fields);
    for (const field of FIELDS) inputs[field].value = fieldText(shown, field);
    this.#before = textsOfInputs();
    find('#book-heading').textContent = book === undefined ? 'Add a book' : 'Change the book';
    find('#book-delete').hidden = book === undefined;
    find('#book-history').hidden = book === undefined;
    find('#book-another').hidden = book !== undefined;
    find('#book-save').textContent = book === undefined ? 'Add' : 'Save';
    this.#complain(undefined);
    same.textContent = '';
    dialog.showModal();
    inputs.title.focus();
  }

  /** The form holds another book from now on: an answer that is still to come leaves it as it is. */
  #renew(): void {
    this.#key = randomKey();
    find('#book-save').ariaDisabled = null;
  }

  #complain(reason: { readonly field: Field; readonly reason: string } | undefined): void {
    complaint.textContent = reason?.reason ?? '';
    for (const [field, input] of Object.entries(inputs)) {
      if (field === reason?.field) input.setAttribute('aria-invalid', 'true');
      else input.removeAttribute('aria-invalid');
    }
    if (reason !== undefined) inputs[reason.field].focus();
  }

  /** The fields that are no longer as they were at first. */
  #typedTexts(): [string, string][] {
    return Object.entries(textsOfInputs()).filter(([field, text]) => text !== this.#before[field as Field]);
  }

  async #submit(isAnotherWanted: boolean): Promise<void> {
    const book = this.#book;
    const typed = this.#typedTexts();
    // A field that was not touched is not stored: it may not show the value as it is.
    const read = readFields(Object.fromEntries(book === undefined ? Object.entries(textsOfInputs()) : typed));
    if ('reason' in read) {
      this.#complain(read);
      return;
    }
    if (book !== undefined) {
      dialog.close();
      if (typed.length > 0) this.#events.change(book, read.fields);
      return;
    }
    const button = find('#book-save');
    if (button.ariaDisabled === 'true') return;
    button.ariaDisabled = 'true';
    const idempotencyKey = this.#key;
    try {
      const created = await this.#session.call((catalogue) =>
        catalogue.create(read.fields, { idempotencyKey }),
      );
      this.#events.added(created);
      clearTimeout(this.#timer); // a lookup would take the place of the message below
      this.#lookup.abort();
      same.replaceChildren(...sentence`“${titleOf(created)}” was added.`); // messages are out of reach while a dialog is open
      if (this.#key !== idempotencyKey) return;
      this.#renew();
      if (isAnotherWanted) {
        form.reset();
        this.#before = textsOfInputs();
        inputs.title.focus();
      } else {
        dialog.close();
      }
    } catch (error) {
      const isRefused = isRefusal(error);
      const reason = isRefused
        ? `${error.message}.`
        : this.#session.trouble || 'The catalogue does not answer.';
      if (this.#key !== idempotencyKey || !dialog.open) {
        const outcome = isRefused ? 'was not added' : 'may not have been added';
        show([...sentence`“${bookText(read.fields)}” `, `${outcome}: ${reason}`]);
      } else {
        button.ariaDisabled = null;
        complaint.textContent = isRefused
          ? `The book was not added: ${reason}`
          : `${reason} Your book is still here: try again in a moment.`;
      }
    }
  }

  #typed(target: EventTarget | null): void {
    this.#complain(undefined);
    clearTimeout(this.#timer);
    this.#lookup.abort();
    this.#lookup = new AbortController();
    const { signal } = this.#lookup;
    this.#timer = setTimeout(() => {
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
    const named = books.slice(0, SHOWN).flatMap((one) => sentence` · ${bookText(one)}`);
    const more = books.length > SHOWN ? ' …' : '';
    same.replaceChildren(...(books.length === 0 ? [] : ['Already here: ', ...named.slice(1), more]));
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
