// Owns: short messages: those in sight for a while, with one action at most, and those for screen readers alone.
// Does not: offer an action that is nowhere else on the page, since messages disappear (WCAG 2.2.1).

import { ELEMENTS } from '../texts/elements.ts';
import { button, find, icon, make } from './dom.ts';

export interface Action {
  readonly label: string;
  run(): void;
}

/** Milliseconds in sight; longer while the pointer or the focus is on it. */
const SHOWN = 8000;

const place = find('#messages');
const announcement = find('#announcement');

/** Where the focus was before it came to a message. */
let before: HTMLElement | undefined;
place.addEventListener('focusin', ({ relatedTarget }) => {
  if (relatedTarget instanceof HTMLElement && !place.contains(relatedTarget)) before = relatedTarget;
});

/** Says something to screen readers alone. */
export function announce(text: string): void {
  announcement.textContent = '';
  // In a later task: a screen reader repeats a text that was there before.
  setTimeout(() => {
    announcement.textContent = text;
  });
}

/**
 * Shows a message in the place of the one before, and announces it.
 * @param earlier a message that gets another text instead, if it is still in sight.
 */
export function show(
  message: string | readonly (string | Node)[],
  action?: Action,
  earlier?: HTMLElement,
): HTMLElement {
  let text: Element = make('span', {}, ...(typeof message === 'string' ? [message] : message));
  announce(text.textContent);
  if (earlier?.isConnected) {
    earlier.firstElementChild?.replaceWith(text);
    return earlier;
  }
  const act = () => {
    clear();
    action?.run();
  };
  const close = button('', clear, { class: 'icon', 'aria-label': ELEMENTS.dismiss });
  close.append(icon('close-icon'));
  const element = make('div', { class: 'message' }, text, action && button(action.label, act), close);
  clear();
  place.append(element);
  const expire = () => {
    if (!element.isConnected) return;
    const latest = element.firstElementChild ?? text;
    if (latest === text && !element.matches(':hover, :focus-within')) return clear();
    text = latest;
    setTimeout(expire, SHOWN);
  };
  setTimeout(expire, SHOWN);
  return element;
}

/** Removes the message in sight. */
function clear(): void {
  const hadFocus = place.contains(document.activeElement);
  place.replaceChildren();
  if (hadFocus) before?.focus();
}
