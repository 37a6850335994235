// The client against the description of the API: it has every operation, sends what is described, and understands every
// answer.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  BookCatalogue,
  CursorExpired,
  type ImportOptions,
  InvalidFile,
  WrongCredentials,
} from '../../client/src/book-catalogue.ts';
import { allOf, BOOK, errorOf, found, played, type Sent, timed } from '../support/catalogue.ts';
import { API, checkOf, type Document } from '../support/description.ts';

const ID = { requestId: 'mine:42' };
const CHANGED = { ...BOOK, year: 1615 };
const EXPECTED = { ...ID, expected: { id: 1, ...BOOK } };
const TOTAL = 42;

/** A search with every parameter. */
const SEARCH = {
  ...{ q: 'cervantes quij*', title: 'don quijote', title_contains: 'quijote', title_starts_with: 'don' },
  ...{ author: 'Miguel de Cervantes', author_contains: 'de', author_starts_with: 'mig', year: 1605 },
  ...{ year_gte: 1600, year_lte: 1699, sort: '-year,title', limit: 20, event: '1-2' },
};

/** An import with every option. */
const IMPORT: ImportOptions = {
  ...{
    dryRun: false,
    onDuplicate: 'add',
    onConflict: 'add',
    doubtful: 'skip',
    ids: 'new',
    title: 'Werk',
    author: '',
    year: 'Druck',
  },
  ...{
    format: 'csv',
    encoding: 'utf-8',
    delimiter: '\t',
    sheet: 'Books',
    header: 'yes',
    fromLine: 3,
    corrections: { 3: '1901' },
  },
};

interface Call {
  readonly call: (catalogue: BookCatalogue) => Promise<unknown>;
  /** Its result after success; the data of the example if left out. */
  readonly result?: unknown;
  /** Its result for `Book not found`; an error if left out. */
  readonly absent?: unknown;
  /** It changes nothing, although its method does so. */
  readonly isRead?: true;
}

const BOTH = [BOOK, CHANGED].map((book, index) => ({ id: index + 1, ...book }));

/** Each operation as the client calls it. */
const CALLS: Record<string, readonly Call[]> = {
  createToken: [{ call: (catalogue) => catalogue.logIn(), result: undefined }],
  createBook: [{ call: (catalogue) => catalogue.create(BOOK, ID) }],
  createBooks: [{ call: (catalogue) => catalogue.createAll([BOOK, CHANGED], ID), result: BOTH }],
  listBooks: [
    { call: (catalogue) => allOf(catalogue, ID) },
    { call: (catalogue) => found(catalogue, SEARCH, ID) },
    { call: async (catalogue) => (await catalogue.page(SEARCH, ID)).books },
    { call: (catalogue) => catalogue.count(SEARCH, ID), result: TOTAL },
  ],
  suggestSearches: [{ call: (catalogue) => catalogue.suggest(SEARCH, ID) }],
  getBook: [{ call: (catalogue) => catalogue.find(1, ID), absent: undefined }],
  listChanges: [
    {
      call: async (catalogue) => (await catalogue.changes(undefined, ID).next()).value?.changes,
    },
  ],
  getHistory: [{ call: (catalogue) => Array.fromAsync(catalogue.history(1, ID)), absent: [] }],
  undoChanges: [
    ...[{ change: 12 }, { event: 40 }, { event: '1-2' }, { since: new Date(0) }].map(
      (changes): Call => ({
        call: (catalogue) => catalogue.undo(changes, ID),
      }),
    ),
    { call: (catalogue) => catalogue.checkUndo({ change: 12 }, ID), isRead: true },
  ],
  listEvents: [{ call: (catalogue) => Array.fromAsync(catalogue.events(ID)) }],
  listBooksOfEvent: [{ call: (catalogue) => Array.fromAsync(catalogue.booksOfEvent(1, ID)) }],
  getEvent: [{ call: (catalogue) => catalogue.event(1, ID) }],
  continueEvent: [{ call: (catalogue) => catalogue.continueUndo(1, ID) }],
  importFile: [{ call: (catalogue) => catalogue.importFile('title\n', { ...ID, ...IMPORT, name: 'a.csv' }) }],
  continueImport: [{ call: (catalogue) => catalogue.continueImport(1, { ...ID, ...IMPORT }) }],
  getImport: [{ call: (catalogue) => catalogue.import(1, ID) }],
  listImports: [{ call: (catalogue) => catalogue.imports(ID) }],
  updateBook: [ID, EXPECTED].map((options) => ({
    call: (catalogue) => catalogue.update(1, CHANGED, options),
  })),
  deleteBook: [ID, EXPECTED].map((options) => ({
    call: (catalogue) => catalogue.remove(1, options),
    ...{ result: true, absent: false },
  })),
};

/** The calls that read return as much. */
const NOT_OFFERED = [
  ...['checkBooks', 'checkBook', 'checkBooksOfEvent', 'checkChanges', 'checkEvent', 'checkEvents'],
  ...['checkHistory', 'checkImport', 'checkImports', 'checkSuggestions'],
];

const METHODS = [
  ...[
    'booksOfEvent',
    'changes',
    'checkUndo',
    'continueImport',
    'continueUndo',
    'count',
    'create',
    'createAll',
  ],
  ...['event', 'events', 'find', 'history', 'import', 'importFile', 'imports', 'list', 'logIn', 'page'],
  ...['remove', 'suggest', 'undo', 'update'],
];

const OPERATIONS = Object.entries<Document>(API.paths).flatMap(([path, { parameters = [], ...methods }]) =>
  Object.entries<Document>(methods).map(([method, operation]) => ({
    ...{ ...operation, method: method.toUpperCase(), path },
    parameters: [...parameters, ...operation.parameters],
  })),
);

test('the client has a counterpart for every operation, and no other', () => {
  const names = OPERATIONS.map(({ operationId }) => operationId);
  assert.deepEqual(names.toSorted(), [...Object.keys(CALLS), ...NOT_OFFERED].toSorted());
  const methods = Object.getOwnPropertyNames(BookCatalogue.prototype);
  assert.deepEqual(methods.toSorted(), [...METHODS, 'constructor'].toSorted());
});

for (const operation of OPERATIONS) {
  for (const { call, isRead = false, ...results } of CALLS[operation.operationId] ?? []) {
    timed(`understands every answer to ${operation.operationId}: ${call}`, async (time) => {
      for (const envelope of examplesOf(operation)) {
        const { status, message, data } = envelope;
        if (isRead && message === 'Undo in progress') continue;
        const play = (sent: Sent) => answerOf(sent, operation, envelope);
        const { catalogue, seen } = played(play, play);
        const outcome = time.until(call(catalogue)); // its timeout is shorter than Retry-After
        if (status < 300 || (message === 'Book not found' && 'absent' in results)) {
          const usual = 'result' in results ? results.result : data;
          assert.deepEqual(await outcome, status < 300 ? usual : results.absent);
        } else {
          const error = await errorOf(outcome);
          const isChange = operation.method !== 'GET' && !isLogin(operation) && !isRead;
          const found = [error.message, error.status, error.requestId, error.mayBeDone];
          assert.deepEqual(found, [message, status, 'played', isChange && status >= 500]);
          assert.equal(error instanceof WrongCredentials, message === 'Invalid credentials');
          assert.equal(error instanceof CursorExpired, message === 'Cursor no longer valid');
          assert.equal(error instanceof InvalidFile, message === 'Invalid file');
        }
        const isPlayed = (line: string) => operationOf(line) === operation;
        assert.equal(seen.filter(isPlayed).length, message === 'Invalid token' ? 2 : 1, message);
      }
    });
  }
}

test('the description has the messages that decide what the client does', () => {
  const said = OPERATIONS.flatMap(examplesOf).map(({ message }) => message);
  for (const message of [
    ...['Invalid credentials', 'Invalid token', 'Book not found', 'Cursor no longer valid', 'Invalid file'],
  ])
    assert.ok(said.includes(message));
});

function isLogin({ operationId }: Document): boolean {
  return operationId === 'createToken';
}

/** The described answers to an operation. */
function examplesOf({ responses }: Document): { status: number; message: string; data: unknown }[] {
  return Object.entries<Document>(responses).flatMap(([code, { content }]) =>
    Object.values<Document>(content?.['application/json'].examples ?? {}).map(({ value }) => {
      assert.equal(String(value.status), code);
      return value;
    }),
  );
}

function operationOf(line: string): Document {
  const [method, path] = line
    .replace(/\?.*/, '')
    .replace('/book/1', '/book/{id}')
    .replace('/event/1', '/event/{event}')
    .replace('/import/1', '/import/{number}')
    .split(' ');
  return OPERATIONS.find((operation) => operation.method === method && operation.path === path);
}

/** Plays one answer to one operation; the others succeed. Fails unless the request is as described. */
function answerOf(sent: Sent, played: Document, envelope: Document): Response {
  const operation = operationOf(sent.line);
  assertDescribed(sent, operation);
  const [usual] = examplesOf(operation);
  // A condition is unmet since the book has been changed.
  const isChanged = envelope.status === 412 && operation.operationId === 'getBook' && sent.times > 1;
  const answer =
    operation === played
      ? envelope
      : { ...usual, ...(isChanged && { data: { ...Object(usual?.data), year: 1 } }) };
  const headers = new Headers({ 'x-request-id': 'played', etag: '"played"', 'x-total-count': String(TOTAL) });
  // Of a page; the other calls ignore it.
  const isEndless = operation.operationId === 'listChanges';
  headers.set('link', isEndless ? '</changes?cursor=played>; rel="next"' : '</books?>; rel="first"');
  if ('Retry-After' in operation.responses[answer.status].headers) headers.set('retry-after', '6000');
  return new Response(JSON.stringify(answer), { status: answer.status, headers });
}

function assertDescribed({ line, headers, body }: Sent, operation: Document): void {
  const { operationId, parameters, requestBody } = operation;
  const token = examplesOf(OPERATIONS.find(isLogin))[0]?.data as { token: string };
  assert.equal(headers.get('authorization'), isLogin(operation) ? null : token.token);
  assert.equal(headers.get('x-request-id'), isLogin(operation) ? null : 'mine:42');
  const described = new Map<string, Document>(
    parameters.map(({ name, schema, content }: Document) => [name, schema ?? content]),
  );
  for (const name of ['Idempotency-Key', 'If-Match', 'Prefer']) {
    const value = headers.get(name);
    if (value !== null) assert.ok(checkOf(described.get(name))(value), `${name}: ${value}`);
  }
  assert.ok(['"played"', null].includes(headers.get('if-match')));

  const query = new URLSearchParams(line.split('?')[1]);
  const takesKey = described.has('Idempotency-Key') && query.get('dry-run') !== '';
  assert.equal(headers.has('idempotency-key'), takesKey);
  for (const [name, value] of query) {
    const schema = described.get(name);
    const json = schema['application/json']?.schema;
    if (json !== undefined) assert.ok(checkOf(json)(JSON.parse(value)), name);
    else assert.ok(checkOf(schema)(schema.type === 'integer' ? Number(value) : value), name);
  }
  const ofQuery = parameters.filter((parameter: Document) => parameter.in === 'query');
  const names: string[] = ofQuery.map(({ name }: Document) => name);
  const ofSearch = names.filter((name) => !/cursor|offset/.test(name));
  if (query.size > 0) assert.deepEqual([...query.keys()].toSorted(), ofSearch.toSorted());

  const schema = requestBody?.content['application/json']?.schema;
  assert.equal(body === '', requestBody === undefined, operationId);
  if (schema === undefined) return;
  assert.ok(checkOf(schema)(JSON.parse(body)));
  const { properties, oneOf } = schema.items ?? schema;
  for (const fields of [JSON.parse(body)].flat()) {
    const names = oneOf === undefined ? Object.keys(properties) : Object.keys(fields).slice(0, 1);
    assert.deepEqual(Object.keys(fields).toSorted(), names.toSorted());
  }
}
