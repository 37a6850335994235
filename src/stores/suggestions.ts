// Owns: how better spellings of a search that finds nothing are found (rule F13), by the same steps on both stores:
// 1. Which words does no book have? If all have books, each is tried as the misspelt one.
// 2. Without the misspelt words, does the search find books? If not, no other spelling of them does.
// 3. What the words may stand for is looked up among all words. Each text that is a word takes the place of the misspelt one, and
//    the books of the whole search are counted.
// Each step is bounded by a number, and all together by a time, after which the suggestions are those found so far.

import { isDeepStrictEqual } from 'node:util';
import {
  type Correction,
  corrected,
  cutsOf,
  editsOf,
  isCorrectable,
  type Piece,
  piecesOf,
  spellingOf,
} from '../books/misspellings.ts';
import {
  COUNTED,
  completed,
  type Filters,
  type Misspelt,
  MOST_SUGGESTIONS,
  MOST_WORDS,
  readFilter,
  readFilters,
  type SentFilter,
  type Suggestion,
  type Suggestions,
  textsOf,
} from '../books/search.ts';
import { INDEXED_UNITS } from '../books/words.ts';
import { findPage, type SearchableIndex } from './search-pages.ts';
import { SearchStatement } from './search-sql.ts';

/** Texts that are looked up, and at once, between two looks at the clock. */
const MOST_LOOKED_UP = 2000;
const AT_ONCE = 256;

const MOST_COUNTS = 50;
const MOST_CUTS = 12;

/** Books that are read for the spelling of a word. */
const READ = 10;

interface Word extends Piece {
  readonly word: string;
  readonly filter: SentFilter;
}

/** Corrections of a filter with which the search finds books. */
interface Offer {
  readonly filter: SentFilter;
  readonly corrections: readonly Correction[];
  /** Up to one more than COUNTED. */
  readonly books: number;
}

export async function findSuggestions(search: Misspelt, index: SearchableIndex): Promise<Suggestions> {
  return { suggestions: await new SuggestionSearch(search, index).find(), unindexed: 0 };
}

class SuggestionSearch {
  readonly #filters: readonly SentFilter[];
  readonly #time: number;
  readonly #index: SearchableIndex;
  readonly #offers: Offer[] = [];
  #lookUps = MOST_LOOKED_UP;
  #counts = MOST_COUNTS;
  #end = Number.POSITIVE_INFINITY;

  constructor({ filters, time }: Misspelt, index: SearchableIndex) {
    this.#filters = filters;
    this.#time = time;
    this.#index = index;
  }

  async find(): Promise<Suggestion[]> {
    const words = this.#filters.flatMap(wordsOf);
    if (words.length === 0 || words.length > MOST_WORDS || (await this.#count(this.#filters)) > 0) return [];
    this.#end = performance.now() + this.#time;
    const existing = new Set(await this.#existing(words.map(({ word }) => word)));
    const missing = words.filter(({ word }) => !existing.has(word));
    await this.#join(words, missing);
    for (const wrong of missing.length > 0 ? [missing] : words.map((word) => [word])) {
      await this.#correct(wrong);
    }
    const best = this.#offers.toSorted((one, other) => other.books - one.books).slice(0, MOST_SUGGESTIONS);
    const suggestions: Suggestion[] = [];
    for (const offer of best) suggestions.push(await this.#spelled(offer));
    return suggestions;
  }

  /** Tries each two neighbours as one word, if no other word is missing. */
  async #join(words: readonly Word[], missing: readonly Word[]): Promise<void> {
    const joined = words.slice(1).flatMap((second, before) => {
      const first = words[before] as Word;
      const areNeighbours =
        first.filter === second.filter &&
        piecesOf(first.filter[1].slice(first.end, second.start)).length === 0;
      if (!areNeighbours || !missing.every((word) => word === first || word === second)) return [];
      return [{ ...second, start: first.start, words: [first.word + second.word] }];
    });
    const existing = await this.#existing(joined.flatMap(({ words }) => words));
    for (const one of joined) if (existing.includes(one.words.join(''))) await this.#offer(one.filter, [one]);
  }

  /** Tries other words in place of one or two of a filter. */
  async #correct(wrong: readonly Word[]): Promise<void> {
    const [first, second] = wrong as [Word, Word?];
    const areOfOne = wrong.every(({ filter, word }) => filter === first.filter && isCorrectable(word));
    if (wrong.length > 2 || !areOfOne || !(await this.#findsWithout(first.filter, wrong))) return;
    if (second === undefined)
      for (const words of await this.#cuts(first.word))
        await this.#offer(first.filter, [{ ...first, words }]);
    const ones = await this.#edits(first);
    const others = second && (await this.#edits(second));
    // Of two words, those that are likely for both come first.
    const both = others?.flatMap((other, place) =>
      ones.map((one, at) => ({ rank: at + place, pair: [one, other] })),
    );
    const tried = both?.toSorted((one, other) => one.rank - other.rank).map(({ pair }) => pair);
    for (const corrections of tried ?? ones.map((one) => [one])) await this.#offer(first.filter, corrections);
  }

  /** Whether the search finds books without these words; without a filter that is about a whole text or its beginning. */
  async #findsWithout(filter: SentFilter, wrong: readonly Word[]): Promise<boolean> {
    const [name, value] = filter;
    const isRight = ({ start }: Piece) => wrong.every((word) => word.start !== start);
    const right = piecesOf(value)
      .filter(isRight)
      .map(({ text }) => text);
    const rest: SentFilter = [name, right.join(' ')];
    const isOfWords = (readFilter(name, value) as Filters).words.length > 0;
    const others = this.#filters.flatMap((one) => (one !== filter ? [one] : isOfWords ? [rest] : []));
    return (await this.#count(others)) > 0;
  }

  async #edits(wrong: Word): Promise<Correction[]> {
    const existing = await this.#existing(editsOf(wrong.word));
    return existing.map((word) => ({ ...wrong, words: [word] }));
  }

  async #cuts(word: string): Promise<string[][]> {
    const cuts = cutsOf(word);
    const existing = new Set(await this.#existing([...new Set(cuts.flat())]));
    return cuts.filter((parts) => parts.every((part) => existing.has(part))).slice(0, MOST_CUTS);
  }

  async #offer(filter: SentFilter, corrections: readonly Correction[]): Promise<void> {
    const books = await this.#count(this.#with(filter, corrections));
    if (books > 0) this.#offers.push({ filter, corrections, books });
  }

  async #spelled({ filter, corrections, books }: Offer): Promise<Suggestion> {
    const [parameter, sent] = filter;
    const filters = readFilters(this.#with(filter, corrections)) as Filters;
    const part = { order: completed([]), limit: READ, after: undefined, offset: 0, isCounted: false };
    const page = await findPage({ ...filters, ...part }, this.#index);
    const texts = textsOf(parameter).flatMap((name) =>
      page.books.map((book) => book[name].slice(0, INDEXED_UNITS)),
    );
    const plain = corrected(sent, corrections);
    const spelled = corrected(sent, corrections, (word) => spellingOf(word, texts));
    // With an apostrophe, a word has the same books, but a title has another key.
    const isSame = isDeepStrictEqual(readFilter(parameter, spelled), readFilter(parameter, plain));
    return { parameter, value: isSame ? spelled : plain, books: books > COUNTED ? null : books };
  }

  #with(filter: SentFilter, corrections: readonly Correction[]): readonly SentFilter[] {
    const [name, value] = filter;
    return this.#filters.map((one) => (one === filter ? [name, corrected(value, corrections)] : one));
  }

  /** @returns those of these texts that are words of books, in their order. */
  async #existing(texts: readonly string[]): Promise<string[]> {
    const tried = texts.slice(0, this.#lookUps);
    this.#lookUps -= tried.length;
    const found = new Set<unknown>();
    for (let at = 0; at < tried.length && performance.now() < this.#end; at += AT_ONCE) {
      const rows = await this.#index.select(this.#statement().existing(tried.slice(at, at + AT_ONCE)));
      for (const [word] of rows) found.add(word);
    }
    return tried.filter((text) => found.has(text));
  }

  /** The number of books, or one more than COUNTED if there are more; 0 if it is too late. */
  async #count(sent: readonly SentFilter[]): Promise<number> {
    const filters = readFilters(sent);
    if (filters === undefined || this.#counts === 0 || performance.now() >= this.#end) return 0;
    this.#counts -= 1;
    const [row] = await this.#index.select(this.#statement().count(filters, COUNTED));
    return Number(row?.[0]);
  }

  #statement(): SearchStatement {
    return new SearchStatement(this.#index.dialect);
  }
}

function wordsOf(filter: SentFilter): Word[] {
  const [name, value] = filter;
  if (textsOf(name).length === 0) return [];
  return piecesOf(value).flatMap((piece) =>
    piece.word === undefined ? [] : [{ ...piece, word: piece.word, filter }],
  );
}
