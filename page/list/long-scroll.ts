// Owns: scrolling through more pixels than an element may be high: browsers stop at 17 to 33 million, and a million rows
// are 46. A short move counts in pixels; a long one, such as by dragging the scroll bar, by its share of the way.

/** Pixels of the element that is scrolled, at most. */
const HIGHEST = 8_000_000;

/** Screens up to which a move is short. */
const SHORT = 3;

export class LongScroll {
  /** Pixels of the content above the window. */
  top = 0;
  readonly #window: HTMLElement;
  readonly #content: HTMLElement;
  readonly #onMove: (isLong: boolean) => void;
  /** Pixels of the content. */
  #height = 0;
  /** The latest known `scrollTop` of the window. */
  #scrolled = 0;

  /**
   * @param window scrolls; it contains the content.
   * @param onMove called after the reader has scrolled.
   */
  constructor(window: HTMLElement, content: HTMLElement, onMove: (isLong: boolean) => void) {
    this.#window = window;
    this.#content = content;
    this.#onMove = onMove;
    window.addEventListener('scroll', () => this.#move(), { passive: true });
    window.addEventListener('scrollend', () => this.#align());
  }

  /** The content at this place is drawn this many pixels further down in the element. */
  get shift(): number {
    return this.#scrolled - this.top;
  }

  /** The height of the content, in pixels; what is in sight stays there. */
  resize(height: number): void {
    this.#height = height;
    this.#content.style.height = `${Math.min(height, HIGHEST)}px`;
    this.moveTo(this.top);
  }

  moveTo(top: number): void {
    this.top = Math.max(0, Math.min(top, this.#furthest));
    this.#setScroll(Math.round(this.#scrollOf(this.top)));
  }

  /** The largest `top`. */
  get #furthest(): number {
    return Math.max(0, this.#height - this.#window.clientHeight);
  }

  /** The largest `scrollTop`. */
  get #way(): number {
    return Math.max(0, Math.min(this.#height, HIGHEST) - this.#window.clientHeight);
  }

  #scrollOf(top: number): number {
    return this.#furthest === 0 ? 0 : (top / this.#furthest) * this.#way;
  }

  #setScroll(scroll: number): void {
    this.#window.scrollTop = scroll;
    this.#scrolled = this.#window.scrollTop; // the event that follows is then a move by nothing
  }

  #move(): void {
    const { scrollTop, clientHeight } = this.#window;
    const distance = scrollTop - this.#scrolled;
    if (distance === 0) return;
    this.#scrolled = scrollTop;
    const isLong = Math.abs(distance) > SHORT * clientHeight;
    const isAtEnd = scrollTop <= 0 || scrollTop >= this.#way;
    if (isLong || isAtEnd)
      this.top = this.#way === 0 ? 0 : Math.min(1, scrollTop / this.#way) * this.#furthest;
    else this.top = Math.max(0, Math.min(this.top + distance, this.#furthest));
    this.#onMove(isLong);
  }

  /** Short moves leave the scroll bar behind. It is corrected when nothing moves any more. */
  #align(): void {
    if (this.#height <= HIGHEST) return;
    const due = Math.round(this.#scrollOf(this.top));
    if (due === this.#window.scrollTop) return;
    this.#setScroll(due);
    this.#onMove(false);
  }
}
