// Owns: the rows of a file that are refused, and their correction by a person.

import { AS_IT_IS, icon, make, scrollable, sentence } from '../elements/dom.ts';
import { bookText, numberText } from '../elements/text.ts';
import type { Corrected, Figures, RefusedRow } from './calls.ts';

export interface RefusedActions {
  /** @param place of the row among those that are shown. */
  correct(place: number, text: string): Promise<Corrected>;
  saveRefused(): void;
}

export class RefusedRows {
  readonly element = make('section');
  readonly #actions: RefusedActions;
  readonly #onCorrected: (figures: Figures) => void;
  readonly #corrections = new Set<Promise<void>>();
  /** The texts that were typed, by line and column: other columns for a field must not lose it. */
  readonly #typed = new Map<string, string>();

  /** @param onCorrected gets the figures of the file after each correction. */
  constructor(actions: RefusedActions, onCorrected: (figures: Figures) => void) {
    this.#actions = actions;
    this.#onCorrected = onCorrected;
  }

  /** Whether something was typed, which would be lost. */
  get hasCorrections(): boolean {
    return this.#typed.size > 0;
  }

  /** Resolves when all corrections have been read. */
  async settled(): Promise<void> {
    await Promise.all(this.#corrections);
  }

  /** @param all how many rows are refused; `rows` may be the first of them. */
  show(rows: readonly RefusedRow[], all: number): void {
    this.element.hidden = rows.length === 0;
    const hint =
      'Correct a value, and its row is imported with the others. Rows that stay refused can be saved, and imported later.';
    const more =
      all > rows.length ? ` These are the first ${numberText(rows.length)} of ${numberText(all)}.` : '';
    const body = make('tbody', {}, ...rows.map((row, place) => this.#row(row, place)));
    this.element.replaceChildren(
      make('h3', { id: 'import-refused' }, 'Rows that are refused'),
      make('p', { class: 'hint' }, hint + more),
      scrollable('import-refused', ['Line', 'Column', 'Value', 'Why'], body),
      make('button', { type: 'button', click: () => this.#actions.saveRefused() }, 'Save the refused rows'),
    );
  }

  #row({ line, column, text, reason }: RefusedRow, place: number): HTMLElement {
    const why = make('td', { id: `import-why-${place}` }, reason);
    const row = make(
      'tr',
      {},
      make('td', { class: 'number' }, numberText(line)),
      column === undefined ? make('td', {}, 'the whole row') : make('td', AS_IT_IS, column),
    );
    if (text === undefined) {
      row.append(make('td', {}, 'is too long to be corrected here'), why);
      return row;
    }
    // An input has one line.
    const field = /[\r\n]/.test(text) ? make('textarea', { rows: 2 }) : make('input', { type: 'text' });
    field.value = text;
    field.setAttribute('aria-label', `${column ?? 'Row'}, line ${line}`);
    field.setAttribute('aria-describedby', why.id);
    field.setAttribute('aria-invalid', 'true');
    field.spellcheck = false;
    field.dir = 'auto';
    let read = text;
    const typedAt = `${line} ${column}`;
    const correct = async () => {
      read = field.value;
      this.#typed.set(typedAt, read);
      const { book, row: after, figures } = await this.#actions.correct(place, read);
      if (read !== field.value) return; // it has been changed again meanwhile
      if (book === undefined && after.column !== column) {
        const next = this.#row(after, place); // the next fault is in another column, and so is what is typed from now on
        const hadFocus = row.contains(document.activeElement);
        row.replaceWith(next);
        if (hadFocus) next.querySelector<HTMLElement>('input, textarea')?.focus();
        this.#onCorrected(figures);
        return;
      }
      field.setAttribute('aria-invalid', String(book === undefined));
      row.classList.toggle('corrected', book !== undefined);
      if (book === undefined) {
        why.replaceChildren(make('span', { role: 'alert' }, after.reason));
      } else {
        why.replaceChildren(
          icon('done-icon'),
          make('span', { role: 'status' }, ...sentence`will be ${bookText(book)}`),
        );
      }
      this.#onCorrected(figures);
    };
    let latest = Promise.resolve();
    const begin = () => {
      if (field.value === read) return latest;
      const correction = correct().finally(() => this.#corrections.delete(correction));
      this.#corrections.add(correction);
      latest = correction;
      return correction;
    };
    field.addEventListener('change', () => void begin());
    field.addEventListener('keydown', (event) => {
      const { key } = event as KeyboardEvent;
      if (key === 'Enter' && !(event as KeyboardEvent).shiftKey) {
        event.preventDefault();
        void begin().then(() => {
          if (row.classList.contains('corrected')) nextField(row)?.focus();
        });
      } else if (key === 'Escape' && field.value !== read) {
        event.preventDefault(); // the dialog stays
        field.value = read;
      }
    });
    row.append(make('td', {}, field), why);
    const typed = this.#typed.get(typedAt);
    if (typed !== undefined) {
      field.value = typed;
      void begin();
    }
    return row;
  }
}

function nextField(row: HTMLElement): HTMLElement | null {
  return row.nextElementSibling?.querySelector<HTMLElement>('input, textarea') ?? null;
}
