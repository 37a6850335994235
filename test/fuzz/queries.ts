// Owns: what is promised of the query of `GET /books`, its cursors and its words (rules F2 to F9).

import { pageHeaders, readQuery } from '../../src/api/query.ts';
import { fold } from '../../src/books/folding.ts';
import { type Place, readFilter } from '../../src/books/search.ts';
import { indexText, termsOf } from '../../src/books/words.ts';
import { assertSame, type Reader } from './reader.ts';

const TEXTS = ['title', 'author', 'title_starts_with', 'author_starts_with'];
const WORDS = ['q', 'title_contains', 'author_contains'];
const SORTED = [
  ...['title', 'author', 'year', 'id'],
  ...['title_without_article', 'author_last_word', 'year_unknown_last'],
];

const LARGEST = 2n ** 53n - 1n;
/** The least and the largest value of each number. */
const NUMBERS: ReadonlyMap<string, readonly [bigint, bigint]> = new Map([
  ...['year', 'year_gte', 'year_lte'].map((name) => [name, [-LARGEST, LARGEST]] as const),
  ['limit', [1n, 1000n]],
  ['offset', [0n, LARGEST]],
]);

export const query: Reader = (input) => {
  const number = input.choice(256);
  const sent = input.text;
  const found = readQuery(sent, true, undefined);
  const invalid = firstInvalid(sent);
  if ('invalid' in found) {
    // Only the service can read its cursors; it checks them last.
    if (found.invalid !== 'cursor' || invalid !== undefined)
      assertSame(found.invalid, invalid, 'the invalid parameter');
    return;
  }
  assertSame(invalid, undefined, 'the invalid parameter');
  const { search, offset } = found;
  const { order, after } = search;
  const text = sent.slice(0, 9).replaceAll('\0', '');
  const place: Place =
    'key' in order
      ? [number % 2, `${search.words[0]?.word}`, number]
      : order.map(({ field }) => (/^(title|author)/.test(field) ? text : number));
  const next = after ?? place;
  const page = { books: [], next, passed: number, total: undefined, unindexed: 0 };
  const [, link = ''] = pageHeaders(found, page);
  const [, address = ''] = /^<\/books\?([^>]*)>; rel="next"/.exec(link) ?? [];
  const following = readQuery(address, true, undefined);
  if (offset !== undefined && !Number.isSafeInteger(offset + number)) return;
  const where = offset === undefined ? { after: next } : { after: undefined, offset: offset + number };
  const { search: again } = 'invalid' in following ? { search: following } : following;
  assertSame(again, { ...search, ...where }, 'the search of the next page');
  if (after !== undefined && !sent.split('&').includes(address.split('&').at(-1) as string))
    throw new Error(`a cursor that is not one is accepted: ${address}`);
};

/** The name of the first invalid parameter, without a look at cursors (rule F3). */
function firstInvalid(sent: string): string | undefined {
  const seen = new Set<string>();
  for (const part of sent.split('&')) {
    if (part === '') continue;
    const equals = part.indexOf('=');
    const name = equals === -1 ? part : part.slice(0, equals);
    const decoded = decodedBy(name);
    const value = decodedBy(equals === -1 ? '' : part.slice(equals + 1));
    const isOtherPlace =
      (decoded === 'cursor' && seen.has('offset')) || (decoded === 'offset' && seen.has('cursor'));
    const isMalformed = decoded === undefined || value === undefined;
    if (isMalformed || seen.has(decoded) || isOtherPlace || !isValid(decoded, value))
      return name.slice(0, 64);
    seen.add(decoded);
  }
  return undefined;
}

/** @returns undefined if it is not UTF-8, percent-encoded. */
function decodedBy(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

function isValid(name: string, value: string): boolean {
  if (name === 'cursor') return true;
  const [least, most] = NUMBERS.get(name) ?? [];
  if (least !== undefined && most !== undefined) {
    const isNumber = (least < 0n ? /^-?\d{1,16}$/ : /^\d{1,16}$/).test(value);
    return isNumber && least <= BigInt(value) && BigInt(value) <= most;
  }
  if (name === 'sort') {
    const fields = value.split(',').map((field) => field.replace(/^[-+ ]/, ''));
    return new Set(fields).size === fields.length && fields.every((field) => SORTED.includes(field));
  }
  if (name === 'event') {
    const [first = '', last = first, ...more] = value.split('-');
    const isNumber = (text: string) => /^[1-9]\d{0,15}$/.test(text) && Number.isSafeInteger(Number(text));
    return isNumber(first) && isNumber(last) && more.length === 0 && Number(first) <= Number(last);
  }
  const terms = WORDS.includes(name) ? termsOf(value) : [];
  const isShort = terms.some(({ word, isPrefix }) => isPrefix && [...word].length < 3);
  const isKnown = WORDS.includes(name) || TEXTS.includes(name);
  return isKnown && [...value].length <= 1000 && terms.length <= 16 && !isShort;
}

/** The filters whose words or texts a title has itself. */
const OWN = ['q', 'title_contains', 'title', 'title_starts_with'];

export const words: Reader = ({ content }) => {
  const title = content.toString();
  const { key, words } = indexText(title);
  assertSame(fold(fold(title)), fold(title), 'the folded text, folded again');
  // A key that is cut may end with a space.
  if (!key.startsWith('#')) assertSame(indexText(key).key, key.trimEnd(), 'the key of the key');
  if ([...key].length > 250) throw new Error('the key is too long');
  for (const word of words.split(' '))
    if ([...word].length > 64) throw new Error(`a word is too long: ${word}`);
  for (const name of OWN) {
    const filters = readFilter(name, title);
    const holds =
      filters?.words.every(({ word, isPrefix }) => ` ${words} `.includes(` ${word}${isPrefix ? '' : ' '}`)) &&
      filters.conditions.every((condition) => {
        if (!('field' in condition)) return false;
        const { operator, value } = condition;
        const order = Buffer.compare(Buffer.from(key), Buffer.from(`${value}`));
        return operator === '=' ? order === 0 : operator === '<' ? order < 0 : order >= 0;
      });
    if (holds === false)
      throw new Error(`${name} does not find a book by its own title ${JSON.stringify(title)}`);
  }
};
