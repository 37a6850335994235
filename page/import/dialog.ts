// Owns: the dialog for importing a file, in three steps: the file, a check, the import. The service does the work, and continues an
// import without the page.
// Does not: store anything before a person has seen the check.

import { CatalogueError } from '../../client/src/book-catalogue.ts';
import { Complaint, type Import, type ImportInShort, Imports, type Options } from '../catalogue/imports.ts';
import type { Session } from '../catalogue/session.ts';
import { find, icon, make } from '../elements/dom.ts';
import { show as showMessage } from '../elements/messages.ts';
import { type Progress, ProgressView } from '../elements/progress.ts';
import { saveFile } from '../elements/save-file.ts';
import { counted, numberText } from '../elements/text.ts';
import { CheckStep } from './check.ts';
import { RecentImports } from './recent.ts';

/** Of the first check of a file. The page gives each book a new id, and leaves doubtful ones out. */
const OPTIONS: Options = { ids: 'new', doubtful: 'skip' };

const CHECKING = 'Checking the file again …';

const NOT_TEXT =
  'This file is not text. If it is a spreadsheet, save it as CSV in UTF-8, and choose that file.';
const TOO_LARGE =
  'The file is too large for the catalogue, or for a proxy in front of it. Split it, or ask the operator to import it.';
const TOO_MANY =
  'These corrections are too long for one import. Save the refused rows, correct them there, and import that file.';

export class ImportDialog {
  readonly #dialog = find<HTMLDialogElement>('#import');
  readonly #session: Session;
  readonly #imports: Imports;
  readonly #onStored: () => void;
  readonly #steps = this.#dialog.querySelectorAll('.steps li');
  readonly #content = find('#import-content');
  /** For screen readers. */
  readonly #status = find('#import-status');
  #check: CheckStep | undefined;
  /** Aborted when nobody needs the present work any more. */
  #work = new AbortController();
  readonly #warning = make(
    'p',
    { class: 'bad', role: 'alert' },
    'Your corrections would be lost. Repeat the action to discard them.',
  );

  /** @param onStored is called when books were added or removed. */
  constructor(session: Session, onStored: () => void) {
    this.#session = session;
    this.#imports = new Imports(session);
    this.#onStored = onStored;
    const dialog = this.#dialog;
    find('#import-close').addEventListener('click', () => {
      if (this.#mayLeave()) dialog.close();
    });
    dialog.addEventListener('cancel', (event) => {
      if (event.target === dialog && !this.#mayLeave()) event.preventDefault();
    });
    dialog.addEventListener('close', () => {
      if (!dialog.open) this.#end(); // else it was opened again before this event
    });
    dialog.addEventListener('drop', ({ dataTransfer }) => {
      const file = dataTransfer?.files[0];
      if (file !== undefined) this.open(file);
    });
    addEventListener('beforeunload', (event) => {
      if (this.#hasCorrections) event.preventDefault();
    });
  }

  /** Opens the dialog; with a file, as if it had been chosen there. */
  open(file?: File): void {
    if (!this.#mayLeave()) return;
    const recent = this.#dialog.open && file === undefined ? undefined : this.#chooseFile();
    if (!this.#dialog.open) this.#dialog.showModal();
    if (file !== undefined) void this.#read(file, recent);
  }

  get #hasCorrections(): boolean {
    return this.#check !== undefined && this.#check.corrections !== '{}';
  }

  /** Whether the file can be left. A person is warned once if that would lose corrections. */
  #mayLeave(): boolean {
    if (!this.#hasCorrections || this.#warning.isConnected) return true;
    this.#content.append(this.#warning);
    return false;
  }

  /** Ends all work for what is shown, but for an import. */
  #end(): void {
    this.#work.abort();
    this.#work = new AbortController();
    this.#check = undefined;
    this.#content.replaceChildren();
    this.#status.textContent = '';
  }

  /** @param focus the heading of the step, or its first field. */
  #show(step: number, focus: HTMLElement, ...parts: readonly HTMLElement[]): void {
    for (const [index, element] of this.#steps.entries()) {
      element.className = index < step ? 'done' : '';
      if (index === step) element.setAttribute('aria-current', 'step');
      else element.removeAttribute('aria-current');
    }
    this.#status.textContent = '';
    this.#content.replaceChildren(...parts);
    focus.focus();
    this.#dialog.scrollTop = 0;
  }

  #chooseFile(complaint?: string): RecentImports {
    this.#end();
    const recent = new RecentImports(this.#imports, (one) => void this.#takeBack(one));
    const input = make('input', {
      type: 'file',
      accept: '.csv,.tsv,.tab,.txt,.json,.jsonl,.ndjson,text/csv,text/plain,application/json',
      autofocus: true,
      'aria-labelledby': 'import-choose',
      'aria-describedby': 'import-formats',
    });
    input.addEventListener('change', () => {
      const [file] = input.files ?? [];
      if (file !== undefined) void this.#read(file, recent);
    });
    const formats =
      'or drop it here: CSV, also with semicolons or tabs, JSON, or JSON Lines. Exports of Goodreads, LibraryThing, StoryGraph, Calibre, Koha and Zotero are understood as they are.';
    const drop = make(
      'label',
      { class: 'drop' },
      icon('import-icon'),
      make('strong', { id: 'import-choose' }, 'Choose a file'),
      make('span', { id: 'import-formats' }, formats),
      input,
    );
    const alert = complaint === undefined ? [] : [make('p', { class: 'bad', role: 'alert' }, complaint)];
    const hint = 'Nothing is stored before you have seen how the file was understood.';
    this.#show(0, input, drop, ...alert, make('p', { class: 'hint' }, hint), recent.element);
    void recent.watch(this.#work.signal);
    return recent;
  }

  /** @param recent knows which file completes an import. */
  async #read(file: File, recent?: RecentImports): Promise<void> {
    const stopped = recent?.completedBy(file);
    if (stopped !== undefined) return this.#import(stopped, file, {});
    this.#end();
    const { signal } = this.#work;
    const view = new ProgressView(`Checking ${file.name}`, this.#status, () => this.#chooseFile());
    this.#show(0, view.heading, ...view.parts);
    const progress = new FileProgress(file, this.#session);
    try {
      const known = await view.watch(
        this.#imports.check(file, OPTIONS, { ...progress, signal }),
        () => progress.now,
      );
      const { code, message } = known.fault ?? {};
      if (known.file === null && code !== 'no-title')
        throw new Complaint(code === 'not-text' ? NOT_TEXT : message);
      this.#showCheck(file, known);
    } catch (error) {
      if (!signal.aborted) this.#chooseFile(sentenceOf(error));
    }
  }

  #showCheck(file: File, first: Import): void {
    const { signal } = this.#work;
    let known = first;
    let asked: Options | undefined;
    /** The check that is under way. */
    let checking: Promise<void> | undefined;
    const checkAgain = async () => {
      for (let corrections = ''; asked !== undefined || corrections !== check.corrections; ) {
        // With other columns, a row may have another fault.
        const isOther = asked !== undefined;
        corrections = isOther ? '{}' : check.corrections;
        const options = { ...asked, corrections };
        asked = undefined;
        check.reading(CHECKING, isOther);
        const onReport = () => check.reading(this.#session.trouble || CHECKING, isOther);
        known = await this.#imports.checkAgain(known, file, options, { signal, onReport });
        if (signal.aborted) return;
        if (asked === undefined) this.#status.textContent = check.show(known, isOther);
      }
    };
    const begin = () => {
      this.#warning.remove();
      checking ??= checkAgain()
        .catch((error) => {
          if (!signal.aborted) this.#chooseFile(sentenceOf(error));
        })
        .finally(() => {
          checking = undefined;
        });
    };
    const check = new CheckStep(file, first, {
      choose: (options) => {
        asked = { ...asked, ...options };
        check.reading(CHECKING, true);
        begin();
      },
      correct: begin,
      chooseFile: () => this.#mayLeave() && this.#chooseFile(),
      saveRefused: async () => {
        await checking;
        saveRefused(known);
      },
      start: async (options) => {
        await checking;
        if (!signal.aborted) await this.#import(known, file, { ...options, corrections: check.corrections });
      },
    });
    this.#check = check;
    this.#show(1, check.heading, ...check.parts);
  }

  /** Stores a file. It continues when the dialog is closed, and says then when it has ended. */
  async #import(known: ImportInShort, file: File, options: Options): Promise<void> {
    this.#end();
    const { signal } = new AbortController();
    const view = new ProgressView(`Importing ${file.name}`, this.#status);
    const note = make('p', { class: 'hint' }, 'The import continues if you close this, or the page.');
    this.#show(2, view.heading, ...view.parts, note);
    const progress = new FileProgress(file, this.#session);
    for (;;) {
      try {
        const stored = await view.watch(
          this.#imports.store(known, file, options, { ...progress, signal }),
          () => progress.now,
        );
        this.#onStored();
        if (view.heading.isConnected) this.#showResult(stored);
        else showMessage(`${file.name}: ${counted(stored.books, 'book was', 'books were')} added.`);
        return;
      } catch (error) {
        if (!view.heading.isConnected) return; // the list of imports says that it is not complete
        if (await view.askToRepeat(sentenceOf(error))) continue;
        this.#onStored();
        this.#chooseFile();
        return;
      }
    }
  }

  async #takeBack({ import: number, name }: ImportInShort): Promise<void> {
    this.#end();
    const view = new ProgressView(`Taking back ${name ?? 'an import'}`, this.#status);
    this.#show(2, view.heading, ...view.parts);
    let now = { done: 0, total: undefined as number | undefined, text: '' };
    const onProgress = (done: number, total: number) => {
      now = { done, total, text: `${numberText(done)} of ${counted(total, 'book')}.` };
    };
    try {
      const work = this.#imports.takeBack(number, onProgress);
      const [removed, left] = await view.watch(work, () => ({ ...now, trouble: troubleOf(this.#session) }));
      const facts = [`${counted(removed, 'book was', 'books were')} removed.`];
      if (left > 0) facts.push(`${counted(left, 'book stays', 'books stay')}: changed since the import.`);
      this.#onStored();
      if (view.heading.isConnected) this.#showEnd(facts);
    } catch (error) {
      if (view.heading.isConnected) this.#chooseFile(sentenceOf(error));
    }
  }

  #showResult(stored: Import): void {
    const { books, figures, fault, refused, options } = stored;
    const facts = [`${counted(books, 'book was', 'books were')} added.`];
    if (figures.here > 0) facts.push(`${counted(figures.here, 'was', 'were')} here already.`);
    if (figures.repeated > 0)
      facts.push(`${counted(figures.repeated, 'row was', 'rows were')} in the file more than once.`);
    if (figures.doubtful > 0 && options.doubtful === 'skip')
      facts.push(`${counted(figures.doubtful, 'doubtful book was', 'doubtful books were')} left out.`);
    if (figures.refused > 0) facts.push(`${counted(figures.refused, 'row', 'rows')} could not be read.`);
    if (fault !== null) facts.push(fault.message);
    const buttons: HTMLElement[] = [];
    if (refused.length > 0)
      buttons.push(
        make('button', { type: 'button', click: () => saveRefused(stored) }, 'Save the refused rows'),
      );
    if (books > 0)
      buttons.push(
        make('button', { type: 'button', click: () => void this.#takeBack(stored) }, 'Undo this import'),
      );
    this.#showEnd(facts, buttons);
  }

  /** @param facts the first of which is the heading. */
  #showEnd([first = '', ...others]: readonly string[], buttons: readonly HTMLElement[] = []): void {
    const heading = make('h3', { class: 'result', tabindex: -1 }, icon('done-icon'), first);
    const close = () => this.#dialog.close();
    const done = make('button', { type: 'button', class: 'primary', click: close }, 'Done');
    const parts = others.map((fact) => make('p', {}, fact));
    this.#show(2, heading, heading, ...parts, make('footer', {}, ...buttons, done));
    this.#status.textContent = others.join(' ');
  }
}

/** How far the file of an import is: sent, read, compared, stored. */
class FileProgress {
  readonly #size: number;
  readonly #session: Session;
  #sent = 0;
  #known: ImportInShort | undefined;
  readonly onReport = (known: ImportInShort): void => {
    this.#known = known;
  };
  readonly onSent = (bytes: number): void => {
    [this.#sent, this.#known] = [bytes, undefined];
  };

  constructor({ size }: File, session: Session) {
    this.#size = size;
    this.#session = session;
  }

  get now(): Progress {
    const { phase = 'sending', figures, books: stored = 0, read = 0 } = this.#known ?? {};
    const { rows = 0, new: all = 0 } = figures ?? {};
    const part =
      this.#sent === 0 ? '' : `${Math.floor((this.#sent / this.#size) * 100)} % of the file is sent.`;
    const [text, done, total] = (
      {
        sending: [part, this.#sent, this.#size],
        waiting: ['Waiting for other imports …', 0, undefined],
        reading: [`${counted(rows, 'row')} read.`, read, this.#size],
        comparing: ['Looking for books that are here already …', 0, undefined],
        storing: [`${numberText(stored)} of ${counted(all, 'book')} added.`, stored, all],
        done: ['', 1, 1],
      } as const
    )[phase];
    return { text, done, total, trouble: troubleOf(this.#session) };
  }
}

function saveRefused({ rejects, refused }: Import): void {
  if (rejects === null) return;
  const { name, before, between, after } = rejects;
  saveFile(new File([before + refused.map(({ record }) => record).join(between) + after], name));
}

function troubleOf({ trouble }: Session): string {
  return trouble && `${trouble} The page continues as soon as it can.`;
}

function sentenceOf(error: unknown): string {
  if (error instanceof Complaint) return error.message;
  const { status = 0 } = error instanceof CatalogueError ? error : {};
  if (status === 413) return TOO_LARGE;
  if (status === 414 || status === 431) return TOO_MANY;
  return `The catalogue refuses this: ${error instanceof Error ? error.message : error}.`;
}
