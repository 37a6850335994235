// Owns: an undo as a person sees it: the question, the progress and the outcome.
// Does not: stop when the dialog or the page is closed: the service continues.

import {
  type BookCatalogue,
  CatalogueError,
  type UndoCheck,
  type UndoRequest,
} from '../../client/src/book-catalogue.ts';
import type { TakenBack } from '../catalogue/log.ts';
import { Complaint } from '../catalogue/persist.ts';
import type { Session } from '../catalogue/session.ts';
import type { Undo } from '../changes/undo.ts';
import { button, find, make, warning } from '../elements/dom.ts';
import { ProgressView } from '../elements/progress.ts';
import { counted, numberText } from '../elements/text.ts';
import { sinceText } from './words.ts';

export class Undoing {
  /** The question, the progress, or why nothing was undone. */
  readonly place = make('div', { class: 'note' });
  /** Whether books are checked or taken back. */
  isRunning = false;
  readonly #session: Session;
  readonly #undo: Undo;
  readonly #status = find('#log-status');

  constructor(session: Session, undo: Undo) {
    this.#session = session;
    this.#undo = undo;
  }

  /** Says something at an element. */
  say(text: string, at: HTMLElement): void {
    if (this.isRunning) return;
    at.append(this.place);
    this.place.replaceChildren(make('p', { class: 'hint' }, text));
    this.#status.textContent = text;
  }

  /**
   * @param name what the changes are called.
   * @param at the element that gets the question and the progress.
   * @returns the outcome; undefined if nothing was undone.
   */
  async run(request: UndoRequest, name: string, at: HTMLElement): Promise<string | undefined> {
    if (this.isRunning) return undefined; // one after the other
    this.say('Checking …', at);
    this.isRunning = true;
    try {
      const check = await this.#session.call((catalogue) => catalogue.checkUndo(request));
      const isOne = check.books === 1 && check.undone === 1 && request.since === undefined;
      const asked = request.since === undefined ? questionOf(check) : `${name}: ${questionOf(check)}`;
      if (!isOne && !(await this.#ask(asked, check.undone > 0))) return undefined;
      return outcomeText(await this.#carryOut(request, name));
    } catch (error) {
      this.place.replaceChildren(warning(await this.#reasonOf(error)));
      return undefined;
    } finally {
      this.isRunning = false;
    }
  }

  async #ask(text: string, isPossible: boolean): Promise<boolean> {
    this.place.replaceChildren(make('p', { id: 'log-question' }, text));
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
    this.place.replaceChildren(...view.parts);
    view.heading.focus();
    let going = { done: 0, total: undefined as number | undefined, text: '' };
    const onProgress = (done: number, total: number) => {
      going = {
        done,
        total,
        text: `${numberText(done)} of ${counted(total, 'book')}. You may close this page.`,
      };
    };
    const work = this.#undo.takeBack(request, name, { onProgress });
    return view.watch(work, () => ({ ...going, trouble: this.#session.trouble }));
  }

  async #reasonOf(error: unknown): Promise<string> {
    if (error instanceof Complaint) return error.message;
    const { status } = error instanceof CatalogueError ? error : {};
    if (status === 404) return 'The catalogue no longer knows this change.';
    if (status !== 422)
      return `${this.#session.trouble || 'The catalogue does not answer.'} Nothing was undone.`;
    const read = (catalogue: BookCatalogue) => Array.fromAsync(catalogue.events({ limit: 100 }));
    const events = await this.#session.call(read).catch(() => []);
    return sinceText(events.at(-1)?.at);
  }
}

function questionOf({ books, checked, undone, left }: UndoCheck): string {
  const stays = stayText(left.length);
  if (undone === 0) return stays || 'There is nothing to undo.';
  const will = counted(Math.round((books / checked) * undone), 'book');
  const about = checked < books ? 'About ' : '';
  return `${about}${will} will be as before. ${stays && `${stays} `}Undo?`;
}

function outcomeText({ undone, left }: TakenBack): string {
  return `${counted(undone, 'book is', 'books are')} as before. ${stayText(left)}`.trim();
}

function stayText(left: number): string {
  const text = counted(left, 'book stays as it is: it was', 'books stay as they are: they were');
  return left === 0 ? '' : `${text} changed later.`;
}
