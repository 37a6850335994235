// Owns: the responses in the OpenAPI document, with the same messages and header values that the routes send.

import { MOST_BOOKS } from '../../src/api/book-array.ts';
import * as answers from '../../src/api/envelope.ts';
import { SHOWN_NAME } from '../../src/api/query.ts';
import { BOOK_FIELDS, BOOK_ID, type Book, FIELD_NAMES } from '../../src/books/book.ts';
import { tagOf } from '../../src/books/condition.ts';
import { MOST_SUGGESTIONS } from '../../src/books/search.ts';
import { readConfig } from '../../src/config.ts';
import type { HeaderList } from '../../src/http/answer.ts';
import { TIMES } from '../../src/times.ts';
import { constantsOf, seconds, size } from '../limits.ts';
import { IMPORTS } from './imports.ts';
import { EVENT } from './parameters.ts';
import { exactly, type Schema, schemaRef } from './schema.ts';

/** One answer that an operation may give. */
interface Response {
  /** As the routes send it; if it has data, those are an example, and so is a message that has a pattern. */
  readonly envelope: answers.Envelope;
  /** The message, with a name in angle brackets for a part of it that differs. */
  readonly message: string;
  /** Regular expression of the message; absent if it is always the same. */
  readonly pattern?: string;
  /** Equal for every answer with this status and message. */
  readonly when: string;
  /** The rules of the contract that demand it. */
  readonly rules: string;
  /** Schema of `data`. */
  readonly data: Schema;
}

export type ResponseName = keyof typeof RESPONSES;

/** The book in the examples. */
export const BOOK_EXAMPLE = Object.fromEntries(
  FIELD_NAMES.map((name) => [name, BOOK_FIELDS[name].examples[0]]),
);
const BOOK = { id: BOOK_ID.examples[0], ...BOOK_EXAMPLE } as Book;
const AT = Date.UTC(2026, 10, 27, 8, 0, 0, 123);
const PROGRESS = { books: 18_000, checked: 12_503, left: [BOOK.id], changedLater: 3 };
const WORK = { ...PROGRESS, selection: { event: 12 }, through: 12_503 };
const UNDO = { number: 31, kind: 'undo', at: AT, name: null, books: 12_500, work: WORK } as const;
const UNTIL = AT + 249_878;
const RUN = { key: { from: AT, until: UNTIL }, kind: 'changes', at: AT, until: UNTIL, name: null } as const;
const CHANGED = { id: BOOK.id, before: { ...BOOK, year: 1604 }, book: BOOK };
const BEGINNING = { key: undefined, kind: 'beginning', at: AT, until: AT, name: null, books: 0 } as const;

/** The tag of that book, as a header has it. */
export const TAG_EXAMPLE = `"${tagOf(BOOK)}"`;
export const TOKEN = 'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJleHAiOjE3OTAwMDAwMDB9.c2lnbmF0dXJl';

function success({ body }: answers.EnvelopeAnswer, data: Schema, rules: string, when: string): Response {
  const envelope: answers.Envelope = JSON.parse(body);
  return { envelope, message: envelope.message, when, rules, data };
}

function failure(answer: answers.EnvelopeAnswer, rules: string, when: string): Response {
  return success(answer, { type: 'null' }, rules, when);
}

/**
 * @param answer whose message has a part that differs.
 * @param part its name, its regular expression, and an example.
 */
function failureWith(
  answer: (part: string) => answers.EnvelopeAnswer,
  part: { readonly name: string; readonly pattern: string; readonly example: string },
  rules: string,
  when: string,
): Response {
  const { message } = failure(answer(`<${part.name}>`), rules, when);
  const { message: pattern } = failure(answer(part.pattern), rules, when);
  return { ...failure(answer(part.example), rules, when), message, pattern: `^${pattern}$` };
}

const NOT_HTTP = failure(
  answers.BAD_REQUEST,
  'rule 20',
  'The request is malformed, has an invalid percent-escape in its path, or has no `Host` or two.',
);

const NOT_A_BOOK = failure(
  answers.INVALID_BOOK,
  'C1, U2, B2, H5',
  'The body is not a JSON object (`POST /books`: not an array), or a title or author is not a text, or a year is not a ' +
    'whole number without quotes (`POST /undo`: not one number, event or time). Nothing was changed. Remove a byte order mark before the body.',
);

const NO_PARAMETER = failureWith(
  answers.invalidParameter,
  { name: 'name', pattern: `.{0,${SHOWN_NAME}}`, example: 'yaer' },
  'F3, H1, H4, H5, H8, H9, M1',
  'This parameter does not exist, is there twice, has an invalid value, or cannot be used with the others.',
);

const NO_BOOK = failure(
  answers.BOOK_NOT_FOUND,
  'G2, U1, D2, H4, rule 10',
  'No book has this id. An id is a positive whole number without leading zeros.',
);

const NO_PATH = failure(
  answers.NOT_FOUND,
  'rule 20, H6',
  'There is no such path. Case and slashes count: one book is `/book/1`, all are `/books`. With `HISTORY=off`, those of ' +
    'the log do not exist.',
);

const NO_KEY = failure(
  answers.INVALID_KEY,
  'I1',
  'The `Idempotency-Key` is empty, has more than 255 characters, or others than visible ASCII.',
);

const OTHER_KEY = failure(
  answers.KEY_USED,
  'I2',
  'The `Idempotency-Key` was used for another request. Nothing was changed. Use a new key for each new request.',
);

const { bodyLimit, bulkLimit, headerLimit, importLimit } = readConfig({});
const books = MOST_BOOKS.toLocaleString('en-US');
const login = constantsOf('src/auth/credentials.ts')('LOGIN_LIMIT');

const TOO_LARGE = failure(
  answers.PAYLOAD_TOO_LARGE,
  'rule 22, B2',
  `The body is too long. It may have ${size(bodyLimit)} (\`POST /books\`: ${size(bulkLimit)}, ${books} books and ` +
    `${size(bodyLimit)} for the texts of one; \`POST /import\`: ${size(importLimit)}; \`POST /token\`: ${size(login)}), unless the operator has set other limits.`,
);

const INVALID_FILE = success(
  answers.invalidFile(IMPORTS.invalid),
  { oneOf: [schemaRef('Import'), { type: 'null' }] },
  'M2',
  'No books can be found in the file. `fault` in the report says why. Nothing was stored.',
);
const IMPORTED = success(
  answers.booksImported(IMPORTS.stored),
  schemaRef('Import'),
  'M2',
  'The books of the file are stored durably.',
);
const CHECKED = success(
  answers.fileChecked(IMPORTS.checked),
  schemaRef('Import'),
  'M2',
  'What would become of each row. Nothing was stored.',
);
const IMPORT_FOUND = success(
  answers.importRetrieved(IMPORTS.stored),
  schemaRef('Import'),
  'M5, M6',
  'The report of the import.',
);

const INTERNAL = failure(
  answers.INTERNAL_ERROR,
  'rule 20',
  'An error in the service. A change may or may not have been made. The log has the cause under the `x-request-id`.',
);

/** Every response by name, with all answers that it may be; these have the same status. */
export const RESPONSES = {
  TokenGenerated: [
    success(
      answers.tokenGenerated(TOKEN),
      schemaRef('Token'),
      'T3',
      'The username and password are correct.',
    ),
  ],
  BooksRetrieved: [
    success(
      answers.booksRetrieved([BOOK]),
      { type: 'array', items: schemaRef('Book') },
      'L1, F1',
      'All books; with parameters, a page of those that are found.',
    ),
  ],
  SuggestionsRetrieved: [
    success(
      answers.suggestionsRetrieved([{ parameter: 'q', value: 'Hemingway', books: 582 }]),
      { type: 'array', maxItems: MOST_SUGGESTIONS, items: schemaRef('Suggestion') },
      'F13',
      'The best suggestions, that with the most books first.',
    ),
  ],
  BookRetrieved: [success(answers.bookRetrieved(BOOK), schemaRef('Book'), 'G1', 'The book.')],
  BookUpdated: [success(answers.bookUpdated(BOOK), schemaRef('Book'), 'U3', 'The book after the change.')],
  BookDeleted: [success(answers.BOOK_DELETED, { type: 'null' }, 'D1', 'The book has been removed.')],
  BookCreated: [
    success(
      answers.bookCreated(BOOK),
      schemaRef('Book'),
      'C2',
      'The book with its new id. It is stored durably.',
    ),
  ],
  BooksCreated: [
    success(
      answers.booksCreated([BOOK.id, BOOK.id + 1]),
      { type: 'array', maxItems: MOST_BOOKS, items: BOOK_ID },
      'B1',
      'The ids of the new books, in the order of the array. All of them are stored durably.',
    ),
  ],
  ChangesRetrieved: [
    success(
      answers.changesRetrieved([{ id: BOOK.id, at: AT, book: BOOK }]),
      { type: 'array', items: schemaRef('Change') },
      'H1',
      'Books that have changed; none if nothing has changed since the page before.',
    ),
  ],
  HistoryRetrieved: [
    success(
      answers.historyRetrieved([{ change: 12, at: AT, book: BOOK }], []),
      { type: 'array', items: schemaRef('State') },
      'H4',
      'The states of the book, the newest first.',
    ),
  ],
  ChangesUndone: [
    success(
      answers.changesUndone({ ...PROGRESS, event: 31, undone: 2 }),
      { oneOf: [schemaRef('Undone'), schemaRef('UndoCheck')] },
      'H5',
      'The number of the undo, how many books are as they were, and those that were left.',
    ),
    success(
      answers.undoChecked({ ...PROGRESS, event: null, checked: 10_000, undone: 9999 }),
      schemaRef('UndoCheck'),
      'H5',
      'The outcome that the undo would have. Nothing was changed.',
    ),
  ],
  UndoInProgress: [
    success(
      answers.undoInProgress(UNDO),
      schemaRef('Event'),
      'H5, H7',
      'There are more than 10,000 books, so they are taken back in parts. `Location` has how far it is.',
    ),
  ],
  EventRetrieved: [
    success(
      answers.eventRetrieved(UNDO),
      schemaRef('Event'),
      'H7',
      'The event. An undo is complete if all its books are checked.',
    ),
  ],
  EventsRetrieved: [
    success(
      answers.eventsRetrieved(
        [
          { ...RUN, books: 1, first: [CHANGED] },
          { ...BEGINNING, first: [] },
        ],
        [],
      ),
      { type: 'array', items: schemaRef('ListedEvent') },
      'H8',
      'The events, the newest first.',
    ),
  ],
  BooksOfEventRetrieved: [
    success(
      answers.booksOfEventRetrieved([CHANGED], []),
      { type: 'array', items: schemaRef('ChangedBook') },
      'H9',
      'The books that the event changed.',
    ),
  ],
  ImportEnded: [IMPORTED, CHECKED],
  ImportContinued: [IMPORTED, CHECKED, IMPORT_FOUND],
  ImportInProgress: [
    success(
      answers.importInProgress(IMPORTS.open),
      schemaRef('Import'),
      'M2',
      'The import takes longer than 4 seconds, and continues. `Location` has how far it is.',
    ),
  ],
  ImportRetrieved: [IMPORT_FOUND],
  ImportsRetrieved: [
    success(
      answers.importsRetrieved([IMPORTS.stored]),
      { type: 'array', maxItems: 20, items: schemaRef('ImportInShort') },
      'M5',
      'The newest imports, the newest first.',
    ),
  ],
  BadRequest: [NOT_HTTP],
  InvalidQuery: [NO_PARAMETER, NOT_HTTP],
  InvalidLogin: [
    failure(answers.INVALID_LOGIN, 'T1', 'The body is not a JSON object, or a field in it is not text.'),
    NOT_HTTP,
  ],
  InvalidBook: [NOT_A_BOOK, NOT_HTTP],
  InvalidNewBook: [NOT_A_BOOK, NO_KEY, NOT_HTTP],
  InvalidUndo: [NOT_A_BOOK, NO_PARAMETER, NO_KEY, NOT_HTTP],
  InvalidFile: [INVALID_FILE, NO_PARAMETER, NO_KEY, NOT_HTTP],
  InvalidContinuation: [INVALID_FILE, NO_PARAMETER, NOT_HTTP],
  InvalidBooks: [
    NOT_A_BOOK,
    failureWith(
      answers.invalidBook,
      { name: 'position', pattern: '[1-9][0-9]{0,4}', example: '3' },
      'B2',
      'The element at this position, from 1, is not a book. Nothing was stored.',
    ),
    NO_KEY,
    NOT_HTTP,
  ],
  KeyUsed: [OTHER_KEY],
  InvalidCredentials: [failure(answers.INVALID_CREDENTIALS, 'T2', 'The username or the password is wrong.')],
  Unauthorized: [
    failure(answers.TOKEN_REQUIRED, 'A3', 'There is no `Authorization` header, or it is empty.'),
    failure(
      answers.INVALID_TOKEN,
      'A4, rule 18',
      'The token has expired, was signed with another secret, or follows `Bearer`. Log in again, and send the token alone.',
    ),
  ],
  BookNotFound: [NO_BOOK],
  HistoryNotFound: [NO_BOOK, NO_PATH],
  ChangeNotFound: [
    failure(answers.NOT_UNDONE.unknown, 'H5', 'The log has no such change or event, or no longer.'),
    NO_PATH,
  ],
  NotUndone: [
    OTHER_KEY,
    failure(answers.NOT_UNDONE.beyond, 'H5', 'The log lacks changes since this time. Name a later one.'),
  ],
  EventNotFound: [
    failure(answers.EVENT_NOT_FOUND, 'H7, H9', 'The log has no such event, or no longer.'),
    NO_PATH,
  ],
  ImportNotFound: [
    failure(answers.IMPORT_NOT_FOUND, 'M5', 'There is no such import, or there are 100 newer ones.'),
  ],
  FileGone: [
    failure(
      answers.FILE_GONE,
      'M6',
      'The file is kept for 10 minutes, or for a shorter time if room is needed. Send it again.',
    ),
  ],
  CursorGone: [
    failure(
      answers.CURSOR_GONE,
      'H2',
      'The changes after this page are not known. Begin again without `cursor`, and remove the books that do not come.',
    ),
  ],
  PreconditionFailed: [
    failure(
      answers.PRECONDITION_FAILED,
      'E3',
      'The book does not meet `If-Match` or `If-None-Match`. This request changed nothing; an earlier attempt may have. Read ' +
        'the book again.',
    ),
  ],
  PreconditionRequired: [
    failure(
      answers.PRECONDITION_REQUIRED,
      'E4, M9',
      'The operator demands the tag of a book with every change and removal: in `If-Match`, or in the column `etag` of a file. Nothing was changed.',
    ),
  ],
  OriginNotAllowed: [
    failure(
      answers.ORIGIN_NOT_ALLOWED,
      'rule 32',
      'A browser sends this login for a page of another origin.',
    ),
  ],
  NotFound: [NO_PATH],
  MethodNotAllowed: [
    failure(
      answers.methodNotAllowed(['GET']),
      'rule 20',
      'The path does not have this method. `Allow` lists the methods that it has.',
    ),
  ],
  RequestTimeout: [
    failure(
      answers.REQUEST_TIMEOUT,
      'rule 22',
      `The request did not arrive in time. Its headers may take ${seconds(TIMES.http.headers)}, all of it ${seconds(TIMES.http.wholeRequest)}, with a file each ${size(constantsOf('src/import/upload.ts')('LEAST'))} of it.`,
    ),
  ],
  PayloadTooLarge: [TOO_LARGE],
  BodyCompressed: [
    failure(
      answers.BODY_COMPRESSED,
      'rule 7',
      'The body is compressed (`Content-Encoding`). Send it as it is.',
    ),
  ],
  MisdirectedRequest: [
    failure(
      answers.MISDIRECTED_REQUEST,
      'rule 33',
      'Until the operator sets account and secret, `Host` must name the machine of the service.',
    ),
  ],
  TooManyAttempts: [
    failure(
      answers.tooManyAttempts(1),
      'rule 29',
      'Too many logins from there have failed. For now, all from this address, its network or all new addresses are refused.',
    ),
  ],
  HeadersTooLarge: [
    failure(
      answers.HEADERS_TOO_LARGE,
      'rule 22',
      `The request line and headers are longer than ${size(headerLimit)}. In a browser, delete the cookies of this host; the operator can raise \`HEADER_LIMIT\`.`,
    ),
  ],
  TokenNotGenerated: [
    failure(
      answers.TOKEN_NOT_GENERATED,
      'T5',
      'The username and password are correct, but the token could not be signed.',
    ),
    INTERNAL,
  ],
  InternalError: [INTERNAL],
  ServiceUnavailable: [
    failure(
      answers.SERVICE_UNAVAILABLE,
      'rules 22, 23, M8',
      'The store is unavailable or overloaded, a search takes too long, or there is no memory for the body, or no room for the file. A change may ' +
        'or may not have been made. Retry after `retry-after` seconds, a creation with an `Idempotency-Key`.',
    ),
  ],
} as const satisfies Readonly<Record<string, readonly [Response, ...Response[]]>>;

/** Every message once, as rows of a table: status, message, and the rules that say when. */
export function messagesTable(): string[][] {
  const rows = Object.values<readonly Response[]>(RESPONSES)
    .flat()
    .map(({ envelope: { status }, message, rules }) => [`${status}`, `\`${message}\``, rules]);
  const byMessage = new Map(rows.map((row) => [row.slice(0, 2).join(' '), row]));
  return [...byMessage.values()].toSorted(([one = ''], [other = '']) => one.localeCompare(other));
}

/** Headers of a page, of which each answer has those that apply (rules F4, F6 and F11); the list has none of them. */
const PAGE_HEADERS: readonly string[] = ['Link', 'X-Total-Count', 'Preference-Applied', 'X-Unindexed-Books'];

/** Responses with one book have its tag (rule E1). */
const TAGGED: readonly ResponseName[] = ['BookCreated', 'BookRetrieved', 'BookUpdated'];

/** Responses that may be the answer to an earlier request (rule I2). */
const REPLAYED: readonly ResponseName[] = [
  'BookCreated',
  'BooksCreated',
  'ChangesUndone',
  'UndoInProgress',
  'ImportEnded',
  'ImportInProgress',
];

/** Headers of the log and of imports, as the components are called (rules H1, H3 to H5, H8, H9 and M2). */
const OTHER_HEADERS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  ChangesRetrieved: { Link: 'Link-Changes', 'Preference-Applied': 'Preference-Applied-Wait' },
  HistoryRetrieved: { Link: 'Link-History' },
  EventsRetrieved: { Link: 'Link-Events' },
  BooksOfEventRetrieved: { Link: 'Link-Books-Of-Event' },
  UndoInProgress: { Location: 'Location-Event' },
  ImportEnded: { Location: 'Location-Import' },
  ImportContinued: { Location: 'Location-Import' },
  ImportInProgress: { Location: 'Location-Import' },
  InvalidFile: { Location: 'Location-Import' },
  InvalidContinuation: { Location: 'Location-Import' },
};

/** Headers that a response has only if they apply. */
export const OPTIONAL_HEADERS = [
  ...PAGE_HEADERS,
  ...['Preference-Applied-Wait', 'Link-History', 'Link-Events', 'Link-Books-Of-Event'],
  ...['Idempotent-Replayed', 'Location-Import'],
];

/** Every response has these headers, and some statuses have more (rule 24). */
const HEADERS_OF_ALL = ['Content-Type', 'X-Content-Type-Options', 'Cache-Control', 'X-Request-Id'];
const HEADERS_OF_STATUS: Readonly<Record<number, readonly string[]>> = {
  401: ['WWW-Authenticate'],
  415: ['Accept-Encoding'],
  429: ['Retry-After'],
  503: ['Retry-After'],
};

/** Regular expression of one link. */
const LINK = '</books\\?[^<>"]*>; rel="(next|first|prev)"';

export const REQUEST_ID_TEXT: Schema = {
  type: 'string',
  pattern: answers.REQUEST_ID.source,
  examples: ['mine:42'],
};

export const HEADERS: Readonly<Record<string, { readonly description: string; readonly schema: Schema }>> = {
  'Content-Type': constant('Always JSON in UTF-8.', answers.INVALID_TOKEN.headers, 'content-type'),
  'X-Content-Type-Options': constant(
    'Browsers must not guess another type.',
    answers.INVALID_TOKEN.headers,
    'x-content-type-options',
  ),
  'Cache-Control': constant('Answers must not be stored.', answers.INVALID_TOKEN.headers, 'cache-control'),
  'X-Request-Id': {
    description:
      "Identifies the request in the service's log. It is the client's own id, if the client sent one.",
    schema: REQUEST_ID_TEXT,
  },
  Location: {
    description: 'Path of the new book.',
    schema: { type: 'string', pattern: '^/book/[1-9][0-9]{0,15}$', examples: [`/book/${BOOK.id}`] },
  },
  'Location-Event': {
    description: 'Path of the undo.',
    schema: { type: 'string', pattern: '^/event/[1-9][0-9]{0,15}$', examples: ['/event/31'] },
  },
  'Location-Import': {
    description: 'Path of the report, if there is one.',
    schema: { type: 'string', pattern: '^/import/[1-9][0-9]{0,15}$', examples: ['/import/40'] },
  },
  ETag: {
    description:
      'The tag of the book in this state, for `If-Match` and `If-None-Match`. Each state has another one, and equal ' +
      'states have the same.',
    schema: { type: 'string', pattern: '^"[A-Za-z0-9_-]{22}"$', examples: [TAG_EXAMPLE] },
  },
  'WWW-Authenticate': constant(
    'Asks for a token, in the form that HTTP demands. Send the token without a scheme before it.',
    answers.INVALID_TOKEN.headers,
    'www-authenticate',
  ),
  'Accept-Encoding': {
    description: 'The codings that a body may have.',
    schema: { type: 'string', const: 'identity' },
  },
  'Retry-After': {
    description: 'Seconds to wait before the next attempt.',
    schema: { type: 'integer', minimum: 1, examples: [1] },
  },
  'Idempotent-Replayed': {
    description: 'An earlier request with this `Idempotency-Key` has done this. Nothing was changed now.',
    schema: { type: 'string', const: 'true' },
  },
  Link: {
    description:
      'With parameters: the next page, if there is one, then the first, then with `offset` the previous one. Behind a ' +
      'proxy that serves the service under a path of its own, use only their queries.',
    schema: {
      type: 'string',
      pattern: `^${LINK}(, ${LINK})*$`,
      examples: ['</books?year=1605&cursor=WyJpZCIsMV0>; rel="next", </books?year=1605>; rel="first"'],
    },
  },
  'Link-Changes': linkToNext('What comes after this page, also if nothing does yet.', '/changes', [1]),
  'Link-History': linkToNext(
    'The older states, if there are any.',
    '/book/[1-9][0-9]{0,15}/history',
    12,
    `/book/${BOOK.id}/history`,
  ),
  'Link-Events': linkToNext('The older events, if there are any.', '/events', [AT, 31]),
  'Link-Books-Of-Event': linkToNext(
    'The next books, if there are any.',
    `/event/${EVENT}/books`,
    7,
    '/event/31/books',
  ),
  'X-Total-Count': {
    description:
      'With parameters: the number of all books that are found, if they are at most 1,000, or if `Prefer` asked for it ' +
      'and counting took no longer than 2 seconds.',
    schema: { type: 'integer', minimum: 0, examples: [42] },
  },
  'Preference-Applied': {
    description: 'The books were counted as `Prefer` asked.',
    schema: { type: 'string', const: 'count=exact' },
  },
  'Preference-Applied-Wait': {
    description: 'The page would have waited for a change, up to so many seconds.',
    schema: { type: 'string', pattern: '^wait=([1-9]|[1-5][0-9]|60)$', examples: ['wait=30'] },
  },
  'X-Unindexed-Books': {
    description:
      'About how many books the search may have missed, because they are not indexed yet, as after an import.',
    schema: { type: 'integer', minimum: 1, examples: [250000] },
  },
};

/** Not among the components, because no operation has it. */
const ALLOW = {
  description: 'The methods of the path.',
  required: true,
  schema: { type: 'string', pattern: '^[A-Z]+(, [A-Z]+)*$', examples: ['GET, HEAD'] },
};

/** A header that always has the same value as in `headers`. */
function constant(description: string, headers: HeaderList, name: string) {
  return { description, schema: { type: 'string', const: headers[headers.indexOf(name) + 1] } };
}

/** @param path a regular expression. */
function linkToNext(description: string, path: string, place: unknown, example = path) {
  const cursor = Buffer.from(JSON.stringify(place)).toString('base64url');
  return {
    description,
    schema: {
      type: 'string',
      pattern: `^<${path}\\?limit=[1-9][0-9]{0,3}&cursor=[A-Za-z0-9_-]+>; rel="next"$`,
      examples: [`<${example}?limit=100&cursor=${cursor}>; rel="next"`],
    },
  };
}

function headerRef(name: string, component = name): [string, object] {
  return [name, { $ref: `#/components/headers/${component}` }];
}

/** The only response without a body (rule E2). */
export const NOT_MODIFIED = {
  description: 'The book still is as `If-None-Match` says. There is no body.',
  headers: Object.fromEntries(['Cache-Control', 'X-Request-Id', 'ETag'].map((name) => headerRef(name))),
};

export function describeResponse(name: ResponseName) {
  const responses: readonly [Response, ...Response[]] = RESPONSES[name];
  const [{ envelope, data }] = responses;
  const { status } = envelope;
  const headers = [
    ...HEADERS_OF_ALL,
    ...(HEADERS_OF_STATUS[status] ?? []),
    ...(name === 'BookCreated' ? ['Location'] : []),
    ...(TAGGED.includes(name) ? ['ETag'] : []),
    ...(REPLAYED.includes(name) ? ['Idempotent-Replayed'] : []),
    ...(name === 'BooksRetrieved' ? PAGE_HEADERS : []),
    ...(name === 'SuggestionsRetrieved' ? ['X-Unindexed-Books'] : []),
  ];
  return {
    description: responses.map(({ message, when }) => `\`${message}\`: ${when}`).join('\n\n'),
    headers: {
      ...Object.fromEntries(headers.map((header) => headerRef(header))),
      ...Object.fromEntries(Object.entries(OTHER_HEADERS[name] ?? {}).map((pair) => headerRef(...pair))),
      ...(status === 405 && { Allow: ALLOW }),
    },
    content: {
      'application/json': {
        schema: exactly({
          status: { type: 'integer', const: status },
          message: { type: 'string', ...messagesOf(responses) },
          data,
        }),
        examples: Object.fromEntries(
          responses.map(({ envelope, message, when }) => [
            message.match(/\w+/g)?.join('-'),
            { summary: when, value: envelope },
          ]),
        ),
      },
    },
  };
}

function messagesOf(responses: readonly Response[]): Schema {
  const isConstant = responses.every(({ pattern }) => pattern === undefined);
  if (isConstant) return { enum: responses.map(({ message }) => message) };
  return {
    anyOf: responses.map(({ message, pattern }) =>
      pattern === undefined ? { const: message } : { pattern },
    ),
  };
}
