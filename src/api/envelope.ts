// Owns: the envelope of every answer, and every message of the service, each in one place.
// The HTTP status and the status in the body are one value here, so they cannot differ.

import type { Book } from '../books/book.ts';
import type { CatalogueEvent, Change, ChangedBook, NotUndone, State } from '../books/change-log.ts';
import { tagOf, tagOfText } from '../books/condition.ts';
import { nameOf } from '../books/event-key.ts';
import type { ListedEvent } from '../books/events.ts';
import type { Suggestion } from '../books/search.ts';
import { progressOf, type UndoProgress } from '../books/undo.ts';
import type { Answer, BodyStream, HeaderList } from '../http/answer.ts';
import type { ImportKnown } from '../import/known.ts';
import { writeTime } from '../rfc3339.ts';

/** Every response body: exactly these three fields. */
export interface Envelope<Data = unknown> {
  readonly status: number;
  readonly message: string;
  readonly data: Data;
}

export type EnvelopeAnswer = Answer & { readonly body: string; readonly length: number };

/** Headers of every answer (rule 24). */
const COMMON_HEADERS: HeaderList = [
  ...['content-type', 'application/json; charset=utf-8'],
  ...['x-content-type-options', 'nosniff'],
  ...['cache-control', 'no-store'],
];

/** Headers of every 401, and of every 503 (rule 24). */
const UNAUTHORIZED_HEADERS: HeaderList = [
  ...COMMON_HEADERS,
  'www-authenticate',
  'Token realm="books", error_description="The token is the whole value of Authorization, without Token or Bearer"',
];
const UNAVAILABLE_HEADERS: HeaderList = [...COMMON_HEADERS, 'retry-after', '1']; // seconds

function success(status: number, message: string, data: unknown): EnvelopeAnswer {
  const body = JSON.stringify({ status, message, data });
  return { status, headers: COMMON_HEADERS, body, length: Buffer.byteLength(body) };
}

/** Made once and sent often. */
function failure(status: number, message: string): EnvelopeAnswer {
  const headers =
    status === 401 ? UNAUTHORIZED_HEADERS : status === 503 ? UNAVAILABLE_HEADERS : COMMON_HEADERS;
  return Object.freeze({ ...success(status, message, null), headers });
}

/** An answer with a book and its tag (rule E1). Both come from one text: making it twice would slow every read. */
function bookAnswer(status: number, message: string): (book: Book) => EnvelopeAnswer {
  const beginning = `${JSON.stringify({ status, message }).slice(0, -1)},"data":`;
  return (book) => {
    const text = JSON.stringify(book);
    const own = ['etag', `"${tagOfText(text)}"`];
    const body = `${beginning}${text}}`;
    return { status, headers: COMMON_HEADERS, own, body, length: Buffer.byteLength(body) };
  };
}

/** With the time as RFC 3339, and null for a book that is gone. */
function dated<Of extends Change | State>({ at, book, ...rest }: Of): object {
  return { ...rest, at: writeTime(at), book: book ?? null };
}

/** @param more headers, names and values in turn. */
function withHeaders(answer: EnvelopeAnswer, ...more: HeaderList): EnvelopeAnswer {
  return { ...answer, own: [...(answer.own ?? []), ...more] };
}

// Tokens
export const tokenGenerated = (token: string) => success(200, 'Token generated successfully', { token });
export const INVALID_LOGIN = failure(400, 'Invalid request payload');
export const ORIGIN_NOT_ALLOWED = failure(403, 'Origin not allowed');
export const INVALID_CREDENTIALS = failure(401, 'Invalid credentials');
/** @param seconds until another attempt may be answered. */
export const tooManyAttempts = (seconds: number) =>
  withHeaders(failure(429, 'Too many attempts'), 'retry-after', `${seconds}`);
export const TOKEN_NOT_GENERATED = failure(500, 'Could not generate token');
export const TOKEN_REQUIRED = failure(401, 'Authorization token required');
export const INVALID_TOKEN = failure(401, 'Invalid token');

// Sessions of the page
/** @param cookie as `Set-Cookie` has it. */
export const sessionStarted = (key: string, cookie: string) =>
  withHeaders(success(200, 'Session started', { key }), 'set-cookie', cookie);
/** @param seconds until its end. */
export const sessionRenewed = (seconds: number, linkKey: string, cookie: string) =>
  withHeaders(success(200, 'Session renewed', { seconds, linkKey }), 'set-cookie', cookie);
export const sessionEnded = (cookie: string) =>
  withHeaders(success(200, 'Session ended', null), 'set-cookie', cookie);
export const SESSION_EXPIRED = failure(401, 'Session expired');

// Books
const created = bookAnswer(201, 'Book created successfully');
export const bookCreated = (book: Book) => withHeaders(created(book), 'location', `/book/${book.id}`);
/** The answer to a repeated request with the same key (rule I2). */
export const replayOf = (answer: EnvelopeAnswer) => withHeaders(answer, 'idempotent-replayed', 'true');
/** @param ids of the new books, in their order. */
export const booksCreated = (ids: readonly number[]) => success(201, 'Books created successfully', ids);
export const bookRetrieved = bookAnswer(200, 'Book retrieved successfully');
export const bookUpdated = bookAnswer(200, 'Book updated successfully');
/** The client has the book already (rule E2). It has no body, so no envelope. */
export const notModified = (book: Book): Answer => ({
  status: 304,
  headers: ['cache-control', 'no-store', 'etag', `"${tagOf(book)}"`],
});
export const BOOK_DELETED = success(200, 'Book deleted successfully', null);
export const INVALID_BOOK = failure(400, 'Invalid input');
/** @param position of the first element that is not a book, from 1. */
export const invalidBook = (position: number | string) => failure(400, `Invalid input: book ${position}`);
export const INVALID_KEY = failure(400, 'Invalid idempotency key');
export const KEY_USED = failure(422, 'Idempotency key already used');
export const BOOK_NOT_FOUND = failure(404, 'Book not found');
export const PRECONDITION_FAILED = failure(412, 'Precondition failed');
export const PRECONDITION_REQUIRED = failure(428, 'Precondition required');

export const suggestionsRetrieved = (suggestions: readonly Suggestion[], headers: HeaderList = []) =>
  withHeaders(success(200, 'Suggestions retrieved successfully', suggestions), ...headers);
export const booksRetrieved = (books: readonly object[]) =>
  success(200, 'Books retrieved successfully', books);

export const pageRetrieved = (books: readonly object[], headers: HeaderList) =>
  withHeaders(booksRetrieved(books), ...headers);
/** @param name as it was sent. */
export const invalidParameter = (name: string) => failure(400, `Invalid query parameter: ${name}`);

export const changesRetrieved = (changes: readonly Change[]) =>
  success(200, 'Changes retrieved successfully', changes.map(dated));
export const CURSOR_GONE = failure(410, 'Cursor no longer valid');
export const historyRetrieved = (states: readonly State[], headers: HeaderList) =>
  withHeaders(success(200, 'Book history retrieved successfully', states.map(dated)), ...headers);

const leftOf = (left: readonly number[]) => left.map((id) => ({ id, reason: 'changed later' }));
export const changesUndone = ({ event, undone, left }: UndoProgress) =>
  success(200, 'Changes undone successfully', {
    change: undone > 0 ? event : null,
    undone,
    left: leftOf(left),
  });
/** The result of an undo that was not done. */
export const undoChecked = ({ books, checked, undone, left }: UndoProgress) =>
  success(200, 'Undo checked', { books, checked, undone, left: leftOf(left) });

const asEvent = ({ key, at, until, kind, name, books }: Omit<ListedEvent, 'first'>) => ({
  event: key === undefined ? null : nameOf(key),
  kind,
  at: writeTime(at),
  until: writeTime(until),
  name,
  books,
});
const asNumbered = (event: CatalogueEvent) => {
  const { books: all, checked, changedLater, left } = progressOf(event) ?? {};
  const undo = left && { books: all, checked, changedLater, left: leftOf(left) };
  return { ...asEvent({ ...event, key: event.number, until: event.at }), undo: undo ?? null };
};
const asChanged = ({ id, before, book }: ChangedBook) => ({ id, before: before ?? null, book: book ?? null });
export const eventRetrieved = (event: CatalogueEvent) =>
  success(200, 'Event retrieved successfully', asNumbered(event));
export const runRetrieved = (run: ListedEvent) =>
  success(200, 'Event retrieved successfully', { ...asEvent(run), undo: null });
export const eventsRetrieved = (events: readonly ListedEvent[], headers: HeaderList) => {
  const all = events.map((event) => ({ ...asEvent(event), first: event.first.map(asChanged) }));
  return withHeaders(success(200, 'Events retrieved successfully', all), ...headers);
};
export const booksOfEventRetrieved = (books: readonly ChangedBook[], headers: HeaderList) =>
  withHeaders(success(200, 'Books of the event retrieved successfully', books.map(asChanged)), ...headers);
/** The service continues the undo. */
export const undoInProgress = (event: CatalogueEvent) =>
  withHeaders(success(202, 'Undo in progress', asNumbered(event)), 'location', `/event/${event.number}`);

// Imports
const asImport = ({ number, state, books, report }: ImportKnown) => ({
  import: number,
  state,
  books,
  ...report,
});
const located = (answer: EnvelopeAnswer, { number }: ImportKnown) =>
  withHeaders(answer, 'location', `/import/${number}`);
export const fileChecked = (known: ImportKnown) =>
  located(success(200, 'File checked', asImport(known)), known);
export const booksImported = (known: ImportKnown) =>
  located(success(200, 'Books imported successfully', asImport(known)), known);
export const importInProgress = (known: ImportKnown) =>
  located(success(202, 'Import in progress', asImport(known)), known);
export const importRetrieved = (known: ImportKnown) =>
  success(200, 'Import retrieved successfully', asImport(known));
export const invalidFile = (known: ImportKnown) =>
  located(success(400, 'Invalid file', asImport(known)), known);
/** Without their rows. */
export const importsRetrieved = (all: readonly ImportKnown[]) =>
  success(
    200,
    'Imports retrieved successfully',
    all.map(({ number, state, books, report }) => {
      const { name, dryRun, phase, read, size, figures, fault } = report;
      return { import: number, state, books, name, dryRun, phase, read, size, figures, fault };
    }),
  );
export const IMPORT_NOT_FOUND = failure(404, 'Import not found');
export const FILE_GONE = failure(410, 'File no longer here');
export const EVENT_NOT_FOUND = failure(404, 'Event not found');
export const NOT_UNDONE: Readonly<Record<NotUndone, EnvelopeAnswer>> = {
  unknown: failure(404, 'Change not found'),
  beyond: failure(422, 'Changes no longer known'),
};

const { body: EMPTY_LIST, length: _, ...LIST_HEAD } = booksRetrieved([]);

/** @param list JSON text of books, separated by commas; undefined for the head alone, which answers HEAD. */
export function listRetrieved(list?: BodyStream): Answer {
  if (list === undefined) return LIST_HEAD;
  const chunks = async function* () {
    yield EMPTY_LIST.slice(0, -']}'.length);
    yield* list.chunks;
    yield ']}';
  };
  return { ...LIST_HEAD, body: { chunks: chunks(), close: () => list.close() } };
}

// The wire (rule 20)
export const BAD_REQUEST = failure(400, 'Bad request');
export const NOT_FOUND = failure(404, 'Not found');
/** @param allowed methods of the path. */
export const methodNotAllowed = (allowed: readonly string[]) =>
  withHeaders(failure(405, 'Method not allowed'), 'allow', allowed.join(', '));
export const REQUEST_TIMEOUT = failure(408, 'Request timeout');
export const PAYLOAD_TOO_LARGE = failure(413, 'Payload too large');
/** Names the only coding that a body may have (RFC 9110 section 12.5.3). */
export const BODY_COMPRESSED = withHeaders(
  failure(415, 'Unsupported content encoding'),
  'accept-encoding',
  'identity',
);
export const MISDIRECTED_REQUEST = failure(421, 'Misdirected request');
export const HEADERS_TOO_LARGE = failure(431, 'Request header fields too large');
export const INTERNAL_ERROR = failure(500, 'Internal server error');
export const SERVICE_UNAVAILABLE = failure(503, 'Service unavailable');

/** An id that a client may give its request, to find it in the log (rule 24). */
export const REQUEST_ID = /^[A-Za-z0-9_.:-]{1,128}$/;
