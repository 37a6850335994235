// Owns: an answer as a value, and how its head and body go onto a socket. Independent of books and envelopes.

import type { Socket } from 'node:net';

/** Names and values in turn. */
export type HeaderList = readonly string[];

/** A body that is produced while it is sent. */
export interface BodyStream {
  readonly chunks: AsyncIterable<string | Uint8Array>;
  /** Releases the source of the chunks, whether or not they were read to their end. May be called again. */
  close(): void;
}

export function isStream(body: Answer['body']): body is BodyStream {
  return typeof body === 'object' && 'chunks' in body;
}

export interface Answer {
  readonly status: number;
  /** Content-Length is added if the length of the body is known. A list that many answers share costs least. */
  readonly headers: HeaderList;
  /** Further headers, of this answer alone. */
  readonly own?: HeaderList;
  readonly body?: string | Uint8Array | BodyStream;
  /** Bytes of a body that takes room until its client has read it; of bytes that several answers share, once. */
  readonly length?: number;
  /**
   * Milliseconds for which the answer waited as its client had asked. They are not those of the service. It has waited for room as
   * well, and is not refused.
   */
  readonly waited?: number;
}

/** With the words of RFC 9110. An `import` of node:http, which has them too, would take 19 MiB, a sixth of all memory. */
const STATUSES = `
  200 OK, 201 Created, 204 No Content, 302 Found, 304 Not Modified, 400 Bad Request, 401 Unauthorized, 403 Forbidden, 404 Not Found,
  405 Method Not Allowed, 408 Request Timeout, 409 Conflict, 410 Gone, 412 Precondition Failed, 413 Content Too Large,
  415 Unsupported Media Type, 421 Misdirected Request, 422 Unprocessable Content, 428 Precondition Required, 429 Too Many Requests,
  431 Request Header Fields Too Large, 500 Internal Server Error, 503 Service Unavailable`;

const STATUS_LINES: ReadonlyMap<number, string> = new Map(
  STATUSES.split(',').map((words) => [Number.parseInt(words, 10), `HTTP/1.1 ${words.trim()}\r\n`]),
);

/** Lines of lists that are the same for many answers. */
const known = new WeakMap<HeaderList, string>();

/**
 * The head of an answer, without the length of its body and the empty line.
 * @param more lines before the others.
 * @param connection lines that say whether the connection ends.
 * @throws if a value would end its line.
 */
export function headOf({ status, headers, own }: Answer, more: string, connection: string): string {
  let lines = known.get(headers);
  if (lines === undefined) {
    lines = linesOf(headers);
    known.set(headers, lines);
  }
  const statusLine = STATUS_LINES.get(status) ?? `HTTP/1.1 ${status} \r\n`;
  return `${statusLine}${more}${lines}${own === undefined ? '' : linesOf(own)}${dateLine()}${connection}`;
}

/** @throws if a value would end its line. */
export function linesOf(list: HeaderList): string {
  let lines = '';
  for (let position = 0; position < list.length; position += 2) {
    const value = list[position + 1] as string;
    if (/[^\t -~]/.test(value)) throw new Error(`a header ${list[position]} cannot be sent`);
    lines += `${list[position]}: ${value}\r\n`;
  }
  return lines;
}

let second = 0;
let line = '';

/** It is formatted once a second. */
function dateLine(): string {
  const now = Math.floor(Date.now() / 1000);
  if (now !== second) {
    second = now;
    line = `date: ${new Date(1000 * now).toUTCString()}\r\n`;
  }
  return line;
}

/**
 * Writes an answer whose body is known, or the head of any other.
 * @param head without the empty line.
 * @param isToHead whether only the head is sent.
 */
export function writeAnswer(socket: Socket, answer: Answer, head: string, isToHead: boolean): void {
  const { status, body = '', length } = answer;
  const isBare = status === 204 || status === 304 || (isToHead && answer.body === undefined);
  if (isBare || isStream(body)) return void socket.write(`${head}\r\n`, 'latin1');
  const bytes = length ?? Buffer.byteLength(body);
  write(socket, `${head}content-length: ${bytes}\r\n\r\n`, isToHead ? '' : body, isToHead ? 0 : bytes, '');
}

/**
 * Writes an answer with a stream, no faster than its client reads it, and ends early if the socket is destroyed.
 * @param isChunked else the end of the connection is that of the body (HTTP/1.0).
 * @throws what the stream throws.
 */
export async function writeStream(
  socket: Socket,
  { chunks }: BodyStream,
  head: string,
  isChunked: boolean,
): Promise<void> {
  let before = `${head}${isChunked ? 'transfer-encoding: chunked\r\n' : ''}\r\n`;
  for await (const chunk of chunks) {
    if (socket.destroyed) return;
    const length = Buffer.byteLength(chunk);
    if (length === 0) continue; // it would be the last one
    if (isChunked) before += `${length.toString(16)}\r\n`;
    const hasRoom = write(socket, before, chunk, length, isChunked ? '\r\n' : '');
    before = '';
    if (!hasRoom) await drained(socket);
  }
  const last = isChunked ? `${before}0\r\n\r\n` : before;
  if (last !== '' && !socket.destroyed) socket.write(last, 'latin1');
}

/** @returns whether the socket has room for more. */
function write(
  socket: Socket,
  before: string,
  body: string | Uint8Array,
  length: number,
  after: string,
): boolean {
  if (typeof body === 'string' && length === body.length)
    return socket.write(before + body + after, 'latin1');
  socket.cork();
  socket.write(before, 'latin1');
  let hasRoom = socket.write(body, 'utf8');
  if (after !== '') hasRoom = socket.write(after, 'latin1');
  socket.uncork();
  return hasRoom;
}

/** Resolves once the system has all that was written, or the socket is destroyed. */
function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      socket.off('drain', end).off('close', end);
      resolve();
    };
    socket.on('drain', end).on('close', end);
  });
}
