// Owns: the number and the book of the current place in a long list, shown during a long scroll.

import { find } from '../elements/dom.ts';
import { bookText } from '../elements/text.ts';
import { numberText } from '../texts/english.ts';
import { sentence } from '../texts/sentence.ts';
import type { Shelf } from './shelf.ts';

/** Milliseconds in which the place is shown after the last long move. */
const SHOWN = 900;

export class Place {
  readonly #element = find('#place');
  readonly #shelf: Shelf;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(shelf: Shelf) {
    this.#shelf = shelf;
  }

  /** @param first the index of the first row in sight. */
  move(first: number, isLong: boolean): void {
    if (!isLong && this.#element.hidden) return;
    this.#element.hidden = false;
    this.draw(first);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#element.hidden = true;
    }, SHOWN);
  }

  draw(first: number): void {
    if (this.#element.hidden) return;
    const book = this.#shelf.at(first);
    const beginning = book === undefined ? [] : sentence` · ${bookText(book)}`;
    this.#element.replaceChildren(numberText(first + 1), ...beginning);
  }
}
