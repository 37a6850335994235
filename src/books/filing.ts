// Owns: the words that do not count when books are filed by title or author (rule F9).
// Does not: know the language of a title: *Die Hard* is filed under `hard`.

import { lastToken } from './words.ts';

/**
 * Articles, folded. Without those that begin as many titles of another language: `i` (Italian: *I, Robot*), `as` (Portuguese:
 * *As You Like It*).
 */
const ARTICLES_OF = {
  English: 'the a an',
  German: 'der die das ein eine',
  French: 'le la les l un une',
  Spanish: 'el la los las un una',
  Portuguese: 'o a os um uma',
  Italian: 'il lo la gli le un uno una',
  Dutch: 'de het een',
  Hungarian: 'a az egy',
  Swedish: 'en ett den det de',
  'Danish and Norwegian': 'en et ei den det de',
} as const;

export const ARTICLES: readonly string[] = [
  ...new Set(Object.values(ARTICLES_OF).flatMap((words) => words.split(' '))),
].sort();
const KNOWN = new Set(ARTICLES);

/** @returns the key of a title without an article at its beginning, if a word follows. */
export function withoutArticle(key: string): string {
  const end = key.indexOf(' ');
  return KNOWN.has(key.slice(0, Math.max(0, end))) ? key.slice(end + 1) : key;
}

/** What comes between the first author and the next one. */
const NEXT_AUTHOR = /[,;&，；＆、،؛]|\s(?:and|und|et|y|e)\s/;
/** After the name of a person. */
const SUFFIXES = new Set(['jr', 'sr', 'ii', 'iii', 'iv']);

/**
 * @param key of the author.
 * @returns the last word of the first author, then the other words of the author.
 */
export function filedAuthor(author: string, key: string): string {
  const [first = ''] = author.split(NEXT_AUTHOR, 1);
  const last = key.slice(key.lastIndexOf(' ') + 1);
  const isPlain = first === author && author.toLowerCase() === key && last.length > 1 && !SUFFIXES.has(last);
  if (isPlain) return lastWordFirst(key); // as most are; five times as fast
  const found = lastToken(first, SUFFIXES) ?? lastToken(author, SUFFIXES);
  if (found === undefined) return lastWordFirst(key);
  return [found.word, ...key.split(' ').toSpliced(found.position, found.parts)].join(' ');
}

/** As most authors are filed: `suzanne collins` as `collins suzanne`. */
export function lastWordFirst(key: string): string {
  const last = key.lastIndexOf(' ') + 1;
  return `${key.slice(last)} ${key.slice(0, last)}`.trim();
}
