// Owns: where one record of a JSON text ends and the next begins: the elements of an array, or lines. It does not parse
// the records.
// Does not: accept an array that is cut off, or has anything but commas between its elements.

import { OperatorError } from '../operator-error.ts';
import type { TextInput } from './text-input.ts';

export interface JsonRecord {
  readonly text: string;
  /** The line where it begins. */
  readonly line: number;
  /** Whether it is nested so deeply that parsing it could take any amount of memory. */
  readonly isDeep: boolean;
}

/** No book is nested more deeply. JSON.parse would take a hundred bytes for each bracket. */
const DEEPEST = 1000;

/** Only lines with more characters are checked for nesting: a shorter one cannot be nested deeply enough to do harm. */
const LONG_LINE = 64 * 1024;

const NOT_SPACE = /[^ \t\r\n]/g;
/** The end of a number, a word, or any other text. */
const SCALAR_END = /[,\]}\s]/g;
const KEY = /"(?:[^"\\]|\\.)*"\s*:/y;

/** The elements of an array, or the values of an object: LibraryThing's export is an object whose keys are ids. */
export class ArraySplitter {
  #close = '';
  #isFirst = true;
  /** Whether the end has been read. */
  ended = false;

  /**
   * Takes the next element from the input.
   * @returns undefined when it needs more text, or there is no more.
   * @throws OperatorError when the array is malformed.
   */
  next(input: TextInput): JsonRecord | undefined {
    const { text } = input;
    let at = skipSpace(text, input.at);
    if (this.ended) {
      if (at < text.length) this.#fail(input, at, 'there is text after the end of the array');
      return undefined;
    }
    if (this.#isFirst && at < text.length) {
      if (text[at] !== '[' && text[at] !== '{') this.#fail(input, at, 'an array should begin here, with [');
      this.#close = text[at] === '[' ? ']' : '}';
      // The bracket stays in the input until an element is whole, since the input may go back to its beginning.
      at = skipSpace(text, at + 1);
    }
    const begin = at;
    if (at === text.length) return this.#wait(input, begin);
    if (text[at] === this.#close) {
      this.ended = true;
      input.advance(at + 1);
      return this.next(input); // nothing may follow
    }
    if (!this.#isFirst) {
      if (text[at] !== ',')
        this.#fail(input, at, `after an element, a comma or ${this.#close} should follow`);
      at = skipSpace(text, at + 1);
    }
    if (this.#close === '}' && at < text.length) {
      if (!input.ended && text.indexOf(':', at) === -1) return undefined;
      KEY.lastIndex = at;
      const isKey = KEY.test(text);
      if (!isKey && input.ended) this.#fail(input, at, 'a key should follow');
      at = isKey ? skipSpace(text, KEY.lastIndex) : text.length;
    }
    if (at === text.length) return this.#wait(input, begin);
    const { end, deepest } = findEnd(text, at);
    if (end === at) this.#fail(input, at, 'an element should follow');
    // A value that reaches the end of the text may be incomplete.
    if (end === -1 || (end === text.length && !input.ended)) return this.#wait(input, begin);
    input.advance(at);
    const { line } = input;
    input.advance(end);
    this.#isFirst = false;
    return { text: text.slice(at, end), line, isDeep: deepest > DEEPEST };
  }

  /** @param begin of the next element. */
  #wait(input: TextInput, begin: number): undefined {
    if (!input.ended) return undefined;
    if (this.#close === '') throw new OperatorError('The file is empty: it has no array.');
    input.advance(begin);
    throw new OperatorError(
      `The array is incomplete: the text that begins in line ${input.line} is cut off at the end of the file.`,
    );
  }

  #fail(input: TextInput, at: number, fault: string): never {
    input.advance(at);
    throw new OperatorError(`The array is malformed in line ${input.line}: ${fault}.`);
  }
}

/** The lines of a file that are not blank. */
export class LineSplitter {
  /** Always false, since lines end only with the input. */
  readonly ended = false;

  /** Takes the next line from the input; undefined when it needs more text, or there is no more. */
  next(input: TextInput): JsonRecord | undefined {
    const { text } = input;
    const start = skipSpace(text, input.at);
    const end = lineEnd(text, start);
    if (end === start || (end === text.length && !input.ended)) return undefined;
    input.advance(start);
    const { line } = input;
    input.advance(end);
    const record = text.slice(start, end);
    return { text: record, line, isDeep: end - start > LONG_LINE && findEnd(text, start).deepest > DEEPEST };
  }
}

function lineEnd(text: string, start: number): number {
  for (let at = start; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 10 || code === 13) return at;
  }
  return text.length;
}

function skipSpace(text: string, start: number): number {
  NOT_SPACE.lastIndex = start;
  return NOT_SPACE.exec(text)?.index ?? text.length;
}

/** Where a JSON value ends (-1 if not in this text), and how deeply it is nested. Its brackets need not match. */
function findEnd(text: string, start: number): { end: number; deepest: number } {
  let depth = 0;
  let deepest = 0;
  let at = start;
  do {
    switch (text.charCodeAt(at)) {
      case 0x22: // "
        at = stringEnd(text, at);
        if (at === -1) return { end: -1, deepest };
        break;
      case 0x5b: // [
      case 0x7b: // {
        depth += 1;
        if (depth > deepest) deepest = depth;
        at += 1;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        if (depth === 0) return { end: at, deepest };
        depth -= 1;
        at += 1;
        break;
      default:
        if (depth === 0) return { end: scalarEnd(text, at), deepest };
        at += 1;
    }
  } while (depth > 0 && at < text.length);
  return { end: depth > 0 ? -1 : at, deepest };
}

function scalarEnd(text: string, start: number): number {
  SCALAR_END.lastIndex = start;
  return SCALAR_END.exec(text)?.index ?? text.length;
}

/** The end of the string whose opening quote is at `start`; -1 if it is not in this text. */
function stringEnd(text: string, start: number): number {
  let quote = text.indexOf('"', start + 1);
  while (quote !== -1) {
    let backslashes = 0;
    while (text.charCodeAt(quote - 1 - backslashes) === 0x5c) backslashes += 1;
    if (backslashes % 2 === 0) return quote + 1;
    quote = text.indexOf('"', quote + 1);
  }
  return -1;
}
