// Owns: the SQL of searches that only SQLite has. Twin of `postgres/dialect.ts`.

import { articlesBy } from '../book-index.ts';
import type { IndexDialect } from '../search-sql.ts';
import { IS_SINGLE } from '../states.ts';

/**
 * Looks at the clock for one of 257 books: a call takes as long as reading several of them. The number is prime, so that
 * ids that are all odd, or all multiples of ten, make no difference.
 */
const deadlineTest = (id: string) => ` and (${id} % 257 or in_time())`;

export const ARTICLES = articlesBy('instr');

export const SQLITE_DIALECT: IndexDialect = {
  // Counting 50,000 matches of words takes a few milliseconds, collecting them 150, and testing 20,000 books 400.
  mostCollected: 50_000,
  isCountedFirst: true,
  hasWordsById: true,

  placeholder: (position) => `?${position}`,

  wordsValue: (words) =>
    words
      .map(({ field, word, isPrefix }) => `${field ? `${field} : ` : ''}"${word}"${isPrefix ? ' *' : ''}`)
      .join(' AND '),

  allWithWords(words, isCount) {
    // Left alone, the planner reads all books and looks each one up among the words. `cross join` fixes the order.
    const join = isCount ? '' : 'cross join book_index i on i.id = w.rowid ';
    return `book_index_words w ${join}where w.book_index_words match ${words}`;
  },

  idWithWords: 'w.rowid',

  articles: ARTICLES,
  limitsMerged: false,

  allInOrderOf: (index) =>
    `book_index i ${index === 'id' ? 'not indexed' : `indexed by book_index_${index}`} where true`,

  hasWords(words, wanted) {
    const matching = `book_index_words w where w.book_index_words match ${words}`;
    if (!wanted.some(({ isPrefix }) => isPrefix)) {
      return `exists (select 1 from ${matching} and w.rowid = i.id)`;
    }
    // For the beginning of a word, FTS5 collects all books of its words: once, and not for each book that is tested.
    return `i.id in (select w.rowid from ${matching}${deadlineTest('w.rowid')})`;
  },

  collectedFirst: (source) => source, // the order of its tables is fixed

  idsValue: (ids) => JSON.stringify(ids),

  wantedBooks: (ids) =>
    `(select value as id, key as ordinal from json_each(${ids})) as wanted cross join books using (id)`,

  // `cross join` fixes the order: the entries of the few ids of each row are looked up.
  idsOfEvent(event) {
    const isIn =
      typeof event === 'number'
        ? `part_of = ${event}`
        : `${IS_SINGLE} and at between ${event.from} and ${event.until}`;
    const test = deadlineTest('book_log.number');
    return `(
      select book from book_log where ${isIn} and last = book${test} union all
      select entry.id from book_log cross join book_index entry on entry.id between book_log.book and book_log.last
      where ${isIn} and last > book${test}
    )`;
  },

  // `match` takes twice the time for each word.
  existing: (words) =>
    `select value from json_each(${words}) where exists (select 1 from temp.book_words where term = value)`,

  deadlineTest,
};
