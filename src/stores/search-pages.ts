// Owns: how a page of books is found in an index, by the same steps on both stores, so that no step depends on the guess
// of a query planner:
// 1. Collect: if few books match, all of them are collected and sorted. Their number is then known.
// 2. Walk: if many match, the index is read in the order of the page, from its beginning, and each book is tested.
// 3. Collect all: if the walk finds too few, because they are far away, the first of all matches are selected.
// All books in the order of their ids are read without an index.
// Each step is one statement of `search-sql.ts`.

import { bookWith } from '../books/book.ts';
import { lastWordFirst, withoutArticle } from '../books/filing.ts';
import {
  COUNTED,
  type Condition,
  isOfAllById,
  isRelevance,
  type Page,
  type Place,
  type Relevance,
  type Search,
  type SortBy,
  type SortField,
} from '../books/search.ts';
import type { Part } from './search-order.ts';
import { type IndexDialect, SearchStatement, type Selection, type Statement } from './search-sql.ts';

/** Books of the index that a walk tests. */
const WALK = 20_000;

/** A row of the index, with the values that books are sorted by. */
type Row = [id: number, title: string, author: string, year: number, filed: string | null];

/** How many books match, and those of the page unless they are too many. */
interface Few {
  readonly count: number;
  readonly rows?: readonly Row[];
}

/** The index of a store, as one search reads it. */
export interface SearchableIndex {
  readonly dialect: IndexDialect;
  /** @returns the rows of a statement, as arrays. */
  select(statement: Statement): Promise<readonly unknown[][]>;
  /** @returns undefined if it takes too long, or cannot be had. */
  count(statement: Statement): Promise<number | undefined>;
}

const BY_ID: readonly SortBy[] = [{ field: 'id', isDescending: false }];
const BY_TITLE: readonly SortBy[] = [{ field: 'title', isDescending: false }, ...BY_ID];

export async function findPage(search: Search, index: SearchableIndex): Promise<Page> {
  const { rows, total } = await new PageSearch(index).find(search);
  const wanted = rows.slice(0, search.limit);
  const ids = wanted.map(([id]) => id);
  const found = await index.select(new SearchStatement(index.dialect).books(ids));
  const books = found.map(bookWith);
  const isCut = found.length < Number(found[0]?.at(-1) ?? 0);
  const passed = isCut ? ids.indexOf(books.at(-1)?.id as number) + 1 : wanted.length;
  const last = wanted[passed - 1];
  const isEnd = last === undefined || passed === rows.length;
  return { books, passed, next: isEnd ? undefined : placeOf(last, search.order), total, unindexed: 0 };
}

/** The search for the rows of one page. */
class PageSearch {
  readonly #index: SearchableIndex;

  constructor(index: SearchableIndex) {
    this.#index = index;
  }

  /** @returns one row more than the page has, if there is one. */
  async find(search: Search): Promise<{ rows: readonly Row[]; total: number | undefined }> {
    const { order, offset, after, words, conditions, isCounted } = search;
    const part = { order, after, offset, most: search.limit + 1 };
    if (isOfAllById(search)) {
      const count = await this.#number(this.#statement().countBooks(COUNTED));
      const rows = await this.#rows(this.#statement().readBooks(part));
      if (count <= COUNTED) return { rows, total: count };
      return { rows, total: isCounted ? await this.#index.count(this.#statement().countBooks()) : undefined };
    }
    const isInOrderOfIds = isRelevance(order) || order[0]?.field === 'id';
    const isAll = words.length === 0 && conditions.length === 0;
    const few: Few = isAll
      ? { count: await this.#count(search, COUNTED) }
      : await this.#collect(isInOrderOfIds ? COUNTED : this.#index.dialect.mostCollected, search, part);
    const walk = () =>
      isRelevance(order) ? this.#walkByRelevance(search, order, part) : this.#walk(search, order, part);
    const rows = few.rows ?? (await walk());
    if (few.count <= COUNTED) return { rows, total: few.count };
    return { rows, total: isCounted ? await this.#index.count(this.#statement().count(search)) : undefined };
  }

  /** Step 1. */
  async #collect(most: number, selection: Selection, part: Part): Promise<Few> {
    if (this.#index.dialect.isCountedFirst) {
      const count = await this.#count(selection, most);
      return count > most ? { count } : { count, rows: await this.#collectAll(selection, part) };
    }
    const found = await this.#index.select(this.#statement().collectFew(most, selection, part));
    const count = Number(found[0]?.[0]);
    if (count > most) return { count };
    return { count, rows: found.filter(([, id]) => id !== null).map(([, ...row]) => row as Row) };
  }

  /** Step 2, and step 3 if needed. */
  async #walk(selection: Selection, order: readonly SortBy[], part: Part): Promise<readonly Row[]> {
    const { field } = order[0] as SortBy;
    const { words, conditions, isRest } = selection;
    const hasWords = words.length > 0;
    if (!hasWords && conditions.length === 0 && isRest === undefined)
      return this.#rows(this.#statement().readInOrder(field, selection, part));
    const needed = part.offset + part.most;
    if (needed > WALK || (hasWords && field === 'id' && this.#index.dialect.hasWordsById))
      return this.#collectAll(selection, part);
    const rows = await this.#rows(this.#statement().testInOrder(field, selection, part, WALK));
    return rows.length < needed ? this.#collectAll(selection, part) : rows.slice(part.offset);
  }

  /** Step 2 for both groups of the order by relevance (rule F10), or for the second one if the page begins in it. */
  async #walkByRelevance(
    { words, conditions }: Selection,
    relevance: Relevance,
    { after, offset, most }: Part,
  ): Promise<readonly Row[]> {
    const [group = 0, key = relevance.key, id = 0] = (after ?? []) as [number?, string?, number?];
    const rows: Row[] = [];
    let left = offset;
    if (group === 0) {
      const titles = titlesThatBegin(words, conditions, relevance);
      const part = { order: BY_TITLE, after: [key, id], offset, most };
      rows.push(...(await this.#rows(this.#statement().readInOrder('title', titles, part))));
      if (rows.length === most) return rows;
      if (rows.length > 0) left = 0;
      else if (left > 0) left -= await this.#number(this.#statement().countInOrder('title', titles, part));
    }
    const others = { words, conditions, isRest: relevance };
    const part = { order: BY_ID, after: [group === 0 ? 0 : id], offset: left, most: most - rows.length };
    return [...rows, ...(await this.#walk(others, BY_ID, part))];
  }

  /** Step 3. */
  #collectAll(selection: Selection, part: Part): Promise<readonly Row[]> {
    return this.#rows(this.#statement().collectAll(selection, part));
  }

  #count(selection: Selection, most: number): Promise<number> {
    return this.#number(this.#statement().count(selection, most));
  }

  #statement(): SearchStatement {
    return new SearchStatement(this.#index.dialect);
  }

  async #number(statement: Statement): Promise<number> {
    const [row] = await this.#index.select(statement);
    return Number(row?.[0]);
  }

  async #rows(statement: Statement): Promise<readonly Row[]> {
    return (await this.#index.select(statement)) as Row[];
  }
}

/** The books of the first group. A title that begins with the query has its words, unless some of them are joined from several. */
function titlesThatBegin(
  words: Selection['words'],
  conditions: readonly Condition[],
  { key, before }: Relevance,
): Selection {
  const keyWords = key.split(' ');
  const areInKey = words.every((wanted) => {
    return wanted.field !== 'author' && !wanted.isPrefix && keyWords.includes(wanted.word);
  });
  const beginsSo: readonly Condition[] = [
    { field: 'title', operator: '>=', value: key },
    { field: 'title', operator: '<', value: before },
  ];
  return { words: areInKey ? [] : words, conditions: [...conditions, ...beginsSo] };
}

function placeOf([id, title, author, year, filed]: Row, order: Search['order']): Place {
  if (!isRelevance(order)) {
    const values: Readonly<Record<SortField, string | number>> = {
      ...{ id, title, author, year, year_unknown_last: year },
      title_without_article: withoutArticle(title),
      author_last_word: filed ?? lastWordFirst(author),
    };
    return order.map(({ field }) => values[field]);
  }
  const key = Buffer.from(title);
  const isFirst = key.compare(Buffer.from(order.key)) >= 0 && key.compare(Buffer.from(order.before)) < 0;
  return isFirst ? [0, title, id] : [1, '', id];
}
