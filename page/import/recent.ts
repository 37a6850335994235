// Owns: the list of the imports that a person may look for: those that are not complete, and those of the last day.

import type { Imports, RecentImport } from '../catalogue/imports.ts';
import { button, make, redraw } from '../elements/dom.ts';
import { IMPORT } from '../texts/import.ts';
import { asItIs } from '../texts/sentence.ts';

/** Milliseconds between two looks at imports that continue. */
const LOOK = 1000;

export class RecentImports {
  readonly element = make('section', { hidden: true });
  readonly #imports: Imports;
  readonly #takeBack: (one: RecentImport) => void;
  #all: readonly RecentImport[] = [];

  /** @param takeBack is called when a person wants that. */
  constructor(imports: Imports, takeBack: (one: RecentImport) => void) {
    this.#imports = imports;
    this.#takeBack = takeBack;
  }

  /** The import that a file completes, if it is one of these. That its process was killed, the service finds out after a while. */
  completedBy({ name, size }: File): RecentImport | undefined {
    const isIncomplete = ({ state }: RecentImport) => state === 'stopped' || state === 'open';
    return this.#all.find((one) => isIncomplete(one) && one.name === name && one.size === size);
  }

  /** Shows them until the signal. */
  async watch(signal: AbortSignal): Promise<void> {
    try {
      this.#all = await this.#imports.recent(signal);
    } catch {
      return; // nothing is offered
    }
    this.element.hidden = this.#all.length === 0;
    const lines = this.#all.map((one) => this.#line(one));
    redraw(
      this.element,
      make('h3', { id: 'import-recent' }, IMPORT.latest),
      make('ul', { class: 'recent', 'aria-labelledby': 'import-recent' }, ...lines),
    );
    const goesOn = this.#all.some(({ state }) => state === 'open');
    if (goesOn) setTimeout(() => !signal.aborted && void this.watch(signal), LOOK);
  }

  #line(one: RecentImport): HTMLElement {
    const { import: number, state, isInLog } = one;
    const name = one.name ?? IMPORT.aFile;
    const attributes = { id: `import-undo-${number}`, 'aria-label': IMPORT.undoOf(name) };
    const canBeTakenBack = isInLog && (state === 'stored' || state === 'stopped');
    const undo = canBeTakenBack ? button(IMPORT.undo, () => this.#takeBack(one), attributes) : undefined;
    return make('li', {}, make('span', {}, asItIs(name), `: ${IMPORT.state[state](one.books)}`), undo);
  }
}
