// Owns: the keys that work anywhere on the page, as long as no dialog is open.

import {
  isField,
  isWithAltGr,
  keepUndoInField,
  leaveKeysToInputMethods,
  letterOf,
} from './elements/keyboard.ts';

/** The log is of all books, the history of one; `explain` shows the list of keys. */
type Keys = Record<'search' | 'undo' | 'redo' | 'add' | 'log' | 'history' | 'explain', () => void>;

export function listenToKeys(keys: Keys): void {
  leaveKeysToInputMethods();
  keepUndoInField();
  /** Whether something was typed in the search: the field undoes that. */
  let isTyped = false;
  addEventListener('input', ({ target }) => {
    isTyped ||= isSearch(target);
  });
  addEventListener('keydown', (event) => {
    if (document.querySelector('dialog[open]') !== null || isWithAltGr(event)) return;
    const { key, altKey, shiftKey } = event;
    const isCommand = event.ctrlKey || event.metaKey;
    const letter = isCommand || altKey ? letterOf(event) : '';
    const isRedo = isCommand && letter === (shiftKey ? 'z' : 'y');
    if (isRedo || (isCommand && letter === 'z')) {
      if (isField(event.target) && (isTyped || !isSearch(event.target))) return;
      if (!event.repeat) keys[isRedo ? 'redo' : 'undo'](); // a press for each
    } else if (shiftKey) return;
    else if (isCommand && letter === 'k') keys.search();
    else if (!isCommand && (letter === 'n' || (key === 'Insert' && !altKey))) keys.add();
    else if (!isCommand && letter === 'w') keys.log();
    else if (!isCommand && letter === 'h') keys.history();
    else if (key === 'F1') keys.explain();
    else return;
    event.preventDefault();
  });
}

function isSearch(target: EventTarget | null): boolean {
  return isField(target) && target.id === 'words';
}
