// Owns: the order in which changes and deletions are taken back, the latest one first, however old they are.

import { show } from '../elements/messages.ts';

/** Resolves when it is done, or has failed and can be tried again. */
type TakeBack = () => void | Promise<void>;

export class Undo {
  readonly #entries: TakeBack[] = [];
  #running = 0;

  /** Something is being taken back. What comes next may need it, such as a book that is stored again. */
  get isBusy(): boolean {
    return this.#running > 0;
  }

  push(takeBack: TakeBack): void {
    this.#entries.push(takeBack);
  }

  /** Forgets what has been taken back in another way, or did not happen. */
  drop(takeBack: TakeBack): void {
    const at = this.#entries.lastIndexOf(takeBack);
    if (at >= 0) this.#entries.splice(at, 1);
  }

  /** Takes one thing back, whatever came after it. */
  runThis(takeBack: TakeBack): void {
    this.drop(takeBack);
    void this.#carryOut(takeBack);
  }

  async run(): Promise<void> {
    if (this.isBusy) {
      show('The latest change is still being taken back. Try again in a moment.');
      return;
    }
    const takeBack = this.#entries.pop();
    if (takeBack === undefined) show('There is nothing to undo');
    else await this.#carryOut(takeBack);
  }

  async #carryOut(takeBack: TakeBack): Promise<void> {
    this.#running += 1;
    try {
      await takeBack();
    } finally {
      this.#running -= 1;
    }
  }
}
