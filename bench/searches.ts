// Owns: the searches that are measured, as queries of `GET /books` and `GET /suggestions`.

import type { Catalogue } from './catalogue.ts';

export interface Search {
  readonly name: string;
  readonly path: string;
  /** Whether all matches are counted. */
  readonly isCounted: boolean;
}

/** A cursor of an order, half way through all books. */
export type HalfWay = Readonly<Record<'id' | 'title', string>>;

type Parameters = Readonly<Record<string, string | number>>;

const BY_ID = { sort: 'id' };
const BY_TITLE = { sort: 'title' };
const NINETIES = { year_gte: 1990, year_lte: 1999 };

/** So many matches are all collected; of a few more, none (`COUNTED` in src/books/search.ts). */
const THOUSAND = 900;

/** A search from which a cursor half way through all books comes: its page has half the books of a word. */
export function searchHalfWay(catalogue: Catalogue, order: keyof HalfWay): Search {
  return search('half way', { q: catalogue.wordIn(THOUSAND), sort: order, limit: THOUSAND / 2 });
}

/** One of each kind; the first page of 20, unless the name says otherwise. */
export function searchesOf(catalogue: Catalogue, books: number, halfWay: HalfWay): readonly Search[] {
  const rare = catalogue.wordIn(10);
  const thousand = catalogue.wordIn(THOUSAND);
  const frequent = catalogue.wordIn(books / 50);
  return [
    search('a rare word', { q: rare, ...BY_ID }),
    search('none', { q: 'rocinante', ...BY_ID }),
    search('a word in a thousand books', { q: thousand, ...BY_ID }),
    search('`the`', { q: 'the', ...BY_ID }),
    search('`harry potter`', { q: 'harry potter', ...BY_ID }),
    search('`the of`', { q: 'the of', ...BY_ID }),
    search('`the` + a rare word', { q: `the ${rare}`, ...BY_ID }),
    search('`harr* pott*`', { q: 'harr* pott*', ...BY_ID }),
    search('`har*`', { q: 'har*', ...BY_ID }),
    search('`孤独`', { q: '孤独', ...BY_ID }),
    search('by relevance: rare', { q: rare }),
    search('by relevance: `the`', { q: 'the' }),
    search('by relevance: `harry potter`', { q: 'harry potter' }),
    search('by relevance: `harr* pott*`', { q: 'harr* pott*' }),
    search('by title: rare', { q: rare, ...BY_TITLE }),
    search('by title: 1,000', { q: thousand, ...BY_TITLE }),
    search('by title: 2 % of all', { q: frequent, ...BY_TITLE }),
    search('by title: `the`', { q: 'the', ...BY_TITLE }),
    search('`война` by title (all at the far end)', { q: 'война', ...BY_TITLE }),
    search('`author=`: some', { author: catalogue.authorOf(27) }),
    search('`author=`: the top one, by year', { author: catalogue.mainAuthor, sort: 'year' }),
    search('`author_contains=king`', { author_contains: 'king' }),
    search('`title_starts_with=the h` by title', { title_starts_with: 'the h', ...BY_TITLE }),
    search('`title=Harry Potter`', { title: 'Harry Potter' }),
    search('year 1950, by title', { year: 1950, ...BY_TITLE }),
    search('1990–1999, by title', { ...NINETIES, ...BY_TITLE }),
    search('1900–2026, by title', { year_gte: 1900, year_lte: 2026, ...BY_TITLE }),
    search('all by title', BY_TITLE),
    search('all by author, title', { sort: 'author,title' }),
    search('all by `-year`', { sort: '-year' }),
    search('all by title, 1,000 of them', { ...BY_TITLE, limit: 1000 }),
    search('by cursor, half way: all by title', { ...BY_TITLE, cursor: halfWay.title }),
    search('by cursor, half way: `the` by title', { q: 'the', ...BY_TITLE, cursor: halfWay.title }),
    search('by cursor, half way: `the` by id', { q: 'the', ...BY_ID, cursor: halfWay.id }),
    search('by offset: 10,000', { ...BY_TITLE, offset: Math.min(10_000, books / 2) }),
    search('exact counts: all', BY_ID, true),
    search('exact counts: 2 %', { q: frequent, ...BY_ID }, true),
    search('exact counts: 1990–1999', NINETIES, true),
    search('exact counts: `the` in 1990–1999', { q: 'the', ...NINETIES, ...BY_ID }, true),
    ...dearestOf(books),
  ];
}

/** Those whose time grows the most with the number of all books. */
export function dearestOf(books: number): readonly Search[] {
  return [
    search('all by `-year,title` (sorts a whole year)', { sort: '-year,title' }),
    search('by offset: half way', { ...BY_TITLE, offset: Math.floor(books / 2) }),
    search('exact counts: `the`', { q: 'the', ...BY_ID }, true),
    search('`the` in 1700–1709, by title', { q: 'the', year_gte: 1700, year_lte: 1709, ...BY_TITLE }),
  ];
}

/** Searches that find nothing, as `none`, and are then corrected. */
export function suggestionsOf(catalogue: Catalogue): readonly Search[] {
  const [first, second, ...others] = catalogue.wordIn(10);
  const misspelt = [second, first, ...others].join('');
  return [
    suggestions('suggestions: a rare word', { q: misspelt }),
    suggestions('suggestions: `the` + a rare word', { q: `the ${misspelt}` }),
    suggestions('suggestions: `hary poter`', { q: 'hary poter' }),
    suggestions('suggestions: `harrypotter`', { q: 'harrypotter' }),
  ];
}

function search(name: string, parameters: Parameters, isCounted = false): Search {
  return { name, path: `/books?${queryOf({ limit: 20, ...parameters })}`, isCounted };
}

function suggestions(name: string, parameters: Parameters): Search {
  return { name, path: `/suggestions?${queryOf(parameters)}`, isCounted: false };
}

function queryOf(parameters: Parameters): URLSearchParams {
  return new URLSearchParams(Object.entries(parameters).map(([key, value]) => [key, `${value}`]));
}
