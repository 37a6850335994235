// Owns: how books and numbers are put into words, and which parts of a text were searched for.

import type { Book, NewBook } from '../../client/src/book.ts';
import { type BookFields, FIELD_NAMES } from '../../src/books/book.ts';
import { APOSTROPHES, fold, QUOTES } from '../../src/books/folding.ts';
import type { Term } from '../../src/books/words.ts';
import { ELEMENTS } from '../texts/elements.ts';
import { yearText } from '../texts/english.ts';
import { make } from './dom.ts';

export type Field = keyof BookFields;

export const FIELDS: readonly Field[] = FIELD_NAMES;

/** One value for each field. */
export function byField<Value>(make: (field: Field) => Value): Readonly<Record<Field, Value>> {
  return Object.fromEntries(FIELDS.map((field) => [field, make(field)])) as Record<Field, Value>;
}

/** The value of a field as it is shown and edited, in one line: browsers drop line ends from what is edited. */
export function fieldText(book: BookFields, field: Field): string {
  const value = book[field];
  return typeof value === 'number' ? yearText(value) : value.replace(/[\r\n]+/g, ' ');
}

/** A text without the blanks around it; '' if nothing of it can be seen. */
export function trimmed(text: string): string {
  return /[^\s\p{Z}\p{Cc}\p{Cf}]/u.test(text) ? text.trim() : '';
}

/** What a book is called in a sentence. */
export function titleOf(book: Book): string {
  return book.title || bookText(book);
}

/** `Emma, Jane Austen, 1815`, without the parts that are unknown. */
export function bookText({ title = '', author = '', year = 0 }: Book | NewBook): string {
  return [title || ELEMENTS.noValues.title, author, yearText(year)].filter((part) => part !== '').join(', ');
}

/** A hue in degrees that stays with an author. */
export function hueOf(author: string): number {
  let digest = 0x811c9dc5; // FNV-1a
  for (let at = 0; at < author.length; at += 1)
    digest = Math.imul(digest ^ author.charCodeAt(at), 0x01000193);
  return (digest >>> 0) % 360;
}

const LETTERS = String.raw`[\p{L}\p{N}\p{M}\p{Cf}]+`;
const WORD = new RegExp(`${LETTERS}(?:[${APOSTROPHES}${QUOTES}]+${LETTERS})*`, 'gu');

/**
 * Fills an element with a text in which words are marked.
 * @param wanted the words of a search, as the service compares them.
 */
export function fillMarked(element: Element, text: string, wanted: readonly Term[]): void {
  if (wanted.length === 0) {
    element.textContent = text;
    return;
  }
  const parts: (Node | string)[] = [];
  let end = 0;
  for (const { 0: word, index } of text.matchAll(WORD)) {
    const [from, to] = foundIn(word, wanted);
    if (to === 0) continue;
    parts.push(text.slice(end, index + from), make('mark', {}, word.slice(from, to)));
    end = index + to;
  }
  element.replaceChildren(...parts, text.slice(end));
}

/** The part of a word that was searched for; 0 to 0 if it was not. */
function foundIn(word: string, wanted: readonly Term[]): readonly [from: number, to: number] {
  const folded = fold(word);
  const parts = folded.split(/['"]+/);
  const joined = parts.join('');
  // Letters that fold to several, and joined parts, would shift the end of the mark.
  const isShifted = joined.length !== word.length;
  for (const { word: sought, isPrefix } of wanted) {
    if (joined === sought || parts.includes(sought)) return [0, word.length];
    if (isPrefix && [joined, ...parts].some((one) => one.startsWith(sought)))
      return [0, isShifted ? word.length : sought.length];
    const inside = folded.indexOf(sought);
    if (inside >= 0 && IN_RUN.test(sought))
      return isShifted ? [0, word.length] : [inside, inside + sought.length];
  }
  return [0, 0];
}

/** Writings without spaces between words: two neighbouring characters are a word (rule F7). */
const IN_RUN =
  /^[\p{scx=Hani}\p{scx=Hira}\p{scx=Kana}\p{sc=Hang}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]+$/u;
