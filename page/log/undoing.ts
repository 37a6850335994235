// Owns: an undo as a person sees it: the question, the progress and the outcome.
// Does not: stop when the dialog or the page is closed: the service continues.

import { CatalogueError, type UndoCheck, type UndoRequest } from '../../client/src/book-catalogue.ts';
import type { TakenBack } from '../catalogue/log.ts';
import { Complaint } from '../catalogue/persist.ts';
import type { Session } from '../catalogue/session.ts';
import type { Undo } from '../changes/undo.ts';
import { button, find, make, warning } from '../elements/dom.ts';
import { ProgressView } from '../elements/progress.ts';
import { counted, numberText } from '../elements/text.ts';
import { momentText } from './words.ts';

/** Events of a page when the oldest one is looked for. */
const MOST = 100;

export class Undoing {
  /** The question, the progress, or why nothing was undone. */
  readonly place = make('div', { class: 'undoing' });
  readonly #session: Session;
  readonly #undo: Undo;
  readonly #status = find('#log-status');
  #isRunning = false;

  constructor(session: Session, undo: Undo) {
    this.#session = session;
    this.#undo = undo;
  }

  /** Whether books are being taken back. */
  get isRunning(): boolean {
    return this.#isRunning;
  }

  /** Says something at an element. */
  say(text: string, at: HTMLElement): void {
    if (this.#isRunning) return;
    at.append(this.place);
    this.place.replaceChildren(make('p', { class: 'hint' }, text));
    this.#status.textContent = text;
  }

  /**
   * @param name what the changes are called in messages.
   * @param at the element that gets the question and the progress.
   * @param asked is asked first, in any case; without it, one book needs no question.
   * @returns the outcome; undefined if nothing was undone.
   */
  async run(
    request: UndoRequest,
    name: string,
    at: HTMLElement,
    asked?: string,
  ): Promise<string | undefined> {
    if (this.#isRunning) {
      this.place.scrollIntoView();
      return undefined;
    }
    this.say('Checking …', at);
    try {
      const check = await this.#session.call((catalogue) => catalogue.checkUndo(request));
      const isSmall = check.books === 1 && check.undone === 1;
      if (!(isSmall && asked === undefined) && !(await this.#ask(check, asked))) return undefined;
      this.#isRunning = true;
      return outcomeText(await this.#carryOut(request, name));
    } catch (error) {
      this.place.replaceChildren(warning(await this.#reasonOf(error)));
      return undefined;
    } finally {
      this.#isRunning = false;
    }
  }

  async #ask(check: UndoCheck, asked: string | undefined): Promise<boolean> {
    const text = [asked, questionOf(check)].join(' ').trim();
    const question = make('p', { id: 'log-question' }, text);
    this.place.replaceChildren(question);
    this.#status.textContent = text;
    if (check.undone === 0) return false;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const described = { 'aria-describedby': question.id };
    const yes = button('Undo', () => resolve(true), { class: 'primary', ...described });
    this.place.append(
      make(
        'footer',
        {},
        button('Cancel', () => resolve(false)),
        yes,
      ),
    );
    yes.focus();
    const isWanted = await promise;
    if (!isWanted) this.place.replaceChildren();
    return isWanted;
  }

  #carryOut(request: UndoRequest, name: string): Promise<TakenBack> {
    const view = new ProgressView('Undo', this.#status);
    this.place.replaceChildren(...view.parts);
    view.heading.focus();
    let going = { done: 0, total: undefined as number | undefined, text: '' };
    const onProgress = (done: number, total: number) => {
      const text = `${numberText(done)} of ${counted(total, 'book')}. It continues if you close the page.`;
      going = { done, total, text };
    };
    const work = this.#undo.takeBack(request, name, { onProgress });
    return view.watch(work, () => ({ ...going, trouble: this.#session.trouble }));
  }

  async #reasonOf(error: unknown): Promise<string> {
    if (error instanceof Complaint) return error.message;
    const { status } = error instanceof CatalogueError ? error : {};
    if (status === 404) return 'The catalogue no longer knows this change.';
    if (status === 422) {
      const beginning = await this.#beginning().catch(() => undefined);
      if (beginning !== undefined) return `The catalogue knows its changes since ${momentText(beginning)}.`;
    }
    return `${this.#session.trouble || 'The catalogue does not answer.'} Nothing was undone: try again in a moment.`;
  }

  #beginning(): Promise<string | undefined> {
    return this.#session.call(async (catalogue) => {
      let at: string | undefined;
      for await (const event of catalogue.events({ limit: MOST })) at = event.at;
      return at;
    });
  }
}

function questionOf({ books, checked, undone, left }: UndoCheck): string {
  const all = counted(books, 'book');
  const changed = left.length === 1 ? 'it was changed later' : 'they were changed later';
  if (undone === 0)
    return left.length === 0
      ? 'There is nothing to undo: these books are as they were.'
      : `${counted(left.length, 'book stays as it is', 'books stay as they are')}: ${changed}.`;
  if (left.length === 0)
    return `${counted(checked < books ? books : undone, 'book')} will be as before. Undo?`;
  const [atLeast, stay] = [
    checked < books ? 'At least ' : '',
    left.length === 1 ? 'stays as it is' : 'stay as they are',
  ];
  return `${atLeast}${numberText(left.length)} of ${all} ${stay}, because ${changed}. Undo?`;
}

function outcomeText({ undone, left }: TakenBack): string {
  const done =
    undone === 0 ? 'No book was changed.' : `${counted(undone, 'book is', 'books are')} as before.`;
  if (left === 0) return done;
  return `${done} ${counted(left, 'book stays as it is: it was', 'books stay as they are: they were')} changed later.`;
}
