// Owns: an answer as a value, and how its head and body go onto the wire. Every answer of every port goes through here.
// Knows neither books nor envelopes.

import type { ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import { pipeline, Readable } from 'node:stream';

// Imported, node:http would also load parts that nobody uses here.
const { STATUS_CODES } = createRequire(import.meta.url)('node:http') as typeof import('node:http');

/** Names and values by turns: the form that costs `writeHead` least. */
export type HeaderList = readonly string[];

/** A body that is made while it is sent. */
export interface BodyStream {
  readonly chunks: AsyncIterable<string | Uint8Array>;
  /** Gives up what the chunks are made from, read to their end or not. May be called again. */
  close(): void;
}

export interface Answer {
  readonly status: number;
  /** Content-Length is added where the body is known. */
  readonly headers: HeaderList;
  readonly body?: string | Uint8Array | BodyStream;
}

/**
 * Sends an answer; of an answer to HEAD, Node sends only the head.
 * @param more headers of this one answer.
 * @param onBroken called with the reason when a stream fails half way. Its connection is destroyed, so that no client
 * takes a part for the whole.
 */
export function send(
  response: ServerResponse,
  { status, headers, body }: Answer,
  more: HeaderList,
  onBroken: (reason: unknown) => void,
): void {
  if (typeof body === 'string' || body instanceof Uint8Array) {
    const length = Buffer.byteLength(body);
    response.writeHead(status, [...more, ...headers, 'content-length', `${length}`]);
    response.end(body, length === body.length ? 'latin1' : 'utf8'); // ASCII leaves faster so
    return;
  }
  if (body === undefined) {
    response.writeHead(status, [...more, ...headers]).end();
    return;
  }
  if (response.destroyed) {
    body.close(); // its reader has left while it was opened
    return;
  }
  response.writeHead(status, [...more, ...headers]);
  // A reader that leaves ends the response. The chunks, while they wait for a silent source, would not end.
  response.once('close', () => body.close());
  pipeline(Readable.from(body.chunks), response, (error) => {
    if (error && error.code !== 'ERR_STREAM_PREMATURE_CLOSE') onBroken(error); // else its reader has left
  });
}

/** Writes the last answer of a connection: to a request that HTTP could not read, and that so has no response object. */
export function sendLast(
  socket: Socket,
  { status, headers, body }: Answer & { readonly body: string },
  more: HeaderList,
): void {
  const date = new Date().toUTCString();
  const length = `${Buffer.byteLength(body)}`;
  const all = [...more, ...headers, 'date', date, 'content-length', length, 'connection', 'close'];
  const lines = all.map((text, position) => (position % 2 === 0 ? `${text}: ` : `${text}\r\n`));
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
}
