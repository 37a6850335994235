// Owns: the envelope that every answer is, and every sentence the service says, each named once.
// HTTP status and body status are one value here, so they cannot disagree.

/** Every response body: exactly these three fields. */
export interface Envelope<Data = unknown> {
  readonly status: number;
  readonly message: string;
  readonly data: Data;
}

function failure(status: number, message: string): Envelope<null> {
  return Object.freeze({ status, message, data: null });
}

// Tokens
export const tokenGenerated = (token: string): Envelope<{ token: string }> => ({
  status: 200,
  message: 'Token generated successfully',
  data: { token },
});
export const INVALID_LOGIN = failure(400, 'Invalid request payload');
export const INVALID_CREDENTIALS = failure(401, 'Invalid credentials');
export const TOO_MANY_ATTEMPTS = failure(429, 'Too many attempts');
export const TOKEN_NOT_GENERATED = failure(500, 'Could not generate token');
export const TOKEN_REQUIRED = failure(401, 'Authorization token required');
export const INVALID_TOKEN = failure(401, 'Invalid token');

// Books
export const bookCreated = <Book>(data: Book): Envelope<Book> => ({
  status: 201,
  message: 'Book created successfully',
  data,
});
export const bookRetrieved = <Book>(data: Book): Envelope<Book> => ({
  status: 200,
  message: 'Book retrieved successfully',
  data,
});
export const bookUpdated = <Book>(data: Book): Envelope<Book> => ({
  status: 200,
  message: 'Book updated successfully',
  data,
});
export const BOOK_DELETED: Envelope<null> = { status: 200, message: 'Book deleted successfully', data: null };
export const INVALID_BOOK = failure(400, 'Invalid input');
export const BOOK_NOT_FOUND = failure(404, 'Book not found');

/** The list's envelope comes in two halves, the books streaming between them. */
export const BOOKS_RETRIEVED = [
  '{"status":200,"message":"Books retrieved successfully","data":[',
  ']}',
] as const;

// The wire (rule 20)
export const BAD_REQUEST = failure(400, 'Bad request');
export const NOT_FOUND = failure(404, 'Not found');
export const METHOD_NOT_ALLOWED = failure(405, 'Method not allowed');
export const REQUEST_TIMEOUT = failure(408, 'Request timeout');
export const PAYLOAD_TOO_LARGE = failure(413, 'Payload too large');
export const HEADERS_TOO_LARGE = failure(431, 'Request header fields too large');
export const INTERNAL_ERROR = failure(500, 'Internal server error');
export const SERVICE_UNAVAILABLE = failure(503, 'Service unavailable');

/** Headers of every answer (rule 24). */
export const COMMON_HEADERS = {
  'content-type': 'application/json; charset=utf-8',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
} as const;

/** What a client may call its request, to find it again in the log (rule 24). */
export const REQUEST_ID = /^[A-Za-z0-9_.:-]{1,128}$/;

/** Headers that an answer has for its status (rule 24). */
export const STATUS_HEADERS: Readonly<Record<number, Readonly<Record<string, string>>>> = {
  401: { 'www-authenticate': 'Token realm="books"' }, // the header's whole value is the token: no scheme
  503: { 'retry-after': '1' }, // seconds
};
