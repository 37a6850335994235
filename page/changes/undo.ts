// Owns: the order in which changes and deletions are taken back, the latest one first, however old they are.

import { show } from '../elements/messages.ts';

type TakeBack = () => void;

export class Undo {
  readonly #entries: TakeBack[] = [];

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
    takeBack();
  }

  run(): void {
    const takeBack = this.#entries.pop();
    if (takeBack === undefined) show('There is nothing to undo');
    else takeBack();
  }
}
