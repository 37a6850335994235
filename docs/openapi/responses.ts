// Owns: the responses in the OpenAPI document, with the same messages and header values that the routes send.

import { MOST_BOOKS } from '../../src/api/book-array.ts';
import { entityTag } from '../../src/api/conditions.ts';
import {
  BAD_REQUEST,
  BOOK_DELETED,
  BOOK_NOT_FOUND,
  bookCreated,
  bookRetrieved,
  booksCreated,
  booksRetrieved,
  bookUpdated,
  type Envelope,
  type EnvelopeAnswer,
  HEADERS_TOO_LARGE,
  INTERNAL_ERROR,
  INVALID_BOOK,
  INVALID_CREDENTIALS,
  INVALID_KEY,
  INVALID_LOGIN,
  INVALID_TOKEN,
  invalidBook,
  invalidParameter,
  KEY_USED,
  MISDIRECTED_REQUEST,
  methodNotAllowed,
  NOT_FOUND,
  PAYLOAD_TOO_LARGE,
  PRECONDITION_FAILED,
  PRECONDITION_REQUIRED,
  REQUEST_ID,
  REQUEST_TIMEOUT,
  SERVICE_UNAVAILABLE,
  TOKEN_NOT_GENERATED,
  TOKEN_REQUIRED,
  tokenGenerated,
  tooManyAttempts,
} from '../../src/api/envelope.ts';
import { SHOWN_NAME } from '../../src/api/query.ts';
import { LOGIN_LIMIT } from '../../src/auth/credentials.ts';
import { BOOK_FIELDS, BOOK_ID, type Book, FIELD_NAMES } from '../../src/books/book.ts';
import { tagOf } from '../../src/books/condition.ts';
import type { HeaderList } from '../../src/http/answer.ts';

/** A JSON Schema, or a part of one. */
export type Schema = Readonly<Record<string, unknown>>;

/** One answer that an operation may give. */
interface Response {
  /** As the routes send it; if it has data, those are an example, and so is a message that has a pattern. */
  readonly envelope: Envelope;
  /** The message, with a name in angle brackets for a part of it that differs. */
  readonly message: string;
  /** Regular expression of the message; absent if it is always the same. */
  readonly pattern?: string;
  readonly when: string;
  /** Schema of `data`. */
  readonly data: Schema;
}

export type ResponseName = keyof typeof RESPONSES;

/** The book in the examples. */
export const BOOK_EXAMPLE = Object.fromEntries(
  FIELD_NAMES.map((name) => [name, BOOK_FIELDS[name].examples[0]]),
);
const BOOK = { id: BOOK_ID.examples[0], ...BOOK_EXAMPLE } as Book;

/** The tag of that book, as a header has it. */
export const TAG_EXAMPLE = entityTag(tagOf(BOOK));
export const TOKEN = 'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJleHAiOjE3OTAwMDAwMDB9.c2lnbmF0dXJl';

export function schemaRef(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

function success({ body }: EnvelopeAnswer, data: Schema, when: string): Response {
  const envelope: Envelope = JSON.parse(body);
  return { envelope, message: envelope.message, when, data };
}

function failure(answer: EnvelopeAnswer, when: string): Response {
  return success(answer, { type: 'null' }, when);
}

/**
 * @param answer whose message has a part that differs.
 * @param part its name, its regular expression, and an example.
 */
function failureWith(
  answer: (part: string) => EnvelopeAnswer,
  part: { readonly name: string; readonly pattern: string; readonly example: string },
  when: string,
): Response {
  const { message } = failure(answer(`<${part.name}>`), when);
  const { message: pattern } = failure(answer(part.pattern), when);
  return { ...failure(answer(part.example), when), message, pattern: `^${pattern}$` };
}

const NOT_HTTP = failure(
  BAD_REQUEST,
  'The request is not valid HTTP: it is malformed, has an invalid percent-escape in its path, or has no `Host` or two.',
);

const INVALID_KEY_RESPONSE = failure(
  INVALID_KEY,
  'The `Idempotency-Key` is empty, has more than 255 characters, or others than visible ASCII.',
);

/** Every response by name, with all answers that it may be; these have the same status. */
export const RESPONSES = {
  TokenGenerated: [
    success(tokenGenerated(TOKEN), schemaRef('Token'), 'The username and password are correct.'),
  ],
  BooksRetrieved: [
    success(
      booksRetrieved([BOOK]),
      { type: 'array', items: schemaRef('Book') },
      'All books; with parameters, a page of those that are found.',
    ),
  ],
  BookRetrieved: [success(bookRetrieved(BOOK), schemaRef('Book'), 'The book.')],
  BookUpdated: [success(bookUpdated(BOOK), schemaRef('Book'), 'The book after the change.')],
  BookDeleted: [success(BOOK_DELETED, { type: 'null' }, 'The book has been removed.')],
  BookCreated: [
    success(bookCreated(BOOK), schemaRef('Book'), 'The book with its new id. It is stored durably.'),
  ],
  BooksCreated: [
    success(
      booksCreated([BOOK.id, BOOK.id + 1]),
      { type: 'array', maxItems: MOST_BOOKS, items: BOOK_ID },
      'The ids of the new books, in the order of the array. All of them are stored durably.',
    ),
  ],
  BadRequest: [NOT_HTTP],
  InvalidQuery: [
    failureWith(
      invalidParameter,
      { name: 'name', pattern: `.{0,${SHOWN_NAME}}`, example: 'yaer' },
      'This parameter does not exist, is there twice, has an invalid value, or cannot be used with the others.',
    ),
    NOT_HTTP,
  ],
  InvalidLogin: [
    failure(INVALID_LOGIN, 'The body is not a JSON object, or a field in it is not text.'),
    NOT_HTTP,
  ],
  InvalidBook: [
    failure(
      INVALID_BOOK,
      'The body is not a JSON object, or a field in it has an invalid value. Nothing was stored.',
    ),
    NOT_HTTP,
  ],
  InvalidNewBook: [
    failure(
      INVALID_BOOK,
      'The body is not a JSON object, or a field in it has an invalid value. Nothing was stored.',
    ),
    INVALID_KEY_RESPONSE,
    NOT_HTTP,
  ],
  InvalidBooks: [
    failure(INVALID_BOOK, 'The body is not a JSON array. Nothing was stored.'),
    failureWith(
      invalidBook,
      { name: 'position', pattern: '[1-9][0-9]{0,4}', example: '3' },
      'The element at this position, from 1, is not a book. Nothing was stored.',
    ),
    INVALID_KEY_RESPONSE,
    NOT_HTTP,
  ],
  KeyUsed: [failure(KEY_USED, 'The `Idempotency-Key` was used for another request. Nothing was stored.')],
  InvalidCredentials: [failure(INVALID_CREDENTIALS, 'The username or the password is wrong.')],
  Unauthorized: [
    failure(TOKEN_REQUIRED, 'There is no `Authorization` header, or it is empty.'),
    failure(
      INVALID_TOKEN,
      'The token has expired, or was not issued by this service. A token after `Bearer` is also invalid.',
    ),
  ],
  BookNotFound: [
    failure(
      BOOK_NOT_FOUND,
      'No book has this id, or it is not an id, which is a positive whole number without leading zeros.',
    ),
  ],
  PreconditionFailed: [
    failure(
      PRECONDITION_FAILED,
      'The book does not meet `If-Match` or `If-None-Match`: somebody has changed it since. Nothing was changed.',
    ),
  ],
  PreconditionRequired: [
    failure(
      PRECONDITION_REQUIRED,
      'The operator demands `If-Match` with every change and removal (`REQUIRE_IF_MATCH`). Nothing was changed.',
    ),
  ],
  NotFound: [failure(NOT_FOUND, 'There is no such path. Paths are case-sensitive, and every slash counts.')],
  MethodNotAllowed: [
    failure(
      methodNotAllowed(['GET']),
      'The path does not have this method. `Allow` lists the methods that it has.',
    ),
  ],
  RequestTimeout: [
    failure(
      REQUEST_TIMEOUT,
      'The headers did not arrive within 15 seconds, or the whole request did not arrive within 30.',
    ),
  ],
  PayloadTooLarge: [
    failure(
      PAYLOAD_TOO_LARGE,
      'The body is longer than the limit: 1 MiB, unless the operator has set another one.',
    ),
  ],
  LoginTooLarge: [failure(PAYLOAD_TOO_LARGE, `The body is longer than ${LOGIN_LIMIT} bytes.`)],
  TooManyBooks: [
    failure(
      PAYLOAD_TOO_LARGE,
      'The array has more than 10,000 elements, one of them is longer than 1 MiB, or the body is longer than 16 MiB, ' +
        'unless the operator has set other limits.',
    ),
  ],
  MisdirectedRequest: [
    failure(
      MISDIRECTED_REQUEST,
      'Only the machine of the service may call it, and `Host` does not name that machine: `localhost`, an address of ' +
        '127.0.0.0/8 or `[::1]`.',
    ),
  ],
  TooManyAttempts: [
    failure(
      tooManyAttempts(1),
      'Too many logins from this address have failed. For now every login is refused, right or wrong.',
    ),
  ],
  HeadersTooLarge: [
    failure(
      HEADERS_TOO_LARGE,
      'The request line and headers are longer than the limit: 16 KiB, unless the operator has set another one.',
    ),
  ],
  TokenNotGenerated: [
    failure(TOKEN_NOT_GENERATED, 'The username and password are correct, but the token could not be signed.'),
    failure(INTERNAL_ERROR, 'An error in the service. Its log has the cause under the `X-Request-Id`.'),
  ],
  InternalError: [
    failure(INTERNAL_ERROR, 'An error in the service. Its log has the cause under the `X-Request-Id`.'),
  ],
  ServiceUnavailable: [
    failure(
      SERVICE_UNAVAILABLE,
      'The store is unavailable or overloaded, a search takes too long, or there is no memory for the body. A change ' +
        'may or may not have been made.',
    ),
  ],
} as const satisfies Readonly<Record<string, readonly [Response, ...Response[]]>>;

/** Headers of a page, of which each answer has those that apply (rules F4, F6 and F11); the list has none of them. */
const PAGE_HEADERS: readonly string[] = ['Link', 'X-Total-Count', 'Preference-Applied', 'X-Unindexed-Books'];

/** Responses with one book have its tag (rule E1). */
const TAGGED: readonly ResponseName[] = ['BookCreated', 'BookRetrieved', 'BookUpdated'];

/** Responses that may be the answer to an earlier request (rule I2). */
const REPLAYED: readonly ResponseName[] = ['BookCreated', 'BooksCreated'];

/** Headers that a response has only if they apply. */
export const OPTIONAL_HEADERS = [...PAGE_HEADERS, 'Idempotent-Replayed'];

/** Every response has these headers, and some statuses have more (rule 24). */
const HEADERS_OF_ALL = ['Content-Type', 'X-Content-Type-Options', 'Cache-Control', 'X-Request-Id'];
const HEADERS_OF_STATUS: Readonly<Record<number, readonly string[]>> = {
  401: ['WWW-Authenticate'],
  429: ['Retry-After'],
  503: ['Retry-After'],
};

/** Regular expression of one link. */
const LINK = '</books\\?[^<>"]*>; rel="(next|first|prev)"';

export const REQUEST_ID_TEXT: Schema = {
  type: 'string',
  pattern: REQUEST_ID.source,
  examples: ['mine:42'],
};

export const HEADERS: Readonly<Record<string, { readonly description: string; readonly schema: Schema }>> = {
  'Content-Type': constant('Always JSON in UTF-8.', INVALID_TOKEN.headers, 'content-type'),
  'X-Content-Type-Options': constant(
    'Browsers must not guess another type.',
    INVALID_TOKEN.headers,
    'x-content-type-options',
  ),
  'Cache-Control': constant('Answers must not be stored.', INVALID_TOKEN.headers, 'cache-control'),
  'X-Request-Id': {
    description:
      "Identifies the request in the service's log. It is the client's own id, if the client sent one.",
    schema: REQUEST_ID_TEXT,
  },
  Location: {
    description: 'Path of the new book.',
    schema: { type: 'string', pattern: '^/book/[1-9][0-9]{0,15}$', examples: [`/book/${BOOK.id}`] },
  },
  ETag: {
    description:
      'The tag of the book in this state, for `If-Match` and `If-None-Match`. Each state has another one, and equal ' +
      'states have the same.',
    schema: { type: 'string', pattern: '^"[A-Za-z0-9_-]{22}"$', examples: [TAG_EXAMPLE] },
  },
  'WWW-Authenticate': constant(
    'Asks for a token, in the form that HTTP demands. Send the token without a scheme before it.',
    INVALID_TOKEN.headers,
    'www-authenticate',
  ),
  'Retry-After': {
    description: 'Seconds to wait before the next attempt.',
    schema: { type: 'integer', minimum: 1, examples: [1] },
  },
  'Idempotent-Replayed': {
    description: 'An earlier request with this `Idempotency-Key` has stored this. Nothing was stored now.',
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

function headerRef(name: string): [string, object] {
  return [name, { $ref: `#/components/headers/${name}` }];
}

/** The only response without a body (rule E2). */
export const NOT_MODIFIED = {
  description: 'The book still is as `If-None-Match` says. There is no body.',
  headers: Object.fromEntries(['Cache-Control', 'X-Request-Id', 'ETag'].map(headerRef)),
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
  ];
  return {
    description: responses.map(({ message, when }) => `\`${message}\`: ${when}`).join('\n\n'),
    headers: { ...Object.fromEntries(headers.map(headerRef)), ...(status === 405 && { Allow: ALLOW }) },
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

/** An object of exactly these fields. */
export function exactly(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: 'object', required: Object.keys(properties), additionalProperties: false, properties };
}
