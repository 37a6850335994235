// Owns: the choices of how a table is read: its sheet, what its first row is, and what separates its columns.

import type { ImportReport } from '../../client/src/book-catalogue.ts';
import type { Options } from '../catalogue/imports.ts';
import { choice, make } from '../elements/dom.ts';
import { FIELDS } from '../elements/text.ts';
import { IMPORT } from '../texts/import.ts';
import { AS_IT_IS } from '../texts/sentence.ts';

export class LayoutChoice {
  readonly #firstRow = choice({ id: 'import-first-row' }, IMPORT.firstRowIs, (value) =>
    this.#chooseFirstRow(value),
  );
  readonly #delimiter = choice(
    { id: 'import-delimiter' },
    { '': IMPORT.asFound, ...IMPORT.separators },
    (delimiter) => this.#choose({ delimiter }),
  );
  readonly #sheet = make('select', {
    ...{ id: 'import-sheet', ...AS_IT_IS },
    change: () => this.#choose({ sheet: this.#sheet.value }),
  });
  readonly #sheets = make('div', {}, make('label', { for: 'import-sheet' }, IMPORT.sheet), this.#sheet);
  readonly #delimiters = make(
    'div',
    {},
    make('label', { for: 'import-delimiter' }, IMPORT.separator),
    this.#delimiter,
  );
  readonly element = make(
    'details',
    { class: 'layout hint' },
    make('summary', {}, IMPORT.isWrong),
    this.#sheets,
    make('div', {}, make('label', { for: 'import-first-row' }, IMPORT.firstRow), this.#firstRow),
    this.#delimiters,
  );
  readonly #onChoice: (options: Options) => void;
  /** Whether no name of the first row was known, so that it may be a book. */
  #isUnknown = false;
  #known: ImportReport | undefined;

  /** @param onChoice is called with other options. */
  constructor(onChoice: (options: Options) => void) {
    this.#onChoice = onChoice;
  }

  /** Whether a person must say what the first row is. */
  get isOpen(): boolean {
    return this.#isUnknown && this.#known?.options.header === undefined;
  }

  show(known: ImportReport): void {
    const { file, fault, options } = known;
    this.#known = known;
    if (file === null) this.#isUnknown = fault?.line !== undefined;
    else if (options.title === undefined) this.#isUnknown = false;
    const { delimiter = null, sheet = null, sheets = [] } = file ?? {};
    const isSeparated = file === null ? fault?.line !== undefined : delimiter !== null;
    this.element.hidden = !isSeparated && sheet === null;
    this.#delimiters.hidden = !isSeparated;
    this.#sheets.hidden = sheets.length < 2;
    const names = sheet === null || sheets.includes(sheet) ? sheets : [...sheets, sheet]; // it may be a hidden one
    this.#sheet.replaceChildren(...names.map((name) => make('option', { value: name }, name)));
    this.#sheet.value = sheet ?? '';
    this.element.open ||= this.isOpen || options.sheet !== undefined;
    this.#firstRow.value = options.header ?? (this.isOpen ? '' : 'yes');
    this.#delimiter.value = options.delimiter ?? '';
  }

  #chooseFirstRow(value: string): void {
    const { options = {}, fault } = this.#known ?? {};
    const line = fault?.line ?? Number(options['from-line'] ?? 1);
    if (value === 'above') this.#choose({ 'from-line': String(line + 1) });
    else if (value !== '') this.#choose({ header: value });
  }

  /** In another layout, the columns have other names. */
  #choose(layout: Options): void {
    const { options = {} } = this.#known ?? {};
    const chosen = FIELDS.filter((field) => options[field] !== undefined);
    this.#onChoice({ ...Object.fromEntries(chosen.map((field) => [field, ''])), ...layout });
  }
}
