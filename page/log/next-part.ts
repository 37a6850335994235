// Owns: the button for the next part of a list. If that part cannot be read, it stays and tries again.

import type { NextPart } from '../catalogue/log.ts';
import { button, warning } from '../elements/dom.ts';
import { ELEMENTS } from '../texts/elements.ts';

/**
 * @param next the text of the button after the first part.
 * @param show returns whether the part is the last one.
 */
export function nextPartButton<Item>(
  first: string,
  next: string,
  read: NextPart<Item>,
  show: (part: readonly Item[]) => boolean,
): HTMLButtonElement {
  let complaint: HTMLElement | undefined;
  const press = async () => {
    if (element.ariaDisabled === 'true') return; // one part at a time
    element.ariaDisabled = 'true';
    const outcome = await read().catch((error: Error) => error);
    element.ariaDisabled = null;
    complaint?.remove();
    if (outcome instanceof Error) {
      complaint = warning(outcome.message);
      element.before(complaint);
      element.textContent = ELEMENTS.tryAgain;
    } else {
      element.textContent = next;
      element.hidden = show(outcome);
    }
  };
  const element = button(first, () => void press());
  return element;
}
