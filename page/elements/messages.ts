// Owns: short messages: those in sight for a while, with one action at most, and those for screen readers alone.
// Does not: offer an action that is nowhere else on the page, since messages disappear (WCAG 2.2.1).

import { find, icon, make } from './dom.ts';

export interface Action {
  readonly label: string;
  run(): void;
}

/** Milliseconds in sight; longer while the pointer or the focus is on it. */
const SHOWN = 8000;

/** More would cover the list. */
const MOST = 3;

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

/** Shows a message, and announces it. */
export function show(text: string, action?: Action): void {
  const remove = () => {
    const hadFocus = message.contains(document.activeElement);
    message.remove();
    if (hadFocus) before?.focus();
  };
  const act = () => {
    remove();
    action?.run();
  };
  const button = action && make('button', { type: 'button', click: act }, action.label);
  const close = make(
    'button',
    { type: 'button', class: 'icon', 'aria-label': 'Dismiss', click: remove },
    icon('close-icon'),
  );
  const message = make('div', { class: 'message' }, make('span', {}, text), button, close);
  place.append(message);
  while (place.children.length > MOST) place.firstElementChild?.remove();
  announce(text);
  const expire = () => {
    if (message.matches(':hover, :focus-within')) setTimeout(expire, SHOWN);
    else remove();
  };
  setTimeout(expire, SHOWN);
}
