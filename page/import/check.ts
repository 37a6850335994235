// Owns: the step "Check" of an import: the columns and the first rows of the file in one table, which also shows the rows that
// each of the figures counts.

import type { ChangedRow, ImportedRow, ImportReport } from '../../client/src/book-catalogue.ts';
import type { BookFields } from '../../src/books/book.ts';
import { because, type ReasonCode, sentenceOf } from '../../src/files/reasons.ts';
import type { Imports, Options } from '../catalogue/imports.ts';
import { button, choice, make, redraw, table, warning } from '../elements/dom.ts';
import { FIELDS, type Field, fieldText } from '../elements/text.ts';
import { ELEMENTS } from '../texts/elements.ts';
import { LANGUAGE, numberText } from '../texts/english.ts';
import { IMPORT } from '../texts/import.ts';
import { AS_IT_IS } from '../texts/sentence.ts';
import { LayoutChoice } from './layout.ts';
import { RefusedRows, recordsOf, SHOWN, saveRefused } from './refused.ts';
import { describe, noticesOn, remarksOn } from './understood.ts';

/** What the step needs, and how it ends. */
export interface Surroundings {
  readonly imports: Imports;
  /** Aborted when nobody needs the step any more. */
  readonly signal: AbortSignal;
  /** An element with this role, which gets the figures. */
  readonly status: HTMLElement;
  /** Chooses another file. */
  leave(): void;
  fail(error: unknown): void;
  start(known: ImportReport, file: File, options: Options): void;
}

/** The use of a column that no field takes. */
const NONE = '–';
const USES = { [NONE]: NONE, ...ELEMENTS.fields };
type Use = keyof typeof USES;

/** What the table may show: each kind has a button with its number. */
const ALL = ['rows', 'new', 'changed', 'here', 'doubtful', 'refused'] as const;
type Kind = (typeof ALL)[number];

/** Milliseconds between two looks at why the catalogue does not answer. */
const LOOK = 200;

const CHECK = { class: 'check' };

export class CheckStep {
  readonly heading: HTMLElement;
  readonly parts: readonly HTMLElement[];
  readonly #file: File;
  readonly #around: Surroundings;
  readonly #about = make('p', { class: 'hint' });
  readonly #notices = make('div');
  readonly #figures = Object.fromEntries(
    ALL.map((kind) => [kind, button('', () => this.#drawTable(kind))]),
  ) as Readonly<Record<Kind, HTMLButtonElement>>;
  readonly #table = make('div', { class: 'scroll', role: 'region', tabindex: 0 });
  readonly #more = make('p', { class: 'hint' });
  readonly #save = button(IMPORT.saveRefused, () => void this.#saveRefused());
  readonly #layout = new LayoutChoice((options) => this.#choose(options));
  readonly #refused = new RefusedRows(() => this.#read());
  readonly #doubtfulToo = make('input', {
    ...{ type: 'checkbox', id: 'import-doubtful' },
    change: () => this.#drawFigures(),
  });
  readonly #doubtfulCount = make('span');
  readonly #doubtfulLabel = make('label', CHECK, this.#doubtfulToo, this.#doubtfulCount);
  readonly #conflictCount = make('label', { for: 'import-conflict' });
  readonly #conflict = choice({ id: 'import-conflict' }, IMPORT.onConflict, (answer) =>
    this.#choose({ 'on-conflict': answer }),
  );
  readonly #conflicts = make('div', CHECK, this.#conflictCount, this.#conflict);
  readonly #remarks = make('p', { class: 'hint' });
  readonly #going = make('p', { class: 'hint' });
  readonly #start = button('', () => void this.#import(), { class: 'primary' });
  readonly #warning = warning(IMPORT.wouldBeLost);
  #known: ImportReport;
  #kind: Kind = 'rows';
  /** Options that were chosen, but not yet sent. */
  #asked: Options | undefined;
  /** The check that is under way. */
  #checking: Promise<void> | undefined;
  /** Whether the file is being read with other options, so that no figure is known. */
  #isBusy = false;

  constructor(file: File, known: ImportReport, around: Surroundings) {
    this.#file = file;
    this.#known = known;
    this.#around = around;
    this.heading = make('h3', { ...AS_IT_IS, tabindex: -1 }, file.name);
    const skip = make('input', {
      ...{ type: 'checkbox', id: 'import-skip', checked: true },
      change: () => this.#choose({ 'on-duplicate': skip.checked ? 'skip' : 'add' }),
    });
    const same = new Intl.ListFormat(LANGUAGE).format(FIELDS);
    this.parts = [
      this.heading,
      this.#about,
      this.#notices,
      make('ul', { class: 'tally' }, ...ALL.map((kind) => make('li', {}, this.#figures[kind]))),
      this.#table,
      this.#more,
      this.#save,
      this.#conflicts,
      this.#layout.element,
      this.#remarks,
      this.#doubtfulLabel,
      make('label', CHECK, skip, IMPORT.leaveOut(same)),
      // Its text moves no button that the pointer is on: the press that leaves a corrected field begins a check.
      make('footer', {}, this.#going, button(IMPORT.anotherFile, around.leave), this.#start),
    ];
    this.#show(true);
  }

  get hasCorrections(): boolean {
    return this.#refused.corrections !== '{}';
  }

  /** Whether the file can be left. A person is warned once if that would lose corrections. */
  mayBeLeft(): boolean {
    if (!this.hasCorrections || this.#warning.isConnected) return true;
    this.parts.at(-1)?.after(this.#warning);
    return false;
  }

  async #import(): Promise<void> {
    await this.#checking;
    const options = {
      doubtful: this.#doubtfulToo.checked ? 'add' : 'skip',
      corrections: this.#refused.corrections,
    };
    if (!this.#around.signal.aborted) this.#around.start(this.#known, this.#file, options);
  }

  async #saveRefused(): Promise<void> {
    await this.#checking;
    saveRefused(this.#known);
  }

  /** Has the file read with other options. */
  #choose(options: Options): void {
    this.#asked = { ...this.#asked, ...options };
    this.#isBusy = true;
    this.#drawFigures();
    this.#read();
  }

  /** Has the file read again, with the corrections, until nothing else was chosen or corrected. */
  #read(): void {
    this.#warning.remove();
    const { signal, fail } = this.#around;
    this.#checking ??= this.#readAgain()
      .catch((error) => {
        if (!signal.aborted) fail(error);
      })
      .finally(() => {
        this.#checking = undefined;
      });
  }

  async #readAgain(): Promise<void> {
    const { imports, signal, status } = this.#around;
    for (let corrections = ''; this.#asked !== undefined || corrections !== this.#refused.corrections; ) {
      // With other columns, a row may have another fault.
      const isOther = this.#asked !== undefined;
      corrections = isOther ? '{}' : this.#refused.corrections;
      const options = { ...this.#asked, corrections };
      this.#asked = undefined;
      const say = () => {
        this.#going.textContent = imports.trouble || IMPORT.checkingAgain;
      };
      say();
      const timer = setInterval(say, LOOK);
      const checked = imports.checkAgain(this.#known, this.#file, options, { signal });
      this.#known = await checked.finally(() => clearInterval(timer));
      signal.throwIfAborted();
      if (this.#asked === undefined) {
        this.#show(isOther);
        status.textContent = ALL.map((kind) => this.#figures[kind].textContent).join(', ');
      }
    }
  }

  /** Shows how the file was understood. @param isOther whether with other options than before. */
  #show(isOther: boolean): void {
    this.#isBusy = false;
    this.#going.textContent = '';
    this.#refused.show(this.#known.refused, isOther);
    this.#about.replaceChildren(...describe(this.#known));
    this.#layout.show(this.#known);
    this.#notices.replaceChildren(...noticesOn(this.#known, this.#layout.isOpen));
    this.#remarks.textContent = remarksOn(this.#known);
    if (isOther) this.#drawTable(this.#count(this.#kind) > 0 ? this.#kind : 'rows');
    this.#drawFigures();
  }

  #count(kind: Kind): number {
    const { figures } = this.#known;
    return kind === 'here' ? figures.here + figures.repeated : figures[kind];
  }

  #drawFigures(): void {
    const { figures, file, options } = this.#known;
    const { here, repeated, doubtful, refused, rows, conflicts, changed } = figures;
    for (const kind of ALL) {
      const count = this.#count(kind);
      const label = kind === 'here' && repeated > 0 ? IMPORT.hereOrTwice(here > 0) : IMPORT.kinds[kind].label;
      this.#figures[kind].replaceChildren(make('b', {}, this.#isBusy ? '…' : numberText(count)), ` ${label}`);
      this.#figures[kind].ariaDisabled = count === 0 && kind !== 'rows' ? 'true' : null;
    }
    const changes = this.#figures.changed.parentElement as HTMLElement;
    changes.hidden = file?.ids !== 'keep';
    this.#figures.refused.classList.toggle('bad', refused > 0);
    if (refused === 0) this.#save.hidden = true;
    this.#conflicts.hidden = conflicts === 0 && options['on-conflict'] === undefined;
    if (conflicts > 0) this.#conflictCount.textContent = IMPORT.conflicts(conflicts);
    this.#doubtfulLabel.hidden = doubtful === 0;
    this.#doubtfulCount.textContent = IMPORT.doubtfulToo(doubtful);
    const count = figures.new + (this.#doubtfulToo.checked ? doubtful : 0);
    const isKnown = file !== null && !this.#isBusy && !this.#layout.isOpen;
    this.#start.textContent = isKnown ? IMPORT.importBooks(count, changed) : IMPORT.import;
    this.#start.disabled = !isKnown || count + changed === 0;
    if (!isKnown || count + changed > 0 || rows === 0) return;
    this.#going.textContent =
      IMPORT.nothing[refused === rows ? 'refused' : doubtful > 0 ? 'doubtful' : 'here'];
  }

  /** Shows the rows of a kind. */
  #drawTable(kind: Kind): void {
    const count = this.#count(kind);
    if (kind !== 'rows' && count === 0) return;
    this.#kind = kind;
    for (const one of ALL) this.#figures[one].ariaPressed = String(one === kind);
    this.#table.ariaLabel = IMPORT.kinds[kind].title;
    this.#save.hidden = true;
    this.#more.textContent = '';
    if (kind === 'rows') redraw(this.#table, this.#firstRows());
    else if (kind === 'refused') this.#drawRefused(count);
    else {
      const rows: readonly (ImportedRow | ChangedRow)[] = this.#known.rows[kind];
      redraw(this.#table, table(COLUMNS, make('tbody', {}, ...rows.map(bookRow))));
      this.#more.textContent = firstOf(rows.length, count);
    }
  }

  #drawRefused(count: number): void {
    const saved = recordsOf(this.#known).length;
    redraw(this.#table, table(REFUSED_COLUMNS, this.#refused.body));
    this.#save.hidden = saved === 0;
    this.#more.textContent = [
      IMPORT.correct,
      firstOf(Math.min(this.#known.refused.length, SHOWN), count),
      saved < count ? IMPORT.savedRefused(saved) : '',
    ]
      .join(' ')
      .trim();
  }

  /** The table of the file: a choice above each column. */
  #firstRows(): HTMLElement {
    const { file, fault, options } = this.#known;
    const { names = [], first = [] } = file ?? fault ?? {};
    const columns = file?.columns ?? options;
    const uses = names.map((name) => FIELDS.find((field) => columns[field] === name) ?? NONE);
    const choices = names.map((name, at) =>
      choice({ id: `import-column-${at}`, 'aria-label': IMPORT.column(name) }, USES, (use) => {
        const before = uses[at] ?? NONE;
        const other = uses.indexOf(use as Use);
        if (other >= 0) uses[other] = NONE;
        uses[at] = use as Use;
        show();
        this.#choose({ ...(before !== NONE && { [before]: '' }), ...(use !== NONE && { [use]: name }) });
      }),
    );
    const show = () => {
      for (const [at, select] of choices.entries()) select.value = uses[at] ?? NONE;
    };
    show();
    const heads = names.map((name, at) => {
      const shown = make('span', AS_IT_IS, name.trim() === '' ? IMPORT.unnamed : name);
      const canBeChosen = name !== '' && names.indexOf(name) === at;
      return canBeChosen ? [choices[at] as Node, shown] : [shown];
    });
    const rows = first.map((row) =>
      make('tr', {}, ...names.map((_, at) => make('td', AS_IT_IS, row[at] ?? ''))),
    );
    return table(heads, make('tbody', {}, ...rows));
  }
}

const { line, why } = IMPORT.columns;
const COLUMNS = [line, ...Object.values(ELEMENTS.fields), why];
const REFUSED_COLUMNS = Object.values(IMPORT.columns);

function firstOf(shown: number, count: number): string {
  return shown < count ? IMPORT.firstOf(shown, count) : '';
}

function bookRow({ line, doubt, ...row }: ImportedRow | ChangedRow): HTMLElement {
  const before = 'before' in row ? row.before : {};
  const shownOf = (book: Partial<BookFields>, field: Field) =>
    fieldText({ ...row, ...book }, field) || ELEMENTS.noValues[field];
  const cells = FIELDS.map((field) => {
    const kind = { title: 'serif', author: undefined, year: 'number' }[field];
    if (before[field] === undefined) return make('td', { ...AS_IT_IS, class: kind }, fieldText(row, field));
    return make('td', { class: kind }, ...IMPORT.change(shownOf(before, field), shownOf({}, field)));
  });
  return make(
    'tr',
    {},
    make('td', { class: 'number' }, numberText(line)),
    ...cells,
    make('td', {}, doubt === null ? '' : sentenceOf(because(doubt as ReasonCode))),
  );
}
