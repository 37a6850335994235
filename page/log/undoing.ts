// Owns: an undo as a person sees it: the question, the progress and the outcome.
// Does not: stop when the dialog or the page is closed: the service continues.

import type { UndoCheck, UndoRequest } from '../../client/src/book-catalogue.ts';
import type { Log, TakenBack } from '../catalogue/log.ts';
import type { Undo } from '../changes/undo.ts';
import { button, find, make, warning } from '../elements/dom.ts';
import { ProgressView } from '../elements/progress.ts';
import { LOG } from '../texts/log.ts';

export class Undoing {
  /** The question, the progress, or why nothing was undone. */
  readonly place = make('div', { class: 'note' });
  /** Whether books are checked or taken back. */
  isRunning = false;
  readonly #log: Log;
  readonly #undo: Undo;
  readonly #status = find('#log-status');

  constructor(log: Log, undo: Undo) {
    this.#log = log;
    this.#undo = undo;
    find('#log').addEventListener('close', () => this.#status.replaceChildren());
  }

  /** Says something at an element. */
  say(text: string, at: HTMLElement): void {
    if (this.isRunning) return;
    at.append(this.place);
    this.#show(make('p', { class: 'hint' }, text));
    this.#status.textContent = text;
  }

  #show(...parts: readonly Element[]): void {
    this.place.replaceChildren(...parts);
    this.place.scrollIntoView({ block: 'nearest' });
  }

  /**
   * @param name of the changes, for people.
   * @param at the element that gets the question and the progress.
   * @returns the outcome; undefined if nothing was undone.
   */
  async run(request: UndoRequest, name: string, at: HTMLElement): Promise<string | undefined> {
    if (this.isRunning) return undefined; // one after the other
    this.say(LOG.checking, at);
    this.isRunning = true;
    try {
      const check = await this.#log.checkUndo(request);
      if ('beginning' in check) throw new Error(LOG.begins(check.beginning));
      const isOne = check.books === 1 && check.undone === 1 && request.since === undefined;
      const question = questionOf(check);
      const asked = request.since === undefined ? question : LOG.of(name, question);
      const isPossible = check.undone > 0 || check.checked < check.books;
      if (!isOne && !(await this.#ask(asked, isPossible))) return undefined;
      return outcomeText(await this.#carryOut(request, name));
    } catch (error) {
      this.#show(warning((error as Error).message));
      return undefined;
    } finally {
      this.isRunning = false;
    }
  }

  async #ask(text: string, isPossible: boolean): Promise<boolean> {
    this.#show(make('p', { id: 'log-question' }, text));
    this.#status.textContent = text;
    if (!isPossible) return false;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const yes = button(LOG.undo, () => resolve(true), {
      class: 'primary',
      'aria-describedby': 'log-question',
    });
    const no = button(LOG.cancel, () => resolve(false));
    this.place.append(make('footer', {}, no, yes));
    yes.focus();
    this.isRunning = false; // the person may choose something else
    this.isRunning = await promise;
    if (!this.isRunning) this.place.replaceChildren();
    return this.isRunning;
  }

  #carryOut(request: UndoRequest, name: string): Promise<TakenBack> {
    const view = new ProgressView(LOG.undo, this.#status);
    this.#show(...view.parts);
    view.heading.focus();
    let going = { done: 0, total: undefined as number | undefined, text: '' };
    const onProgress = (done: number, total: number) => {
      going = { done, total, text: LOG.progress(done, total) };
    };
    const work = this.#undo.takeBack(request, name, { onProgress });
    return view.watch(work, () => ({ ...going, trouble: this.#log.trouble }));
  }
}

/** The first books do not show how many of the others an undo changes. */
function questionOf({ books, checked, undone, left }: UndoCheck): string {
  const isWhole = checked === books;
  if (isWhole && undone === 0) return stayText(left.length) || LOG.nothingToUndo;
  const isAny = !isWhole && undone === checked;
  const will = LOG.willBe(isAny ? books : undone, undone !== 1);
  const scope = isAny ? LOG.upTo(will) : isWhole ? will : LOG.ofTheFirst(checked, will);
  const rest = isAny || isWhole ? '' : LOG.notChecked(books - checked);
  return [scope, stayText(left.length), rest, LOG.question].filter(Boolean).join(' ');
}

function outcomeText({ undone, left }: TakenBack): string {
  return `${LOG.undoneBooks(undone)} ${stayText(left)}`.trim();
}

function stayText(left: number): string {
  return left === 0 ? '' : LOG.stay(left);
}
