// Owns: what a search must find, by brute force: books whose texts are made of parts with known keys and words, random
// searches for them, and the definition of rules F2 to F10. It spells out what the service computes.

import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Book } from '../../conformance/service.ts';
import type { Client } from './client.ts';

/** A part of a text, with its part of the text's key, and with its words. */
interface Part {
  readonly text: string;
  readonly key: string;
  readonly words: readonly string[];
}

const PARTS: readonly Part[] = [
  { text: 'The', key: 'the', words: ['the'] },
  { text: 'the', key: 'the', words: ['the'] },
  { text: 'HARRY', key: 'harry', words: ['harry'] },
  { text: 'Potter,', key: 'potter', words: ['potter'] },
  { text: 'Márquez', key: 'marquez', words: ['marquez'] },
  { text: 'Ma\u0301rquez', key: 'marquez', words: ['marquez'] },
  { text: 'L’Étranger', key: 'l etranger', words: ['l', 'etranger', 'letranger'] },
  { text: "O'Brien", key: 'o brien', words: ['o', 'brien', 'obrien'] },
  { text: '(J.R.R.)', key: 'j r r', words: ['j', 'r', 'jrr'] },
  { text: '(J. K.)', key: 'j k', words: ['j', 'k', 'jk'] },
  { text: 'Straße', key: 'strasse', words: ['strasse'] },
  { text: 'ŁÓDŹ', key: 'lodz', words: ['lodz'] },
  { text: 'İzmir', key: 'izmir', words: ['izmir'] },
  { text: 'ΟΔΟΣ', key: 'οδοσ', words: ['οδοσ'] },
  { text: 'οδός', key: 'οδοσ', words: ['οδοσ'] },
  { text: 'Ёлка', key: 'елка', words: ['елка'] },
  { text: 'война', key: 'война', words: ['война'] },
  { text: 'أَلْف', key: 'الف', words: ['الف'] },
  { text: '百年孤独', key: '百年孤独', words: ['百', '年', '孤', '独', '百年', '年孤', '孤独'] },
  { text: '𠮷野', key: '𠮷野', words: ['𠮷', '野', '𠮷野'] },
  { text: '﨎', key: '﨎', words: ['﨎'] },
  { text: '𐐀', key: '𐐨', words: ['𐐨'] },
  { text: 'ﬁne', key: 'fine', words: ['fine'] },
  { text: 'ＦＩＮＥ', key: 'fine', words: ['fine'] },
  { text: 'New', key: 'new', words: ['new'] },
  { text: 'York', key: 'york', words: ['york'] },
  { text: 'Newark', key: 'newark', words: ['newark'] },
  { text: '10', key: '10', words: ['10'] },
  { text: '9', key: '9', words: ['9'] },
  { text: '&', key: '', words: [] },
  { text: '%_\\', key: '', words: [] },
];

/** Texts without letters and digits: the code points of their signs are their only word. */
const SIGNS: readonly Part[] = [
  { text: '', key: '', words: [] },
  { text: ' ', key: '', words: [] },
  { text: '???', key: '#00003f00003f00003f', words: ['#00003f00003f00003f'] },
  { text: '? ! ', key: '#00003f000021', words: ['#00003f000021'] },
  { text: '🙂', key: '#01f642', words: ['#01f642'] },
];

/** A word of a search, and the words that it is to find: those that begin so if it ends with `*`. */
const WANTED: readonly (readonly [text: string, word: string])[] = [
  ['the', 'the'],
  ['harry', 'harry'],
  ['Harr*', 'harr*'],
  ['pot*', 'pot*'],
  ['marquez', 'marquez'],
  ['MÁRQUEZ', 'marquez'],
  ['letranger', 'letranger'],
  ["l'etranger", 'letranger'],
  ['étranger', 'etranger'],
  ['obr*', 'obr*'],
  ['jrr', 'jrr'],
  ['J.R.R.', 'jrr'],
  ['j k', 'jk'],
  ['r', 'r'],
  ['strasse', 'strasse'],
  ['lodz', 'lodz'],
  ['οδοσ', 'οδοσ'],
  ['елка', 'елка'],
  ['孤独', '孤独'],
  ['年', '年'],
  ['野', '野'],
  ['﨎', '﨎'],
  ['fine', 'fine'],
  ['new*', 'new*'],
  ['9', '9'],
  ['nowhere', 'nowhere'],
];

type Field = 'title' | 'author' | 'year' | 'id';
const FIELDS: readonly Field[] = ['title', 'author', 'year', 'id'];

/** The text with `The` before it, unless it has only signs. */
export function afterThe(part: Part): Part {
  const { text, key, words } = part;
  if (key === '' || key.startsWith('#')) return part;
  return { text: `The ${text}`, key: `the ${key}`, words: ['the', ...words] };
}

/** A book as the oracle sees it. */
export interface Known extends Book {
  readonly keys: Readonly<Record<'title' | 'author', string>>;
  /** The UTF-8 bytes of the keys, one character each: JavaScript compares texts by UTF-16 units. */
  readonly bytes: Readonly<Record<'title' | 'author', string>>;
  readonly words: Readonly<Record<'title' | 'author', readonly string[]>>;
}

const part = fc.constantFrom(...PARTS);
const text = fc.oneof(
  { weight: 9, arbitrary: fc.array(part, { minLength: 1, maxLength: 4 }).map(joined) },
  { weight: 1, arbitrary: fc.constantFrom(...SIGNS) },
);
const year = fc.constantFrom<number>(-720, -1, 0, 1605, 1967, 2024, 9007199254740991);
/** A book to be stored. */
export const newBook = fc.record({ title: text, author: text, year });
export type NewBook = typeof newBook extends fc.Arbitrary<infer Value> ? Value : never;
const wanted = fc.array(fc.constantFrom(...WANTED), { minLength: 1, maxLength: 2 });
const order = fc
  .shuffledSubarray([...FIELDS], { minLength: 1 })
  .chain((fields) =>
    fc.tuple(...fields.map((field) => fc.boolean().map((isDescending) => ({ field, isDescending })))),
  );
const search = fc.record(
  {
    q: wanted,
    title_contains: wanted,
    author_contains: wanted,
    title: text,
    author: text,
    title_starts_with: text,
    author_starts_with: text,
    year,
    year_gte: year,
    year_lte: year,
    sort: order,
  },
  { requiredKeys: [] },
);
export type Search = typeof search extends fc.Arbitrary<infer Value> ? Value : never;

const FILTERS = Object.keys({
  q: 0,
  title_contains: 0,
  author_contains: 0,
  title: 0,
  author: 0,
  title_starts_with: 0,
  author_starts_with: 0,
  year: 0,
  year_gte: 0,
  year_lte: 0,
} satisfies Record<Exclude<keyof Search, 'sort'>, 0>);

/** A search with two filters at most, so that most searches find something. */
export const fewFilters = fc.tuple(search, fc.subarray(FILTERS, { maxLength: 2 })).map(([all, kept]) => {
  const entries = Object.entries(all).filter(([name]) => name === 'sort' || kept.includes(name));
  return Object.fromEntries(entries) as Search;
});

/** Searches that find many books, in every order. */
export const COMMON_SEARCHES: readonly Search[] = (
  [
    undefined,
    [['title', false]],
    [['title', true]],
    [
      ['author', false],
      ['title', false],
    ],
    [
      ['year', true],
      ['title', false],
    ],
    [['id', true]],
  ] as const
).flatMap((order) => {
  const sort = order?.map(([field, isDescending]) => ({ field, isDescending }));
  const filters: Search[] = [
    {},
    { q: [['the', 'the']] },
    { q: [['Harr*', 'harr*']] },
    {
      q: [
        ['the', 'the'],
        ['fine', 'fine'],
      ],
    },
    { title_contains: [['the', 'the']], year_gte: 0 },
    { year_gte: -1, year_lte: 2024 },
    { title_starts_with: { text: 'the', key: 'the', words: [] } },
  ];
  return filters.map((filters) => ({ ...filters, ...(sort && { sort }) }));
});

function joined(parts: readonly Part[]): Part {
  const isBare = parts.every(({ key }) => key === '');
  const signs = parts.map(({ text }) => text).join('');
  const key = isBare
    ? `#${[...signs]
        .slice(0, 10)
        .map((sign) => (sign.codePointAt(0) as number).toString(16).padStart(6, '0'))
        .join('')}`
    : parts
        .map(({ key }) => key)
        .filter((key) => key !== '')
        .join(' ');
  return {
    text: parts.map(({ text }) => text).join(' '),
    key,
    words: isBare ? [key] : parts.flatMap(({ words }) => words),
  };
}

/** The books that a search finds, in its order (rules F2, F7 to F10). */
export function found(books: readonly Known[], search: Search): readonly Known[] {
  const has = (words: readonly string[], wanted: readonly (readonly [string, string])[] = []) =>
    wanted.every(([, word]) =>
      word.endsWith('*') ? words.some((own) => own.startsWith(word.slice(0, -1))) : words.includes(word),
    );
  const { q, sort } = search;
  const matching = inOrder(books, sort ?? []).filter(({ keys, words, year }) => {
    return (
      (q === undefined || has([...words.title, ...words.author], q)) &&
      has(words.title, search.title_contains) &&
      has(words.author, search.author_contains) &&
      keys.title === (search.title?.key ?? keys.title) &&
      keys.author === (search.author?.key ?? keys.author) &&
      keys.title.startsWith(search.title_starts_with?.key ?? '') &&
      keys.author.startsWith(search.author_starts_with?.key ?? '') &&
      year === (search.year ?? year) &&
      year >= (search.year_gte ?? year) &&
      year <= (search.year_lte ?? year)
    );
  });
  if (sort !== undefined || q === undefined) return matching;
  const ranks = new Map(matching.map((book) => [book, rank(book, q)]));
  return matching.sort((one, other) => compare(ranks.get(one) ?? [], ranks.get(other) ?? []));
}

/** All books in each order that was asked for. */
const ORDERS = new WeakMap<readonly Known[], Map<string, readonly Known[]>>();

function inOrder(books: readonly Known[], sort: NonNullable<Search['sort']>): readonly Known[] {
  const isDescending = sort.length > 0 && sort.every((by) => by.isDescending);
  const complete = [...sort, { field: 'id' as const, isDescending }];
  const orders = ORDERS.get(books) ?? new Map<string, readonly Known[]>();
  ORDERS.set(books, orders);
  const name = JSON.stringify(complete);
  const known = orders.get(name);
  if (known !== undefined) return known;
  const sorted = books.toSorted((one, other) => {
    for (const { field, isDescending } of complete) {
      const [value, against] = [valueIn(one, field), valueIn(other, field)];
      if (value !== against) return value < against === isDescending ? 1 : -1;
    }
    return 0;
  });
  orders.set(name, sorted);
  return sorted;
}

/** Rule F10. */
function rank(book: Known, q: readonly (readonly [string, string])[]): (string | number)[] {
  const query = q.map(([text, word]) => KEYS[text] ?? word.replace('*', '')).join(' ');
  const last = q.at(-1)?.[0] ?? '';
  const title = book.keys.title;
  if (title === query) return [0, '', book.id];
  const isSecond = title.startsWith(last.endsWith('*') ? query : `${query} `);
  return isSecond ? [1, book.bytes.title, book.id] : [2, '', book.id];
}

/** The keys of those texts of WANTED that are not their word. */
const KEYS: Readonly<Record<string, string>> = {
  "l'etranger": 'l etranger',
  'J.R.R.': 'j r r',
  'j k': 'j k',
};

function valueIn(book: Known, field: Field): string | number {
  return field === 'title' || field === 'author' ? book.bytes[field] : book[field];
}

function bytesOf(key: string): string {
  return Buffer.from(key).toString('latin1');
}

function compare(one: readonly (string | number)[], other: readonly (string | number)[]): number {
  for (const [position, value] of one.entries()) {
    const against = other[position] as string | number;
    if (value !== against) return value < against ? -1 : 1;
  }
  return 0;
}

/** Between words, so that neighbouring initials stay apart. */
const APART = ' & ';

export function parametersOf(search: Search): Record<string, string> {
  const entries = Object.entries(search).map(([name, value]) => {
    if (name === 'sort') {
      const order = value as { field: Field; isDescending: boolean }[];
      return [name, order.map(({ field, isDescending }) => `${isDescending ? '-' : ''}${field}`).join()];
    }
    if (Array.isArray(value)) {
      return [name, (value as unknown as readonly [string, string][]).map(([text]) => text).join(APART)];
    }
    return [name, typeof value === 'object' ? (value as Part).text : String(value)];
  });
  return Object.fromEntries(entries);
}

export function bodyOf({ title, author, year }: NewBook): Omit<Book, 'id'> {
  return { title: title.text, author: author.text, year };
}

export function knownAs(id: number, { title, author, year }: NewBook): Known {
  const keys = { title: title.key, author: author.key };
  const bytes = { title: bytesOf(title.key), author: bytesOf(author.key) };
  const words = { title: title.words, author: author.words };
  return { id, title: title.text, author: author.text, year, keys, bytes, words };
}

/** Above this number of books, their total is not shown unasked (rule F6). */
const SHOWN_TOTAL = 1000;

/**
 * Reads the pages of a search and compares them with the definition: the first ones by cursor, one by offset.
 * @param limit books of a page.
 */
export async function assertFound(
  client: Client,
  known: readonly Known[],
  search: Search,
  limit: number,
  pages = Number.POSITIVE_INFINITY,
): Promise<void> {
  const expected = found(known, search);
  const total = String(expected.length);
  const parameters = { ...parametersOf(search), limit: String(limit) };
  const context = JSON.stringify(parameters);
  const page = async (query: string, headers: Record<string, string> = {}) => {
    const answer = await client.request('GET', `/books?${query}`, { headers });
    assert.equal(answer.status, 200, `${context}: ${answer.message}`);
    assert.equal(answer.headers.get('x-unindexed-books'), null);
    const shown = answer.headers.get('x-total-count');
    if (expected.length <= SHOWN_TOTAL || headers.prefer !== undefined) assert.equal(shown, total, context);
    else assert.equal(shown, null, context);
    return answer;
  };
  const plain = ({ id, title, author, year }: Book) => ({ id, title, author, year });

  let next: string | undefined = new URLSearchParams(parameters).toString();
  let position = 0;
  for (let read = 0; next !== undefined && read < pages; read += 1) {
    const { data, headers } = await page(next);
    const part = expected.slice(position, position + limit);
    assert.deepEqual(data, part.map(plain), `${context}, page ${read}`);
    position += part.length;
    next = /<\/books\?([^>]*)>; rel="next"/.exec(headers.get('link') ?? '')?.[1];
    assert.equal(next !== undefined, position < expected.length, context);
  }
  const offset = Math.floor(expected.length / 2);
  const query = new URLSearchParams({ ...parameters, offset: String(offset) }).toString();
  const { data } = await page(query, { prefer: 'count=exact' });
  const part = expected.slice(offset, offset + limit);
  assert.deepEqual(data, part.map(plain), `${context}, offset ${offset}`);
}
