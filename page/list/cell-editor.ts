// Owns: one cell as a field: its keys, and the complaint about a text that cannot be stored.
// Does not: lose typed text, or stay open when the focus leaves: a text that cannot be stored is handed over.

import { make } from '../elements/dom.ts';

/** Where the focus goes when the field closes. */
export type Onward = 'stay' | 'next' | 'previous' | 'elsewhere';

/** A text that cannot be stored, as it was typed. */
export interface Refused {
  readonly text: string;
  readonly reason: string;
}

export interface Edit {
  readonly cell: HTMLElement;
  /** The text that is stored. */
  readonly text: string;
  /** A text that was refused before, and is to be corrected. */
  readonly refused: Refused | undefined;
  /** What the field is of, for screen readers. */
  readonly label: string;
  readonly placeholder: string;
  /** Takes another text. @returns why it cannot be stored; undefined if it can. */
  store(text: string): string | undefined;
  /** The field has closed. @param refused what stood in it, if that cannot be stored. */
  closed(onward: Onward, refused?: Refused): void;
}

export class CellEditor {
  #edit: Edit | undefined;
  #input: HTMLInputElement | undefined;
  /** Its value at first: it may differ from the text, since a field has no line breaks. */
  #before = '';
  #complaint: HTMLElement | undefined;
  #closing = Promise.withResolvers<void>();

  constructor() {
    addEventListener('beforeunload', (event) => {
      if (this.#input !== undefined && this.#input.value !== this.#before) event.preventDefault();
    });
  }

  /** The cell that is a field. */
  get cell(): HTMLElement | undefined {
    return this.#edit?.cell;
  }

  /** Resolves when the field has closed; undefined if there is none. */
  get closing(): Promise<void> | undefined {
    return this.#edit && this.#closing.promise;
  }

  /** Makes a field of a cell. Another field is left first. */
  open(edit: Edit): void {
    this.leave();
    const input = make('input', {
      class: 'editor',
      'aria-label': edit.label,
      placeholder: edit.placeholder,
      autocomplete: 'off',
      dir: 'auto',
      keydown: (event) => this.#key(event as KeyboardEvent),
      input: () => this.#complain(undefined),
      blur: () => setTimeout(() => this.#left(input)),
    });
    input.value = edit.text;
    this.#before = input.value;
    this.#edit = edit;
    this.#input = input;
    this.#closing = Promise.withResolvers();
    edit.cell.append(input);
    edit.cell.classList.add('editing');
    input.focus({ preventScroll: true });
    if (edit.refused !== undefined) {
      input.value = edit.refused.text;
      this.#complain(edit.refused.reason);
    }
    input.select();
  }

  /** The focus has left the field: for another window or a dialog, which give it back, or for another place. */
  #left(input: HTMLInputElement): void {
    const isBack = document.activeElement === input || document.querySelector('dialog[open]') !== null;
    if (this.#input === input && document.hasFocus() && !isBack) this.leave();
  }

  /** Closes the field. Its text is stored, or handed over as refused. */
  leave(): void {
    const refused = this.#store();
    this.#close('elsewhere', refused);
  }

  #close(onward: Onward, refused?: Refused): void {
    const edit = this.#edit;
    if (edit === undefined) return;
    this.#edit = undefined;
    this.#complain(undefined);
    edit.cell.classList.remove('editing');
    this.#input?.remove();
    this.#input = undefined;
    this.#closing.resolve();
    edit.closed(onward, refused); // which may open the next one
  }

  /** Stores the text, unless it is the one that is stored. @returns the text if it cannot be stored. */
  #store(): Refused | undefined {
    const text = this.#input?.value ?? this.#before;
    const reason = text === this.#before ? undefined : this.#edit?.store(text);
    return reason === undefined ? undefined : { text, reason };
  }

  /** Stores the text, and closes the field if that is possible. */
  #finish(onward: Onward): void {
    const refused = this.#store();
    if (refused === undefined) this.#close(onward);
    else this.#complain(refused.reason);
  }

  #key(event: KeyboardEvent): void {
    const { key, shiftKey } = event;
    if (key === 'Escape') this.#close('stay');
    else if (key === 'Enter') this.#finish('stay');
    else if (key === 'Tab') this.#finish(shiftKey ? 'previous' : 'next');
    else return;
    event.preventDefault();
  }

  #complain(reason: string | undefined): void {
    this.#complaint?.remove();
    this.#complaint = undefined;
    const input = this.#input;
    if (input === undefined) return;
    input.ariaInvalid = reason === undefined ? null : 'true';
    if (reason === undefined) return;
    input.setAttribute('aria-describedby', 'complaint');
    this.#complaint = make('span', { id: 'complaint', class: 'complaint', role: 'alert' }, reason);
    input.after(this.#complaint);
    this.#complaint.scrollIntoView({ block: 'nearest' });
  }
}
