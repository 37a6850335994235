// Owns: the dialog for importing a file, in three steps: the file, a check, the import.
// Does not: store anything before a person has seen the check.

import type { Session } from '../catalogue/session.ts';
import { find, icon, make } from '../elements/dom.ts';
import { ProgressView } from '../elements/progress.ts';
import { saveFile } from '../elements/save-file.ts';
import { bookText, counted, numberText } from '../elements/text.ts';
import { type Choices, countOf, type Figures, type Understood, type Wanted } from './calls.ts';
import { CheckStep } from './check.ts';
import { FileComplaint, ImportFile } from './file.ts';
import { compare, OutcomeUnknown, Storing } from './storing.ts';

/** Milliseconds for which a comparison with the catalogue counts: other people also add books. */
const COMPARED_FOR = 60_000;

const SECOND = 1000;

/** Books that a message names, and how many characters of each. */
const NAMED = 3;
const NAME_LENGTH = 60;

const COMPARING = 'Looking for books that are here already …';

export class ImportDialog {
  readonly #dialog = find<HTMLDialogElement>('#import');
  readonly #session: Session;
  readonly #onStored: () => void;
  readonly #idOf: (id: number) => number;
  readonly #steps = this.#dialog.querySelectorAll('.steps li');
  readonly #close = find('#import-close');
  readonly #content = find('#import-content');
  /** For screen readers. */
  readonly #status = find('#import-status');
  #file: ImportFile | undefined;
  #check: CheckStep | undefined;
  /** The latest import, until its books have been removed, or the page is closed. */
  #latest: { readonly name: string; readonly storing: Storing } | undefined;
  /** Aborted when the work for a file is of no use any more. */
  #work = new AbortController();
  #comparedAt = Number.NEGATIVE_INFINITY;
  /** How many there were. */
  #corrections = 0;
  /** Whether books are added or removed: the dialog stays. */
  #isBusy = false;
  readonly #warning = make(
    'p',
    { class: 'bad', role: 'alert' },
    'Your corrections would be lost. Repeat the action to discard them.',
  );

  /**
   * @param onStored is called when books were added or removed.
   * @param idOf the id that a book has now: one that was deleted and put back has another.
   */
  constructor(session: Session, onStored: () => void, idOf: (id: number) => number) {
    this.#session = session;
    this.#onStored = onStored;
    this.#idOf = idOf;
    const dialog = this.#dialog;
    this.#close.addEventListener('click', () => {
      if (this.#mayLeave()) dialog.close();
    });
    dialog.addEventListener('cancel', (event) => {
      if (event.target === dialog && !this.#mayLeave()) event.preventDefault();
    });
    dialog.addEventListener('close', () => {
      if (dialog.open) return; // opened again before this event
      if (this.#isBusy)
        dialog.showModal(); // browsers close a dialog on a second Escape, whatever the page says
      else this.#end();
    });
    dialog.addEventListener('drop', ({ dataTransfer }) => {
      const file = dataTransfer?.files[0];
      if (file !== undefined) this.open(file);
    });
    addEventListener('beforeunload', (event) => {
      if (this.#isBusy || this.#check?.hasCorrections === true) event.preventDefault();
    });
  }

  get #trouble(): string {
    const { trouble } = this.#session;
    return trouble && `${trouble} The page continues as soon as it can.`;
  }

  /** Opens the dialog; with a file, as if it had been chosen there. Does nothing while books are imported. */
  open(file?: File): void {
    if (!this.#mayLeave()) return;
    if (!this.#dialog.open) {
      this.#chooseFile();
      this.#dialog.showModal();
    }
    if (file !== undefined) void this.#read(file);
  }

  /** Whether the file can be left. A person is warned once if that would lose corrections. */
  #mayLeave(): boolean {
    if (this.#isBusy) return false;
    if (this.#check?.hasCorrections !== true || this.#warning.isConnected) return true;
    this.#content.append(this.#warning);
    return false;
  }

  /** Ends all work for the file. */
  #end(): void {
    this.#work.abort();
    this.#work = new AbortController();
    this.#file?.close();
    this.#file = undefined;
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
    this.#close.hidden = this.#isBusy;
    this.#status.textContent = '';
    this.#content.replaceChildren(...parts);
    focus.focus();
    this.#dialog.scrollTop = 0;
  }

  #chooseFile(complaint?: string): void {
    this.#end();
    const input = make('input', {
      type: 'file',
      accept: '.csv,.tsv,.tab,.txt,.json,.jsonl,.ndjson,text/csv,text/plain,application/json',
      autofocus: true,
      'aria-labelledby': 'import-choose',
      'aria-describedby': 'import-formats',
    });
    input.addEventListener('change', () => {
      const [file] = input.files ?? [];
      if (file !== undefined) void this.#read(file);
    });
    const formats =
      'or drop it here: CSV or JSON. Exports of Goodreads, LibraryThing, StoryGraph, Calibre, Koha, Zotero and spreadsheets are understood as they are.';
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
    this.#show(0, input, drop, ...alert, make('p', { class: 'hint' }, hint), ...this.#takeOutLatest());
  }

  /** The way back after the dialog was closed. */
  #takeOutLatest(): HTMLElement[] {
    if (this.#latest === undefined) return [];
    const { name, storing } = this.#latest;
    const count = storing.added.length + storing.unknown;
    if (count === 0) return [];
    const text = `The latest import: ${counted(count, 'book')} of ${name}.`;
    return [make('p', {}, text), make('footer', {}, this.#takeOutButton(storing, 'Undo this import'))];
  }

  async #read(file: File): Promise<void> {
    this.#chooseFile();
    const { signal } = this.#work;
    const reading = make('p', { role: 'status' }, `Reading ${file.name} …`);
    this.#content.append(reading);
    const opened = new ImportFile(file, (bytes) => {
      const part = Math.floor((bytes / file.size) * 10) * 10; // said ten times at most
      reading.textContent = `Reading ${file.name}: ${part} %`;
    });
    this.#file = opened;
    try {
      const understood = await opened.ask('read', file, { columns: {} });
      if (signal.aborted) return;
      const check = new CheckStep(file, understood, {
        choose: (choices) => void this.#readAgain(opened, choices),
        correct: (place, text) => {
          this.#corrections += 1;
          this.#comparedAt = Number.NEGATIVE_INFINITY;
          this.#warning.remove();
          return opened.ask('correct', place, text);
        },
        saveRefused: () => void this.#saveRefused(opened),
        chooseFile: () => this.#mayLeave() && this.#chooseFile(),
        start: (wanted) => {
          // The worker may end, for want of memory. Added books can be removed in the first step.
          this.#import(opened, wanted).catch((error) => this.#chooseFile(sentenceOf(error)));
        },
      });
      this.#check = check;
      this.#show(1, check.heading, ...check.parts);
      await this.#compare(opened, understood);
    } catch (error) {
      if (!signal.aborted) this.#chooseFile(sentenceOf(error));
    }
  }

  async #readAgain(file: ImportFile, choices: Choices): Promise<void> {
    this.#work.abort();
    this.#work = new AbortController();
    const { signal } = this.#work;
    try {
      const understood = await file.ask('read', file.file, choices);
      if (signal.aborted) return;
      this.#check?.show(understood);
      await this.#compare(file, understood);
    } catch (error) {
      if (!signal.aborted) this.#chooseFile(sentenceOf(error));
    }
  }

  /** Finds out which books are here already, for the step "Check". */
  async #compare(file: ImportFile, { columns }: Understood): Promise<void> {
    if (columns === undefined) return; // nothing was read
    const { signal } = this.#work;
    this.#status.textContent = COMPARING;
    await this.#comparison(file, signal, (text) => this.#check?.comparing(text));
    const figures = await file.ask('figures');
    if (!signal.aborted) this.#status.textContent = this.#check?.compared(figures) ?? '';
  }

  async #comparison(file: ImportFile, signal: AbortSignal, show: (text: string) => void): Promise<void> {
    const corrections = this.#corrections;
    let all = '';
    this.#session
      .call((catalogue) => catalogue.count({}, { signal }))
      .then((count) => {
        all = ` of ${numberText(count)}`;
      })
      .catch(() => {}); // then it is not said
    const onProgress = (compared: number) => {
      show(compared === 0 ? COMPARING : `${COMPARING} ${numberText(compared)}${all} compared.`);
    };
    const timer = setInterval(() => this.#session.reach !== 'here' && show(this.#trouble), SECOND);
    try {
      await compare(this.#session, file, onProgress, signal);
    } finally {
      clearInterval(timer);
    }
    // A row that was corrected meanwhile may not have been compared.
    if (corrections === this.#corrections) this.#comparedAt = performance.now();
  }

  async #saveRefused(file: ImportFile): Promise<void> {
    await this.#check?.settled();
    saveFile(await file.ask('refusedFile'));
  }

  async #import(file: ImportFile, wanted: Wanted): Promise<void> {
    this.#work.abort(); // a comparison that is not needed
    this.#work = new AbortController();
    const storing = new Storing(this.#session, file, wanted, this.#idOf);
    const comparing = new AbortController();
    const stop = () => {
      storing.stop();
      comparing.abort();
    };
    let figures: Figures | undefined;
    const problem = await this.#run(`Importing ${file.file.name}`, stop, async (view) => {
      await this.#check?.settled();
      if (!wanted.isAll && performance.now() - this.#comparedAt > COMPARED_FOR) {
        let text = COMPARING;
        const comparison = this.#comparison(file, comparing.signal, (said) => {
          text = said;
        });
        await view.watch(comparison, () => ({ done: 0, total: undefined, text, trouble: '' }));
      }
      figures = await file.ask('figures');
      const total = countOf(figures, wanted);
      await view.watch(storing.store(), () => {
        const { added, rate } = storing;
        const speed = rate > 0 ? `, ${numberText(Math.round(rate))} a second` : '';
        const text = `${numberText(added.length)} of ${counted(total, 'book')} added${speed}.`;
        return { done: added.length, total, text, trouble: this.#trouble };
      });
    });
    if (storing.added.length + storing.unknown > 0) this.#latest = { name: file.file.name, storing };
    figures ??= await file.ask('figures');
    this.#showResult(file, storing, { figures, wanted, problem });
  }

  async #takeOut(storing: Storing): Promise<void> {
    const total = storing.added.length + storing.unknown;
    storing.changed = 0;
    const problem = await this.#run(
      'Removing the imported books',
      () => storing.stop(),
      async (view) => {
        await view.watch(storing.takeOut(), () => {
          const done = total - storing.added.length - storing.unknown;
          const text = `${numberText(done - storing.changed)} of ${counted(total, 'book')} removed.`;
          return { done, total, text, trouble: this.#trouble };
        });
      },
    );
    const left = storing.added.length + storing.unknown;
    const { changed } = storing;
    const facts = [`${counted(total - left - changed, 'book was', 'books were')} removed.`];
    if (changed > 0) facts.push(`${counted(changed, 'book stays', 'books stay')}: changed since the import.`);
    if (left > 0) facts.push(`${counted(left, 'book is', 'books are')} still in the catalogue.`);
    const buttons = left > 0 ? [this.#takeOutButton(storing, 'Remove the others')] : [];
    this.#showEnd(facts, problem, buttons);
  }

  /**
   * Shows work that a person can stop.
   * @param work is done again if it fails and a person wants it.
   * @returns the problem that has ended it.
   */
  async #run(
    title: string,
    stop: () => void,
    work: (view: ProgressView) => Promise<void>,
  ): Promise<string | undefined> {
    this.#isBusy = true;
    const view = new ProgressView(title, this.#status, stop);
    this.#show(2, view.heading, ...view.parts);
    let problem: string | undefined;
    for (let isDone = false; !isDone; ) {
      try {
        await work(view);
        isDone = true;
      } catch (error) {
        if (view.isStopping) break;
        const sentence = sentenceOf(error);
        isDone = !(await view.askToRepeat(sentence));
        if (isDone) problem = sentence;
      }
    }
    this.#isBusy = false;
    this.#onStored();
    return problem;
  }

  #showResult(
    file: ImportFile,
    storing: Storing,
    { figures, wanted, problem }: { figures: Figures; wanted: Wanted; problem: string | undefined },
  ): void {
    const { added, tooLong, unknown } = storing;
    const left = countOf(figures, wanted) - added.length - tooLong.length - unknown;
    const { here, twice, refused, doubtful } = figures;
    const { isAll, isDoubtfulToo } = wanted;
    const doubts = isAll ? doubtful.all : doubtful.fresh;
    const facts = [`${counted(added.length, 'book was', 'books were')} added.`];
    if (left > 0)
      facts.push(`${counted(left, 'book was', 'books were')} not added, since the import was stopped.`);
    if (unknown > 0) {
      facts.push(
        `Of ${counted(unknown, 'book')} it is not known whether they were added: the catalogue did not answer.`,
      );
    }
    if (here > 0 && !isAll) facts.push(`${counted(here, 'was', 'were')} here already.`);
    if (twice > 0 && !isAll)
      facts.push(`${counted(twice, 'row was', 'rows were')} in the file more than once.`);
    if (doubts > 0 && !isDoubtfulToo)
      facts.push(`${counted(doubts, 'doubtful book was', 'doubtful books were')} left out.`);
    if (tooLong.length > 0) {
      const named = tooLong.slice(0, NAMED).map((book) => bookText(book).slice(0, NAME_LENGTH));
      facts.push(
        `${counted(tooLong.length, 'book is', 'books are')} too long for the catalogue: ${named.join('; ')}.`,
      );
    }
    if (refused > 0) facts.push(`${counted(refused, 'row was', 'rows were')} refused.`);
    const buttons: HTMLElement[] = [];
    if (refused > 0) {
      const save = () => void this.#saveRefused(file);
      buttons.push(make('button', { type: 'button', click: save }, 'Save the refused rows'));
    }
    if (added.length + unknown > 0) buttons.push(this.#takeOutButton(storing, 'Undo this import'));
    this.#showEnd(facts, problem, buttons);
  }

  #takeOutButton(storing: Storing, label: string): HTMLElement {
    return make('button', { type: 'button', click: () => void this.#takeOut(storing) }, label);
  }

  /** @param facts the first of which is the heading. */
  #showEnd(
    [first = '', ...others]: readonly string[],
    problem: string | undefined,
    buttons: readonly HTMLElement[],
  ): void {
    const heading = make('h3', { class: 'result', tabindex: -1 }, icon('done-icon'), first);
    const alert = problem === undefined ? [] : [make('p', { class: 'bad', role: 'alert' }, problem)];
    const done = make(
      'button',
      { type: 'button', class: 'primary', click: () => this.#dialog.close() },
      'Done',
    );
    this.#check = undefined;
    this.#show(
      2,
      heading,
      heading,
      ...others.map((fact) => make('p', {}, fact)),
      ...alert,
      make('footer', {}, ...buttons, done),
    );
    this.#status.textContent = others.join(' ');
  }
}

function sentenceOf(error: unknown): string {
  if (error instanceof FileComplaint || error instanceof OutcomeUnknown) return error.message;
  return `The catalogue refuses this: ${error instanceof Error ? error.message : error}.`;
}
