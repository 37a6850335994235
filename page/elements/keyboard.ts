// Owns: what a key means on a keyboard of any layout, with any input method, and where it leads among cells.

export function isField(target: EventTarget | null): target is HTMLInputElement | HTMLTextAreaElement {
  return target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement;
}

/** With AltGr, a key types a character. Windows reports it as Control and Alt. */
export function isWithAltGr(event: KeyboardEvent): boolean {
  return event.getModifierState('AltGraph') || (event.altKey && event.ctrlKey);
}

/** Whether a key types a character other than a blank. */
export function typesCharacter(event: KeyboardEvent): boolean {
  const isCommand = event.ctrlKey || event.altKey || event.metaKey;
  return [...event.key].length === 1 && event.key !== ' ' && (isWithAltGr(event) || !isCommand);
}

/**
 * The Latin letter of a key with Control, Command or Alt, in lower case: the one that it types, wherever it is (Dvorak,
 * AZERTY). A key that types a letter of another script, or none, has the one that is there on a keyboard of the USA.
 * @returns '' if it is not to be read as a letter.
 */
export function letterOf({ key, code, altKey, target }: KeyboardEvent): string {
  const typed = key.normalize('NFKC').toLowerCase(); // Japanese input methods have wide letters
  if (/^[a-z]$/.test(typed)) return typed;
  const placed = /^Key([A-Z])$/.exec(code)?.[1]?.toLowerCase() ?? '';
  const isNamed = key === 'Dead' || key === 'Unidentified';
  const isLetter = !isNamed && /^[\p{L}\p{M}]/u.test(typed);
  if (isLetter && !/^\p{sc=Latin}/u.test(typed)) return placed;
  if (!altKey) return isNamed ? placed : '';
  // Option on a Mac types a letter (ń), a sign (˜) or an accent to come. A cell that is edited gets all of them, the search
  // only letters: it does without accents.
  return isField(target) && (isLetter || target.id !== 'words') ? '' : placed;
}

type Cell = readonly [row: number, column: number];

/**
 * @param screen rows that PageUp and PageDown pass over.
 * @returns the cell that a key leads to, which may be outside of the table; undefined if it leads to none.
 */
export function goalOf(
  key: string,
  isCommand: boolean,
  [row, column]: Cell,
  last: Cell,
  screen: number,
): Cell | undefined {
  const goals: Readonly<Record<string, Cell>> = {
    ArrowUp: [row - 1, column],
    ArrowDown: [row + 1, column],
    ArrowLeft: [row, column - 1],
    ArrowRight: [row, column + 1],
    PageUp: [row - screen, column],
    PageDown: [row + screen, column],
    Home: isCommand ? [0, column] : [row, 0],
    End: isCommand ? [last[0], column] : [row, last[1]],
  };
  return goals[key];
}

/**
 * Leaves the keys of input methods to them: such a key reaches no listener of the page and submits no form. Safari ends
 * a conversion before it reports the key that did so, which then has nothing but the code 229 (UI Events, section 7.3.1).
 */
export function leaveKeysToInputMethods(): void {
  // On the way from the window to the field: before every listener but those of the window that do the same.
  addEventListener(
    'keydown',
    (event) => {
      if (!event.isComposing && event.keyCode !== 229) return;
      event.stopPropagation();
      if (['Enter', 'Escape', 'Tab'].includes(event.key)) event.preventDefault();
    },
    { capture: true },
  );
}

/** Chromium keeps one history for all fields, and would undo the latest typing in any of them. */
export function keepUndoInField(): void {
  addEventListener('beforeinput', (event) => {
    const isUndo = event.inputType.startsWith('history');
    if (isUndo && event.target !== document.activeElement) event.preventDefault();
  });
}
