// Owns: the responses of the API's description, in the very sentences and header values that the routes send.

import { BOOK_FIELDS, BOOK_ID, FIELD_NAMES } from '../books/book.ts';
import type { HeaderList } from '../http/answer.ts';
import {
  BAD_REQUEST,
  BOOK_DELETED,
  BOOK_NOT_FOUND,
  bookCreated,
  bookRetrieved,
  booksRetrieved,
  bookUpdated,
  type Envelope,
  type EnvelopeAnswer,
  HEADERS_TOO_LARGE,
  INTERNAL_ERROR,
  INVALID_BOOK,
  INVALID_CREDENTIALS,
  INVALID_LOGIN,
  INVALID_TOKEN,
  MISDIRECTED_REQUEST,
  methodNotAllowed,
  NOT_FOUND,
  PAYLOAD_TOO_LARGE,
  REQUEST_ID,
  REQUEST_TIMEOUT,
  SERVICE_UNAVAILABLE,
  TOKEN_NOT_GENERATED,
  TOKEN_REQUIRED,
  tokenGenerated,
  tooManyAttempts,
} from './envelope.ts';

/** A JSON Schema, or a part of one. */
export type Schema = Readonly<Record<string, unknown>>;

/** One sentence that an operation may say. */
interface Response {
  /** As the routes send it; where it has data, an example of it. */
  readonly envelope: Envelope;
  readonly when: string;
  /** Schema of `data`. */
  readonly data: Schema;
}

export type ResponseName = keyof typeof RESPONSES;

/** What the examples show. */
export const BOOK_EXAMPLE = Object.fromEntries(
  FIELD_NAMES.map((name) => [name, BOOK_FIELDS[name].examples[0]]),
);
const BOOK = { id: BOOK_ID.examples[0], ...BOOK_EXAMPLE };
export const TOKEN = 'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJleHAiOjE3OTAwMDAwMDB9.c2lnbmF0dXJl';

export function schemaRef(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

function success({ body }: EnvelopeAnswer, data: Schema, when: string): Response {
  return { envelope: JSON.parse(body), when, data };
}

function failure(answer: EnvelopeAnswer, when: string): Response {
  return success(answer, { type: 'null' }, when);
}

const NOT_HTTP = failure(
  BAD_REQUEST,
  'What HTTP itself cannot read: a malformed request, a bad escape in the path, no `Host` or two.',
);

/** Every response by a name of its own, with every sentence that it may bring, all of one status. */
export const RESPONSES = {
  TokenGenerated: [success(tokenGenerated(TOKEN), schemaRef('Token'), 'The pair is right.')],
  BooksRetrieved: [
    success(booksRetrieved([BOOK]), { type: 'array', items: schemaRef('Book') }, 'Every book there is.'),
  ],
  BookRetrieved: [success(bookRetrieved(BOOK), schemaRef('Book'), 'The book.')],
  BookUpdated: [success(bookUpdated(BOOK), schemaRef('Book'), 'The book as it is now.')],
  BookDeleted: [success(BOOK_DELETED, { type: 'null' }, 'The book is gone.')],
  BookCreated: [
    success(bookCreated(BOOK), schemaRef('Book'), 'The book with its new id. It is stored durably.'),
  ],
  BadRequest: [NOT_HTTP],
  InvalidLogin: [
    failure(INVALID_LOGIN, 'The body is no JSON object, or a field of it is no text.'),
    NOT_HTTP,
  ],
  InvalidBook: [
    failure(
      INVALID_BOOK,
      'The body is no JSON object, or a field of it is not what a book has. Nothing was stored.',
    ),
    NOT_HTTP,
  ],
  InvalidCredentials: [failure(INVALID_CREDENTIALS, 'Username or password is another one.')],
  Unauthorized: [
    failure(TOKEN_REQUIRED, 'There is no `Authorization` header, or it is empty.'),
    failure(
      INVALID_TOKEN,
      'The token has expired, or is none of this service. One after `Bearer` is none, either.',
    ),
  ],
  BookNotFound: [
    failure(BOOK_NOT_FOUND, 'No book has this id, or it is no id: those are `1`, `2`, `3` and so on.'),
  ],
  NotFound: [failure(NOT_FOUND, 'There is no such path. Case and slashes count.')],
  MethodNotAllowed: [failure(methodNotAllowed(['GET']), 'The path has other methods: `Allow` lists them.')],
  RequestTimeout: [
    failure(REQUEST_TIMEOUT, 'The headers did not arrive within 15 seconds, or the request not within 30.'),
  ],
  PayloadTooLarge: [
    failure(PAYLOAD_TOO_LARGE, 'The body is longer than 1 MiB, or than the service was set to take.'),
  ],
  MisdirectedRequest: [
    failure(
      MISDIRECTED_REQUEST,
      'The service is for its own machine, and `Host` is not a name of that: `localhost`, an address of 127.0.0.0/8 or ' +
        '`[::1]`.',
    ),
  ],
  TooManyAttempts: [
    failure(
      tooManyAttempts(1),
      'Too many logins have failed at this address. None is judged now, right or wrong.',
    ),
  ],
  HeadersTooLarge: [
    failure(
      HEADERS_TOO_LARGE,
      'Request line and headers are longer than 16 KiB, or than the service was set to take.',
    ),
  ],
  TokenNotGenerated: [
    failure(TOKEN_NOT_GENERATED, 'The pair is right, but the token could not be signed.'),
    failure(INTERNAL_ERROR, 'A fault of the service. Its log has it under the `X-Request-Id`.'),
  ],
  InternalError: [
    failure(INTERNAL_ERROR, 'A fault of the service. Its log has it under the `X-Request-Id`.'),
  ],
  ServiceUnavailable: [
    failure(
      SERVICE_UNAVAILABLE,
      'The store is away or has too much to do, or there is no room for the body. A change may or may not have ' +
        'happened.',
    ),
  ],
} as const satisfies Readonly<Record<string, readonly [Response, ...Response[]]>>;

/** Every response has the first ones, those of some statuses have more (rule 24). */
const HEADERS_OF_ALL = ['Content-Type', 'X-Content-Type-Options', 'Cache-Control', 'X-Request-Id'];
const HEADERS_OF_STATUS: Readonly<Record<number, readonly string[]>> = {
  201: ['Location'],
  401: ['WWW-Authenticate'],
  429: ['Retry-After'],
  503: ['Retry-After'],
};

export const REQUEST_ID_TEXT: Schema = {
  type: 'string',
  pattern: REQUEST_ID.source,
  examples: ['mine:42'],
};

export const HEADERS: Readonly<Record<string, { readonly description: string; readonly schema: Schema }>> = {
  'Content-Type': constant('Always JSON in UTF-8.', INVALID_TOKEN.headers, 'content-type'),
  'X-Content-Type-Options': constant(
    'No browser may guess another type.',
    INVALID_TOKEN.headers,
    'x-content-type-options',
  ),
  'Cache-Control': constant('No answer may be kept.', INVALID_TOKEN.headers, 'cache-control'),
  'X-Request-Id': {
    description: "Names the request in the service's log: the client's own name for it, if it sent one.",
    schema: REQUEST_ID_TEXT,
  },
  Location: {
    description: 'Path of the new book.',
    schema: { type: 'string', pattern: '^/book/[1-9][0-9]{0,15}$', examples: [`/book/${BOOK.id}`] },
  },
  'WWW-Authenticate': constant(
    'Asks for a token. This is the form that HTTP demands; there is no scheme to send before it.',
    INVALID_TOKEN.headers,
    'www-authenticate',
  ),
  'Retry-After': {
    description: 'Seconds after which it makes sense to try again.',
    schema: { type: 'integer', minimum: 1, examples: [1] },
  },
};

/** Not among the components, since no operation has it. */
const ALLOW = {
  description: 'The methods of the path.',
  required: true,
  schema: { type: 'string', pattern: '^[A-Z]+(, [A-Z]+)*$', examples: ['GET, HEAD'] },
};

/** A header that always has the value it has in these. */
function constant(description: string, headers: HeaderList, name: string) {
  return { description, schema: { type: 'string', const: headers[headers.indexOf(name) + 1] } };
}

function headerRef(name: string): [string, object] {
  return [name, { $ref: `#/components/headers/${name}` }];
}

export function describeResponse(name: ResponseName) {
  const responses: readonly [Response, ...Response[]] = RESPONSES[name];
  const [{ envelope, data }] = responses;
  const { status } = envelope;
  const messages = responses.map((response) => response.envelope.message);
  const headers = [...HEADERS_OF_ALL, ...(HEADERS_OF_STATUS[status] ?? [])];
  return {
    description: responses.map(({ envelope, when }) => `\`${envelope.message}\`: ${when}`).join('\n\n'),
    headers: { ...Object.fromEntries(headers.map(headerRef)), ...(status === 405 && { Allow: ALLOW }) },
    content: {
      'application/json': {
        schema: exactly({
          status: { type: 'integer', const: status },
          message: { type: 'string', enum: messages },
          data,
        }),
        examples: Object.fromEntries(
          responses.map(({ envelope, when }) => [
            envelope.message.replaceAll(' ', '-'),
            { summary: when, value: envelope },
          ]),
        ),
      },
    },
  };
}

/** An object of exactly these fields. */
export function exactly(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: 'object', required: Object.keys(properties), additionalProperties: false, properties };
}
