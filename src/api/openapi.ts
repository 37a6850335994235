// Owns: the description of the API as an OpenAPI 3.1 document. Schemas, sentences and header values are those
// that the routes check, say and send; what else is said here is held against real traffic by a test.
// Refuses: to describe what is not on the service's own port.

import { BOOK_FIELDS, BOOK_ID } from '../books/book.ts';
import { LOGIN } from './login.ts';
import {
  BOOK_EXAMPLE,
  describeResponse,
  exactly,
  HEADERS,
  REQUEST_ID_TEXT,
  RESPONSES,
  type ResponseName,
  type Schema,
  schemaRef,
  TOKEN,
} from './openapi-responses.ts';

interface Operation {
  readonly operationId: string;
  readonly tags: readonly [string];
  readonly summary: string;
  readonly description: string;
  /** Without a token. */
  readonly open?: true;
  readonly body?: { readonly schema: string; readonly examples: Readonly<Record<string, unknown>> };
  readonly responses: readonly ResponseName[];
}

/** Of every operation. */
const ANY: readonly ResponseName[] = [
  'RequestTimeout',
  'MisdirectedRequest',
  'HeadersTooLarge',
  'ServiceUnavailable',
];
const GUARDED: readonly ResponseName[] = ['Unauthorized', 'InternalError', ...ANY];

/** Of requests that are no operation; OpenAPI has no place for them. */
const OTHER: readonly ResponseName[] = [
  'BadRequest',
  'NotFound',
  'MethodNotAllowed',
  'RequestTimeout',
  'MisdirectedRequest',
  'HeadersTooLarge',
];

const READ_BOOKS: Operation = {
  operationId: 'listBooks',
  tags: ['Books'],
  summary: 'List the books',
  description:
    'Every book, ascending by `id`, as all of them were at one moment, in a stream. The list is never cut ' +
    'short: when something goes wrong half way, the connection breaks.',
  responses: ['BooksRetrieved', 'BadRequest', ...GUARDED],
};

const READ_BOOK: Operation = {
  operationId: 'getBook',
  tags: ['Books'],
  summary: 'Read a book',
  description: 'The book of this id.',
  responses: ['BookRetrieved', 'BadRequest', 'BookNotFound', ...GUARDED],
};

const PATHS: Readonly<Record<string, Readonly<Record<string, Operation>>>> = {
  '/token': {
    post: {
      operationId: 'createToken',
      tags: ['Tokens'],
      summary: 'Log in',
      description:
        'Gives a token for the one username and password that the service knows. It is a JSON Web Token, ' +
        'signed with HMAC SHA-256, and lasts 15 minutes. After ten failed logins from an address each ' +
        'further one is answered late, one a second.',
      open: true,
      body: { schema: 'Login', examples: { login: { username: 'admin', password: 'password' } } },
      responses: [
        'TokenGenerated',
        'InvalidLogin',
        'InvalidCredentials',
        'PayloadTooLarge',
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
        'Stores a new book. A field that the body leaves out is empty, so `{}` is a book. The answer comes ' +
        'once the book is on disk.',
      body: {
        schema: 'NewBook',
        examples: { book: BOOK_EXAMPLE, empty: {} },
      },
      responses: ['BookCreated', 'InvalidBook', 'PayloadTooLarge', ...GUARDED],
    },
  },
  '/books': {
    get: READ_BOOKS,
    head: withoutBody(READ_BOOKS, 'checkBooks', 'Ask for the list without its body'),
  },
  '/book/{id}': {
    get: READ_BOOK,
    head: withoutBody(READ_BOOK, 'checkBook', 'Ask whether there is a book'),
    put: {
      operationId: 'updateBook',
      tags: ['Books'],
      summary: 'Change a book',
      description:
        'Applies the fields that the body has, all in one step; the others stay as they are, so `{}` changes ' +
        'nothing. Changes of different fields at the same moment all survive. Where there is no such book, ' +
        'the body is not looked at.',
      body: { schema: 'BookChanges', examples: { year: { year: 1615 }, nothing: {} } },
      responses: ['BookUpdated', 'InvalidBook', 'BookNotFound', 'PayloadTooLarge', ...GUARDED],
    },
    delete: {
      operationId: 'deleteBook',
      tags: ['Books'],
      summary: 'Remove a book',
      description:
        'Removes the book for good: its id is not given to another one. Of many removals at the same moment ' +
        'exactly one succeeds.',
      responses: ['BookDeleted', 'BadRequest', 'BookNotFound', ...GUARDED],
    },
  },
};

function withoutBody(operation: Operation, operationId: string, summary: string): Operation {
  return { ...operation, operationId, summary, description: 'Status and headers as of `GET`, and no body.' };
}

const SCHEMAS: Readonly<Record<string, Schema>> = {
  Login: { ...LOGIN, description: 'Keys of other names are ignored.' },
  Token: exactly({
    token: { type: 'string', description: 'Goes into `Authorization` as it is.', examples: [TOKEN] },
  }),
  Book: exactly({ id: BOOK_ID, ...withoutDefaults() }),
  NewBook: {
    type: 'object',
    description: 'Keys of other names, `id` included, are ignored. Keys have a case.',
    properties: BOOK_FIELDS,
  },
  BookChanges: {
    type: 'object',
    description: 'What is left out stays. Keys of other names, `id` included, are ignored. Keys have a case.',
    properties: withoutDefaults(),
  },
};

/** Responses that some operation has. */
const NAMED = new Set(
  Object.values(PATHS).flatMap((operations) =>
    Object.values(operations).flatMap(({ responses }) => responses),
  ),
);

/** The fields where none of them is ever filled in. */
function withoutDefaults(): Record<string, Schema> {
  return Object.fromEntries(
    Object.entries(BOOK_FIELDS).map(([name, { default: _, ...field }]) => [name, field]),
  );
}

const ABOUT = `Keeps book records and gives them to whoever has a token.

Every answer is a JSON object of exactly three fields: \`status\`, which is the HTTP status, \`message\`, one of
the sentences below, and \`data\`, what was asked for, or \`null\` with every failure.

**To begin**, log in with \`POST /token\`, and send the token as the whole value of \`Authorization\` with every
other request, without \`Bearer\` or any other word before it.

Request bodies are read as JSON, whatever their \`Content-Type\` says, and a body where none belongs is ignored.
A path that is not listed here is 404 \`${RESPONSES.NotFound[0].envelope.message}\`, a method that its path does not have is
405 \`${RESPONSES.MethodNotAllowed[0].envelope.message}\`; neither needs a token.`;

/**
 * Describes what the service answers on its port.
 * @param serverUrl where a reader of the description finds that port.
 */
export function describeApi({ version, serverUrl }: { version: string; serverUrl: string }): object {
  return {
    openapi: '3.1.1',
    info: {
      title: 'Book catalogue',
      summary: 'Books over HTTP, as JSON.',
      description: ABOUT,
      license: { name: 'MIT', identifier: 'MIT' },
      version,
    },
    servers: [{ url: serverUrl, description: 'The service that gave this description.' }],
    tags: [
      { name: 'Tokens', description: 'Logging in.' },
      { name: 'Books', description: 'Books, one at a time or all of them.' },
    ],
    security: [{ token: [] }],
    paths: mapValues(PATHS, (operations, path) => ({
      ...(path.includes('{id}') && { parameters: [{ $ref: '#/components/parameters/BookId' }] }),
      ...mapValues(operations, (operation, method) => describeOperation(operation, method === 'head')),
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
          description:
            'Id of the book, in plain decimal digits. Whatever else stands there names no book: 404.',
          schema: BOOK_ID,
        },
        RequestId: {
          name: 'X-Request-Id',
          in: 'header',
          description: "A name for the request in the service's log. One of another form is replaced.",
          schema: REQUEST_ID_TEXT,
        },
      },
      headers: mapValues(HEADERS, (header) => ({ ...header, required: true })),
      responses: Object.fromEntries([...NAMED].map((name) => [name, describeResponse(name)])),
      schemas: SCHEMAS,
    },
  };
}

function describeOperation({ open, body, responses, ...said }: Operation, isHead: boolean): object {
  return {
    ...said,
    ...(open && { security: [] }),
    parameters: [{ $ref: '#/components/parameters/RequestId' }],
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
    responses: byStatus(responses, isHead ? headOf : responseRef),
  };
}

/** Those to HEAD have no content. */
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
