// Owns: the answers of the contract, spelled out again: the kit takes no word and no number from what it checks.

/** An answer without a book. */
interface Bare {
  readonly status: number;
  readonly message: string;
  readonly data: null;
}

const refusal = (status: number, message: string): Bare => ({ status, message, data: null });

export const INVALID = refusal(400, 'Invalid input');
export const INVALID_LOGIN = refusal(400, 'Invalid request payload');
export const INVALID_KEY = refusal(400, 'Invalid idempotency key');
export const BAD_REQUEST = refusal(400, 'Bad request');
export const WRONG_LOGIN = refusal(401, 'Invalid credentials');
export const FOREIGN_PAGE = refusal(403, 'Origin not allowed');
export const TOKEN_REQUIRED = refusal(401, 'Authorization token required');
export const INVALID_TOKEN = refusal(401, 'Invalid token');
export const SESSION_EXPIRED = refusal(401, 'Session expired');
export const BOOK_NOT_FOUND = refusal(404, 'Book not found');
export const NOT_FOUND = refusal(404, 'Not found');
export const CHANGE_NOT_FOUND = refusal(404, 'Change not found');
export const EVENT_NOT_FOUND = refusal(404, 'Event not found');
export const IMPORT_NOT_FOUND = refusal(404, 'Import not found');
export const METHOD_NOT_ALLOWED = refusal(405, 'Method not allowed');
export const UNMET = refusal(412, 'Precondition failed');
export const TOO_LARGE = refusal(413, 'Payload too large');
export const COMPRESSED = refusal(415, 'Unsupported content encoding');
export const TOO_MANY = refusal(429, 'Too many attempts');
export const KEY_USED = refusal(422, 'Idempotency key already used');
export const HEADERS_TOO_LARGE = refusal(431, 'Request header fields too large');
export const DELETED = refusal(200, 'Book deleted successfully');
export const SESSION_STARTED = { status: 200, message: 'Session started' };
export const SESSION_RENEWED = { status: 200, message: 'Session renewed' };
export const SESSION_ENDED = refusal(200, 'Session ended');

export const invalidAt = (position: number) => refusal(400, `Invalid input: book ${position}`);
export const invalidParameter = (name: string) => refusal(400, `Invalid query parameter: ${name}`);

export const created = (data: object) => ({ status: 201, message: 'Book created successfully', data });
export const createdAll = <Data>(data: Data) => ({
  status: 201,
  message: 'Books created successfully',
  data,
});
export const retrieved = (data: object) => ({ status: 200, message: 'Book retrieved successfully', data });
export const updated = (data: object) => ({ status: 200, message: 'Book updated successfully', data });
export const changesRetrieved = { status: 200, message: 'Changes retrieved successfully' };
export const historyRetrieved = <Data>(data: Data) => ({
  status: 200,
  message: 'Book history retrieved successfully',
  data,
});
export const undone = <Data>(data: Data) => ({ status: 200, message: 'Changes undone successfully', data });
export const undoChecked = <Data>(data: Data) => ({ status: 200, message: 'Undo checked', data });
export const eventsRetrieved = <Data>(data: Data) => ({
  status: 200,
  message: 'Events retrieved successfully',
  data,
});
export const booksOfEventRetrieved = <Data>(data: Data) => ({
  status: 200,
  message: 'Books of the event retrieved successfully',
  data,
});
export const imported = { status: 200, message: 'Books imported successfully' };
export const fileChecked = { status: 200, message: 'File checked' };
export const importInProgress = { status: 202, message: 'Import in progress' };
export const invalidFile = { status: 400, message: 'Invalid file' };
export const importRetrieved = <Data>(data: Data) => ({
  status: 200,
  message: 'Import retrieved successfully',
  data,
});
export const importsRetrieved = { status: 200, message: 'Imports retrieved successfully' };
export const eventRetrieved = (data: object) => ({
  status: 200,
  message: 'Event retrieved successfully',
  data,
});
