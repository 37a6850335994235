// Owns: an answer as a value, and how its head and body go onto the wire. Every answer of every port goes through here.
// Independent of books and envelopes.

import type { ServerResponse } from 'node:http';
import { pipeline, Readable, type Writable } from 'node:stream';

// An `import` of node:http would also load parts that are not used here.
const { STATUS_CODES } = process.getBuiltinModule('node:http');

/** Names and values in turn: the cheapest form for `writeHead`. */
export type HeaderList = readonly string[];

/** A body that is produced while it is sent. */
export interface BodyStream {
  readonly chunks: AsyncIterable<string | Uint8Array>;
  /** Releases the source of the chunks, whether or not they were read to their end. May be called again. */
  close(): void;
}

export interface Answer {
  readonly status: number;
  /** Content-Length is added if the length of the body is known. */
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

/**
 * Sends an answer. In answer to HEAD, Node sends only the head.
 * @param list the first headers, to which the others are added.
 * @param onBroken called with the reason if a stream fails half way. Its connection is destroyed, so that no client
 * takes a part for the whole.
 */
export function send(
  response: ServerResponse,
  { status, headers, own = [], body, length: counted }: Answer,
  list: string[],
  onBroken: (reason: unknown) => void,
): void {
  list.push(...headers, ...own);
  if (typeof body === 'string' || body instanceof Uint8Array) {
    const length = counted ?? Buffer.byteLength(body);
    list.push('content-length', `${length}`);
    response.writeHead(status, list);
    response.end(body, length === body.length ? 'latin1' : 'utf8'); // faster for ASCII
    return;
  }
  if (body === undefined) {
    response.writeHead(status, list).end();
    return;
  }
  if (response.destroyed) {
    body.close(); // the client left while the stream was being opened
    return;
  }
  response.writeHead(status, list);
  // If the client leaves, the response closes. Chunks that wait for a silent source would not end by themselves.
  response.once('close', () => body.close());
  pipeline(Readable.from(unlessBroken(body.chunks, response)), response, (error) => {
    if (error && error.code !== 'ERR_STREAM_PREMATURE_CLOSE') onBroken(error); // otherwise the client has left
  });
}

/** In HTTP/1.0, a connection that is closed ends a body: one that breaks off has its connection reset. */
async function* unlessBroken(chunks: BodyStream['chunks'], { req, socket }: ServerResponse) {
  try {
    yield* chunks;
  } catch (error) {
    if (req.httpVersion === '1.0') socket?.resetAndDestroy();
    throw error;
  }
}

/** Writes the last answer of a connection, to a request that could not be read and so has no response object. */
export function sendLast(
  connection: Writable,
  { status, headers, own = [], body }: Answer & { readonly body: string },
  more: HeaderList,
): void {
  const date = new Date().toUTCString();
  const length = `${Buffer.byteLength(body)}`;
  const all = [...more, ...headers, ...own, 'date', date, 'content-length', length, 'connection', 'close'];
  const lines = all.map((text, position) => (position % 2 === 0 ? `${text}: ` : `${text}\r\n`));
  connection.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
}
