// Owns: the keys that work anywhere on the page, as long as no dialog is open.

export interface Keys {
  search(): void;
  undo(): void;
  add(): void;
  /** Shows the list of keys. */
  explain(): void;
}

export function listenToKeys(keys: Keys): void {
  addEventListener('keydown', (event) => {
    if (document.querySelector('dialog[open]') !== null) return;
    const isCommand = event.ctrlKey || event.metaKey;
    const key = event.key.toLowerCase();
    const isInField = event.target instanceof HTMLInputElement;
    if (isCommand && key === 'k') keys.search();
    else if (isCommand && key === 'z' && !event.shiftKey && !isInField) keys.undo();
    else if (key === 'insert' || (event.altKey && key === 'n')) keys.add();
    else if (key === 'f1') keys.explain();
    else return;
    event.preventDefault();
  });
}
