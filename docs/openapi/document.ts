// Owns: the description of the API as an OpenAPI 3.1 document, openapi.json, which the service serves with its own
// address in it. Its schemas, messages and header values are those that the routes use; a test compares everything else
// in it with real traffic. `npm run docs` writes the file.
// Does not: describe anything that is not on the service's own port.

import { MOST_BOOKS } from '../../src/api/book-array.ts';
import { LOGIN } from '../../src/api/login.ts';
import { BOOK_FIELDS, BOOK_ID } from '../../src/books/book.ts';
import { COUNTED, FILTERS, textsOf } from '../../src/books/search.ts';
import { version } from '../../src/version.ts';
import { CONTINUE_PARAMETERS, FILES, IMPORT_PARAMETERS, IMPORT_SCHEMAS } from './imports.ts';
import {
  CHANGES_PARAMETERS,
  EVENT,
  EVENT_BOOKS_PARAMETERS,
  EVENTS_PARAMETERS,
  HISTORY_PARAMETERS,
  RUN,
  SEARCH_PARAMETERS,
  SUGGESTION_PARAMETERS,
  UNDO_PARAMETERS,
} from './parameters.ts';
import {
  BOOK_EXAMPLE,
  describeResponse,
  HEADERS,
  NOT_MODIFIED,
  OPTIONAL_HEADERS,
  REQUEST_ID_TEXT,
  RESPONSES,
  type ResponseName,
  TAG_EXAMPLE,
  TOKEN,
} from './responses.ts';
import { exactly, type Schema, schemaRef } from './schema.ts';

interface Operation {
  readonly operationId: string;
  readonly tags: readonly [string];
  readonly summary: string;
  readonly description: string;
  /** The operation needs no token. */
  readonly open?: true;
  /** Those that no other operation has. */
  readonly parameters?: readonly object[];
  /** It takes `Idempotency-Key`. */
  readonly takesKey?: true;
  /** It takes `If-Match` and `If-None-Match`. */
  readonly isConditional?: true;
  readonly body?: { readonly schema: string; readonly examples: Readonly<Record<string, unknown>> };
  /** Its body is a file. */
  readonly takesFile?: true;
  readonly responses: readonly ResponseName[];
}

/** Responses of every operation. */
const ANY: readonly ResponseName[] = ['RequestTimeout', 'MisdirectedRequest', 'HeadersTooLarge'];
/** Responses of operations that change a book. */
const CONDITIONAL: readonly ResponseName[] = ['PreconditionFailed', 'PreconditionRequired'];
const GUARDED: readonly ResponseName[] = ['Unauthorized', 'InternalError', 'ServiceUnavailable', ...ANY];

/** Responses to requests that match no operation; OpenAPI has no place for them. */
const OTHER: readonly ResponseName[] = [
  'BadRequest',
  'NotFound',
  'MethodNotAllowed',
  'RequestTimeout',
  'MisdirectedRequest',
  'HeadersTooLarge',
];

const TEXT_FILTERS = Object.keys(FILTERS).filter((name) => textsOf(name).length > 0);

const READ_BOOKS: Operation = {
  operationId: 'listBooks',
  tags: ['Books'],
  summary: 'List or find books',
  description:
    'Without parameters: all books, ascending by `id`, as they were at one moment. The list is a stream. A shortened ' +
    'list never looks complete: if something fails half way, the connection breaks.\n\n' +
    'With parameters: a page of the books that meet all conditions. In titles and authors, case, accents and ' +
    'punctuation do not count. `Link` leads to the next page; without `rel="next"` in it there is none. The operator ' +
    'can switch searching off (`FIND=off`): then each parameter is 400.',
  parameters: SEARCH_PARAMETERS,
  responses: ['BooksRetrieved', 'InvalidQuery', ...GUARDED],
};

const READ_SUGGESTIONS: Operation = {
  operationId: 'suggestSearches',
  tags: ['Books'],
  summary: 'Correct a search',
  description:
    'For a search that finds no book: other values of its parameters, with which it does, since a word is misspelt, ' +
    'or written as one or as several. To search again, replace the value of that parameter. An empty array if ' +
    'the search finds books, or nothing is near.',
  parameters: SUGGESTION_PARAMETERS,
  responses: ['SuggestionsRetrieved', 'InvalidQuery', ...GUARDED],
};

const READ_BOOK: Operation = {
  operationId: 'getBook',
  tags: ['Books'],
  summary: 'Read a book',
  description:
    'The book with this id. With the `ETag` of an earlier answer as `If-None-Match`, the answer is 304 without a body ' +
    'if the book still is the same.',
  isConditional: true,
  responses: ['BookRetrieved', 'BadRequest', 'BookNotFound', 'PreconditionFailed', ...GUARDED],
};

const READ_CHANGES: Operation = {
  operationId: 'listChanges',
  tags: ['Changes'],
  summary: 'Follow the changes',
  description:
    'Without `cursor`: all books, ascending by `id`, page by page, then what has changed since the first page. `Link` ' +
    'always leads on. Behind a page without elements it leads to what happens later; with `Prefer: wait=30` the answer ' +
    'comes as soon as there is something. Each book is in a page once, in its present state. The operator can switch the ' +
    'log off (`HISTORY=off`): then this path does not exist.',
  parameters: CHANGES_PARAMETERS,
  responses: ['ChangesRetrieved', 'InvalidQuery', 'NotFound', 'CursorGone', ...GUARDED],
};

const READ_HISTORY: Operation = {
  operationId: 'getHistory',
  tags: ['Changes'],
  summary: 'Read the states of a book',
  description:
    'The present state, then the earlier ones, as far as the log has them. A book that was removed has its history, and ' +
    'begins with `null`. `Link` leads to older states, if there are any.',
  parameters: HISTORY_PARAMETERS,
  responses: ['HistoryRetrieved', 'InvalidQuery', 'HistoryNotFound', ...GUARDED],
};

const READ_EVENT: Operation = {
  operationId: 'getEvent',
  tags: ['Changes'],
  summary: 'Read an event',
  description: 'An import, a run of single changes, or an undo and how far it is.',
  responses: ['EventRetrieved', 'EventNotFound', ...GUARDED],
};

const READ_EVENTS: Operation = {
  operationId: 'listEvents',
  tags: ['Changes'],
  summary: 'List the events',
  description:
    'What changed books together, the newest first: imports, undos, and runs of single changes, by any program, less than ' +
    '5 minutes apart. The last one is the beginning of the log. `Link` leads to older events, if there are any.',
  parameters: EVENTS_PARAMETERS,
  responses: ['EventsRetrieved', 'InvalidQuery', 'NotFound', ...GUARDED],
};

const READ_BOOKS_OF_EVENT: Operation = {
  operationId: 'listBooksOfEvent',
  tags: ['Changes'],
  summary: 'List the books of an event',
  description:
    'The books that it changed, ascending by `id`, as they were before and after it. `Link` leads to the next ones, if ' +
    'there are any.',
  parameters: EVENT_BOOKS_PARAMETERS,
  responses: ['BooksOfEventRetrieved', 'InvalidQuery', 'EventNotFound', ...GUARDED],
};

const READ_IMPORTS: Operation = {
  operationId: 'listImports',
  tags: ['Imports'],
  summary: 'List the imports',
  description: 'The newest 20 imports and checks of all processes, without files and rows.',
  responses: ['ImportsRetrieved', ...GUARDED],
};

const READ_IMPORT: Operation = {
  operationId: 'getImport',
  tags: ['Imports'],
  summary: 'Read the report of an import',
  description:
    'How far it is, how its file was understood, and what becomes of its rows. 100 imports are kept.',
  responses: ['ImportRetrieved', 'ImportNotFound', ...GUARDED],
};

const PATHS: Readonly<Record<string, Readonly<Record<string, Operation>>>> = {
  '/token': {
    post: {
      operationId: 'createToken',
      tags: ['Tokens'],
      summary: 'Log in',
      description:
        'Issues a token for the configured username and password. It is a JSON Web Token, signed with HMAC ' +
        'SHA-256, and valid for 15 minutes. After ten failed logins from one address, each further failed login ' +
        'is answered late, one a second; addresses that have not logged in are limited together, too.',
      open: true,
      body: { schema: 'Login', examples: { login: { username: 'admin', password: 'password' } } },
      responses: [
        'TokenGenerated',
        'InvalidLogin',
        'InvalidCredentials',
        'OriginNotAllowed',
        'PayloadTooLarge',
        'BodyCompressed',
        'TooManyAttempts',
        'TokenNotGenerated',
        ...ANY,
      ],
    },
  },
  '/book': {
    post: {
      operationId: 'createBook',
      tags: ['Books'],
      summary: 'Store a book',
      description:
        'Stores a new book. A field that the body leaves out is empty, so `{}` is a valid book. The answer is sent ' +
        'once the book is on disk. With an `Idempotency-Key`, the book is stored once, however often the request is sent.',
      takesKey: true,
      body: {
        schema: 'NewBook',
        examples: { book: BOOK_EXAMPLE, empty: {} },
      },
      responses: [
        'BookCreated',
        'InvalidNewBook',
        'PayloadTooLarge',
        'BodyCompressed',
        'KeyUsed',
        ...GUARDED,
      ],
    },
  },
  '/books': {
    get: READ_BOOKS,
    head: withoutBody(READ_BOOKS, 'checkBooks', 'Get the headers of the list'),
    post: {
      operationId: 'createBooks',
      tags: ['Books'],
      summary: 'Store many books',
      description:
        'Stores up to 10,000 new books, all of them or none. With an `Idempotency-Key`, they are stored once, however ' +
        'often the request is sent.',
      takesKey: true,
      body: { schema: 'NewBooks', examples: { books: [BOOK_EXAMPLE, {}] } },
      responses: ['BooksCreated', 'InvalidBooks', 'PayloadTooLarge', 'BodyCompressed', 'KeyUsed', ...GUARDED],
    },
  },
  '/suggestions': {
    get: READ_SUGGESTIONS,
    head: withoutBody(READ_SUGGESTIONS, 'checkSuggestions', 'Get the headers of suggestions'),
  },
  '/book/{id}': {
    get: READ_BOOK,
    head: withoutBody(READ_BOOK, 'checkBook', 'Check whether a book exists'),
    put: {
      operationId: 'updateBook',
      tags: ['Books'],
      summary: 'Change a book',
      description:
        'Applies all fields of the body in one atomic step. The other fields stay as they are, so `{}` changes ' +
        'nothing. Concurrent changes of different fields all survive. If there is no such book, the body is not ' +
        'checked. With the `ETag` of an earlier answer as `If-Match`, the book is changed only if nobody has changed ' +
        'it since.',
      isConditional: true,
      body: { schema: 'BookChanges', examples: { year: { year: 1615 }, nothing: {} } },
      responses: [
        'BookUpdated',
        'InvalidBook',
        'BookNotFound',
        'PayloadTooLarge',
        'BodyCompressed',
        ...CONDITIONAL,
        ...GUARDED,
      ],
    },
    delete: {
      operationId: 'deleteBook',
      tags: ['Books'],
      summary: 'Remove a book',
      description:
        'Removes the book. Its id is not given to another book; an undo brings the same book back. Of several concurrent ' +
        'removals of one book, exactly one succeeds. With the `ETag` of an earlier answer as `If-Match`, the book is removed only if ' +
        'nobody has changed it since.',
      isConditional: true,
      responses: ['BookDeleted', 'BadRequest', 'BookNotFound', ...CONDITIONAL, ...GUARDED],
    },
  },
  '/changes': {
    get: READ_CHANGES,
    head: withoutBody(READ_CHANGES, 'checkChanges', 'Get the headers of a page of changes'),
  },
  '/undo': {
    post: {
      operationId: 'undoChanges',
      tags: ['Changes'],
      summary: 'Take changes back',
      description:
        'Takes back one change, an event, or all changes since a time: up to 10,000 books in one step, more in ' +
        'parts. With `dry-run`, it only says what would be the outcome. Removed books return under their ids. Books that others have changed since are left, and named. With an `Idempotency-Key`, the request is ' +
        'carried out once, however often it is sent.',
      parameters: UNDO_PARAMETERS,
      takesKey: true,
      body: {
        schema: 'Undo',
        examples: {
          change: { change: 12 },
          event: { event: 40 },
          run: { event: '1764489600123-1764489850001' },
          since: { since: '2026-11-27T08:00:00Z' },
        },
      },
      responses: [
        'ChangesUndone',
        'UndoInProgress',
        'InvalidUndo',
        'ChangeNotFound',
        'PayloadTooLarge',
        'BodyCompressed',
        'NotUndone',
        ...GUARDED,
      ],
    },
  },
  '/events': {
    get: READ_EVENTS,
    head: withoutBody(READ_EVENTS, 'checkEvents', 'Get the headers of a page of events'),
  },
  '/event/{event}': {
    get: READ_EVENT,
    head: withoutBody(READ_EVENT, 'checkEvent', 'Check whether an event is known'),
    post: {
      operationId: 'continueEvent',
      tags: ['Changes'],
      summary: 'Continue an undo',
      description:
        'Continues an undo whose process has ended before all its books were checked. Otherwise it is as `GET`.',
      responses: ['EventRetrieved', 'UndoInProgress', 'EventNotFound', ...GUARDED],
    },
  },
  '/event/{event}/books': {
    get: READ_BOOKS_OF_EVENT,
    head: withoutBody(READ_BOOKS_OF_EVENT, 'checkBooksOfEvent', 'Get the headers of a page of these books'),
  },
  '/import': {
    get: READ_IMPORTS,
    head: withoutBody(READ_IMPORTS, 'checkImports', 'Get the headers of the list of imports'),
    post: {
      operationId: 'importFile',
      tags: ['Imports'],
      summary: 'Import a file',
      description:
        'Stores the books of a file, or with `dry-run` reports what would become of its rows. Rows that cannot be read as ' +
        'books are refused and listed; the others are stored. Rows that equal a book are left out, so a file can be sent ' +
        'again. `POST /undo` takes an import back: its number is that of an event. With an `Idempotency-Key`, a file is stored once, however ' +
        'often it is sent.',
      parameters: IMPORT_PARAMETERS,
      takesKey: true,
      takesFile: true,
      responses: [
        'ImportEnded',
        'ImportInProgress',
        'PreconditionRequired',
        'InvalidFile',
        'ImportNotFound',
        'PayloadTooLarge',
        'BodyCompressed',
        'KeyUsed',
        ...GUARDED,
      ],
    },
  },
  '/import/{number}': {
    get: READ_IMPORT,
    head: withoutBody(READ_IMPORT, 'checkImport', 'Check whether an import is known'),
    post: {
      operationId: 'continueImport',
      tags: ['Imports'],
      summary: 'Import a file that was checked',
      description:
        'Reads the file of a check again, to store its books, or with `dry-run` to check it with other options. Options that ' +
        'are not sent stay; `dry-run` and `corrections` do not.',
      parameters: CONTINUE_PARAMETERS,
      responses: [
        'ImportContinued',
        'ImportInProgress',
        'PreconditionRequired',
        'InvalidContinuation',
        'ImportNotFound',
        'FileGone',
        ...GUARDED,
      ],
    },
  },
  '/book/{id}/history': {
    get: READ_HISTORY,
    head: withoutBody(READ_HISTORY, 'checkHistory', 'Check whether a book has a history'),
  },
};

function withoutBody(operation: Operation, operationId: string, summary: string): Operation {
  return {
    ...operation,
    operationId,
    summary,
    description: 'The status and headers of `GET`, without a body.',
  };
}

const NOTED: Schema = {
  type: 'string',
  description:
    'When the change was noted, in UTC. For a state that is older than the log, when the log began.',
  pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$',
  examples: ['2026-11-27T08:00:00.123Z'],
};

/** `null` is a book that was removed. */
const BOOK_OR_NULL: Schema = { oneOf: [schemaRef('Book'), { type: 'null' }] };

const NUMBER: Schema = { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER };
const EVENT_NAMES: readonly Schema[] = [NUMBER, { type: 'string', pattern: `^${RUN}$` }];
const DAY = '[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])';
const MINUTE = '([01][0-9]|2[0-3]):[0-5][0-9]';

const SCHEMAS: Readonly<Record<string, Schema>> = {
  Login: { ...LOGIN, description: 'Unknown keys are ignored.' },
  Token: exactly({
    token: {
      type: 'string',
      description: 'Send it as the whole value of `Authorization`.',
      examples: [TOKEN],
    },
  }),
  Book: exactly({ id: BOOK_ID, ...withoutDefaults() }),
  Suggestion: exactly({
    parameter: { type: 'string', enum: TEXT_FILTERS, description: 'The one to replace.' },
    value: { type: 'string', description: 'The whole value, as books spell it.', examples: ['Hemingway'] },
    books: {
      type: ['integer', 'null'],
      minimum: 1,
      maximum: COUNTED,
      description: `How many books the search then finds; \`null\` above ${COUNTED}.`,
      examples: [582],
    },
  }),
  Change: exactly({ id: BOOK_ID, at: NOTED, book: BOOK_OR_NULL }),
  State: exactly({
    change: {
      type: ['integer', 'null'],
      description: 'The number of the change that led to the state; `null` if the log does not have it.',
      examples: [12],
    },
    at: NOTED,
    book: BOOK_OR_NULL,
  }),
  Undo: {
    type: 'object',
    description: 'Exactly one of the three. Unknown keys are ignored.',
    properties: {
      change: { ...NUMBER, description: 'A change of a history, or an undo.', examples: [12] },
      event: {
        oneOf: EVENT_NAMES,
        description: 'An event: an import or an undo, by its number; a run of single changes, by its text.',
        examples: [40, '1764489600123-1764489850001'],
      },
      since: {
        type: 'string',
        description:
          'A time of RFC 3339: all changes noted then or later, by any program, without those of undos.',
        pattern: `^${DAY}[Tt]${MINUTE}:[0-5][0-9](\\.[0-9]+)?([Zz]|[+-]${MINUTE})$`,
        examples: ['2026-11-27T08:00:00Z'],
      },
    },
    oneOf: ['change', 'event', 'since'].map((name) => ({ required: [name] })),
  },
  Undone: exactly({
    change: {
      type: ['integer', 'null'],
      description: 'The number of this undo, which can be taken back; `null` if no book was changed.',
      examples: [31],
    },
    undone: { type: 'integer', description: 'How many books are as they were before.', examples: [2] },
    left: { type: 'array', items: schemaRef('LeftBook') },
  }),
  UndoCheck: exactly({
    books: { type: 'integer', description: 'How many books these changes are about.', examples: [18000] },
    checked: {
      type: 'integer',
      description: 'How many of them have been looked at.',
      maximum: 10000,
      examples: [10000],
    },
    undone: { type: 'integer', description: 'How many of these would be as before.', examples: [9999] },
    left: { type: 'array', items: schemaRef('LeftBook') },
  }),
  Event: exactly({
    ...eventOf('import', 'undo', 'changes'),
    undo: { oneOf: [schemaRef('UndoProgress'), { type: 'null' }] },
  }),
  ListedEvent: exactly({
    ...eventOf('import', 'undo', 'changes', 'beginning'),
    first: { type: 'array', maxItems: 3, items: schemaRef('ChangedBook') },
  }),
  ChangedBook: exactly({
    id: BOOK_ID,
    before: { ...BOOK_OR_NULL, description: 'The book before the event; `null` if there was none.' },
    book: { ...BOOK_OR_NULL, description: 'The book after the event; `null` if it was removed.' },
  }),
  UndoProgress: exactly({
    books: { type: 'integer', description: 'How many books these changes are about.', examples: [18000] },
    checked: { type: 'integer', description: 'How many of them have been looked at.', examples: [12503] },
    changedLater: { type: 'integer', description: 'How many of these were left.', examples: [3] },
    left: { type: 'array', maxItems: 10000, items: schemaRef('LeftBook') },
  }),
  LeftBook: exactly({ id: BOOK_ID, reason: { type: 'string', const: 'changed later' } }),
  ...IMPORT_SCHEMAS,
  NewBook: {
    type: 'object',
    description: 'Unknown keys, including `id`, are ignored. Keys are case-sensitive.',
    properties: BOOK_FIELDS,
  },
  NewBooks: { type: 'array', maxItems: MOST_BOOKS, items: schemaRef('NewBook') },
  BookChanges: {
    type: 'object',
    description:
      'Fields that are left out stay as they are. Unknown keys, including `id`, are ignored. Keys are case-sensitive.',
    properties: withoutDefaults(),
  },
};

/** The fields of an event that may be of these kinds. Only the beginning of the log has no name. */
function eventOf(...kinds: readonly string[]): Record<string, Schema> {
  const names = [...EVENT_NAMES, ...(kinds.includes('beginning') ? [{ type: 'null' }] : [])];
  return {
    event: {
      oneOf: names,
      description: 'Its number; the text of a run. `{"event": 31}` takes it back.',
      examples: [31, '1764489600123-1764489850001'],
    },
    kind: { type: 'string', enum: kinds },
    at: { ...NOTED, description: 'When it began, in UTC.' },
    until: { ...NOTED, description: 'Of a run, when its last change was noted; else as `at`.' },
    name: { type: ['string', 'null'], description: 'Of an import, its file.', examples: ['books.csv'] },
    books: {
      type: ['integer', 'null'],
      description: 'How many books it has changed so far; `null` of a run of more than 1,000 changes.',
      examples: [12500],
    },
  };
}

/** Responses of at least one operation. */
const NAMED = new Set(
  Object.values(PATHS).flatMap((operations) =>
    Object.values(operations).flatMap(({ responses }) => responses),
  ),
);

/** The fields of a book, for schemas in which defaults do not apply. */
function withoutDefaults(): Record<string, Schema> {
  return Object.fromEntries(
    Object.entries(BOOK_FIELDS).map(([name, { default: _, ...field }]) => [name, field]),
  );
}

const ABOUT = `Keeps book records and serves them to clients that present a token.

Every answer is a JSON object of exactly three fields: \`status\` is the HTTP status, \`message\` is one of the
messages below, and \`data\` is the result, or \`null\` after a failure.

**To begin**, log in with \`POST /token\`, and send the token as the whole value of \`Authorization\` with every
other request, without \`Bearer\` or any other word before it.

Request bodies but files are read as JSON, whatever their \`Content-Type\` is, and a body that is not needed is ignored.
A path that is not listed here is 404 \`${RESPONSES.NotFound[0].envelope.message}\`, a method that its path does not have is
405 \`${RESPONSES.MethodNotAllowed[0].envelope.message}\`. Neither needs a token.`;

/** The text of openapi.json. */
export function describeApi(): string {
  const document = {
    openapi: '3.1.1',
    info: {
      title: 'Book catalogue',
      summary: 'Books over HTTP, as JSON.',
      description: ABOUT,
      license: { name: 'MIT', identifier: 'MIT' },
      version,
    },
    servers: [{ url: 'http://127.0.0.1:8080', description: 'The service that this document describes.' }],
    tags: [
      { name: 'Tokens', description: 'Logging in.' },
      { name: 'Books', description: 'Books: one, those that are found, or all of them.' },
      {
        name: 'Changes',
        description: 'The log of changes: what has changed, the states of a book, and taking changes back.',
      },
      { name: 'Imports', description: 'Files of books, with a report of what becomes of each row.' },
    ],
    security: [{ token: [] }],
    paths: mapValues(PATHS, (operations, path) => ({
      ...(path.includes('{id}') && { parameters: [{ $ref: '#/components/parameters/BookId' }] }),
      ...(path.includes('{event}') && { parameters: [{ $ref: '#/components/parameters/EventName' }] }),
      ...(path.includes('{number}') && { parameters: [{ $ref: '#/components/parameters/ImportNumber' }] }),
      ...mapValues(operations, describeOperation),
    })),
    'x-responses-to-other-requests': byStatus(OTHER, describeResponse),
    components: {
      securitySchemes: {
        token: {
          type: 'apiKey',
          in: 'header',
          name: 'Authorization',
          description:
            'The token is the whole value of the header, without a scheme such as `Bearer` before it.',
        },
      },
      parameters: {
        BookId: {
          name: 'id',
          in: 'path',
          required: true,
          description: 'Id of the book, in plain decimal digits. Anything else is 404.',
          schema: BOOK_ID,
        },
        EventName: {
          name: 'event',
          in: 'path',
          required: true,
          description: 'Number of an import or an undo, or text of a run. Anything else is 404.',
          schema: { type: 'string', pattern: `^${EVENT}$`, examples: ['31', '1764489600123-1764489850001'] },
        },
        ImportNumber: {
          name: 'number',
          in: 'path',
          required: true,
          description: 'Number of the import, in plain decimal digits. Anything else is 404.',
          schema: NUMBER,
        },
        IdempotencyKey: {
          name: 'Idempotency-Key',
          in: 'header',
          description:
            'A new text for each new request, such as a UUID. If there is no answer or a 503, send the request again with ' +
            'the same key: it is carried out once. A key is known for 24 hours.',
          schema: {
            type: 'string',
            pattern: '^[!-~]{1,255}$',
            examples: ['8e03978e-40d5-43dd-bc93-6894a57f9324'],
          },
        },
        IfMatch: {
          name: 'If-Match',
          in: 'header',
          description: 'The book must have one of these tags; `*` is any.',
          schema: { type: 'string', examples: [TAG_EXAMPLE] },
        },
        IfNoneMatch: {
          name: 'If-None-Match',
          in: 'header',
          description: 'The book must have none of these tags.',
          schema: { type: 'string', examples: [TAG_EXAMPLE] },
        },
        RequestId: {
          name: 'X-Request-Id',
          in: 'header',
          description: "An id for the request in the service's log. One of another form is replaced.",
          schema: REQUEST_ID_TEXT,
        },
      },
      headers: mapValues(HEADERS, (header, name) => ({
        ...header,
        required: !OPTIONAL_HEADERS.includes(name),
      })),
      responses: {
        ...Object.fromEntries([...NAMED].map((name) => [name, describeResponse(name)])),
        NotModified: NOT_MODIFIED,
      },
      schemas: SCHEMAS,
    },
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

function describeOperation(
  { open, parameters = [], takesKey, isConditional, body, takesFile, responses, ...said }: Operation,
  method: string,
): object {
  const isHead = method === 'head';
  return {
    ...said,
    ...(open && { security: [] }),
    parameters: [
      ...[
        'RequestId',
        ...(takesKey ? ['IdempotencyKey'] : []),
        ...(isConditional ? ['IfMatch', 'IfNoneMatch'] : []),
      ].map((name) => ({ $ref: `#/components/parameters/${name}` })),
      ...parameters,
    ],
    ...(body && {
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: schemaRef(body.schema),
            examples: mapValues(body.examples, (value) => ({ value })),
          },
        },
      },
    }),
    ...(takesFile && {
      requestBody: {
        required: true,
        description: 'A file of CSV, a JSON array or JSON Lines. `Content-Type` has no effect.',
        content: {
          'application/octet-stream': {
            schema: { type: 'string' },
            examples: mapValues(FILES, (value) => ({ value })),
          },
        },
      },
    }),
    responses: {
      ...byStatus(responses, isHead ? headOf : responseRef),
      ...(isConditional &&
        (isHead || method === 'get') && { 304: { $ref: '#/components/responses/NotModified' } }),
    },
  };
}

/** Responses to HEAD have no content. */
function headOf(name: ResponseName): object {
  const { content: _, ...head } = describeResponse(name);
  return head;
}

function responseRef(name: ResponseName): object {
  return { $ref: `#/components/responses/${name}` };
}

function byStatus(names: readonly ResponseName[], describe: (name: ResponseName) => object): object {
  return Object.fromEntries(names.map((name) => [RESPONSES[name][0].envelope.status, describe(name)]));
}

function mapValues<Value, Mapped>(
  record: Readonly<Record<string, Value>>,
  map: (value: Value, key: string) => Mapped,
): Record<string, Mapped> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value, key)]));
}
