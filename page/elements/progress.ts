// Owns: the progress of long work, on screen and for screen readers, and the ways to stop it.

import { ELEMENTS } from '../texts/elements.ts';
import { button, make, warning } from './dom.ts';

export interface Progress {
  readonly done: number;
  /** Undefined if it is not known. */
  readonly total: number | undefined;
  readonly text: string;
  /** What is wrong at the moment; '' if nothing is. */
  readonly trouble: string;
}

/** Milliseconds between two drawings, and between two announcements. */
const DRAW_EVERY = 200;
const ANNOUNCE_EVERY = 5000;

export class ProgressView {
  readonly heading: HTMLElement;
  readonly parts: readonly HTMLElement[];
  readonly #status: HTMLElement;
  readonly #text = make('p');
  readonly #trouble = make('p', { class: 'note', hidden: true });
  readonly #bar: HTMLProgressElement;
  readonly #footer = make('footer');
  readonly #stop: HTMLButtonElement;

  /**
   * @param status an element with this role, which gets some of the texts.
   * @param stop is called when a person wants the work to end; without it, nobody can end it.
   */
  constructor(title: string, status: HTMLElement, stop?: () => void) {
    this.#status = status;
    this.heading = make('h3', { tabindex: -1 }, title);
    this.#bar = make('progress', { 'aria-label': title });
    const click = () => {
      this.#stop.ariaDisabled = 'true';
      this.#stop.textContent = ELEMENTS.stopping;
      stop?.();
    };
    this.#stop = button(ELEMENTS.stopHere, click, { hidden: stop === undefined });
    this.#footer.append(this.#stop);
    this.parts = [this.heading, this.#text, this.#bar, this.#trouble, this.#footer];
  }

  /** Shows progress until the work has ended. */
  async watch<Result>(work: Promise<Result>, read: () => Progress): Promise<Result> {
    let announcedAt = performance.now();
    let trouble = '';
    const draw = () => {
      const progress = read();
      this.#draw(progress);
      const isOver = performance.now() - announcedAt > ANNOUNCE_EVERY;
      if (!isOver && progress.trouble === trouble) return;
      announcedAt = performance.now();
      trouble = progress.trouble;
      this.#status.textContent = trouble || progress.text;
    };
    draw();
    const timer = setInterval(draw, DRAW_EVERY);
    try {
      return await work;
    } finally {
      clearInterval(timer);
      this.#draw(read());
    }
  }

  /** @returns whether a person wants to try again what has failed. */
  async askToRepeat(complaint: string): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const alert = warning(complaint);
    const repeat = button(ELEMENTS.tryAgain, () => resolve(true), { class: 'primary' });
    const end = button(ELEMENTS.stopHere, () => resolve(false));
    this.#footer.before(alert);
    this.#footer.replaceChildren(end, repeat);
    this.heading.focus();
    const isWanted = await promise;
    alert.remove();
    this.#footer.replaceChildren(this.#stop);
    this.heading.focus();
    return isWanted;
  }

  #draw({ done, total, text, trouble }: Progress): void {
    this.#text.textContent = text;
    this.#trouble.textContent = trouble;
    this.#trouble.hidden = trouble === '';
    if (total === undefined) {
      this.#bar.removeAttribute('value');
    } else {
      this.#bar.max = total;
      this.#bar.value = done;
    }
  }
}
