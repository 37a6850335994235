// Owns: the SQL of searches that only PostgreSQL has. Twin of `sqlite/dialect.ts`.

import { articlesBy } from '../book-index.ts';
import type { IndexDialect } from '../search-sql.ts';
import { isInEvent } from './log.ts';
import { idsIn } from './statements.ts';

/** With which the words of a field are marked in the index. */
const FIELD_LABELS = { title: 'A', author: 'B' };

export const ARTICLES = articlesBy('strpos');

const hasWords = (words: string) => `i.words @@ ${words}::tsquery`;

export const POSTGRES_DIALECT: IndexDialect = {
  // Collecting a match takes 10 microseconds, testing a book 1.
  mostCollected: 5000,
  isCountedFirst: false,
  hasWordsById: false,

  placeholder: (position) => `$${position}`,

  wordsValue(words) {
    const terms = words.map(({ word, isPrefix, field }) => {
      const label = `${isPrefix ? '*' : ''}${field === undefined ? '' : FIELD_LABELS[field]}`;
      return label === '' ? `'${word}'` : `'${word}':${label}`;
    });
    return terms.join(' & ');
  },

  allWithWords: (words) => `book_index i where ${hasWords(words)}`,

  idWithWords: 'i.id',

  articles: ARTICLES,
  limitsMerged: true,

  allInOrderOf: () => 'book_index i where true',

  hasWords,

  /** Left alone, the planner may walk in the order of the page to matches that are all at its end. */
  collectedFirst: (source) => `(select i.* from ${source} offset 0) i where true`,

  idsValue: (ids) => `{${ids}}`,

  wantedBooks: (ids) => `${idsIn(ids)} with ordinality as wanted (id, ordinal) join books using (id)`,

  // A planner expects a thousand ids of each series.
  idsOfEvent(event) {
    const rows = `from book_log where ${isInEvent(event)}`;
    return `(select book ${rows} and last = book union all select generate_series(book, last) ${rows} and last > book)`;
  },

  // Left alone, the planner reads the whole table for each word; with a limit beside `a | b | …`, which finds any of them, for
  // all. `materialized` keeps it at the index; `offset 0` makes each query once, and not for each book of a small table.
  existing: (words) => `
    select word from json_array_elements_text(${words}::json) as word,
      lateral (select quote_literal(word)::tsquery as wanted offset 0) as query,
      lateral (
        with hit as materialized (select from book_index where words @@ wanted) select exists (select from hit) as is_there
      ) as book
    where is_there`,

  deadlineTest: () => '', // the server ends a statement that takes too long
};
