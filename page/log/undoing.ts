// Owns: an undo as a person sees it: the question, the progress and the outcome.
// Does not: stop when the dialog or the page is closed: the service continues.

import type { UndoCheck, UndoRequest } from '../../client/src/book-catalogue.ts';
import type { Log, TakenBack } from '../catalogue/log.ts';
import type { Undo } from '../changes/undo.ts';
import { button, find, make, warning } from '../elements/dom.ts';
import { ProgressView } from '../elements/progress.ts';
import { counted, numberText } from '../texts/english.ts';
import { sinceText } from './words.ts';

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
   * @param isImport whether all the books are removed.
   * @returns the outcome; undefined if nothing was undone.
   */
  async run(
    request: UndoRequest,
    name: string,
    at: HTMLElement,
    isImport: boolean,
  ): Promise<string | undefined> {
    if (this.isRunning) return undefined; // one after the other
    this.say('Checking …', at);
    this.isRunning = true;
    try {
      const check = await this.#log.checkUndo(request);
      if ('beginning' in check) throw new Error(sinceText(check.beginning));
      const isOne = check.books === 1 && check.undone === 1 && request.since === undefined;
      const question = questionOf(check, isImport);
      const asked = request.since === undefined ? question : `${name}: ${question}`;
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
    const yes = button('Undo', () => resolve(true), { class: 'primary', 'aria-describedby': 'log-question' });
    const no = button('Cancel', () => resolve(false));
    this.place.append(make('footer', {}, no, yes));
    yes.focus();
    this.isRunning = false; // the person may choose something else
    this.isRunning = await promise;
    if (!this.isRunning) this.place.replaceChildren();
    return this.isRunning;
  }

  #carryOut(request: UndoRequest, name: string): Promise<TakenBack> {
    const view = new ProgressView('Undo', this.#status);
    this.#show(...view.parts);
    view.heading.focus();
    let going = { done: 0, total: undefined as number | undefined, text: '' };
    const onProgress = (done: number, total: number) => {
      const text = `${numberText(done)} of ${counted(total, 'book')}. You may close this page.`;
      going = { done, total, text };
    };
    const work = this.#undo.takeBack(request, name, { onProgress });
    return view.watch(work, () => ({ ...going, trouble: this.#log.trouble }));
  }
}

/** The first books do not show how many of the others an undo changes. */
function questionOf({ books, checked, undone, left }: UndoCheck, isImport: boolean): string {
  const isWhole = checked === books;
  if (isWhole && undone === 0) return stayText(left.length) || 'There is nothing to undo.';
  const isAny = !isWhole && undone === checked;
  const added = undone > 1 ? '; those that were added will be removed' : '';
  const will = `${counted(isAny ? books : undone, 'book')} will be ${isImport ? 'removed' : `as before${added}`}.`;
  const scope = isAny ? 'Up to ' : isWhole ? '' : `Of the first ${numberText(checked)} books, `;
  const rest = isAny || isWhole ? '' : `${counted(books - checked, 'book was', 'books were')} not checked.`;
  return [`${scope}${will}`, stayText(left.length), rest, 'Undo?'].filter(Boolean).join(' ');
}

function outcomeText({ undone, left }: TakenBack): string {
  return `${counted(undone, 'book is', 'books are')} as before. ${stayText(left)}`.trim();
}

function stayText(left: number): string {
  const text = counted(left, 'book stays as it is: it was', 'books stay as they are: they were');
  return left === 0 ? '' : `${text} changed later.`;
}
