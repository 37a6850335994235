// Owns: the parameters in the OpenAPI document: those of `GET /books` (rules F2 and F6), and of the log of changes (rules
// H1, H3 to H5, H8 and H9). None of `GET /books` has a default: clients that fill in defaults would turn the list of all books into a
// page.

import { EVENTS, MOST_EVENTS } from '../../src/api/history.ts';
import { PAGE } from '../../src/api/query.ts';
import { BOOK_FIELDS } from '../../src/books/book.ts';
import { FILTERS, LARGEST_PAGE, LONGEST_TEXT, SORT_FIELDS } from '../../src/books/search.ts';
import type { Schema } from './schema.ts';

interface Parameter {
  /** In Markdown, without a period. */
  readonly description: string;
  readonly schema: Schema;
}

const FIELDS = `(${Object.keys(SORT_FIELDS).join('|')})`;

const NUMBER = '[1-9][0-9]{0,15}';
/** Regular expressions of the name of a run, and of any event in a path or a query. */
export const RUN = `${NUMBER}-${NUMBER}`;
export const EVENT = `${NUMBER}(-${NUMBER})?`;

/** By name, in the order of the documents. */
const OF_FILTERS = Object.fromEntries(
  Object.entries(FILTERS).map(([name, { help, example }]): [string, Parameter] => {
    return [name, { description: help, schema: { ...schemaOf(name), examples: [example] } }];
  }),
);

function schemaOf(filter: string): Schema {
  const { type, minimum, maximum } = BOOK_FIELDS.year;
  if (filter.startsWith('year')) return { type, minimum, maximum };
  return {
    type: 'string',
    ...(filter === 'event' ? { pattern: `^${EVENT}$` } : { maxLength: LONGEST_TEXT }),
  };
}

/** By name. */
export const IN_QUERY: Readonly<Record<string, Parameter>> = {
  ...OF_FILTERS,
  sort: {
    description:
      'the order: `title`, `author`, `year`, `id`, `title_without_article`, `author_last_word`, `year_unknown_last` or ' +
      'several of them, separated by commas, each with `-` for descending; equal books by `id`. Without it: by ' +
      '`id`; with `q`, first titles that begin with it',
    schema: {
      type: 'string',
      pattern: `^[-+ ]?${FIELDS}(,[-+ ]?${FIELDS})*$`,
      examples: ['-year,title'],
    },
  },
  limit: {
    description: 'the most books of a page, 100 by default. A page may have fewer although others follow',
    schema: { type: 'integer', minimum: 1, maximum: LARGEST_PAGE, examples: [20] },
  },
  cursor: {
    description: 'where the page starts: from the `Link` of the page before',
    schema: {
      type: 'string',
      pattern: '^[A-Za-z0-9_-]+$',
      examples: [Buffer.from('["id",1]').toString('base64url')],
    },
  },
  offset: {
    description:
      'how many books come before the page. Not together with `cursor`, which finds far pages sooner',
    schema: { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER, examples: [20] },
  },
};

const described = (parameters: typeof IN_QUERY) =>
  Object.entries(parameters).map(([name, parameter]) => ({ name, in: 'query', ...parameter }));

/** Of `GET /suggestions` (rule F13). */
export const SUGGESTION_PARAMETERS: readonly object[] = described(OF_FILTERS);

/** All of them, as the document has them. */
export const SEARCH_PARAMETERS: readonly object[] = [
  ...described(IN_QUERY),
  {
    name: 'Prefer',
    in: 'header',
    description: '`count=exact` asks for `X-Total-Count`, however many books are found.',
    schema: { type: 'string', examples: ['count=exact'] },
  },
];

const limitOf = (elements: string, usual = PAGE, maximum = LARGEST_PAGE) => ({
  name: 'limit',
  in: 'query',
  description: `The most ${elements} of a page. A page may have fewer although others follow.`,
  schema: { type: 'integer', minimum: 1, maximum, default: usual, examples: [20] },
});
const cursorOf = (content: unknown, others = '') => ({
  name: 'cursor',
  in: 'query',
  description: `Where the page starts: from the \`Link\` of the page before${others}.`,
  schema: {
    type: 'string',
    pattern: '^[A-Za-z0-9_-]+$',
    examples: [Buffer.from(JSON.stringify(content)).toString('base64url')],
  },
});

/** Of `GET /changes`. */
export const CHANGES_PARAMETERS: readonly object[] = [
  limitOf('books'),
  cursorOf([1], '; `now`: only later changes'),
  {
    name: 'Prefer',
    in: 'header',
    description:
      '`wait=30`: if there is nothing, the answer comes with the next change, or after 30 seconds. At most 60.',
    schema: { type: 'string', examples: ['wait=30'] },
  },
];

/** Of `GET /book/<id>/history`. */
export const HISTORY_PARAMETERS: readonly object[] = [limitOf('states'), cursorOf(12)];

/** Of `POST /undo`. */
export const UNDO_PARAMETERS: readonly object[] = [
  {
    name: 'dry-run',
    in: 'query',
    description: 'Find out the outcome, and change nothing. It has no value.',
    schema: { type: 'string', const: '' },
  },
];

/** Of `GET /events`. */
export const EVENTS_PARAMETERS: readonly object[] = [
  limitOf('events', EVENTS, MOST_EVENTS),
  cursorOf([1764489600123, 31]),
];

/** Of `GET /event/<event>/books`. */
export const EVENT_BOOKS_PARAMETERS: readonly object[] = [limitOf('books'), cursorOf(7)];
