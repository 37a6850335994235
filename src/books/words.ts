// Owns: what a word and a key is when books are searched and sorted (rules F7 to F9): one definition, whose results every
// store indexes as they are.
// Does not: depend on a language. `New York` comes before `Newark`, wherever the reader lives.

import { ASCII, fold } from './folding.ts';

/** UTF-16 units of a text that are indexed; the rest cannot be found. */
export const INDEXED_UNITS = 2000;

/** Of what folding makes of them: a ligature may become 18 letters. */
const FOLDED_UNITS = 2 * INDEXED_UNITS;

/** Code points after which a word and a key are cut. */
const WORD_POINTS = 64;
const KEY_POINTS = 250;

/** Signs that stand for a text without letters and digits. */
const SIGNS = 10;
const INVISIBLE = /[\p{Cf}\p{DI}]/gu;

/** Characters of scripts without spaces between words, and of Korean, whose words carry endings. */
const UNSPACED = String.raw`[[\p{scx=Hani}\p{scx=Hira}\p{scx=Kana}\p{sc=Hang}\p{sc=Bopo}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]&&[\p{L}\p{N}\p{M}]]`;
/** Between the parts of a foreign name, where some write nothing: `ガルシア＝マルケス`. */
const NAME_GAP = /^[・·‧•=゠]$/;
const SPACED = `[[\\p{L}\\p{N}\\p{M}]--${UNSPACED}]`;
const TOKEN = new RegExp(`(?<run>${UNSPACED}+)|${SPACED}+(?:['"]+${SPACED}+)*`, 'gv');
const ASCII_TOKEN = /[a-z0-9]+(?:['"]+[a-z0-9]+)*/g;

/** An apostrophe, or a quotation mark that stands for one: `צה"ל`. */
const WITHIN_WORD = /['"]+/;

/** Between two initials. */
const INITIALS_GAP = /^[. ]*$/;

// Most texts are words with spaces and signs between them: their words are those of their key.
const MORE_THAN_WORDS = /'|[a-z0-9]"+[a-z0-9]|(?:^|[^a-z0-9])[a-z](?![a-z0-9])|[a-z0-9]{65}/;
const BETWEEN_WORDS = /[^a-z0-9]+/g;

/** A text as it is indexed. */
export interface IndexedText {
  /** The form used to sort and compare texts: its parts with one space between. */
  readonly key: string;
  /** Every word that finds it, with one space between, each at least once. */
  readonly words: string;
}

/** A word of a search. */
export interface Term {
  readonly word: string;
  /** Every word that begins so is searched for. */
  readonly isPrefix: boolean;
}

/** A word as it is written: `harry`; `o'brien`, of two parts; `J. R. R.`, of three; `ガルシア＝マルケス`. */
interface Token {
  readonly parts: string[];
  /** Whether it is a run of a script without spaces. */
  readonly isRun: boolean;
  readonly isStarred: boolean;
}

/** @param text a title or an author. */
export function indexText(text: string): IndexedText {
  const folded = start(fold(start(text, INDEXED_UNITS)), FOLDED_UNITS);
  if (folded.length <= KEY_POINTS && ASCII.test(folded) && !MORE_THAN_WORDS.test(folded)) {
    const key = folded.replace(BETWEEN_WORDS, ' ').trim();
    if (key !== '') return { key, words: key };
  }
  const key: string[] = [];
  const words = new Set<string>();
  for (const { parts, isRun } of tokensOf(folded)) {
    key.push(...parts);
    if (isRun) {
      let before = '';
      for (const run of parts) {
        for (const point of run) {
          words.add(point);
          if (before !== '') words.add(before + point);
          before = point;
        }
      }
    } else {
      for (const part of parts) words.add(part);
      words.add(joined(parts));
    }
  }
  if (key.length === 0) {
    const signs = signsOf(folded, text);
    return { key: signs, words: signs };
  }
  return { key: cut(key.join(' '), KEY_POINTS), words: [...words].join(' ') };
}

/** The words of a search; a text has to have all of them. */
export function termsOf(query: string): readonly Term[] {
  const folded = fold(query);
  const terms = new Map<string, Term>();
  const add = (word: string, isPrefix = false) =>
    terms.set(`${word}${isPrefix ? '*' : ''}`, { word, isPrefix });
  for (const { parts, isRun, isStarred } of tokensOf(folded)) {
    if (!isRun) add(joined(parts), isStarred);
    else for (const run of parts) for (const word of pairsOf(run)) add(word);
  }
  const signs = terms.size === 0 ? signsOf(folded, query) : '';
  if (signs !== '') add(signs);
  return [...terms.values()];
}

/**
 * The last word of a text as it is written: `obrien` of `O'Brien`, two parts of its key, after `position` others.
 * @param leftOut words that are no last word.
 * @returns undefined for a text without such a word.
 */
export function lastToken(
  text: string,
  leftOut: ReadonlySet<string>,
): { word: string; position: number; parts: number } | undefined {
  const tokens = tokensOf(start(fold(start(text, INDEXED_UNITS)), FOLDED_UNITS));
  const at = tokens.findLastIndex(({ parts }) => !leftOut.has(joined(parts)));
  const token = tokens[at];
  if (token === undefined) return undefined;
  const { parts, isRun } = token;
  const before = tokens.slice(0, at).reduce((sum, { parts }) => sum + parts.length, 0);
  if (!isRun) return { word: joined(parts), position: before, parts: parts.length };
  return { word: cut(parts.at(-1) as string, WORD_POINTS), position: before + parts.length - 1, parts: 1 };
}

function tokensOf(folded: string): Token[] {
  const tokens: Token[] = [];
  let initialsEnd: number | undefined; // where the latest token ends, if it is an initial
  let runEnd: number | undefined;
  for (const match of folded.matchAll(ASCII.test(folded) ? ASCII_TOKEN : TOKEN)) {
    const [text] = match;
    const isRun = match.groups?.run !== undefined;
    const end = match.index + text.length;
    const isStarred = folded[end] === '*';
    const isInitial = !isRun && !isStarred && text.length === 1 && text > '9';
    const follows = initialsEnd !== undefined && INITIALS_GAP.test(folded.slice(initialsEnd, match.index));
    const isNamePart = isRun && runEnd === match.index - 1 && NAME_GAP.test(folded.charAt(runEnd));
    if ((isInitial && follows) || isNamePart) {
      tokens.at(-1)?.parts.push(text);
    } else {
      const parts = isRun ? [text] : text.split(WITHIN_WORD).map((part) => cut(part, WORD_POINTS));
      tokens.push({ parts, isRun, isStarred });
    }
    initialsEnd = isInitial ? end : undefined;
    runEnd = isRun ? end : undefined;
  }
  return tokens;
}

function joined(parts: readonly string[]): string {
  return cut(parts.join(''), WORD_POINTS);
}

/** Each two neighbours of a run; of a single character, itself. */
function pairsOf(run: string): string[] {
  const points = [...run];
  if (points.length === 1) return points;
  return points.slice(1).map((point, position) => `${points[position]}${point}`);
}

/** The word for a text without letters and digits; empty for one that shows nothing. An accent without a letter is a sign. */
function signsOf(folded: string, text: string): string {
  const shown = folded.trim() === '' ? text.replace(INVISIBLE, '') : folded;
  const signs = [...shown.replace(/\s+/gu, '')].slice(0, SIGNS);
  if (signs.length === 0) return '';
  return `#${signs.map((sign) => (sign.codePointAt(0) as number).toString(16).padStart(6, '0')).join('')}`;
}

function start(text: string, units: number): string {
  return text.length > units ? text.slice(0, units).toWellFormed() : text;
}

function cut(text: string, points: number): string {
  return text.length <= points ? text : [...text].slice(0, points).join('');
}
