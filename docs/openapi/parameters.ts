// Owns: the parameters of `GET /books` in the OpenAPI document (rules F2 and F6). None has a default: clients that fill
// in defaults would turn the list of all books into a page.

import { BOOK_FIELDS } from '../../src/books/book.ts';
import { type FilterName, LARGEST_PAGE, LONGEST_TEXT, MOST_WORDS } from '../../src/books/search.ts';
import type { Schema } from './responses.ts';

interface Parameter {
  readonly description: string;
  readonly schema: Schema;
}

type QueryParameter = FilterName | 'sort' | 'limit' | 'cursor' | 'offset';

const FIELDS = '(title|author|year|id)';

function text(description: string, example: string): Parameter {
  return { description, schema: { type: 'string', maxLength: LONGEST_TEXT, examples: [example] } };
}

function words(where: string, example: string): Parameter {
  return text(
    `Words that a book must have in ${where}, in any order, at most ${MOST_WORDS}. \`quij*\` is every word that begins ` +
      'so, after three letters at least.',
    example,
  );
}

function year(description: string, example: number): Parameter {
  const { type, minimum, maximum } = BOOK_FIELDS.year;
  return { description, schema: { type, minimum, maximum, examples: [example] } };
}

const IN_QUERY: Readonly<Record<QueryParameter, Parameter>> = {
  q: words('its title or its author', 'cervantes quij*'),
  title: text('The whole title; `title=` finds books without one.', 'don quijote'),
  author: text('The whole author; `author=` finds books without one.', 'Miguel de Cervantes'),
  title_contains: words('its title', 'quijote'),
  author_contains: words('its author', 'cervantes'),
  title_starts_with: text('The beginning of the title.', 'don qui'),
  author_starts_with: text('The beginning of the author.', 'miguel'),
  year: year('The year.', 1605),
  year_gte: year('The first year.', 1600),
  year_lte: year('The last year.', 1699),
  sort: {
    description:
      'The order: `title`, `author`, `year`, `id` or several of them with commas between, each with `-` for ' +
      'descending; then by `id`. If left out: by `id`; with `q`, the titles that are the query come first, then those ' +
      'that begin with it.',
    schema: {
      type: 'string',
      pattern: `^[-+ ]?${FIELDS}(,[-+ ]?${FIELDS})*$`,
      examples: ['-year,title'],
    },
  },
  limit: {
    description: 'Most books of the page; 100 if left out. A page may have fewer although others follow.',
    schema: { type: 'integer', minimum: 1, maximum: LARGEST_PAGE, examples: [20] },
  },
  cursor: {
    description:
      'Where the page begins. It comes from the `Link` of the page before; clients do not make it.',
    schema: {
      type: 'string',
      pattern: '^[A-Za-z0-9_-]+$',
      examples: [Buffer.from('["id",1]').toString('base64url')],
    },
  },
  offset: {
    description:
      'How many books come before the page. Not together with `cursor`, by which far pages are found sooner.',
    schema: { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER, examples: [20] },
  },
};

/** All of them, as the document has them. */
export const SEARCH_PARAMETERS: readonly object[] = [
  ...Object.entries(IN_QUERY).map(([name, parameter]) => ({ name, in: 'query', ...parameter })),
  {
    name: 'Prefer',
    in: 'header',
    description: '`count=exact` asks for `X-Total-Count`, however many books are found.',
    schema: { type: 'string', examples: ['count=exact'] },
  },
];
