// Owns: the rows of a file that cannot be read, and their correction by a person.
// Does not: read a correction: the service does.

import { sentenceOf } from '../../src/files/reasons.ts';
import type { Options, RefusedRow } from '../catalogue/imports.ts';
import { AS_IT_IS, icon, make } from '../elements/dom.ts';
import { numberText } from '../elements/text.ts';

/** Rows that are drawn: thousands would hold the page up. */
const SHOWN = 100;

interface Shown {
  readonly row: RefusedRow;
  readonly element: HTMLElement;
  /** Shows what the service says of it now; undefined if it can be read. */
  judge(now: RefusedRow | undefined): void;
}

export class RefusedRows {
  readonly body = make('tbody');
  readonly #onTyped: () => void;
  readonly #shown = new Map<number, Shown>();
  /** Typed texts, by line and column: a row may come back with another choice of columns. */
  readonly #typed = new Map<string, string>();

  /** @param onTyped is called after each correction. */
  constructor(onTyped: () => void) {
    this.#onTyped = onTyped;
  }

  /** Texts by lines. */
  get corrections(): Options {
    const typed = [...this.#shown.values()].map(
      ({ row }) => [row.line, this.#typed.get(placeOf(row))] as const,
    );
    return Object.fromEntries(typed.filter(([, text]) => text !== undefined)) as Options;
  }

  /** @param isOther whether the columns may be others. Otherwise, rows that were corrected stay in sight. */
  show(refused: readonly RefusedRow[], isOther: boolean): void {
    if (isOther) this.#shown.clear();
    if (isOther) this.body.replaceChildren();
    const now = new Map(refused.map((row) => [row.line, row]));
    for (const { row, judge } of this.#shown.values()) judge(now.get(row.line));
    for (const row of refused.slice(0, SHOWN)) {
      if (this.#shown.has(row.line)) continue;
      const shown = this.#draw(row);
      this.#shown.set(row.line, shown);
      this.body.append(shown.element);
    }
  }

  #draw(row: RefusedRow): Shown {
    const { line, title, column, text, reason, proposal } = row;
    const why = make('td', { id: `import-why-${line}` }, sentenceOf(reason));
    const element = make(
      'tr',
      {},
      make('td', { class: 'number' }, numberText(line)),
      make('td', { ...AS_IT_IS, class: 'serif' }, title ?? ''),
      column === null ? make('td', {}, 'the whole row') : make('td', AS_IT_IS, column),
    );
    if (text === null) {
      element.append(make('td', {}, 'is too long to be corrected here'), why);
      return { row, element, judge: () => {} };
    }
    // An input has one line.
    const field = /[\r\n]/.test(text) ? make('textarea', { rows: 2 }) : make('input', { type: 'text' });
    field.value = this.#typed.get(placeOf(row)) ?? text;
    field.setAttribute('aria-label', `${column ?? 'Row'}, line ${line}`);
    field.setAttribute('aria-describedby', why.id);
    field.setAttribute('aria-invalid', 'true');
    field.spellcheck = false;
    field.dir = 'auto';
    const read = () => this.#typed.get(placeOf(row)) ?? text;
    const take = () => {
      if (field.value === read()) return;
      this.#typed.set(placeOf(row), field.value);
      this.#onTyped();
    };
    field.addEventListener('change', take);
    field.addEventListener('keydown', (event) => {
      const { key, shiftKey } = event as KeyboardEvent;
      if (key === 'Enter' && !shiftKey) {
        event.preventDefault();
        take();
        element.nextElementSibling?.querySelector<HTMLElement>('input, textarea')?.focus();
      } else if (key === 'Escape' && field.value !== read()) {
        event.preventDefault(); // the dialog stays
        field.value = read();
      }
    });
    const offer = proposal === null ? [] : [this.#offer(proposal, field, take)];
    element.append(make('td', {}, make('div', { class: 'value' }, field, ...offer)), why);
    let judged = text;
    return {
      row,
      element,
      judge: (now) => {
        if (judged === read()) return;
        judged = read();
        const isRight = now === undefined;
        element.classList.toggle('corrected', isRight);
        field.setAttribute('aria-invalid', String(!isRight));
        why.replaceChildren(
          ...(isRight ? [icon('done-icon')] : []),
          make('span', { role: isRight ? 'status' : 'alert' }, isRight ? 'can be read now' : said(now, row)),
        );
      },
    };
  }

  #offer(proposal: string, field: HTMLInputElement | HTMLTextAreaElement, take: () => void): HTMLElement {
    const click = () => {
      field.value = proposal;
      take();
      field.focus();
    };
    return make('button', { type: 'button', class: 'offer', click }, `${proposal}?`);
  }
}

function placeOf({ line, column }: RefusedRow): string {
  return `${line} ${column}`;
}

/** The next fault may be in another column, which can be corrected in the file of refused rows. */
function said({ column, reason }: RefusedRow, before: RefusedRow): string {
  const where = column === before.column || column === null ? '' : `${column} `;
  return `${where}${sentenceOf(reason)}`;
}
