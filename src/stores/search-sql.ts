// Owns: the statements that find the books of a page in the search index, on both stores.
// Does not: leave the order of the steps within a statement to a query planner.

import type { EventKey } from '../books/change-log.ts';
import {
  type Condition,
  type Filters,
  isRelevance,
  type Relevance,
  type SortField,
  type WantedWord,
} from '../books/search.ts';
import type { ArticlesSql } from './book-index.ts';
import { ID_AND_FIELDS, TEXT_BYTES } from './columns.ts';
import {
  COLUMNS,
  type Column,
  columnsOf,
  groupsOf,
  INDEX_OF,
  type IndexName,
  isLastField,
  type LastField,
  type Part,
  partsToMerge,
  type Value,
  valueAt,
} from './search-order.ts';

/** Bytes of texts in one page, unless its first book has more (rule F4). */
const PAGE_BYTES = 1024 * 1024;

export interface Statement {
  readonly sql: string;
  /** In the order of their placeholders. */
  readonly values: readonly Value[];
}

/** The differences between the indexes of the two stores. In SQL, the table `book_index` is `i`. */
export interface IndexDialect {
  /** The largest number of matches that are collected before they are counted, in an order other than by id. */
  readonly mostCollected: number;
  /** Whether counting matches costs much less than collecting them, so that it is worth a separate statement. */
  readonly isCountedFirst: boolean;
  /** Whether matches of words come in the order of ids, so that nothing has to be collected or tested. */
  readonly hasWordsById: boolean;

  /** The placeholder of a value. */
  placeholder(position: number): string;
  /** Words as the value that a book's words are compared with. */
  wordsValue(words: readonly WantedWord[]): string;
  /** SQL between `from` and the first `and`: the books that have these words; `words` is the placeholder of their value. */
  allWithWords(words: string, isCount: boolean): string;
  /** SQL for the id of a book of `allWithWords`. */
  readonly idWithWords: string;
  /** SQL between `from` and the first `and`: all books, read in the order of an index, or of their ids. */
  allInOrderOf(index: IndexName): string;
  /** Whether parts are limited that are merged. The planner of PostgreSQL would sort all of them; that of SQLite sorts limited ones. */
  readonly limitsMerged: boolean;
  /** SQL for titles with and without an article. */
  readonly articles: ArticlesSql;
  /** SQL for whether the book `i` has these words. */
  hasWords(words: string, wanted: readonly WantedWord[]): string;
  /** SQL after `from`: these rows, all of which are collected before any is sorted. */
  collectedFirst(source: string): string;
  /** Ids as the value that `wantedBooks` has. */
  idsValue(ids: readonly number[]): string;
  /** SQL after `from`: the books with these ids, each with its ordinal among them. */
  wantedBooks(ids: string): string;
  /** SQL for the ids of the books of an event, in parentheses. */
  idsOfEvent(event: EventKey): string;
  /** SQL for a statement: which words of a JSON array some book has. */
  existing(words: string): string;
  /** SQL for a condition that fails when a search has taken too long; it follows conditions. */
  deadlineTest(id: string): string;
}

/** Which books of the index. */
export interface Selection extends Filters {
  /** Books of the first group of an order by relevance are left out. */
  readonly isRest?: Relevance;
}

const KEYS = 'i.id, i.title_key, i.author_key, i.year, i.author_filed';

/** Writes one statement, whose placeholders are numbered in the order in which their values are added. */
export class SearchStatement {
  readonly #dialect: IndexDialect;
  readonly #values: Value[] = [];

  constructor(dialect: IndexDialect) {
    this.#dialect = dialect;
  }

  /** The number of matches, or one more than `most` if there are more. */
  count(selection: Selection, most?: number): Statement {
    const matching = this.#matching(selection, true);
    return this.#end(
      `select count(*) from ${most === undefined ? matching : `(select 1 from ${matching} limit ${most + 1}) as hits`}`,
    );
  }

  /** All books of the page, in the order of ids, without their keys. */
  readBooks(part: Part): Statement {
    const inTime = this.#dialect.deadlineTest(COLUMNS.id);
    const keys = "'' as title_key, '' as author_key, 0 as year, null as author_filed";
    return this.#end(`select i.id, ${keys} from books i where true${inTime}${this.#cut(part)}`);
  }

  /** The number of all books, or one more than `most` if there are more. */
  countBooks(most?: number): Statement {
    const inTime = `books i where true${this.#dialect.deadlineTest(COLUMNS.id)}`;
    return this.#end(
      `select count(*) from ${most === undefined ? inTime : `(select 1 from ${inTime} limit ${most + 1}) as hits`}`,
    );
  }

  /** The number of matches, if there are no more than so many, and with it the rows of the page; else one more, and none. */
  collectFew(most: number, selection: Selection, part: Part): Statement {
    return this.#end(`
      with hit as materialized (select ${KEYS} from ${this.#matching(selection)} limit ${most + 1}),
        counted as (select count(*) as hits from hit),
        page as (select ${KEYS} from hit i where (select hits from counted) <= ${most}${this.#cut(part)})
      select hits, i.* from counted left join page i on true${this.#orderBy(part)}`);
  }

  /** The rows of the page: all matches are collected and sorted. */
  collectAll(selection: Selection, part: Part): Statement {
    const id = this.#idOf(selection);
    const from = this.#dialect.collectedFirst(this.#matching(selection));
    return this.#rows(`select ${id} as id from ${from}${this.#cut(part, id)}`, part);
  }

  /** The rows of the page: the index is read in their order. Nearly all that is read belongs to the selection. */
  readInOrder(field: SortField, selection: Selection, part: Part): Statement {
    return this.#rows(`select i.id from ${this.#firstInOrder(field, selection, part)}`, part);
  }

  /** The number of such rows after the place where the page begins. */
  countInOrder(field: SortField, selection: Selection, part: Part): Statement {
    const all = this.#inOrder(INDEX_OF[field], selection);
    return this.#end(`select count(*) from ${all}${this.#afterPlace(part)}`);
  }

  /**
   * The rows of the page and all before it: the index is read in their order, and each book is tested.
   * @param steps books that are tested at most.
   */
  testInOrder(field: SortField, selection: Selection, part: Part, steps: number): Statement {
    const tests = this.#tests(selection);
    const bounds = selection.conditions.filter(
      (condition) => 'field' in condition && INDEX_OF[condition.field] === INDEX_OF[field],
    );
    // The books of an event may become a join, which keeps no order.
    const order = selection.conditions.some((one) => 'event' in one) ? this.#orderBy(part) : '';
    const walk = { ...part, offset: 0, most: steps };
    const walked = this.#firstInOrder(field, { words: [], conditions: bounds }, walk);
    return this.#rows(
      // The inner query returns its rows in order, and the outer one stops as soon as it has enough.
      `select i.id from (select i.* from ${walked}) i where true${tests}${order} limit ${this.#add(part.offset + part.most)}`,
      part,
    );
  }

  /**
   * The books of a page in their order, without those that are gone, until their texts exceed PAGE_BYTES, but at least one;
   * the last column is the number of all of them.
   */
  books(ids: readonly number[]): Statement {
    // The inner query reads no texts, which may be a megabyte each.
    return this.#end(`
      select ${ID_AND_FIELDS}, found from (
        select id, ordinal, count(*) over () as found, row_number() over (order by ordinal) as position,
          sum(${TEXT_BYTES}) over (order by ordinal) as bytes
        from ${this.#dialect.wantedBooks(this.#add(this.#dialect.idsValue(ids)))}
      ) as page join books using (id)
      where bytes <= ${PAGE_BYTES} or position = 1
      order by ordinal`);
  }

  /** Those of these words that a book has. */
  existing(words: readonly string[]): Statement {
    return this.#end(this.#dialect.existing(this.#add(JSON.stringify(words))));
  }

  #end(sql: string): Statement {
    return { sql, values: this.#values };
  }

  /** @returns its placeholder. */
  #add(value: Value): string {
    this.#values.push(value);
    return this.#dialect.placeholder(this.#values.length);
  }

  /**
   * The rows of a page.
   * @param ids SQL that selects their ids, in their order. It reads as little as possible of the rows before them.
   */
  #rows(ids: string, part: Part): Statement {
    // `cross join` keeps SQLite's planner from reading the index in the order of the page instead.
    return this.#end(
      `select ${KEYS} from (${ids}) as page cross join book_index i where i.id = page.id${this.#orderBy(part)}`,
    );
  }

  /** SQL after `from` for the books of a selection; without columns if they are only counted. */
  #matching(selection: Selection, isCount = false): string {
    const { words, conditions } = selection;
    const isBare = isCount && conditions.length === 0;
    const source =
      words.length > 0
        ? this.#dialect.allWithWords(this.#add(this.#dialect.wordsValue(words)), isBare)
        : 'book_index i where true';
    return `${source}${this.#comparisons(conditions)}${this.#rest(selection)}${this.#dialect.deadlineTest(this.#idOf(selection))}`;
  }

  #idOf({ words }: Selection): string {
    return words.length > 0 ? this.#dialect.idWithWords : COLUMNS.id;
  }

  #inOrder(index: IndexName, selection: Selection): string {
    return `${this.#dialect.allInOrderOf(index)}${this.#tests(selection)}${this.#dialect.deadlineTest(COLUMNS.id)}`;
  }

  /** SQL after `from` for a part of a selection, `i`, of which no more is read than necessary. */
  #firstInOrder(field: SortField, selection: Selection, part: Part): string {
    if (isLastField(field)) return `(${this.#inGroups(field, selection, part)}) i`;
    if (field === 'title_without_article') return `(${this.#merged(selection, part)}) i`;
    return `${this.#inOrder(INDEX_OF[field], selection)}${this.#cut(part)}`;
  }

  #inGroups(field: LastField, selection: Selection, part: Part): string {
    const { offset, most } = part;
    const groups = groupsOf(field, part).map(({ condition, ...group }, at) => {
      const cut = this.#cut({ ...part, ...group, offset: 0, most: offset + most });
      return `select * from (select i.* from ${this.#inOrder(INDEX_OF[field], selection)} and ${condition}${cut}) as g${at}`;
    });
    return `select * from (${groups.join(' union all ')}) as groups${this.#limit(part)}`;
  }

  /** Titles with an article, from their own index, among the others. The store merges them as it reads them. */
  #merged(selection: Selection, part: Part): string {
    const { limitsMerged, articles } = this.#dialect;
    const orders = partsToMerge(part, articles).map(({ index, condition, ...range }, at) => {
      const one = { ...part, ...range, offset: 0, most: part.offset + part.most };
      const values = this.#columns(one).map(({ sql }, at) => `${sql} as by_${at}`);
      const sorted = `${this.#afterPlace(one)}${this.#orderBy(one)}${limitsMerged ? this.#limit(one) : ''}`;
      return `select * from (select i.*, ${values} from ${this.#inOrder(index, selection)} and ${condition}${sorted}) as m${at}`;
    });
    const by = this.#columns({ ...part, first: COLUMNS.title }).map(
      ({ isDescending }, at) => `i.by_${at}${isDescending ? ' desc' : ''}`,
    );
    return `select i.* from (${orders.join(' union all ')}) i order by ${by}${this.#limit(part)}`;
  }

  /** Conditions that a book of the index belongs to a selection. */
  #tests(selection: Selection): string {
    const { words, conditions } = selection;
    const others = `${this.#comparisons(conditions)}${this.#rest(selection)}`;
    if (words.length === 0) return others;
    return `${others} and ${this.#dialect.hasWords(this.#add(this.#dialect.wordsValue(words)), words)}`;
  }

  #comparisons(conditions: readonly Condition[]): string {
    const sqlOf = (condition: Condition) => {
      if ('event' in condition) return `${COLUMNS.id} in ${this.#dialect.idsOfEvent(condition.event)}`;
      return `${COLUMNS[condition.field]} ${condition.operator} ${this.#add(condition.value)}`;
    };
    return conditions.map((condition) => ` and ${sqlOf(condition)}`).join('');
  }

  #rest({ isRest: relevance }: Selection): string {
    return relevance === undefined ? '' : ` and not (${this.#beginsSo(relevance)})`;
  }

  #beginsSo({ key, before }: Relevance): string {
    return `i.title_key >= ${this.#add(key)} and i.title_key < ${this.#add(before)}`;
  }

  /** SQL to follow conditions: only this part of the rows, in its order. */
  #cut(part: Part, id: string = COLUMNS.id): string {
    return `${this.#afterPlace(part, id)}${this.#orderBy(part, id)}${this.#limit(part)}`;
  }

  #limit({ offset, most }: Part): string {
    return ` limit ${this.#add(most)}${offset > 0 ? ` offset ${this.#add(offset)}` : ''}`;
  }

  #orderBy(part: Part, id: string = COLUMNS.id): string {
    const columns = this.#columns(part, id).map(({ sql, isDescending }) =>
      isDescending ? `${sql} desc` : sql,
    );
    return ` order by ${columns.join(', ')}`;
  }

  /** SQL for the rows after a place (keyset pagination). */
  #afterPlace(part: Part, id: string = COLUMNS.id): string {
    const { after } = part;
    if (after === undefined) return '';
    const columns = this.#columns(part, id);
    const values = columns.map(({ valueIn }) => valueIn(after));
    const [first] = columns as [Column];
    const isBeyond = ({ isDescending }: Column) => (isDescending ? '<' : '>');
    // Lets the index be read from there on.
    const bound = () => ` and ${first.sql} ${isBeyond(first)}= ${this.#add(values[0] as Value)}`;
    if (columns.every(({ isDescending }) => isDescending === first.isDescending)) {
      const row = columns.map(({ sql }) => sql);
      const seek = /^\w\.\w+$/.test(first.sql) ? '' : bound(); // SQLite finds no row of expressions in an index
      return `${seek} and (${row}) ${isBeyond(first)} (${values.map((value) => this.#add(value))})`;
    }
    const alternatives = columns.map((column, position) => {
      const equal = columns
        .slice(0, position)
        .map(({ sql }, before) => `${sql} = ${this.#add(values[before] as Value)} and `);
      return `${equal.join('')}${column.sql} ${isBeyond(column)} ${this.#add(values[position] as Value)}`;
    });
    return `${bound()} and (${alternatives.map((sql) => `(${sql})`).join(' or ')})`;
  }

  #columns({ order, first }: Part, id: string = COLUMNS.id): readonly Column[] {
    if (!isRelevance(order)) return columnsOf(order, id, this.#dialect.articles, first);
    const ascending = [
      `case when ${this.#beginsSo(order)} then 0 else 1 end`,
      `case when ${this.#beginsSo(order)} then i.title_key else '' end`,
      id,
    ];
    return ascending.map((sql, position) => ({ sql, isDescending: false, valueIn: valueAt(position) }));
  }
}
