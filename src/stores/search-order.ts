// Owns: the orders of a page (rule F9) as SQL for both stores: the columns that books are sorted by, and in which parts an index is
// read to have the books in an order that no index has as a whole.

import { ARTICLES } from '../books/filing.ts';
import { type Place, type Search, SORT_FIELDS, type SortBy, type SortField } from '../books/search.ts';
import { type ArticlesSql, AUTHOR_FILED } from './book-index.ts';

export type Value = string | number;

/** Which part of a selection, in which order. */
export interface Part {
  readonly order: Search['order'];
  readonly after: Place | undefined;
  readonly offset: number;
  readonly most: number;
  /** SQL for the value of the first field, of some books none of which is last by it; empty if all of them have the same. */
  readonly first?: string;
}

/** One column of an order. */
export interface Column {
  readonly sql: string;
  readonly isDescending: boolean;
  /** Its value in a place. */
  readonly valueIn: (place: Place) => Value;
}

/** An index `book_index_…`. That of `bare` titles has those with an article. */
export type IndexName = 'id' | 'titles' | 'authors' | 'years' | 'filed' | 'bare';

/** The index with the order of a field. */
export const INDEX_OF: Readonly<Record<SortField, IndexName>> = {
  id: 'id',
  title: 'titles',
  author: 'authors',
  year: 'years',
  title_without_article: 'bare',
  author_last_word: 'filed',
  year_unknown_last: 'years',
};

export const COLUMNS = { id: 'i.id', title: 'i.title_key', author: 'i.author_key', year: 'i.year' };

/** Books with this value are last in both directions. */
const LAST = { author_last_word: "''", year_unknown_last: '0' };
export type LastField = keyof typeof LAST;

export function isLastField(field: SortField): field is LastField {
  return field in LAST;
}

const isLastValue = (value: Value | undefined) => value === '' || value === 0;

/** SQL for what books are sorted by. */
function sqlOf(field: SortField, { hasArticle, bareTitle }: ArticlesSql): string {
  if (field === 'author_last_word') return AUTHOR_FILED;
  if (field === 'title_without_article')
    return `case when ${hasArticle} then ${bareTitle} else title_key end`;
  return COLUMNS[SORT_FIELDS[field]];
}

export function valueAt(position: number): Column['valueIn'] {
  return (place) => place[position] as Value;
}

/** @param first of a `Part`. */
export function columnsOf(
  order: readonly SortBy[],
  id: string,
  articles: ArticlesSql,
  first: string | undefined,
): readonly Column[] {
  return order.flatMap(({ field, isDescending }, position): readonly Column[] => {
    const valueIn = valueAt(position);
    if (position === 0 && first !== undefined)
      return first === '' ? [] : [{ sql: first, isDescending, valueIn }];
    const column = { sql: field === 'id' ? id : sqlOf(field, articles), isDescending, valueIn };
    if (!isLastField(field)) return [column];
    const isLast = `case when ${COLUMNS[SORT_FIELDS[field]]} = ${LAST[field]} then 1 else 0 end`;
    return [
      { sql: isLast, isDescending: false, valueIn: (place) => Number(isLastValue(valueIn(place))) },
      column,
    ];
  });
}

/**
 * What is read one after the other: the books below and above the value that is last, and those that have it.
 * @returns each group that has books after the place, with its condition.
 */
export function groupsOf(
  field: LastField,
  { order, after }: Part,
): readonly (Pick<Part, 'after' | 'first'> & { condition: string })[] {
  const [{ isDescending }] = order as readonly [SortBy];
  const value = field === 'author_last_word' ? AUTHOR_FILED : COLUMNS.year;
  const operators = isDescending ? ['>', '<', '='] : ['<', '>', '='];
  const [place] = after ?? [];
  const began = isLastValue(place) ? '=' : Number(place) < 0 ? '<' : '>';
  const begin = place === undefined ? 0 : operators.indexOf(began);
  return operators.slice(begin).map((operator, at) => {
    const group = { after: at === 0 ? after : undefined, first: operator === '=' ? '' : value };
    // The place is beyond the value then. The store would read from the value on.
    const isImplied = group.after !== undefined && operator === operators[1];
    return { ...group, condition: isImplied ? 'true' : `${value} ${operator} ${LAST[field]}` };
  });
}

/**
 * What is merged: titles without an article that come before the next ones with one, those that come after, and those with one. So
 * the index is not read where all titles begin with that article.
 */
export function partsToMerge(
  { order, after }: Part,
  { hasArticle, bareTitle }: ArticlesSql,
): readonly (Pick<Part, 'after' | 'first'> & { index: IndexName; condition: string })[] {
  const [{ isDescending }] = order as readonly [SortBy];
  const place = after?.[0] ?? (isDescending ? '~' : '');
  const found = isDescending
    ? ARTICLES.findLast((article) => `${article} ` < place)
    : ARTICLES.find((article) => place < `${article}!`);
  const next = found ?? ARTICLES.at(isDescending ? 0 : -1);
  const [below, above] = [`i.title_key < '${next} '`, `i.title_key >= '${next}!'`];
  const [near, far] = isDescending ? [above, below] : [below, above];
  const first = COLUMNS.title;
  return [
    { index: 'titles', condition: near, first, after },
    // Beyond the next ones, all are beyond the place. PostgreSQL would read from the place on.
    { index: 'titles', condition: `${far} and not ${hasArticle}`, first, after: found ? undefined : after },
    { index: 'bare', condition: hasArticle, first: bareTitle, after },
  ];
}
