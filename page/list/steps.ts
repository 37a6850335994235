// Owns: the page's address, which can be kept and sent, and the steps that the browser's Back undoes: searches, chips, orders. All
// that is typed until the search is left is one step, and so are the orders that are chosen one after the other.

import { queryOf, type View, viewOf } from './view.ts';

/** Where a reader is in the list: the first row in sight, and the cell with the focus. */
export interface Spot {
  readonly first: number;
  readonly index: number;
  readonly column: number;
}

export const TOP: Spot = { first: 0, index: 0, column: 0 };

type Step = 'typing' | 'choice';

export class Steps {
  /** The one that leads to the next view; undefined if that is no step of a person, or one back. */
  #next: Step | undefined;
  #latest: Step = 'choice';
  /** How many steps were taken. */
  taken = 0;

  /** @param goBack shows a view again. */
  constructor(goBack: (view: View, spot: Spot) => void) {
    addEventListener('popstate', ({ state }) => {
      this.#next = undefined;
      this.#latest = 'choice';
      goBack(viewOf(new URL(location.href).searchParams), state ?? TOP);
    });
  }

  /** A person wants another view. */
  want(step: Step): void {
    if (this.#next !== 'choice') this.#next = step;
  }

  /** The search is left: the next letters are another step. */
  settle(): void {
    this.#latest = 'choice';
  }

  /**
   * Another view is shown.
   * @param left where the reader was in the one before.
   */
  show(view: View, left: Spot): void {
    const query = queryOf(view).toString();
    const isContinued = this.#next === 'typing' && this.#latest === 'typing';
    const address = query === '' ? location.pathname : `?${query}`;
    if (this.#next === undefined || isContinued || new URL(address, location.href).href === location.href) {
      history.replaceState(history.state, '', address);
    } else {
      history.replaceState(left, '');
      history.pushState(null, '', address);
      this.taken += 1;
    }
    this.#latest = this.#next ?? this.#latest;
    this.#next = undefined;
  }
}
