// Owns: the step "Check" of an import: how a file was understood, what its columns are, and which rows can be imported.

import { AS_IT_IS, make, scrollable } from '../elements/dom.ts';
import { byField, counted, FIELD_NAMES, FIELDS, type Field, numberText, yearText } from '../elements/text.ts';
import { type Choices, countOf, type Figures, type FileBook, type Understood, type Wanted } from './calls.ts';
import { type RefusedActions, RefusedRows } from './refused.ts';

/** What a person can do in this step. */
export interface Actions extends RefusedActions {
  /** Reads the file again. */
  choose(choices: Choices): void;
  chooseFile(): void;
  start(wanted: Wanted): void;
}

const DELIMITERS: Readonly<Record<string, string>> = {
  ',': 'commas',
  ';': 'semicolons',
  '\t': 'tabs',
  '|': 'vertical bars',
};

/** Columns that a complaint names. */
const NAMED = 8;

/** The value of the choice "not in the file", or of none; the others are numbers of columns. */
const NONE = '';

/** What the first row of a table may be. */
const FIRST_ROW = {
  [NONE]: 'choose',
  header: 'the names of the columns',
  book: 'a book',
  above: 'neither: leave it out',
} as const;

export class CheckStep {
  readonly heading: HTMLElement;
  readonly parts: readonly HTMLElement[];
  readonly #actions: Actions;
  readonly #about = make('p', { class: 'hint' });
  readonly #notices = make('div');
  readonly #selects: Readonly<Record<Field, HTMLSelectElement>>;
  readonly #samples: Readonly<Record<Field, HTMLElement>>;
  readonly #firstRow: HTMLSelectElement;
  readonly #firstRowSample = make('span', { ...AS_IT_IS, class: 'sample', id: 'import-sample-first-row' });
  readonly #firstRowChoice: readonly HTMLElement[];
  readonly #delimiter: HTMLSelectElement;
  readonly #tally = {
    fresh: new FigureView('can be imported'),
    refused: new FigureView('refused'),
    here: new FigureView('here already'),
    yearless: new FigureView('without a year'),
  };
  readonly #remarks = make('p', { class: 'hint' });
  readonly #refused: RefusedRows;
  readonly #first = make('section');
  readonly #doubtful = make('section');
  readonly #doubtfulToo = make('input', { type: 'checkbox', id: 'import-doubtful' });
  readonly #doubtfulCount = make('span');
  readonly #skip = make('input', { type: 'checkbox', id: 'import-skip', checked: true });
  readonly #comparison = make('p', { class: 'hint' });
  readonly #start = make('button', { type: 'button', class: 'primary' });
  /** What a person has chosen. */
  #chosen: Choices = { columns: {} };
  #understood: Understood;
  #figures: Figures;
  #isCompared = false;

  constructor(file: File, understood: Understood, actions: Actions) {
    this.#actions = actions;
    this.#understood = understood;
    this.#figures = understood.figures;
    this.heading = make('h3', { ...AS_IT_IS, tabindex: -1 }, file.name);
    this.#selects = byField((field) => this.#makeSelect(field));
    this.#firstRow = this.#makeFirstRow();
    this.#delimiter = this.#makeDelimiter();
    this.#firstRowChoice = [
      make('label', { for: 'import-first-row' }, 'First row'),
      this.#firstRow,
      this.#firstRowSample,
      make('label', { for: 'import-delimiter' }, 'Separated by'),
      this.#delimiter,
      make('span'),
    ];
    this.#samples = byField((field) =>
      make('span', { ...AS_IT_IS, class: 'sample', id: `import-sample-${field}` }),
    );
    this.#refused = new RefusedRows(actions, (figures) => {
      this.#figures = figures;
      this.#drawFigures();
    });
    this.#skip.addEventListener('change', () => this.#drawFigures());
    this.#doubtfulToo.addEventListener('change', () => this.#drawFigures());
    this.#start.addEventListener('click', () => this.#actions.start(this.#wanted));
    this.parts = [
      this.heading,
      this.#about,
      this.#notices,
      make(
        'div',
        { class: 'mapping' },
        ...this.#firstRowChoice,
        ...FIELDS.flatMap((field) => this.#choiceOf(field)),
      ),
      make('ul', { class: 'tally' }, ...Object.values(this.#tally).map(({ element }) => element)),
      this.#remarks,
      this.#refused.element,
      this.#doubtful,
      this.#first,
      make(
        'label',
        { class: 'check', for: 'import-skip' },
        this.#skip,
        `Leave out books that are here already (same ${new Intl.ListFormat('en-GB').format(FIELDS)})`,
      ),
      this.#comparison,
      make(
        'footer',
        {},
        make('button', { type: 'button', click: () => actions.chooseFile() }, 'Another file'),
        this.#start,
      ),
    ];
    this.show(understood);
  }

  /** Whether something was typed, which would be lost. */
  get hasCorrections(): boolean {
    return this.#refused.hasCorrections;
  }

  /** Resolves when all corrections have been read. */
  settled(): Promise<void> {
    return this.#refused.settled();
  }

  /** Shows how the file was understood, with other columns than before. */
  show(understood: Understood): void {
    this.#understood = understood;
    this.#figures = understood.figures;
    this.#isCompared = false;
    const { columns, samples, rows, refused, first, firstRow, hasHeader } = understood;
    const names = [...new Set(understood.names)];
    this.#about.textContent = columns === undefined ? '' : describe(understood);
    this.#notices.replaceChildren(...noticesOf(understood));
    const hadFocus = [this.#firstRow, this.#delimiter].some((choice) => choice === document.activeElement);
    for (const element of this.#firstRowChoice) element.hidden = firstRow === undefined;
    if (hadFocus && firstRow === undefined) this.heading.focus();
    this.#firstRow.value = hasHeader === undefined ? NONE : hasHeader ? 'header' : 'book';
    this.#firstRowSample.textContent = firstRow?.join('  ·  ') ?? '';
    for (const field of FIELDS) {
      const column = columns?.[field];
      const select = this.#selects[field];
      select.replaceChildren(...this.#optionsOf(field, names));
      select.value = column === undefined ? NONE : String(names.indexOf(column));
      this.#samples[field].textContent = samples[field].map(sampleText).join('  ·  ');
    }
    this.#refused.show(refused, understood.figures.refused);
    this.#doubtfulToo.checked = false; // other columns, other doubts
    this.#first.hidden = first.length === 0;
    this.#first.replaceChildren(...firstTable(first, rows));
    this.#comparison.textContent = '';
    this.#drawFigures();
  }

  /** @param text how far the comparison with the catalogue is. */
  comparing(text: string): void {
    this.#comparison.textContent = text;
  }

  /**
   * Shows the result of the comparison with the catalogue.
   * @returns it in words.
   */
  compared(figures: Figures): string {
    this.#figures = figures;
    this.#isCompared = true;
    this.#comparison.textContent = '';
    this.#drawFigures();
    const { refused, here, twice } = figures;
    return `${numberText(countOf(figures, this.#wanted))} can be imported, ${numberText(refused)} refused, ${numberText(here + twice)} here already.`;
  }

  #drawFigures(): void {
    const { here, twice, refused, yearless, doubtful } = this.#figures;
    const { isAll, isDoubtfulToo } = this.#wanted;
    const isKnown = isAll || this.#isCompared;
    const count = countOf(this.#figures, this.#wanted);
    const year = isAll ? yearless.all : yearless.fresh;
    const doubts = isAll ? doubtful.all : doubtful.fresh;
    this.#tally.fresh.show(isKnown ? count : undefined);
    this.#tally.refused.show(refused, refused > 0 ? 'bad' : '');
    this.#tally.here.show(this.#isCompared ? here + twice : undefined);
    this.#tally.yearless.show(isKnown ? year : undefined);
    const { short, newYears, above } = this.#understood;
    this.#remarks.textContent = [
      twice > 0 ? `${counted(twice, 'row is', 'rows are')} in this file more than once.` : '',
      short > 0 ? `${counted(short, 'row ends', 'rows end')} early: what is missing was read as empty.` : '',
      newYears > 0
        ? `${counted(newYears, 'date')} in UTC, on 31 December, ${newYears === 1 ? 'is' : 'are'} midnight in another time zone: read as the new year.`
        : '',
      above !== '' ? `Left out above the names of the columns: ${above}` : '',
    ].join(' ');
    this.#drawDoubtful(doubts);
    const { columns, firstRow, hasHeader } = this.#understood;
    const hasColumns = columns !== undefined && (firstRow === undefined || hasHeader !== undefined);
    this.#start.textContent = isKnown && hasColumns ? `Import ${counted(count, 'book')}` : 'Import';
    this.#start.disabled = !isKnown || !hasColumns || count === 0;
    if (isKnown && hasColumns && count === 0 && this.#understood.rows > 0) {
      this.#comparison.textContent =
        refused === this.#understood.rows
          ? 'There is nothing to import: every row is refused. Is each column the right one?'
          : doubts > 0 && !isDoubtfulToo
            ? 'There is nothing to import but doubtful books. Is each column the right one?'
            : 'There is nothing to import: every book is here already.';
    }
  }

  get #wanted(): Wanted {
    return { isAll: !this.#skip.checked, isDoubtfulToo: this.#doubtfulToo.checked };
  }

  /** @param count of the doubtful books that would be imported. */
  #drawDoubtful(count: number): void {
    this.#doubtful.hidden = count === 0;
    this.#doubtfulCount.textContent = `Also import ${counted(count, 'doubtful book')}`;
    const { first } = this.#figures.doubtful;
    const rows = first.map(({ book, doubt }) => bookRow(book, make('td', {}, doubt)));
    const more = count > first.length ? ` These are the first ${numberText(first.length)}.` : '';
    const columns = [...Object.values(FIELD_NAMES), 'Why'];
    const hadFocus = this.#doubtfulToo === document.activeElement;
    this.#doubtful.replaceChildren(
      make('h3', { id: 'import-doubtful-title' }, 'Books that are doubtful'),
      make('p', { class: 'hint' }, `They are left out, unless you want them.${more}`),
      scrollable('import-doubtful-title', columns, make('tbody', {}, ...rows)),
      make('label', { class: 'check', for: 'import-doubtful' }, this.#doubtfulToo, this.#doubtfulCount),
    );
    if (hadFocus) this.#doubtfulToo.focus();
  }

  #makeSelect(field: Field): HTMLSelectElement {
    const select = make('select', {
      id: `import-column-${field}`,
      'aria-describedby': `import-sample-${field}`,
    });
    select.addEventListener('change', () => {
      const { names } = this.#understood;
      const hasHeader = this.#chosen.hasHeader ?? this.#understood.hasHeader; // the file may be being read with that choice
      const name = select.value === NONE ? null : [...new Set(names)][Number(select.value)];
      this.#choose({ hasHeader, columns: { ...this.#chosen.columns, [field]: name } });
    });
    return select;
  }

  /** The columns to choose from, and the choice of none unless the field is known to have one. */
  #optionsOf(field: Field, names: readonly string[]): HTMLElement[] {
    const { columns, firstRow, hasHeader } = this.#understood;
    const none = field === 'title' ? 'choose a column' : 'not in the file';
    const options = names.map((name, index) => {
      const shown = name.trim() === '' ? `column ${index + 1}, without a name` : name;
      return make(
        'option',
        { ...AS_IT_IS, value: index },
        hasHeader === false ? `${name}: ${firstRow?.[index]}` : shown,
      );
    });
    const isThere = field === 'title' && columns !== undefined;
    return isThere ? options : [make('option', { value: NONE }, none), ...options];
  }

  #makeFirstRow(): HTMLSelectElement {
    const select = make(
      'select',
      { id: 'import-first-row', 'aria-describedby': 'import-sample-first-row' },
      ...Object.entries(FIRST_ROW).map(([value, text]) => make('option', { value }, text)),
    );
    select.addEventListener('change', () => {
      const { firstLine = 0 } = this.#understood;
      if (select.value === 'above') {
        this.#choose({ fromLine: firstLine + 1, columns: {}, hasHeader: undefined });
        return;
      }
      const hasHeader = select.value === NONE ? undefined : select.value === 'header';
      const isOther = (hasHeader === false) !== (this.#understood.hasHeader === false);
      this.#choose(isOther ? { hasHeader, columns: {} } : { hasHeader }); // else the columns have other names
    });
    return select;
  }

  /** Other delimiters make other columns. */
  #makeDelimiter(): HTMLSelectElement {
    const options = Object.entries(DELIMITERS).map(([value, text]) => make('option', { value }, text));
    const select = make(
      'select',
      { id: 'import-delimiter' },
      make('option', { value: NONE }, 'as found'),
      ...options,
    );
    select.addEventListener('change', () => {
      this.#choose({ delimiter: select.value || undefined, columns: {}, hasHeader: undefined });
    });
    return select;
  }

  #choose(choices: Partial<Choices>): void {
    this.#chosen = { ...this.#chosen, ...choices };
    this.#actions.choose(this.#chosen);
  }

  #choiceOf(field: Field): HTMLElement[] {
    return [
      make('label', { for: `import-column-${field}` }, FIELD_NAMES[field]),
      this.#selects[field],
      this.#samples[field],
    ];
  }
}

function sampleText(value: string | number): string {
  return typeof value === 'number' ? yearText(value) : value;
}

/** One of the figures. */
class FigureView {
  readonly element: HTMLElement;
  readonly #number = make('b');

  constructor(words: string) {
    this.element = make('li', {}, this.#number, ` ${words}`);
  }

  /** @param count undefined while it is not known. */
  show(count: number | undefined, className = ''): void {
    this.#number.textContent = count === undefined ? '…' : numberText(count);
    this.element.className = className;
  }
}

/** `9 rows, separated by semicolons, UTF-8`. */
function describe({ rows, format, delimiter, encoding }: Understood): string {
  const separated = delimiter === undefined ? 'JSON' : `separated by ${DELIMITERS[delimiter] ?? delimiter}`;
  const lines = format === 'jsonl' ? ', one book a line' : '';
  return `${counted(rows, 'row')}, ${separated}${lines}, ${encoding}`;
}

function noticesOf(understood: Understood): HTMLElement[] {
  const { columns, encoding, hasIds, fault, rows, names, firstRow, hasHeader } = understood;
  const notice = (text: string) => make('p', { class: 'notice' }, text);
  const alert = (text: string) => make('p', { class: 'bad', role: 'alert' }, text);
  const notices: HTMLElement[] = [];
  if (firstRow !== undefined && hasHeader === undefined)
    notices.push(alert('Is the first row a book, or does it have the names of the columns?'));
  if (columns === undefined) {
    const seen = (hasHeader === false ? firstRow : names)?.slice(0, NAMED).join(', ');
    const more = names.length > NAMED ? ' …' : '';
    notices.push(alert(`Which column is the title? The file has: ${seen}${more}.`));
  } else if (fault !== undefined) {
    notices.push(alert(`${fault} Only the rows before that can be imported.`));
  } else if (rows === 0) {
    notices.push(alert('The file has no rows.'));
  }
  if (encoding === 'Windows-1252') {
    notices.push(
      notice(
        'The file is not UTF-8; it was read as Windows-1252. Look whether letters such as é are right. If not, save it as CSV in UTF-8, and choose it again.',
      ),
    );
  }
  if (hasIds) notices.push(notice('The file has ids. They are not kept: each book gets a new one.'));
  if (columns !== undefined && columns.otherYears.length > 0) {
    const others = columns.otherYears.map((name) => `"${name}"`).join(' or else ');
    notices.push(notice(`Where "${columns.year}" is empty, ${others} is the year.`));
  }
  return notices;
}

function bookRow(book: FileBook, ...others: readonly HTMLElement[]): HTMLElement {
  const cells = FIELDS.map((field) => {
    const value = book[field];
    if (typeof value === 'number') return make('td', { class: 'number' }, yearText(value));
    return make('td', field === 'title' ? { ...AS_IT_IS, class: 'serif' } : AS_IT_IS, value);
  });
  return make('tr', {}, ...cells, ...others);
}

function firstTable(books: readonly FileBook[], rows: number): HTMLElement[] {
  const body = books.map((book) => bookRow(book));
  const heading = rows > books.length ? 'How the first rows will look' : 'How the rows will look';
  return [
    make('h3', { id: 'import-first' }, heading),
    scrollable('import-first', Object.values(FIELD_NAMES), make('tbody', {}, ...body)),
  ];
}
