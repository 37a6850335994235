// Owns: the step "Check" of an import: the columns and the first rows of the file in one table, which also shows the rows that
// each of the figures counts.

import { because, sentenceOf } from '../../src/files/reasons.ts';
import type { BookRow, Import, Options } from '../catalogue/imports.ts';
import { AS_IT_IS, choice, make, table } from '../elements/dom.ts';
import { counted, FIELD_NAMES, FIELDS, numberText, yearText } from '../elements/text.ts';
import { LayoutChoice } from './layout.ts';
import { RefusedRows } from './refused.ts';

/** What a person can do in this step. */
export interface Actions {
  /** Reads the file again, with these options as well. */
  choose(options: Options): void;
  /** Reads it again with the corrections. */
  correct(): void;
  chooseFile(): void;
  saveRefused(): void;
  start(options: Options): void;
}

const ENCODINGS: Readonly<Record<string, string>> = {
  'utf-8': 'UTF-8',
  'utf-16le': 'UTF-16',
  'utf-16be': 'UTF-16',
  'windows-1252': 'Windows-1252',
};

/** The use of a column that no field takes. */
const NONE = '–';

/** What the table may show, and how the button with their number says so. */
const KINDS = {
  rows: { label: 'in the file', title: 'The first rows of the file' },
  new: { label: 'new', title: 'Books that are new' },
  here: { label: 'here already', title: 'Books that are here already' },
  doubtful: { label: 'doubtful', title: 'Books that are doubtful' },
  refused: { label: 'cannot be read', title: 'Rows that cannot be read' },
} as const;
type Kind = keyof typeof KINDS;
const ALL = Object.keys(KINDS) as readonly Kind[];

export class CheckStep {
  readonly heading: HTMLElement;
  readonly parts: readonly HTMLElement[];
  readonly #actions: Actions;
  readonly #about = make('p', { class: 'hint' });
  readonly #notices = make('div');
  readonly #figures: Readonly<Record<Kind, HTMLButtonElement>>;
  readonly #table = make('div', { class: 'scroll', role: 'region', tabindex: 0 });
  readonly #more = make('p', { class: 'hint' });
  readonly #save: HTMLElement;
  readonly #layout: LayoutChoice;
  readonly #refused: RefusedRows;
  readonly #doubtfulToo = make('input', { type: 'checkbox', id: 'import-doubtful' });
  readonly #doubtfulLabel: HTMLElement;
  readonly #doubtfulCount = make('span');
  readonly #skip = make('input', { type: 'checkbox', id: 'import-skip', checked: true });
  readonly #remarks = make('p', { class: 'hint' });
  readonly #going = make('p', { class: 'hint' });
  readonly #start = make('button', { type: 'button', class: 'primary' });
  #known: Import;
  #kind: Kind = 'rows';
  /** Whether the file is being read with other options. */
  #isBusy = false;

  constructor(file: File, known: Import, actions: Actions) {
    this.#actions = actions;
    this.#known = known;
    this.heading = make('h3', { ...AS_IT_IS, tabindex: -1 }, file.name);
    this.#figures = Object.fromEntries(ALL.map((kind) => [kind, this.#figure(kind)])) as Record<
      Kind,
      HTMLButtonElement
    >;
    this.#layout = new LayoutChoice((options) => actions.choose(options));
    this.#refused = new RefusedRows(() => actions.correct());
    this.#save = make(
      'button',
      { type: 'button', click: () => actions.saveRefused() },
      'Save the refused rows',
    );
    this.#doubtfulLabel = make(
      'label',
      { class: 'check', for: 'import-doubtful' },
      this.#doubtfulToo,
      this.#doubtfulCount,
    );
    this.#doubtfulToo.addEventListener('change', () => this.#drawFigures());
    this.#skip.addEventListener('change', () => {
      actions.choose({ 'on-duplicate': this.#skip.checked ? 'skip' : 'add' });
    });
    this.#start.addEventListener('click', () => {
      actions.start({ doubtful: this.#doubtfulToo.checked ? 'add' : 'skip' });
    });
    this.parts = [
      this.heading,
      this.#about,
      this.#notices,
      make('ul', { class: 'tally' }, ...ALL.map((kind) => make('li', {}, this.#figures[kind]))),
      this.#table,
      this.#more,
      this.#save,
      this.#layout.element,
      this.#remarks,
      this.#doubtfulLabel,
      make(
        'label',
        { class: 'check', for: 'import-skip' },
        this.#skip,
        `Leave out books that are here already (same ${new Intl.ListFormat('en-GB').format(FIELDS)})`,
      ),
      this.#going,
      make(
        'footer',
        {},
        make('button', { type: 'button', click: () => actions.chooseFile() }, 'Another file'),
        this.#start,
      ),
    ];
    this.show(known, true);
  }

  /** Texts in place of wrong ones, as JSON. */
  get corrections(): string {
    return JSON.stringify(this.#refused.corrections);
  }

  /** Shows that the file is being read again. @param isOther whether with other options. */
  reading(text: string, isOther: boolean): void {
    this.#isBusy = isOther;
    this.#going.textContent = text;
    this.#drawFigures();
  }

  /**
   * Shows how the file was understood.
   * @param isOther whether with other options than before.
   * @returns the figures in words.
   */
  show(known: Import, isOther: boolean): string {
    this.#known = known;
    this.#isBusy = false;
    this.#going.textContent = '';
    this.#refused.show(known.refused, isOther);
    this.#about.replaceChildren(...describe(known));
    this.#layout.show(known);
    this.#notices.replaceChildren(...noticesOf(known, this.#layout.isOpen));
    if (isOther) this.#drawTable(countOf(known, this.#kind) > 0 ? this.#kind : 'rows');
    this.#drawFigures();
    const { figures } = known;
    this.#remarks.textContent = remarksOf(known);
    return `${numberText(figures.new)} new, ${numberText(figures.here + figures.repeated)} here already, ${numberText(figures.doubtful)} doubtful, ${numberText(figures.refused)} cannot be read.`;
  }

  #figure(kind: Kind): HTMLButtonElement {
    return make('button', { type: 'button', click: () => this.#drawTable(kind) });
  }

  #drawFigures(): void {
    const { figures, file } = this.#known;
    const { here, repeated, doubtful, refused, rows } = figures;
    const doubles = here > 0 ? 'here already, or twice in the file' : 'twice in the file';
    for (const kind of ALL) {
      const count = countOf(this.#known, kind);
      const label = kind === 'here' && repeated > 0 ? doubles : KINDS[kind].label;
      this.#figures[kind].replaceChildren(make('b', {}, this.#isBusy ? '…' : numberText(count)), ` ${label}`);
      this.#figures[kind].ariaDisabled = count === 0 && kind !== 'rows' ? 'true' : null;
    }
    this.#figures.refused.classList.toggle('bad', refused > 0);
    this.#doubtfulLabel.hidden = doubtful === 0;
    this.#doubtfulCount.textContent = `Also import ${counted(doubtful, 'doubtful book')}`;
    const count = figures.new + (this.#doubtfulToo.checked ? doubtful : 0);
    const isKnown = file !== null && !this.#isBusy && !this.#layout.isOpen;
    this.#start.textContent = isKnown ? `Import ${counted(count, 'book')}` : 'Import';
    this.#start.disabled = !isKnown || count === 0;
    if (!isKnown || count > 0 || rows === 0) return;
    this.#going.textContent =
      refused === rows
        ? 'There is nothing to import: no row can be read. Is each column the right one?'
        : doubtful > 0
          ? 'There is nothing to import but doubtful books. Is each column the right one?'
          : 'There is nothing to import: every book is here already.';
  }

  /** Shows the rows of a kind; the focus stays where it is. */
  #drawTable(kind: Kind): void {
    if (kind !== 'rows' && countOf(this.#known, kind) === 0) return;
    this.#kind = kind;
    const focused = document.activeElement?.id;
    const { refused, rows } = this.#known;
    this.#table.setAttribute('aria-label', KINDS[kind].title);
    const [shown, content] =
      kind === 'rows'
        ? [Number.POSITIVE_INFINITY, this.#firstRows()]
        : kind === 'refused'
          ? [Math.min(refused.length, 100), table(REFUSED_COLUMNS, this.#refused.body)]
          : [rows[kind].length, table(COLUMNS, make('tbody', {}, ...rows[kind].map(bookRow)))];
    this.#table.replaceChildren(content);
    const all = countOf(this.#known, kind);
    const isKept = kind === 'refused' && all > refused.length;
    this.#more.textContent = [
      kind === 'refused' ? 'Correct a value, and its row is imported with the others.' : '',
      shown < all ? `These are the first ${numberText(shown)} of ${numberText(all)}.` : '',
      isKept ? `The file of refused rows has the first ${numberText(refused.length)}.` : '',
    ]
      .join(' ')
      .trim();
    this.#save.hidden = kind !== 'refused';
    for (const one of ALL) this.#figures[one].ariaPressed = String(one === kind);
    if (focused) document.getElementById(focused)?.focus();
  }

  /** The table of the file: a choice above each column. */
  #firstRows(): HTMLElement {
    const { file, fault, options } = this.#known;
    const names = file?.names ?? fault?.names ?? [];
    const first = file?.first ?? fault?.first ?? [];
    const used = file?.columns ?? options;
    const uses = names.map((name, at) => {
      const isFirst = name !== '' && names.indexOf(name) === at;
      return isFirst ? (FIELDS.find((field) => used[field] === name) ?? NONE) : undefined;
    });
    const selects: (HTMLSelectElement | undefined)[] = [];
    for (const [at, use] of uses.entries())
      selects.push(use === undefined ? undefined : this.#choice(names, uses, at, selects));
    const heads = names.map((name, at) => {
      const shown = make('span', AS_IT_IS, name.trim() === '' ? 'without a name' : name);
      return [selects[at] ?? '', shown];
    });
    const body = first.map((row) =>
      make('tr', {}, ...names.map((_, at) => make('td', AS_IT_IS, row[at] ?? ''))),
    );
    return table(heads, make('tbody', {}, ...body));
  }

  /** @param uses of all columns, and the choices of them: both change at once. */
  #choice(
    names: readonly string[],
    uses: (string | undefined)[],
    at: number,
    selects: readonly (HTMLSelectElement | undefined)[],
  ): HTMLSelectElement {
    const name = names[at] ?? '';
    const attributes = { id: `import-column-${at}`, 'aria-label': `Column ${name}` };
    const select = choice(attributes, { [NONE]: NONE, ...FIELD_NAMES }, (value) => {
      const before = uses[at] ?? NONE;
      const other = value === NONE ? -1 : uses.indexOf(value);
      if (selects[other] !== undefined) [uses[other], selects[other].value] = [NONE, NONE];
      uses[at] = value;
      this.#actions.choose({
        ...(before !== NONE && { [before]: '' }),
        ...(value !== NONE && { [value]: name }),
      });
    });
    select.value = uses[at] ?? NONE;
    return select;
  }
}

const COLUMNS = [['Line'], ...Object.values(FIELD_NAMES).map((name) => [name]), ['Why']];
const REFUSED_COLUMNS = [['Line'], ['Title'], ['Column'], ['Value'], ['Why']];

function countOf({ figures }: Import, kind: Kind): number {
  return kind === 'here' ? figures.here + figures.repeated : figures[kind];
}

function bookRow({ line, title, author, year, doubt }: BookRow): HTMLElement {
  return make(
    'tr',
    {},
    make('td', { class: 'number' }, numberText(line)),
    make('td', { ...AS_IT_IS, class: 'serif' }, title),
    make('td', AS_IT_IS, author),
    make('td', { class: 'number' }, yearText(year)),
    make('td', {}, doubt === null ? '' : sentenceOf(because(doubt))),
  );
}

/** `9 rows, separated by semicolons, UTF-8; title from “Werk”, no author, no year`. */
function describe({ figures, file }: Import): (Node | string)[] {
  if (file === null) return [];
  const { format, delimiter, encoding, columns } = file;
  const separated = delimiter === null ? 'JSON' : `separated by ${LayoutChoice.nameOf(delimiter)}`;
  const lines = format === 'jsonl' ? ', one book a line' : '';
  const named = FIELDS.flatMap((field, at) => {
    const [between, column] = [at === 0 ? '; ' : ', ', columns[field]];
    return column === null
      ? [`${between}no ${field}`]
      : [`${between}${field} from `, make('bdi', AS_IT_IS, `“${column}”`)];
  });
  const rows = counted(figures.rows, 'row');
  return [`${rows}, ${separated}${lines}, ${ENCODINGS[encoding] ?? encoding}`, ...named];
}

function remarksOf({ figures, file }: Import): string {
  const { repeated, short, newYears, lacking } = figures;
  const isOne = newYears === 1;
  return [
    lacking.year > 0 ? `${counted(lacking.year, 'new book has', 'new books have')} no year.` : '',
    repeated > 0 ? `${counted(repeated, 'row is', 'rows are')} in this file more than once.` : '',
    short > 0 ? `${counted(short, 'row ends', 'rows end')} early: what is missing was read as empty.` : '',
    newYears > 0
      ? `${counted(newYears, 'date')} in UTC, on 31 December, ${isOne ? 'is' : 'are'} midnight in another time zone: read as the new year.`
      : '',
    file !== null && file.above !== '' ? `Left out above the names of the columns: ${file.above}` : '',
  ]
    .join(' ')
    .trim();
}

/** @param isAsked whether a person must say what the first row is. */
function noticesOf({ fault, file, figures, options }: Import, isAsked: boolean): HTMLElement[] {
  const notice = (text: string) => make('p', { class: 'notice' }, text);
  const alert = (text: string) => make('p', { class: 'bad', role: 'alert' }, text);
  const notices: HTMLElement[] = [];
  if (isAsked) notices.push(alert('Is the first row a book, or does it have the names of the columns?'));
  if (file === null) notices.push(alert('Which column is the title? Choose it above the column.'));
  else if (fault !== null) notices.push(alert(`${fault.message} Only the rows before that can be imported.`));
  else if (figures.rows === 0) notices.push(alert('The file has no rows.'));
  if (options.encoding !== undefined)
    notices.push(
      notice(
        'The file is not UTF-8; it was read as Windows-1252. Look whether letters such as é are right. If not, save it as CSV in UTF-8, and choose it again.',
      ),
    );
  if (file?.names.includes('id'))
    notices.push(notice('The file has ids. They are not kept: each book gets a new one.'));
  const others = file?.otherYears.map((name) => `“${name}”`).join(' or else ') ?? '';
  if (others !== '') notices.push(notice(`Where “${file?.columns.year}” is empty, ${others} is the year.`));
  return notices;
}
