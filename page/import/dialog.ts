// Owns: the dialog for importing a file, in three steps: the file, a check, the import. The service does the work, and continues an
// import without the page.
// Does not: store anything before a person has seen the check.

import type { ImportInShort, ImportReport } from '../../client/src/book-catalogue.ts';
import type { Going, Imports, Options } from '../catalogue/imports.ts';
import { Complaint } from '../catalogue/persist.ts';
import type { Undo } from '../changes/undo.ts';
import { button, find, icon, make, warning } from '../elements/dom.ts';
import { show as showMessage } from '../elements/messages.ts';
import { type Progress, ProgressView } from '../elements/progress.ts';
import { IMPORT } from '../texts/import.ts';
import { CheckStep } from './check.ts';
import { exampleFile } from './examples.ts';
import { RecentImports } from './recent.ts';
import { recordsOf, saveRefused } from './refused.ts';

/** Of the first check of a file. The page leaves doubtful books out. */
const OPTIONS: Options = { doubtful: 'skip' };

/** An import that continues, or books that are taken back. */
type Work = Going | { readonly phase: 'undoing'; readonly done: number; readonly total: number };

export class ImportDialog {
  readonly #dialog = find<HTMLDialogElement>('#import');
  readonly #imports: Imports;
  readonly #undo: Undo;
  readonly #onStored: () => void;
  readonly #steps = this.#dialog.querySelectorAll('.steps li');
  readonly #content = find('#import-content');
  /** For screen readers. */
  readonly #status = find('#import-status');
  #check: CheckStep | undefined;
  /** Aborted when nobody needs the present work any more. */
  #work = new AbortController();

  /** @param onStored is called when books were added or changed. */
  constructor(imports: Imports, undo: Undo, onStored: () => void) {
    this.#imports = imports;
    this.#undo = undo;
    this.#onStored = onStored;
    const dialog = this.#dialog;
    find('#import-close').addEventListener('click', () => {
      if (this.#mayLeave()) dialog.close();
    });
    dialog.addEventListener('cancel', (event) => {
      if (event.target === dialog && !this.#mayLeave()) event.preventDefault();
    });
    dialog.addEventListener('close', () => this.#end());
    addEventListener('beforeunload', (event) => {
      if (this.#check?.hasCorrections) event.preventDefault();
    });
  }

  /** Opens the dialog; with a file, as if it had been chosen there. */
  open(file?: File): void {
    if (!this.#mayLeave()) return;
    const recent = this.#dialog.open && file === undefined ? undefined : this.#chooseFile();
    if (!this.#dialog.open) this.#dialog.showModal();
    if (file !== undefined) void this.#read(file, recent);
  }

  openExamples(): void {
    this.open(exampleFile());
  }

  #mayLeave(): boolean {
    return this.#check?.mayBeLeft() ?? true;
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
      element.ariaCurrent = index === step ? 'step' : null;
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
      class: 'unseen',
      accept:
        '.xlsx,.csv,.tsv,.tab,.txt,.json,.jsonl,.ndjson,.gz,.zip,text/csv,text/plain,application/json,application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
      autofocus: true,
      'aria-labelledby': 'import-choose',
      'aria-describedby': 'import-formats',
      change: () => {
        const [file] = input.files ?? [];
        if (file !== undefined) void this.#read(file, recent);
      },
    });
    const drop = make(
      'label',
      { class: 'drop' },
      icon('import-icon'),
      make('strong', { id: 'import-choose' }, IMPORT.choose),
      make('span', { id: 'import-formats' }, IMPORT.formats),
      input,
    );
    const alert = complaint === undefined ? [] : [warning(complaint)];
    const hint = make('p', { class: 'hint' }, IMPORT.nothingStored);
    this.#show(0, input, drop, ...alert, hint, recent.element);
    void recent.watch(this.#work.signal);
    return recent;
  }

  /** @param recent knows which file completes an import. */
  async #read(file: File, recent?: RecentImports): Promise<void> {
    const stopped = recent?.completedBy(file);
    if (stopped !== undefined) return this.#import(stopped, file, {});
    this.#end();
    const { signal } = this.#work;
    const view = new ProgressView(IMPORT.checking(file.name), this.#status, () => this.#chooseFile());
    this.#show(0, view.heading, ...view.parts);
    try {
      const known = await this.#watch(view, (onProgress) =>
        this.#imports.check(file, OPTIONS, { signal, onProgress }),
      );
      const { code, message } = known.fault ?? {};
      if (known.file === null && code !== 'no-title')
        throw new Complaint(code === 'not-text' ? IMPORT.notText : message);
      this.#showCheck(file, known);
    } catch (error) {
      if (!signal.aborted) this.#chooseFile((error as Error).message);
    }
  }

  #showCheck(file: File, known: ImportReport): void {
    const { signal } = this.#work;
    const check = new CheckStep(file, known, {
      imports: this.#imports,
      signal,
      status: this.#status,
      leave: () => this.#mayLeave() && this.#chooseFile(),
      fail: (error) => this.#chooseFile((error as Error).message),
      start: (...checked) => void this.#import(...checked),
    });
    this.#check = check;
    this.#show(1, check.heading, ...check.parts);
  }

  /** Stores a file. It continues when the dialog is closed, and says then when it has ended. */
  async #import(known: ImportInShort, file: File, options: Options): Promise<void> {
    this.#end();
    const { signal } = new AbortController();
    const view = new ProgressView(IMPORT.importing(file.name), this.#status);
    const note = make('p', { class: 'hint' }, IMPORT.continues);
    this.#show(2, view.heading, ...view.parts, note);
    for (;;) {
      try {
        const stored = await this.#watch(view, (onProgress) =>
          this.#imports.store(known, file, options, { signal, onProgress }),
        );
        this.#onStored();
        if (view.heading.isConnected) this.#showResult(stored);
        else showMessage(IMPORT.storedOf(file.name, storedText(stored)));
        return;
      } catch (error) {
        if (!view.heading.isConnected) return; // the list of imports says that it is not complete
        if (await view.askToRepeat((error as Error).message)) continue;
        this.#onStored();
        this.#chooseFile();
        return;
      }
    }
  }

  async #takeBack({ import: number, name, figures }: ImportInShort): Promise<void> {
    this.#end();
    const view = new ProgressView(IMPORT.takingBack(name ?? IMPORT.anImport), this.#status);
    this.#show(2, view.heading, ...view.parts);
    try {
      const { undone, left } = await this.#watch(view, (onProgress) =>
        this.#undo.takeBack({ event: number }, name ?? IMPORT.anImport, {
          onProgress: (done, total) => onProgress({ phase: 'undoing', done, total }),
        }),
      );
      const facts = [figures.changed > 0 ? IMPORT.asBefore(undone) : IMPORT.removed(undone)];
      if (left > 0) facts.push(IMPORT.stay(left));
      if (view.heading.isConnected) this.#showEnd(facts);
    } catch (error) {
      if (view.heading.isConnected) this.#chooseFile((error as Error).message);
    }
  }

  /** Shows how far work is, until it has ended. */
  #watch<Result>(
    view: ProgressView,
    work: (onProgress: (going: Work) => void) => Promise<Result>,
  ): Promise<Result> {
    let now = { done: 0, total: undefined as number | undefined, text: '' };
    const onProgress = (going: Work) => {
      now = progressOf(going);
    };
    return view.watch(work(onProgress), () => ({ ...now, trouble: this.#imports.trouble }));
  }

  #showResult(stored: ImportReport): void {
    const { books, figures, fault, options } = stored;
    const facts = [storedText(stored)];
    const own = Math.max(0, books - toStore(stored)); // from before it was interrupted
    const here = figures.here - own;
    if (here > 0) facts.push(IMPORT.wereHere(here));
    if (figures.repeated > 0) facts.push(IMPORT.wereTwice(figures.repeated));
    if (figures.doubtful > 0 && options.doubtful === 'skip') facts.push(IMPORT.leftOut(figures.doubtful));
    if (figures.refused > 0) facts.push(IMPORT.refused(figures.refused));
    if (fault !== null) facts.push(fault.message);
    const buttons: HTMLElement[] = [];
    if (recordsOf(stored).length > 0) buttons.push(button(IMPORT.saveRefused, () => saveRefused(stored)));
    if (books > 0) buttons.push(button(IMPORT.undoThis, () => void this.#takeBack(stored)));
    this.#showEnd(facts, buttons);
  }

  /** @param facts the first of which is the heading. */
  #showEnd([first = '', ...others]: readonly string[], buttons: readonly HTMLElement[] = []): void {
    const heading = make('h3', { class: 'result', tabindex: -1 }, icon('done-icon'), first);
    const done = button(IMPORT.done, () => this.#dialog.close(), { class: 'primary' });
    const parts = others.map((fact) => make('p', {}, fact));
    this.#show(2, heading, heading, ...parts, make('footer', {}, ...buttons, done));
    this.#status.textContent = others.join(' ');
  }
}

function progressOf(going: Work): Omit<Progress, 'trouble'> {
  const at = (done: number, total: number | undefined, text: string) => ({ done, total, text });
  const part = (done: number, total: number, text: (percent: number) => string) =>
    at(done, total, text(Math.floor((100 * done) / total)));
  const books = (done: number, total: number, text: (done: number, total: number) => string) =>
    at(done, total, text(done, total));
  const texts = IMPORT.progress;
  switch (going.phase) {
    case 'sending':
      return part(going.done, going.total, texts.sending);
    case 'waiting':
      return at(0, undefined, texts.waiting);
    case 'reading':
      return part(going.read, going.size, texts.reading);
    case 'comparing':
      return at(0, undefined, texts.comparing);
    case 'storing': // those of before an interruption are among the books, but no longer new
      return books(going.books, Math.max(going.books, toStore(going)), texts.storing);
    case 'undoing':
      return books(going.done, going.total, texts.undoing);
    case 'done':
      return at(1, 1, '');
  }
}

/** The books of a file that were to be added or changed when it was compared. */
function toStore({ figures, options }: ImportReport): number {
  return figures.new + figures.changed + (options.doubtful === 'skip' ? 0 : figures.doubtful);
}

function storedText({ books, figures }: ImportReport): string {
  const changed = Math.min(books, figures.changed);
  return IMPORT.stored(books - changed, changed);
}
