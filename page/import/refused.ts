// Owns: the rows of a file that cannot be read, their correction by a person, and the file that has them.
// Does not: read a correction: the service does.

import type { ImportReport, RefusedRow } from '../../client/src/book-catalogue.ts';
import { ETAG } from '../../src/files/columns.ts';
import { type Reason, sentenceOf } from '../../src/files/reasons.ts';
import { button, icon, make } from '../elements/dom.ts';
import { saveFile } from '../elements/save-file.ts';
import { numberText } from '../texts/english.ts';
import { IMPORT } from '../texts/import.ts';
import { AS_IT_IS } from '../texts/sentence.ts';

/** Rows that are drawn: thousands would hold the page up. */
export const SHOWN = 100;

interface Shown {
  readonly row: RefusedRow;
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

  /** Texts by lines, as JSON. */
  get corrections(): string {
    const rows = [...this.#shown.values()].map(({ row }) => row);
    return JSON.stringify(Object.fromEntries(rows.map((row) => [row.line, this.#typed.get(placeOf(row))])));
  }

  /** @param isOther whether the columns may be others. Otherwise, rows that were corrected stay in sight. */
  show(refused: readonly RefusedRow[], isOther: boolean): void {
    if (isOther) this.#shown.clear();
    if (isOther) this.body.replaceChildren();
    const now = new Map(refused.map((row) => [row.line, row]));
    for (const { row, judge } of this.#shown.values()) judge(now.get(row.line));
    for (const row of refused.slice(0, SHOWN))
      if (!this.#shown.has(row.line)) this.#shown.set(row.line, this.#draw(row));
  }

  #draw(row: RefusedRow): Shown {
    const { line, title, column, text, proposal } = row;
    const why = make('td', { id: `import-why-${line}` }, reasonOf(row));
    const element = make(
      'tr',
      {},
      make('td', { class: 'number' }, numberText(line)),
      make('td', { ...AS_IT_IS, class: 'serif' }, title ?? ''),
      column === null ? make('td', {}, IMPORT.wholeRow) : make('td', AS_IT_IS, column),
    );
    this.body.append(element);
    if (text === null) {
      element.append(make('td', {}, IMPORT.tooLong), why);
      return { row, judge: () => {} };
    }
    const field = this.#field(row, text);
    const offer = () => {
      field.value = proposal ?? '';
      field.dispatchEvent(new Event('change'));
      field.focus();
    };
    const offered =
      proposal === null
        ? undefined
        : button(
            column?.trim().toLowerCase() === ETAG ? IMPORT.changeAnyway : IMPORT.proposal(proposal),
            offer,
          );
    element.append(make('td', {}, make('div', { class: 'value' }, field, offered)), why);
    let judged = text;
    return {
      row,
      judge: (now) => {
        if (judged === this.#textOf(row)) return;
        judged = this.#textOf(row);
        const isRight = now === undefined;
        element.classList.toggle('corrected', isRight);
        field.setAttribute('aria-invalid', String(!isRight));
        const said = isRight
          ? [icon('done-icon'), make('span', { role: 'status' }, IMPORT.canBeRead)]
          : [make('span', { role: 'alert' }, reasonOf(now, row))];
        why.replaceChildren(...said);
      },
    };
  }

  #field(row: RefusedRow, text: string): HTMLInputElement | HTMLTextAreaElement {
    const { line, column } = row;
    const attributes = {
      'aria-label': IMPORT.fieldOf(column, line),
      'aria-describedby': `import-why-${line}`,
      'aria-invalid': 'true',
      spellcheck: 'false',
      dir: 'auto',
    };
    const isLong = /[\r\n]/.test(text); // an input has one line
    const field = isLong ? make('textarea', { ...attributes, rows: 2 }) : make('input', attributes);
    field.value = this.#textOf(row);
    const take = () => {
      if (field.value === this.#textOf(row)) return;
      this.#typed.set(placeOf(row), field.value);
      this.#onTyped();
    };
    field.addEventListener('change', take);
    field.addEventListener('keydown', (event) => {
      const { key, shiftKey } = event as KeyboardEvent;
      if (key === 'Enter' && !shiftKey) {
        event.preventDefault();
        take();
        field.closest('tr')?.nextElementSibling?.querySelector<HTMLElement>('input, textarea')?.focus();
      } else if (key === 'Escape' && field.value !== this.#textOf(row)) {
        event.preventDefault(); // the dialog stays
        field.value = this.#textOf(row);
      }
    });
    return field;
  }

  #textOf(row: RefusedRow): string {
    return this.#typed.get(placeOf(row)) ?? row.text ?? '';
  }
}

/** The rows that the file of refused rows has, as it has them: the report lacks longer ones. */
export function recordsOf({ rejects, refused }: ImportReport): readonly string[] {
  return rejects === null ? [] : refused.flatMap(({ record }) => record ?? []);
}

/** Has the browser save the refused rows as a file. */
export function saveRefused(known: ImportReport): void {
  const { name = '', before = '', between, after = '' } = known.rejects ?? {};
  saveFile(new File([before + recordsOf(known).join(between) + after], name));
}

function placeOf({ line, column }: RefusedRow): string {
  return `${line} ${column}`;
}

/** @param before the row as it was: its next fault may be in another column, which the file of refused rows has. */
function reasonOf({ column, reason }: RefusedRow, before?: RefusedRow): string {
  const where = before === undefined || column === before.column || column === null ? '' : `${column} `;
  return `${where}${sentenceOf(reason as Reason)}`;
}
