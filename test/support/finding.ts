// Owns: what a search must find, by brute force: books whose texts are made of parts with known keys and words, random
// searches for them, and the definition of rules F2 to F10. It spells out what the service computes.

import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Book } from '../../conformance/service.ts';
import type { Client } from './client.ts';

/** A part of a text, with its part of the text's key, and with its words. */
export interface Part {
  readonly text: string;
  readonly key: string;
  readonly words: readonly string[];
  /** Of an author, if it differs from the key: the last word of the first one, and the others. */
  readonly filed?: string;
}

/** Each as `text=key`, or `text=key=words` if the words are not those of the key; `~` is a space. */
const PARTS = read(`
  The=the the=the Die=die et=et Jr.=jr HARRY=harry Potter,=potter Márquez=marquez Ma\u0301rquez=marquez L’Étranger=l~etranger=l+etranger+letranger
  O'Brien=o~brien=o+brien+obrien (J.R.R.)=j~r~r=j+r+jrr (J.~K.)=j~k=j+k+jk Straße=strasse ŁÓDŹ=lodz İzmir=izmir ΟΔΟΣ=οδοσ
  οδός=οδοσ Ёлка=елка война=война أَلْف=الف 百年孤独=百年孤独=百+年+孤+独+百年+年孤+孤独 𠮷野=𠮷野=𠮷+野+𠮷野 﨎=﨎 𐐀=𐐨
  ﬁne=fine ＦＩＮＥ=fine New=new York=york Newark=newark 10=10 9=9 &= %_\\=`);

/** Texts without letters and digits: the code points of their signs are their only word. */
const SIGNS = [...read('= ~= ???=#00003f00003f00003f ?~!~=#00003f000021 🙂=#01f642')];

/** Words of a search: each as `text=key=words`, where the one word is what it is to find; what begins so if it ends with `*`. */
const WANTED = read(`
  the=the harry=harry Harr*=harr=harr* pot*=pot=pot* marquez=marquez MÁRQUEZ=marquez letranger=letranger
  l'etranger=l~etranger=letranger étranger=etranger obr*=obr=obr* jrr=jrr J.R.R.=j~r~r=jrr j~k=j~k=jk r=r strasse=strasse
  lodz=lodz οδοσ=οδοσ елка=елка 孤独=孤独 年=年 野=野 﨎=﨎 fine=fine new*=new=new* 9=9 nowhere=nowhere`);

export function read(parts: string): readonly Part[] {
  return parts
    .trim()
    .split(/\s+/)
    .map((part) => {
      const [text = '', key = '', words = key.replaceAll('~', '+')] = part.split('=');
      const plain = (text: string) => text.replaceAll('~', ' ');
      return { text: plain(text), key: plain(key), words: words.split('+').filter((word) => word !== '') };
    });
}

function joined(parts: readonly Part[]): Part {
  const isBare = parts.every(({ key }) => key === '');
  const signs = [...parts.map(({ text }) => text).join('')].slice(0, 10);
  const codes = signs.map((sign) => (sign.codePointAt(0) as number).toString(16).padStart(6, '0'));
  const keys = parts.map(({ key }) => key).filter((key) => key !== '');
  const key = isBare ? `#${codes.join('')}` : keys.join(' ');
  const words = isBare ? [key] : parts.flatMap(({ words }) => words);
  return {
    text: parts.map(({ text }) => text).join(' '),
    key,
    words,
    ...(!isBare && { filed: filedAuthor(parts) }),
  };
}

type TextField = 'title' | 'author';

/** A book as the oracle sees it. */
interface Known extends Book {
  readonly keys: Readonly<Record<TextField, string>>;
  /** The UTF-8 bytes of the keys, one character each: JavaScript compares texts by UTF-16 units. */
  readonly bytes: Readonly<Record<TextField, string>>;
  readonly words: Readonly<Record<TextField, readonly string[]>>;
  /** Under which it is sorted, as bytes (rule F9). */
  readonly filed: Readonly<Record<TextField, string>>;
}

const text = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.array(fc.constantFrom(...PARTS), { minLength: 1, maxLength: 4 }).map(joined),
  },
  { weight: 1, arbitrary: fc.constantFrom(...SIGNS) },
);
const year = fc.constantFrom<number>(-720, -1, 0, 1605, 1967, 2024, 9007199254740991);
const wanted = fc.array(fc.constantFrom(...WANTED), { minLength: 1, maxLength: 2 });
/** Fields as in the parameter `sort`. */
const sort = fc
  .shuffledSubarray(
    ['title', 'author', 'year', 'id', 'title_without_article', 'author_last_word', 'year_unknown_last'],
    { minLength: 1, maxLength: 4 },
  )
  .chain((fields) => fc.tuple(...fields.map((field) => fc.constantFrom(field, `-${field}`))))
  .map((fields) => fields.join());

/** A book to be stored. */
export const newBook = fc.record({ title: text, author: text, year });
export type NewBook = typeof newBook extends fc.Arbitrary<infer Value> ? Value : never;

const FILTERS = {
  ...{ q: wanted, title_contains: wanted, author_contains: wanted },
  ...{ title: text, author: text, title_starts_with: text, author_starts_with: text },
  ...{ year, year_gte: year, year_lte: year },
};
const search = fc.record({ ...FILTERS, sort }, { requiredKeys: [] });
export type Search = typeof search extends fc.Arbitrary<infer Value> ? Value : never;

/** A search with two filters at most, so that most searches find something. */
export const fewFilters = fc
  .tuple(search, fc.subarray(Object.keys(FILTERS), { maxLength: 2 }))
  .map(([all, kept]): Search => {
    return Object.fromEntries(Object.entries(all).filter(([name]) => name === 'sort' || kept.includes(name)));
  });

/** The books that a search finds, in its order (rules F2, F7 to F10). */
export function found(books: readonly Known[], search: Search): readonly Known[] {
  const has = (words: readonly string[], wanted: readonly Part[] = []) =>
    wanted.every(({ words: [word = ''] }) => {
      return word.endsWith('*')
        ? words.some((own) => own.startsWith(word.slice(0, -1)))
        : words.includes(word);
    });
  const { q, sort } = search;
  const matching = inOrder(books, sort).filter(({ keys, words, year }) => {
    return (
      has([...words.title, ...words.author], q) &&
      has(words.title, search.title_contains) &&
      has(words.author, search.author_contains) &&
      keys.title === (search.title?.key ?? keys.title) &&
      keys.author === (search.author?.key ?? keys.author) &&
      keys.title.startsWith(search.title_starts_with?.key ?? '') &&
      keys.author.startsWith(search.author_starts_with?.key ?? '') &&
      year === (search.year ?? year) &&
      year >= (search.year_gte ?? year) &&
      year <= (search.year_lte ?? year) &&
      (year !== 0 || (search.year_gte === undefined && search.year_lte === undefined))
    );
  });
  if (sort !== undefined || q === undefined) return matching;
  const ranks = new Map(matching.map((book) => [book, rank(book, q)]));
  return matching.sort((one, other) => {
    const [own = 0, others = 0] = [ranks.get(one), ranks.get(other)];
    return own - others || (own === 1 ? compare(one.bytes.title, other.bytes.title) : 0) || one.id - other.id;
  });
}

/** Rule F10: the place of a book among those that are found; books of the second place are sorted by title. */
function rank({ keys: { title } }: Known, q: readonly Part[]): 0 | 1 | 2 {
  const query = q.map(({ key }) => key).join(' ');
  if (title === query) return 0;
  return title.startsWith(q.at(-1)?.text.endsWith('*') ? query : `${query} `) ? 1 : 2;
}

/** All books in each order that was asked for. */
const ORDERS = new WeakMap<readonly Known[], Map<string, readonly Known[]>>();

function inOrder(books: readonly Known[], sort = ''): readonly Known[] {
  const orders = ORDERS.get(books) ?? new Map<string, readonly Known[]>();
  ORDERS.set(books, orders);
  const fields = sort.split(',').filter((field) => field !== '');
  const isDescending = fields.length > 0 && fields.every((field) => field.startsWith('-'));
  const known = orders.get(sort);
  if (known !== undefined) return known;
  const sorted = books.toSorted((one, other) => {
    for (const field of [...fields, isDescending ? '-id' : 'id']) {
      const name = field.replace('-', '');
      const [own, others] = [valueIn(one, name), valueIn(other, name)];
      if (own === others) continue;
      const isLast = (value: string | number) => value === LAST[name];
      if (isLast(own) || isLast(others)) return isLast(own) ? 1 : -1;
      return field === name ? compare(own, others) : -compare(own, others);
    }
    return 0;
  });
  orders.set(sort, sorted);
  return sorted;
}

/** Values that are last, ascending and descending. */
const LAST: Readonly<Record<string, string | number>> = { author_last_word: '', year_unknown_last: 0 };

function valueIn(book: Known, field: string): string | number {
  if (field === 'title' || field === 'author') return book.bytes[field];
  if (field === 'title_without_article') return book.filed.title;
  if (field === 'author_last_word') return book.filed.author;
  return field === 'id' ? book.id : book.year;
}

/** Those with which a title of PARTS may begin. */
const ARTICLES = ['the', 'die', 'et', 'l', 'o'];

function filedTitle(key: string): string {
  const [first = '', ...others] = key.split(' ');
  return others.length > 0 && ARTICLES.includes(first) ? others.join(' ') : key;
}

/** @param parts of the author: the last one with a word of the first author comes first. */
function filedAuthor(parts: readonly Part[]): string {
  const isEnd = ({ text }: Part, at: number) =>
    text === '&' || (text === 'et' && at > 0 && at < parts.length - 1) || text.endsWith(',');
  const end = parts.findIndex(isEnd);
  const isLast = ({ key }: Part) => key !== '' && key !== 'jr';
  const first = parts.slice(0, end < 0 ? parts.length : end + (parts[end]?.text.endsWith(',') ? 1 : 0));
  const last = [
    first.findLastIndex(isLast),
    parts.findLastIndex(isLast),
    parts.findLastIndex(({ key }) => key !== ''),
  ].find((at) => at >= 0) as number;
  const others = parts.filter(({ key }, at) => at !== last && key !== '').map(({ key }) => key);
  return [parts[last]?.key.replaceAll(' ', ''), ...others].join(' ');
}

function compare(one: string | number, other: string | number): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

/** The words of a search are apart by a sign, so that neighbouring initials stay apart. */
export function parametersOf(search: Search): Record<string, string> {
  const shown = (value: number | string | Part | readonly Part[]): string => {
    if (Array.isArray(value)) return value.map(({ text }) => text).join(' & ');
    return typeof value === 'object' ? (value as Part).text : String(value);
  };
  return Object.fromEntries(Object.entries(search).map(([name, value]) => [name, shown(value)]));
}

export function bodyOf({ title, author, year }: NewBook): Omit<Book, 'id'> {
  return { title: title.text, author: author.text, year };
}

export function knownAs(id: number, book: NewBook): Known {
  const { title, author } = book;
  const keys = { title: title.key, author: author.key };
  const bytesOf = (key: string) => Buffer.from(key).toString('latin1');
  const bytes = { title: bytesOf(title.key), author: bytesOf(author.key) };
  const filed = { title: bytesOf(filedTitle(title.key)), author: bytesOf(author.filed ?? author.key) };
  return { id, ...bodyOf(book), keys, bytes, words: { title: title.words, author: author.words }, filed };
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
  const parameters = { ...parametersOf(search), limit: String(limit) };
  const context = JSON.stringify(parameters);
  /** @param position of its first book among those that are expected. */
  const assertPage = async (query: string, position: number, headers: Record<string, string> = {}) => {
    const answer = await client.request('GET', `/books?${query}`, { headers });
    assert.equal(answer.status, 200, `${context}: ${answer.message}`);
    assert.equal(answer.headers.get('x-unindexed-books'), null);
    const isShown = expected.length <= SHOWN_TOTAL || headers.prefer !== undefined;
    assert.equal(answer.headers.get('x-total-count'), isShown ? String(expected.length) : null, context);
    const books = expected.slice(position, position + limit);
    const plain = books.map(({ id, title, author, year }) => ({ id, title, author, year }));
    assert.deepEqual(answer.data, plain, `${context}, from ${position}`);
    return /<\/books\?([^>]*)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1];
  };

  let next: string | undefined = new URLSearchParams(parameters).toString();
  for (let read = 0; next !== undefined && read < pages; read += 1) {
    next = await assertPage(next, read * limit);
    assert.equal(next !== undefined, (read + 1) * limit < expected.length, context);
  }
  const offset = Math.floor(expected.length / 2);
  const query = new URLSearchParams({ ...parameters, offset: String(offset) }).toString();
  await assertPage(query, offset, { prefer: 'count=exact' });
}
