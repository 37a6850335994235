// Owns: how a page of books is found in an index, by the same steps on both stores, so that no step depends on the guess
// of a query planner:
// 1. Collect: if few books match, all of them are collected and sorted. Their number is then known.
// 2. Walk: if many match, the index is read in the order of the page, from its beginning, and each book is tested.
// 3. Collect all: if the walk finds too few, because they are far away, the first of all matches are selected.

import { type Book, FIELD_NAMES } from '../books/book.ts';
import {
  COUNTED,
  type Condition,
  type Filters,
  isRelevance,
  type Page,
  type Place,
  type Relevance,
  type Search,
  type SortBy,
  type SortField,
  type WantedWord,
} from '../books/search.ts';
import { ID_AND_FIELDS, TEXT_BYTES } from './columns.ts';

/** Bytes of texts in one page, unless its first book has more (rule F4). */
const PAGE_BYTES = 1024 * 1024;

/** Books of the index that a walk tests. */
const WALK = 20_000;

/** A row of the index: what books are sorted by. */
type Row = [id: number, title: string, author: string, year: number];

type Value = string | number;

/** The books of a page, and whether some are missing because of PAGE_BYTES. */
export interface PageBooks {
  readonly books: readonly Book[];
  readonly isCut: boolean;
}

/** The index of a store, and in what its SQL differs. In SQL, the table `book_index` is `i`. */
export interface SearchableIndex {
  /** Most matches that are collected before they are counted; in an order other than by id. */
  readonly mostCollected: number;
  /** Whether counting matches costs much less than collecting them, so that it is worth a statement of its own. */
  readonly isCountedFirst: boolean;
  /** Whether matches of words come in the order of ids, so that nothing has to be collected or tested. */
  readonly hasWordsById: boolean;

  /** @returns the rows of a statement, as arrays. */
  select(sql: string, values: readonly Value[]): Promise<readonly unknown[][]>;
  /** The placeholder of a value. */
  placeholder(position: number): string;
  /** Words as the value that a book's words are compared with. */
  wordsValue(words: readonly WantedWord[]): string;
  /** SQL between `from` and the first `and`: the books that have these words. */
  withWords(words: string, isCount: boolean): string;
  /** SQL for whether the book of a row has these words; `words` is their value. */
  hasWords(words: string, wanted: readonly WantedWord[]): string;
  /** SQL for the id of a book that was found by its words. */
  readonly idWithWords: string;
  /** SQL between `from` and the first `and`: all books, to be read in the order of a field. */
  along(field: SortField): string;
  /** SQL after `from` for the rows of such a source, all of which are selected before any is sorted. */
  unsorted(source: string): string;
  /** SQL for a condition that fails when a search has taken too long; it follows conditions. */
  inTime(id: string): string;
  /** The books of these ids, in this order, without those that are gone, until their texts exceed PAGE_BYTES. */
  books(ids: readonly number[]): Promise<PageBooks>;
  /** @returns undefined if it takes too long, or cannot be had. */
  count(sql: string, values: readonly Value[]): Promise<number | undefined>;
}

/** Which books of the index. */
interface Selection extends Filters {
  /** Books of the first two groups of an order by relevance are left out. */
  readonly isRest?: Relevance;
}

/** Which part of them, in which order. */
interface Part {
  readonly columns: readonly Column[];
  readonly after: Place | undefined;
  readonly offset: number;
  readonly most: number;
}

/** One column of an order. */
interface Column {
  readonly sql: (values: Values) => string;
  readonly isDescending: boolean;
  readonly isId: boolean;
}

/** The values of a statement, in the order of their placeholders. */
class Values {
  readonly all: Value[] = [];
  readonly #index: SearchableIndex;

  constructor(index: SearchableIndex) {
    this.#index = index;
  }

  /** @returns its placeholder. */
  add(value: Value): string {
    this.all.push(value);
    return this.#index.placeholder(this.all.length);
  }
}

/**
 * SQL for the books of a page in their order, until their texts exceed PAGE_BYTES, but at least one.
 * @param source SQL after `from`: `wanted` with their `id` and `place`, joined with `books`.
 */
export function booksSql(source: string): string {
  return `
    select ${ID_AND_FIELDS}, found from (
      select ${ID_AND_FIELDS}, place, count(*) over () as found, row_number() over (order by place) as position,
        sum(${TEXT_BYTES}) over (order by place) as bytes
      from ${source}
    ) as page
    where bytes <= ${PAGE_BYTES} or position = 1
    order by place`;
}

/** @param rows selected by `booksSql`, as arrays. */
export function readBooks(rows: readonly unknown[][]): PageBooks {
  const names = ['id', ...FIELD_NAMES];
  const books = rows.map((row) => {
    return Object.fromEntries(names.map((name, position) => [name, row[position]])) as unknown as Book;
  });
  return { books, isCut: rows.length < Number(rows[0]?.[names.length] ?? 0) };
}

const KEYS = 'i.id, i.title_key, i.author_key, i.year';

const COLUMNS: Readonly<Record<SortField, string>> = {
  id: 'i.id',
  title: 'i.title_key',
  author: 'i.author_key',
  year: 'i.year',
};

const BY_ID: readonly SortBy[] = [{ field: 'id', isDescending: false }];
const BY_TITLE: readonly SortBy[] = [{ field: 'title', isDescending: false }, ...BY_ID];

export async function findPage(search: Search, index: SearchableIndex): Promise<Page> {
  const { rows, total } = await new Finder(index).find(search);
  const wanted = rows.slice(0, search.limit);
  const { books, isCut } = await index.books(wanted.map(([id]) => id));
  const lastId = books.at(-1)?.id;
  const passed = isCut ? wanted.findIndex(([id]) => id === lastId) + 1 : wanted.length;
  const last = wanted[passed - 1];
  const isEnd = last === undefined || passed === rows.length;
  return { books, passed, next: isEnd ? undefined : placeOf(last, search.order), total, unindexed: 0 };
}

class Finder {
  readonly #index: SearchableIndex;

  constructor(index: SearchableIndex) {
    this.#index = index;
  }

  /** @returns one row more than the page has, if there is one. */
  async find(search: Search): Promise<{ rows: readonly Row[]; total: number | undefined }> {
    const { order, offset, after } = search;
    const part = { columns: columnsOf(order), after, offset, most: search.limit + 1 };
    const isAll = search.words.length === 0 && search.conditions.length === 0;
    const isInOrderOfIds = isRelevance(order) || order[0]?.field === 'id';
    const few = isAll
      ? { count: await this.#countUpTo(COUNTED, search) }
      : await this.#collect(isInOrderOfIds ? COUNTED : this.#index.mostCollected, search, part);
    let { rows } = few as { rows?: readonly Row[] };
    if (rows === undefined) {
      rows = isRelevance(order)
        ? await this.#walkByRelevance(search, order, part)
        : await this.#walk(search, order, part);
    }
    if (few.count <= COUNTED) return { rows, total: few.count };
    return { rows, total: search.isCounted ? await this.#count(search) : undefined };
  }

  /** Step 1. @returns no rows if more books match. */
  async #collect(
    most: number,
    selection: Selection,
    part: Part,
  ): Promise<{ count: number; rows?: readonly Row[] }> {
    if (this.#index.isCountedFirst) {
      const count = await this.#countUpTo(most, selection);
      return count > most ? { count } : { count, rows: await this.#collectAll(selection, part) };
    }
    const values = new Values(this.#index);
    const { from } = this.#matching(selection, values);
    const found = await this.#index.select(
      `with hit as materialized (select ${KEYS} from ${from} limit ${most + 1}),
        counted as (select count(*) as hits from hit),
        page as (select ${KEYS} from hit i where (select hits from counted) <= ${most}${cut(part, values)})
      select hits, i.* from counted left join page i on true${orderBy(part, values)}`,
      values.all,
    );
    const count = Number(found[0]?.[0]);
    if (count > most) return { count };
    return { count, rows: found.filter(([, id]) => id !== null).map(([, ...row]) => row as Row) };
  }

  /** Step 2, and step 3 if needed. */
  async #walk(selection: Selection, order: readonly SortBy[], part: Part): Promise<readonly Row[]> {
    const { field } = order[0] as SortBy;
    const needed = part.offset + part.most;
    const hasWords = selection.words.length > 0;
    const values = new Values(this.#index);
    const tests = this.#tests(selection, values);
    const isTested = tests !== '';
    if (isTested && (needed > WALK || (hasWords && field === 'id' && this.#index.hasWordsById))) {
      return this.#collectAll(selection, part);
    }
    const bounds = selection.conditions.filter((condition) => condition.field === field);
    const along = `${this.#index.along(field)}${comparisons(bounds, values)}${this.#index.inTime('i.id')}`;
    if (!isTested) return this.#rows(`select i.id from ${along}${cut(part, values)}`, part, values);
    const steps = cut({ ...part, offset: 0, most: WALK }, values);
    const rows = await this.#rows(
      // The inner query returns its rows in order, and the outer one stops as soon as it has enough.
      `select i.id from (select i.* from ${along}${steps}) i where true${tests} limit ${values.add(needed)}`,
      part,
      values,
    );
    return rows.length < needed ? this.#collectAll(selection, part) : rows.slice(part.offset);
  }

  /** Step 2 for each group of the order by relevance (rule F10), from the one on in which the page begins. */
  async #walkByRelevance(
    { words, conditions }: Selection,
    relevance: Relevance,
    { after, offset, most }: Part,
  ): Promise<readonly Row[]> {
    const [first = 0, key = '', id = 0] = (after ?? []) as [number?, string?, number?];
    // A title that begins with the query has its words, unless some of them are joined from several.
    const keyWords = relevance.key.split(' ');
    const areInKey = words.every((wanted) => {
      return wanted.field !== 'author' && !wanted.isPrefix && keyWords.includes(wanted.word);
    });
    const byTitle = areInKey ? [] : words;
    const isQuery: Condition = { field: 'title', operator: '=', value: relevance.key };
    const beginsSo: readonly Condition[] = [
      { field: 'title', operator: '>=', value: relevance.from },
      { field: 'title', operator: '<', value: relevance.before },
    ];
    const others = { words, conditions, isRest: relevance };
    const groups: readonly [Selection, readonly SortBy[], Place][] = [
      [{ words: byTitle, conditions: [...conditions, isQuery] }, BY_ID, [id]],
      [
        { words: byTitle, conditions: [...conditions, ...beginsSo] },
        BY_TITLE,
        first === 1 ? [key, id] : [relevance.key, Number.MAX_SAFE_INTEGER], // after the first group
      ],
      [others, BY_ID, [first === 2 ? id : 0]],
    ];
    const rows: Row[] = [];
    let left = offset;
    for (const [selection, order, begin] of groups.slice(first)) {
      const part = { columns: columnsOf(order), after: begin, offset: left, most: most - rows.length };
      if (selection === others) return [...rows, ...(await this.#walk(selection, order, part))];
      rows.push(...(await this.#alongTitles(selection, part)));
      if (rows.length === most) break;
      if (rows.length > 0) left = 0;
      else if (left > 0) left -= await this.#countAlongTitles(selection, part);
    }
    return rows;
  }

  /** The titles in a range that conditions give. */
  #alongTitles(selection: Selection, part: Part): Promise<readonly Row[]> {
    const values = new Values(this.#index);
    const tests = `${this.#tests(selection, values)}${this.#index.inTime('i.id')}`;
    return this.#rows(
      `select i.id from ${this.#index.along('title')}${tests}${cut(part, values)}`,
      part,
      values,
    );
  }

  async #countAlongTitles(selection: Selection, part: Part): Promise<number> {
    const values = new Values(this.#index);
    const tests = `${this.#tests(selection, values)}${this.#index.inTime('i.id')}${afterPlace(part, values)}`;
    const [row] = await this.#index.select(
      `select count(*) from ${this.#index.along('title')}${tests}`,
      values.all,
    );
    return Number(row?.[0]);
  }

  /** Step 3. */
  #collectAll(selection: Selection, part: Part): Promise<readonly Row[]> {
    const values = new Values(this.#index);
    const { from, id } = this.#matching(selection, values);
    const columns = part.columns.map((column) => (column.isId ? { ...column, sql: () => id } : column));
    return this.#rows(
      `select ${id} as id from ${this.#index.unsorted(from)}${cut({ ...part, columns }, values)}`,
      part,
      values,
    );
  }

  async #countUpTo(most: number, selection: Selection): Promise<number> {
    const values = new Values(this.#index);
    const { from } = this.#matching(selection, values, true);
    const [row] = await this.#index.select(
      `select count(*) from (select 1 from ${from} limit ${most + 1}) as hits`,
      values.all,
    );
    return Number(row?.[0]);
  }

  async #count(selection: Selection): Promise<number | undefined> {
    const values = new Values(this.#index);
    const { from } = this.#matching(selection, values, true);
    return this.#index.count(`select count(*) from ${from}`, values.all);
  }

  /**
   * SQL after `from` for the books of a selection, and for their ids.
   * @param isCount whether no column is needed.
   */
  #matching(selection: Selection, values: Values, isCount = false): { from: string; id: string } {
    const { words, conditions } = selection;
    const hasWords = words.length > 0;
    const isBare = isCount && conditions.length === 0;
    const source = hasWords
      ? this.#index.withWords(values.add(this.#index.wordsValue(words)), isBare)
      : 'book_index i where true';
    const id = hasWords ? this.#index.idWithWords : COLUMNS.id;
    const where = `${comparisons(conditions, values)}${isRest(selection, values)}${this.#index.inTime(id)}`;
    return { from: `${source}${where}`, id };
  }

  /** SQL conditions that a book of the index belongs to a selection; empty if every book does. */
  #tests(selection: Selection, values: Values): string {
    const { words, conditions } = selection;
    const wordTest =
      words.length === 0
        ? ''
        : ` and ${this.#index.hasWords(values.add(this.#index.wordsValue(words)), words)}`;
    return `${comparisons(conditions, values)}${isRest(selection, values)}${wordTest}`;
  }

  /**
   * The rows of a page.
   * @param ids SQL that selects their ids, in their order. It reads as little as possible of the rows before them.
   */
  async #rows(ids: string, part: Part, values: Values): Promise<readonly Row[]> {
    // `cross join` keeps SQLite's planner from reading the index in the order of the page instead.
    const sql = `select ${KEYS} from (${ids}) as page cross join book_index i where i.id = page.id${orderBy(part, values)}`;
    return (await this.#index.select(sql, values.all)) as Row[];
  }
}

function placeOf([id, title, author, year]: Row, order: Search['order']): Place {
  if (!isRelevance(order)) return order.map(({ field }) => ({ id, title, author, year })[field]);
  if (title === order.key) return [0, '', id];
  const key = Buffer.from(title);
  const isSecond = key.compare(Buffer.from(order.from)) >= 0 && key.compare(Buffer.from(order.before)) < 0;
  return isSecond ? [1, title, id] : [2, '', id];
}

function columnsOf(order: Search['order']): readonly Column[] {
  if (!isRelevance(order)) {
    return order.map(({ field, isDescending }) => {
      return { sql: () => COLUMNS[field], isDescending, isId: field === 'id' };
    });
  }
  const { key, from, before } = order;
  const isSecond = (values: Values) =>
    `i.title_key <> ${values.add(key)} and i.title_key >= ${values.add(from)} and i.title_key < ${values.add(before)}`;
  const group = (values: Values) =>
    `case when i.title_key = ${values.add(key)} then 0 when ${isSecond(values)} then 1 else 2 end`;
  const keyInSecond = (values: Values) => `case when ${isSecond(values)} then i.title_key else '' end`;
  return [
    { sql: group, isDescending: false, isId: false },
    { sql: keyInSecond, isDescending: false, isId: false },
    ...columnsOf(BY_ID),
  ];
}

/** SQL, to follow other conditions. */
function comparisons(conditions: Filters['conditions'], values: Values): string {
  return conditions
    .map(({ field, operator, value }) => ` and ${COLUMNS[field]} ${operator} ${values.add(value)}`)
    .join('');
}

function isRest({ isRest: relevance }: Selection, values: Values): string {
  if (relevance === undefined) return '';
  const { key, from, before } = relevance;
  const isSecond = `i.title_key >= ${values.add(from)} and i.title_key < ${values.add(before)}`;
  return ` and i.title_key <> ${values.add(key)} and not (${isSecond})`;
}

/** SQL to follow conditions: only this part of the rows, in its order. */
function cut(part: Part, values: Values): string {
  const { offset, most } = part;
  const limit = ` limit ${values.add(most)}${offset > 0 ? ` offset ${values.add(offset)}` : ''}`;
  return `${afterPlace(part, values)}${orderBy(part, values)}${limit}`;
}

function orderBy({ columns }: Part, values: Values): string {
  return ` order by ${columns.map(({ sql, isDescending }) => `${sql(values)}${isDescending ? ' desc' : ''}`).join(', ')}`;
}

/** SQL for the rows after a place (keyset pagination). */
function afterPlace({ columns, after }: Part, values: Values): string {
  if (after === undefined) return '';
  const [lead] = columns as readonly [Column];
  const isBeyond = ({ isDescending }: Column) => (isDescending ? '<' : '>');
  if (columns.every(({ isDescending }) => isDescending === lead.isDescending)) {
    const row = columns.map(({ sql }) => sql(values));
    return ` and (${row}) ${isBeyond(lead)} (${after.map((value) => values.add(value))})`;
  }
  const alternatives = columns.map((column, position) => {
    const equal = columns
      .slice(0, position)
      .map(({ sql }, before) => `${sql(values)} = ${values.add(after[before] as Value)} and `);
    return `${equal.join('')}${column.sql(values)} ${isBeyond(column)} ${values.add(after[position] as Value)}`;
  });
  // The first comparison lets the index be read from there on.
  const bound = `${lead.sql(values)} ${isBeyond(lead)}= ${values.add(after[0] as Value)}`;
  return ` and ${bound} and (${alternatives.map((sql) => `(${sql})`).join(' or ')})`;
}
