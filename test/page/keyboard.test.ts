// The keys of the page in Node.js, as browsers report those of other layouts, of a Mac and of input methods. What Chromium
// itself does with them is in test/browser/page-keys.test.ts.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { pathTo } from '../support/repository.ts';

class Field {
  readonly id: string;

  constructor(id: string) {
    this.id = id;
  }
}
const LIST = {};
const SEARCH = new Field('words');
const CELL = new Field('');

/** What is done with an event, by its type, in the order in which a window does it. */
const listeners = {
  keydown: [] as ((event: object) => void)[],
  beforeinput: [] as ((event: object) => void)[],
  input: [] as ((event: object) => void)[],
};
const page = { activeElement: LIST as object, querySelector: () => null };
Object.assign(globalThis, {
  HTMLInputElement: Field,
  HTMLTextAreaElement: class {},
  document: page,
  addEventListener: (type: keyof typeof listeners, listener: (event: object) => void) =>
    listeners[type].push(listener),
});
// By its path, and so without its types, which need those of a browser.
const { listenToKeys } = await import(pathTo('page/keys.ts'));
const { goalOf, typesCharacter } = await import(pathTo('page/elements/keyboard.ts'));
const done: string[] = [];
listenToKeys(
  Object.fromEntries(
    ['search', 'undo', 'redo', 'add', 'explain'].map((name) => [name, () => done.push(name)]),
  ),
);

/** @param held `C`ontrol, `M`eta, `A`lt, `S`hift, Alt`G`r, `R`epeated. */
function eventOf(key: string, code: string, held: string, target: object) {
  return {
    ...{ key, code, target, keyCode: 0, isComposing: false, repeat: held.includes('R') },
    ...{ ctrlKey: held.includes('C'), metaKey: held.includes('M') },
    ...{ altKey: held.includes('A'), shiftKey: held.includes('S') },
    getModifierState: (name: string) => name === 'AltGraph' && held.includes('G'),
    isPrevented: false,
    preventDefault() {
      this.isPrevented = true;
    },
    isStopped: false,
    stopPropagation() {
      this.isStopped = true;
    },
  };
}

/** @returns what a key does, and `-` if that is left to the browser. */
function press(key: string, code: string, held: string, target: object): string {
  done.length = 0;
  const event = eventOf(key, code, held, target);
  for (const listener of listeners.keydown) listener(event);
  return done[0] ?? (event.isPrevented ? 'nothing' : '-');
}

test('a key without a Latin letter counts by its place, any other by its letter', () => {
  for (const [layout, key, code, held, target, expected] of [
    ['Latin', 'z', 'KeyZ', 'C', LIST, 'undo'],
    ['Latin, on a Mac', 'z', 'KeyZ', 'M', LIST, 'undo'],
    ['Latin, capitals locked', 'Z', 'KeyZ', 'C', LIST, 'undo'],
    ['wide letters of a Japanese input method', 'ｚ', 'KeyZ', 'C', LIST, 'undo'],
    ['Latin', 'k', 'KeyK', 'C', CELL, 'search'],
    ['Latin', 'n', 'KeyN', 'A', SEARCH, 'add'],
    ['German', 'z', 'KeyY', 'C', LIST, 'undo'],
    ['German', 'y', 'KeyZ', 'C', LIST, 'redo'],
    ['French', 'z', 'KeyW', 'C', LIST, 'undo'],
    ['French', 'w', 'KeyZ', 'C', LIST, '-'],
    ['Dvorak', 'z', 'Slash', 'C', LIST, 'undo'],
    ['Dvorak', ';', 'KeyZ', 'C', LIST, '-'],
    ['Dvorak', 't', 'KeyK', 'C', LIST, '-'],
    ['Bépo', 'à', 'KeyZ', 'C', LIST, '-'],
    ['Russian', 'я', 'KeyZ', 'C', LIST, 'undo'],
    ['Russian', 'н', 'KeyY', 'C', LIST, 'redo'],
    ['Russian, capitals locked', 'Л', 'KeyK', 'C', SEARCH, 'search'],
    ['Russian', 'т', 'KeyN', 'A', CELL, 'add'],
    ['Russian, on a Mac', 'я', 'KeyZ', 'M', LIST, 'undo'],
    ['Bulgarian', 'ю', 'KeyZ', 'C', LIST, 'undo'],
    ['Greek', 'ζ', 'KeyZ', 'C', LIST, 'undo'],
    ['Greek', 'κ', 'KeyK', 'C', LIST, 'search'],
    ['Hebrew', 'ז', 'KeyZ', 'C', LIST, 'undo'],
    ['Arabic', 'ئ', 'KeyZ', 'C', LIST, 'undo'],
    ['Persian', 'ظ', 'KeyZ', 'C', LIST, 'undo'],
    ['Georgian', 'ზ', 'KeyZ', 'C', LIST, 'undo'],
    ['Armenian', 'զ', 'KeyZ', 'C', LIST, 'undo'],
    ['Thai', 'ผ', 'KeyZ', 'C', LIST, 'undo'],
    ['Thai, a sign above a letter', 'ื', 'KeyN', 'A', SEARCH, 'add'],
    ['Hindi, a sign', 'ॆ', 'KeyZ', 'C', LIST, 'undo'],
    ['Korean', 'ㅋ', 'KeyZ', 'C', LIST, 'undo'],
    ['Japanese kana', 'っ', 'KeyZ', 'C', LIST, 'undo'],
    ['dead', 'Dead', 'KeyZ', 'C', LIST, 'undo'],
    ['unknown', 'Unidentified', 'KeyK', 'C', LIST, 'search'],
    ['no code', 'я', '', 'C', LIST, '-'],
  ] as const) {
    assert.equal(press(key, code, held, target), expected, `${layout}: ${held} ${key} ${code}`);
  }
});

test('Option and AltGr type what they type, but Option N adds where nothing is written', () => {
  for (const [name, key, code, held, target, expected] of [
    ['an accent to come', 'Dead', 'KeyN', 'A', LIST, 'add'],
    ['an accent to come', 'Dead', 'KeyN', 'A', SEARCH, 'add'],
    ['a sign', '˜', 'KeyN', 'A', SEARCH, 'add'],
    ['an accent to come, in a cell', 'Dead', 'KeyN', 'A', CELL, '-'],
    ['a sign, in a cell', '˜', 'KeyN', 'A', CELL, '-'],
    ['a Polish letter', 'ń', 'KeyN', 'A', LIST, 'add'],
    ['a Polish letter, in the search', 'ń', 'KeyN', 'A', SEARCH, '-'],
    ['AltGr on Windows', 'ż', 'KeyZ', 'CAG', LIST, '-'],
    ['AltGr as Control and Alt', 'я', 'KeyZ', 'CA', LIST, '-'],
    ['AltGr on Windows', 'n', 'KeyN', 'CAG', SEARCH, '-'],
    ['AltGr on Linux', 'ń', 'KeyN', 'G', SEARCH, '-'],
    ['AltGr and Alt', 'т', 'KeyN', 'AG', LIST, '-'],
  ] as const) {
    assert.equal(press(key, code, held, target), expected, `${name}: ${held} ${key}`);
  }
  const types = (key: string, held: string) => typesCharacter(eventOf(key, '', held, LIST));
  for (const [key, held] of [
    ['e', ''],
    ['E', 'S'],
    ['€', 'CAG'],
    ['@', 'G'],
    ['я', ''],
    ['𝒜', ''],
  ] as const)
    assert.ok(types(key, held), key);
  for (const [key, held] of [
    [' ', ''],
    ['e', 'C'],
    ['e', 'A'],
    ['e', 'M'],
    ['Dead', ''],
    ['F2', ''],
  ] as const)
    assert.ok(!types(key, held), `${held} ${key}`);
});

test('undo and redo are one change a press, and in a field the field’s own; pasting and other keys are the browser’s', () => {
  for (const [key, code, held, target, expected] of [
    ['z', 'KeyZ', 'CR', LIST, 'nothing'],
    ['z', 'KeyZ', 'C', SEARCH, 'undo'],
    ['я', 'KeyZ', 'C', CELL, '-'],
    ['Z', 'KeyZ', 'CS', LIST, 'redo'],
    ['Я', 'KeyZ', 'MS', LIST, 'redo'],
    ['Z', 'KeyZ', 'CSR', LIST, 'nothing'],
    ['y', 'KeyY', 'C', LIST, 'redo'],
    ['y', 'KeyY', 'C', CELL, '-'],
    ['Y', 'KeyY', 'CS', LIST, '-'],
    ['K', 'KeyK', 'CS', LIST, '-'],
    ['z', 'KeyZ', '', LIST, '-'],
    ['Z', 'KeyZ', 'S', LIST, '-'],
    ['Insert', 'Insert', '', SEARCH, 'add'],
    ['Insert', 'Insert', 'S', SEARCH, '-'],
    ['Insert', 'Insert', 'C', SEARCH, '-'],
    ['F1', 'F1', '', LIST, 'explain'],
  ] as const) {
    assert.equal(press(key, code, held, target), expected, `${held} ${key}`);
  }
});

test('in the search, undo is the field’s own once something was typed there', () => {
  for (const [target, expected] of [
    [CELL, 'undo'],
    [SEARCH, '-'],
  ] as const) {
    for (const listener of listeners.input) listener({ target });
    assert.equal(press('z', 'KeyZ', 'C', SEARCH), expected, target.id);
  }
});

test('a key leads to the next cell, to one a screen away, or to the end of the row; with Control, of the list', () => {
  for (const [key, isCommand, row, column] of [
    ['ArrowUp', false, 41, 1],
    ['ArrowDown', false, 43, 1],
    ['ArrowLeft', false, 42, 0],
    ['ArrowRight', false, 42, 2],
    ['PageUp', false, 32, 1],
    ['PageDown', false, 52, 1],
    ['Home', false, 42, 0],
    ['End', false, 42, 3],
    ['Home', true, 0, 1],
    ['End', true, 99, 1],
  ] as const) {
    assert.deepEqual(goalOf(key, isCommand, [42, 1], [99, 3], 10), [row, column], key);
  }
  for (const key of ['Tab', 'Enter', 'a']) assert.equal(goalOf(key, false, [42, 1], [99, 3], 10), undefined);
});

test('undo of the browser changes no field but the one with the focus', () => {
  for (const [focus, inputType, isPrevented] of [
    [SEARCH, 'historyUndo', false],
    [LIST, 'historyUndo', true],
    [CELL, 'historyUndo', true],
    [LIST, 'historyRedo', true],
    [LIST, 'insertText', false],
  ] as const) {
    page.activeElement = focus;
    const event = { ...eventOf('', '', '', SEARCH), inputType };
    for (const listener of listeners.beforeinput) listener(event);
    assert.equal(event.isPrevented, isPrevented, inputType);
  }
});

test('a key of an input method is kept from every listener and from the form, in the order of each browser', () => {
  for (const [browser, key, keyCode, isComposing, isTaken] of [
    ['Chromium', 'Enter', 229, true, true],
    ['Chromium on Linux', 'Enter', 13, true, true],
    ['Firefox', 'Process', 229, true, true],
    ['Safari, after compositionend', 'Enter', 229, false, true],
    ['Safari, after compositionend', 'Escape', 229, false, true],
    ['Safari, in the list of words', 'Tab', 229, false, true],
    ['any, in the list of words', 'ArrowDown', 229, true, true],
    ['the next Enter', 'Enter', 13, false, false],
  ] as const) {
    const event = { ...eventOf(key, key, '', CELL), keyCode, isComposing };
    listeners.keydown[0]?.(event);
    assert.equal(event.isStopped, isTaken, `${browser}: ${key}`);
    const isOfForm = ['Enter', 'Escape', 'Tab'].includes(key);
    assert.equal(event.isPrevented, isTaken && isOfForm, `${browser}: ${key}`);
  }
});

test('no listener of a key is outside of the one that leaves keys to input methods', () => {
  for (const file of globSync('page/**/*.ts', { cwd: pathTo('') })) {
    const text = readFileSync(pathTo(file), 'utf8');
    assert.doesNotMatch(text, /'key(?:up|press)'|\bkey(?:up|press):|\bonkey/, file);
    if (file !== 'page/elements/keyboard.ts') assert.doesNotMatch(text, /isComposing|keyCode/, file);
  }
});
