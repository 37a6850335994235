// Owns: the keys that work anywhere on the page, as long as no dialog is open.

import {
  isField,
  isWithAltGr,
  keepUndoInField,
  leaveKeysToInputMethods,
  letterOf,
} from './elements/keyboard.ts';

export interface Keys {
  search(): void;
  undo(): void;
  add(): void;
  /** Shows the list of keys. */
  explain(): void;
}

export function listenToKeys(keys: Keys): void {
  leaveKeysToInputMethods();
  keepUndoInField();
  addEventListener('keydown', (event) => {
    if (document.querySelector('dialog[open]') !== null || event.shiftKey || isWithAltGr(event)) return;
    const { key, altKey } = event;
    const isCommand = event.ctrlKey || event.metaKey;
    const letter = isCommand || altKey ? letterOf(event) : '';
    if (isCommand && letter === 'k') keys.search();
    else if (isCommand && letter === 'z' && !isField(event.target)) {
      if (!event.repeat) keys.undo(); // a press for each
    } else if (!isCommand && (letter === 'n' || (key === 'Insert' && !altKey))) keys.add();
    else if (key === 'F1') keys.explain();
    else return;
    event.preventDefault();
  });
}
