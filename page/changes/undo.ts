// Owns: the actions of this person in their order, and undo and redo by the service's log, the latest first. The tab keeps them, so
// that they survive a reload.
// Does not: overwrite later changes of others: the service leaves those books as they are.

import type { Book, BookChanges, UndoRequest } from '../../client/src/book-catalogue.ts';
import { randomKey } from '../../client/src/request.ts';
import type { Log, State, TakenBack, TakingBack } from '../catalogue/log.ts';
import { Complaint } from '../catalogue/persist.ts';
import type { Session } from '../catalogue/session.ts';
import { show } from '../elements/messages.ts';
import { keep, kept } from '../elements/storage.ts';
import { titleOf } from '../elements/text.ts';
import { CHANGES } from '../texts/changes.ts';

/** An action of a person. */
interface Done {
  /** Its name in messages. */
  readonly name: string;
  /** If it concerns one book: that book, and its changed fields; null for a book that is not there. */
  readonly id?: number;
  readonly before?: State;
  readonly after?: State;
  /** Stored once the book is back. */
  readonly changes?: BookChanges | undefined;
  /** Its number in the log, as soon as the page has it. */
  change?: number | undefined;
  /** The `Idempotency-Key` of its undo: a repetition has the same one, even after a reload. */
  key?: string;
}

/** Actions that can be undone, and those that can be made again. */
type Side = 'done' | 'undone';

const MOST = 100;

const NAME = 'undo';

export class Undo {
  /** Waits for changes that are on their way. @returns the title of a book with changes that are not stored yet. */
  settled: () => Promise<string | undefined> = async () => undefined;
  /** Called after an undo: with the present book, without one if it is gone, without an id if the undo concerns several books. */
  onTakenBack: (id?: number, book?: Book, changes?: BookChanges) => void = () => {};
  /** The present undo: a change waits for it. */
  idle: Promise<void> = Promise.resolve();
  readonly #session: Session;
  readonly #log: Log;
  readonly #stacks: Readonly<Record<Side, Done[]>> = { done: [], undone: [] };
  #queue: Promise<unknown> = Promise.resolve();
  #running = 0;
  /** The latest message, and the number and side of the changes in it. */
  #said: { readonly message?: HTMLElement; readonly count: number; readonly side?: Side } = { count: 0 };

  constructor(session: Session, log: Log) {
    this.#session = session;
    this.#log = log;
    const { of, ...stacks } = JSON.parse(kept('sessionStorage', NAME) || '{}');
    if (of === session.id) Object.assign(this.#stacks, stacks); // else, they are not those of this person
    addEventListener('beforeunload', (event) => {
      if (this.#running > 0) event.preventDefault(); // the browser asks whether to stay
    });
  }

  /** Notes an action. */
  push(done: Done): void {
    this.#stacks.done.push(done);
    this.#stacks.undone.length = 0;
    this.#save();
  }

  /** Drops all actions: they are not those of the next person at this tab. */
  forget(): void {
    for (const stack of Object.values(this.#stacks)) stack.length = 0;
    this.#save();
  }

  #save(): void {
    for (const stack of Object.values(this.#stacks)) stack.splice(0, Math.max(0, stack.length - MOST));
    keep('sessionStorage', NAME, JSON.stringify({ of: this.#session.id, ...this.#stacks }));
  }

  /** Takes back the last action, on any book or on one. */
  run(id?: number): Promise<void> {
    return this.#enqueue('done', (one) => id === undefined || one.id === id);
  }

  redo(): Promise<void> {
    return this.#enqueue('undone', () => true);
  }

  /** Brings back a deleted book. */
  bringBack(book: Book): Promise<void> {
    const gone = { id: book.id, name: titleOf(book), before: {}, after: null };
    return this.#enqueue('done', ({ id, after }) => id === gone.id && after === null, gone);
  }

  /**
   * Takes changes back that a person has chosen, also those of others, and waits until that is complete.
   * @param name of the changes in messages.
   * @throws Complaint when the log does not have them.
   */
  async takeBack(request: UndoRequest, name: string, taking?: TakingBack): Promise<TakenBack> {
    const taken = await this.#log.takeBack(request, taking);
    if (taken.change !== null) this.push({ name, change: taken.change });
    this.onTakenBack();
    return taken;
  }

  /** One after the other: the next one may need a book that this one brings back. */
  async #enqueue(side: Side, isWanted: (one: Done) => boolean, otherwise?: Done): Promise<void> {
    const { isHere, trouble } = this.#session.reach;
    if (!isHere) return void show(CHANGES.away(trouble));
    this.#running += 1;
    const work = async () => {
      const cursor = await this.#log.cursor();
      const unsaved = await this.settled();
      const found = this.#stacks[side].findLast(isWanted) ?? otherwise;
      if (cursor === undefined) show(CHANGES.noLog);
      else if (unsaved !== undefined) show(CHANGES.notStored(unsaved));
      else if (found === undefined) show(CHANGES.nothingLeft[side]);
      else this.idle = this.#carryOut(side, found);
      await this.idle;
      this.#running -= 1;
    };
    this.#queue = this.#queue.then(work);
    await this.#queue;
  }

  async #carryOut(side: Side, found: Done): Promise<void> {
    const { id, name, before = {}, after = {} } = found;
    const onProgress = (done: number, total: number) => this.#say(CHANGES.progress(done, total));
    try {
      if (id !== undefined) found.change ??= await this.#log.changeOf(id, before, after);
      const { change, key = randomKey() } = found;
      if (change === undefined) throw new Complaint(CHANGES.forgotten);
      found.key = key;
      this.#save();
      const taken = await this.#log.takeBack({ change }, { idempotencyKey: key, onProgress });
      const book = id && (await this.#log.find(id));
      if (taken.change !== null) {
        const { key: _, changes: __, ...back } = { ...found, change: taken.change };
        this.#stacks[side === 'done' ? 'undone' : 'done'].push(back);
        this.#sayTaken(side, name);
      } else if (taken.left > 0) show(CHANGES.changedSince(name));
      else show(CHANGES.asBefore(name));
      this.onTakenBack(id, book || undefined, found.changes);
    } catch (error) {
      show(CHANGES.stays(name, `${error instanceof Error ? error.message : error}`));
    }
    const stack = this.#stacks[side];
    if (stack.includes(found)) stack.splice(stack.indexOf(found), 1);
    this.#save();
  }

  /** One message counts all that follow one another. */
  #sayTaken(side: Side, name: string): void {
    const isNext = this.#said.message?.isConnected && this.#said.side === side;
    const count = isNext ? this.#said.count + 1 : 1;
    this.#say(count === 1 ? CHANGES.takenBack[side](name) : CHANGES.takenBackTogether[side](count));
    this.#said = { ...this.#said, side, count };
  }

  #say(text: Parameters<typeof show>[0]): void {
    this.#said = { ...this.#said, message: show(text, undefined, this.#said.message) };
  }
}
