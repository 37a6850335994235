// Owns: what is promised of the query of `GET /books`, its cursors and its words (rules F2 to F9).

import { pageHeaders, readQuery } from '../../src/api/query.ts';
import { type FilterName, matcher, type Place, readFilter } from '../../src/books/search.ts';
import { fold, indexText, termsOf } from '../../src/books/words.ts';
import { assertSame, type Reader } from './reader.ts';

const TEXTS = ['title', 'author', 'title_starts_with', 'author_starts_with'];
const WORDS = ['q', 'title_contains', 'author_contains'];
const YEARS = ['year', 'year_gte', 'year_lte'];
const NAMES = [...TEXTS, ...WORDS, ...YEARS, 'sort', 'limit', 'cursor', 'offset'];

const cursor = (...content: unknown[]) => Buffer.from(JSON.stringify(content)).toString('base64url');

/** Places in every order, after which a page may begin. */
const PLACES: Readonly<Record<string, (text: string, number: number) => Place>> = {
  title: (text, number) => [text, number],
  author: (text, number) => [text, number],
  year: (_, number) => [number, number],
  id: (_, number) => [number],
};

export const query: Reader = {
  seeds: [
    '\0q=harr*+potter&year_gte=-5&sort=-year%2Ctitle&limit=10',
    '\0q=a+b1+c2+d3+e4+f5+g6+h7+i8+j9+k1+l2+m3+n4+o5+p6+q7',
    '\x01title=%C3%A9&author_starts_with=J.+R.+R.&offset=5',
    `\x02sort=id&cursor=${cursor('id', 5)}`,
    `\x03q=a&cursor=${cursor('relevance', 1, 'a b', 9)}`,
    `\x04sort=-title,+year&limit=1000&cursor=${cursor('-title,year,id', 'x', -5, 2)}`,
  ],
  words: [
    ...NAMES.map((name) => `&${name}=`),
    ...['%C3%A9', '%00', '%E0%A4', '%ED%A0%80', '-title', ',', '+', '*', '%2A', '%EF%BB%BF', '<">'],
    ...[cursor('id', 7), cursor('relevance', 0, '', 1), cursor('year,id', 1, 2), cursor('title,id', 'x', 3)],
  ],
  check(input) {
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
    const next: Place =
      after ??
      ('key' in order
        ? [number % 3, `${search.words[0]?.word}`, number]
        : order.flatMap(
            ({ field }) => PLACES[field]?.(sent.slice(0, 9).replaceAll('\0', ''), number).slice(0, 1) ?? [],
          ));
    const page = { books: [], next, passed: number, total: undefined, unindexed: 0 };
    const [, link = ''] = pageHeaders(found, page);
    const [, address = ''] = /^<\/books\?([^>]*)>; rel="next"/.exec(link) ?? [];
    const following = readQuery(address, true, undefined);
    if (offset !== undefined && !Number.isSafeInteger(offset + number)) return;
    const place = offset === undefined ? { after: next } : { after: undefined, offset: offset + number };
    const { search: again } = 'invalid' in following ? { search: following } : following;
    assertSame(again, { ...search, ...place }, 'the search of the next page');
    if (after !== undefined && !sent.split('&').includes(address.split('&').at(-1) as string))
      throw new Error(`a cursor that is not one is accepted: ${address}`);
  },
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
    if (decoded === undefined || value === undefined || seen.has(decoded) || isOtherPlace) return cut(name);
    if (!isValid(decoded, value)) return cut(name);
    seen.add(decoded);
  }
  return undefined;
}

function cut(name: string): string {
  return name.slice(0, 64);
}

/** Percent-escapes as bytes, and the bytes as UTF-8; other characters as they are, as Node.js has them. */
function decodedBy(text: string): string | undefined {
  let isInvalid = false;
  const decoded = text.replaceAll('+', ' ').replaceAll(/(?:%[0-9a-f]{2})+|%/gi, (escapes) => {
    const bytes = Buffer.from(escapes.replaceAll('%', ''), 'hex');
    isInvalid ||= escapes === '%';
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch {
      isInvalid = true;
      return '';
    }
  });
  return isInvalid ? undefined : decoded;
}

function isValid(name: string, value: string): boolean {
  if (TEXTS.includes(name)) return [...value].length <= 1000;
  if (WORDS.includes(name)) {
    const terms = termsOf(value);
    const isShort = terms.some(({ word, isPrefix }) => isPrefix && [...word].length < 3);
    return [...value].length <= 1000 && terms.length <= 16 && !isShort;
  }
  if (YEARS.includes(name))
    return /^-?\d{1,16}$/.test(value) && isWithin(value, 1n - 2n ** 53n, 2n ** 53n - 1n);
  if (name === 'limit') return /^\d{1,16}$/.test(value) && isWithin(value, 1n, 1000n);
  if (name === 'offset') return /^\d{1,16}$/.test(value) && isWithin(value, 0n, 2n ** 53n - 1n);
  if (name === 'cursor') return true;
  const fields = value.split(',').map((field) => field.replace(/^[-+ ]/, ''));
  const known = ['title', 'author', 'year', 'id'];
  return (
    name === 'sort' &&
    new Set(fields).size === fields.length &&
    fields.every((field) => known.includes(field))
  );
}

function isWithin(digits: string, least: bigint, most: bigint): boolean {
  const value = BigInt(digits);
  return value >= least && value <= most;
}

/** The filters whose words or texts a title has itself. */
const OWN: readonly FilterName[] = ['q', 'title_contains', 'title', 'title_starts_with'];

export const words: Reader = {
  seeds: [
    "L'\xc3\x89tranger J. R. R. Tolkien",
    '\xe7\x99\xbe\xe5\xb9\xb4\xe5\xad\xa4\xe7\x8b\xac ABC',
    '??? \xe2\x84\xa2 \xf0\x9f\x99\x82 \xef\xac\x81ne Stra\xc3\x9fe',
    `${'a'.repeat(49)} `.repeat(6),
    'e\xcc\x81 \xe0\xa4\xb9\xe0\xa4\xbf\xe0\xa4\xa8\xe0\xa5\x8d\xe0\xa4\xa6\xe0\xa5\x80 \xe0\xb9\x84\xe0\xb8\x97\xe0\xb8\xa2',
  ],
  words: [
    "'",
    '. ',
    'A. ',
    '* ',
    '\xe2\x80\x99',
    '\xcc\x88',
    '\xc4\xb0',
    '\xcf\x82',
    '\xe1\xba\x9e',
    '\xe3\x82\x99',
    '\xc2\xad',
  ],
  check({ content }) {
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
      if (filters !== undefined && !matcher(filters)({ title, author: '', year: 0 }))
        throw new Error(`${name} does not find a book by its own title ${JSON.stringify(title)}`);
    }
  },
};
