// Owns: one cell as a field: its keys, and the complaint about a text that cannot be stored.
// Refuses: to lose what somebody has typed: a text that cannot be stored stays in the field until it is corrected or left
// with Escape.

import { make } from '../elements/dom.ts';

/** Where the focus goes when the field closes. */
export type Onward = 'stay' | 'next' | 'previous' | 'elsewhere';

export interface Edit {
  readonly cell: HTMLElement;
  /** The text at first. */
  readonly text: string;
  /** What the field is of, for screen readers. */
  readonly label: string;
  readonly placeholder: string;
  /** Takes another text. @returns why it cannot be stored; undefined if it can. */
  store(text: string): string | undefined;
  /** The field has closed. */
  closed(onward: Onward): void;
}

export class CellEditor {
  #edit: Edit | undefined;
  #input: HTMLInputElement | undefined;
  /** Its value at first: it may differ from the text, since a field has no line breaks. */
  #before = '';
  #complaint: HTMLElement | undefined;

  /** The cell that is a field. */
  get cell(): HTMLElement | undefined {
    return this.#edit?.cell;
  }

  /** Makes a field of a cell. Another field is closed first; if its text cannot be stored, it stays and gets the focus. */
  open(edit: Edit): void {
    if (this.#edit !== undefined && !this.#close('elsewhere')) {
      this.#input?.focus();
      return;
    }
    const input = make('input', {
      class: 'editor',
      'aria-label': edit.label,
      placeholder: edit.placeholder,
      autocomplete: 'off',
      keydown: (event) => this.#key(event as KeyboardEvent),
      input: () => this.#complain(undefined),
      blur: () => setTimeout(() => this.#left(input)),
    });
    input.value = edit.text;
    this.#before = input.value;
    this.#edit = edit;
    this.#input = input;
    edit.cell.append(input);
    edit.cell.classList.add('editing');
    input.focus({ preventScroll: true });
    input.select();
  }

  /** The focus has left the field: for another window or a dialog, which give it back, or for another place. */
  #left(input: HTMLInputElement): void {
    const isBack = document.activeElement === input || document.querySelector('dialog[open]') !== null;
    if (this.#input === input && document.hasFocus() && !isBack) this.#close('elsewhere');
  }

  /** Leaves the field without storing. */
  cancel(onward: Onward = 'elsewhere'): void {
    const edit = this.#edit;
    if (edit === undefined) return;
    this.#edit = undefined;
    this.#complain(undefined);
    edit.cell.classList.remove('editing');
    this.#input?.remove();
    this.#input = undefined;
    edit.closed(onward);
  }

  /** @returns whether the field has closed. */
  #close(onward: Onward): boolean {
    const [edit, input] = [this.#edit, this.#input];
    if (edit === undefined || input === undefined) return true;
    const complaint = input.value === this.#before ? undefined : edit.store(input.value);
    this.#complain(complaint);
    if (complaint === undefined) this.cancel(onward);
    return complaint === undefined;
  }

  #key(event: KeyboardEvent): void {
    if (event.isComposing) return; // an input method uses Enter and Escape itself
    if (event.key === 'Escape') {
      event.preventDefault();
      this.cancel('stay');
    } else if (event.key === 'Enter') {
      event.preventDefault();
      this.#close('stay');
    } else if (event.key === 'Tab') {
      event.preventDefault();
      this.#close(event.shiftKey ? 'previous' : 'next');
    }
  }

  #complain(reason: string | undefined): void {
    this.#complaint?.remove();
    this.#complaint = undefined;
    const input = this.#input;
    if (input === undefined) return;
    input.toggleAttribute('aria-invalid', reason !== undefined);
    if (reason === undefined) return;
    input.setAttribute('aria-invalid', 'true');
    input.setAttribute('aria-describedby', 'complaint');
    this.#complaint = make('span', { id: 'complaint', class: 'complaint', role: 'alert' }, reason);
    input.after(this.#complaint);
    this.#complaint.scrollIntoView({ block: 'nearest' });
  }
}
