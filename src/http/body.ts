// Owns: request bodies, from bytes on the wire to JSON. Content-Type is ignored (rule 7).
// Does not: accept more bytes than a body may have, or than the memory for bodies holds (rule 22), or anything but
// UTF-8 (rule 4).

import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { parseJson } from '../json/parse.ts';

/**
 * Most values in a body, nested ones included. JSON.parse takes up to 100 bytes and up to a microsecond for each, so a body of
 * nothing else could take gigabytes and hold up all other requests.
 */
const MOST_VALUES = 250_000;

/** The body is longer than the limit, or has too many parts. */
export class BodyTooLarge extends Error {}

/** The client has gone, or was cut off, before its body was complete: there is nobody to answer. */
export class BodyIncomplete extends Error {}

/** Other bodies use all the memory for bodies. */
export class NoRoomForBody extends Error {}

const EMPTY = Buffer.alloc(0);

/** Bytes for all bodies that arrive in pieces or are worked on. */
const ROOM = 128 * 1024 * 1024;

/**
 * Largest body, in bytes, that needs no room: it takes less memory than its connection. So nobody can take the room of
 * other bodies with bodies that are read before a token is checked.
 */
const TINY = 4096;

/** Memory for one body. */
export class BodyRoom implements Disposable {
  static #taken = 0; // bytes of all bodies
  readonly #weight: number;
  #bytes = 0;

  /** @param weight bytes of memory for each byte of the body. */
  constructor(weight = 1) {
    this.#weight = weight;
  }

  /**
   * Takes memory for as many bytes of the body, and gives that back that was taken before.
   * @throws NoRoomForBody
   */
  take(length: number): void {
    this[Symbol.dispose]();
    const bytes = this.#weight * length;
    // One body alone may exceed ROOM.
    if (BodyRoom.#taken > 0 && BodyRoom.#taken + bytes > ROOM) throw new NoRoomForBody();
    BodyRoom.#taken += bytes;
    this.#bytes = bytes;
  }

  [Symbol.dispose](): void {
    BodyRoom.#taken -= this.#bytes;
    this.#bytes = 0;
  }
}

/**
 * Reads a whole body. Bytes after the limit are not kept; Node drains them once the answer has been sent.
 * @param limit bytes.
 * @param room for the body until it is read.
 * @throws BodyTooLarge, NoRoomForBody, BodyIncomplete
 */
export function readBody(
  request: IncomingMessage,
  limit: number,
  room: BodyRoom = new BodyRoom(),
): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  if (!hasBody(request)) {
    resolve(EMPTY);
    return promise;
  }
  const announced = Number(request.headers['content-length']);
  if (announced > limit) {
    reject(new BodyTooLarge());
    return promise;
  }
  let memory = new ArrayBuffer();
  let body: Buffer = EMPTY;
  let length = 0;
  const onData = (chunk: Buffer) => {
    const end = length + chunk.length;
    try {
      if (end > limit) throw new BodyTooLarge();
      // Most bodies arrive in one piece and need no room.
      if (end === announced && length === 0) body = chunk;
      else keep(chunk, end);
      length = end;
    } catch (error) {
      request.off('data', onData);
      release();
      reject(error);
    }
  };
  /** One buffer for all chunks: a million chunks of a byte each would take hundreds of times as much memory. */
  const keep = (chunk: Buffer, end: number) => {
    if (end > body.length) {
      const size = end <= TINY ? TINY : Math.min(2 * end, limit);
      if (size > TINY) room.take(size);
      memory = memory.transfer(size); // which frees the memory before, without waiting for the garbage collector
      body = Buffer.from(memory);
    }
    chunk.copy(body, length);
  };
  const release = () => {
    room[Symbol.dispose]();
    body = EMPTY;
  };
  request.on('data', onData);
  let isComplete = false;
  request.on('end', () => {
    isComplete = true;
    resolve(body.subarray(0, length));
    release();
  });
  request.on('close', () => {
    if (isComplete) return;
    release();
    reject(new BodyIncomplete()); // with its stack, it takes microseconds
  });
  request.on('error', () => {}); // 'close' follows
  return promise;
}

/**
 * Waits for the end of a body that has no meaning: a request that is not whole changes nothing.
 * @throws BodyIncomplete
 */
export async function skipBody(request: IncomingMessage): Promise<void> {
  if (!hasBody(request)) return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  request.on('end', resolve);
  request.on('close', () => reject(new BodyIncomplete())); // after 'end' it has no effect
  request.on('error', () => {}); // 'close' follows
  request.resume();
  await promise;
}

/** Whether a request announces a body. The server lets one that does not emit no events. */
function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}

/**
 * @returns undefined if the body is not JSON in UTF-8 (rule 6).
 * @throws BodyTooLarge if it has too many values.
 */
export function parseBody(body: Buffer): unknown {
  if (hasTooManyValues(body)) throw new BodyTooLarge();
  return isUtf8(body) ? parseJson(body.toString()) : undefined;
}

/** Each value but the first one of all follows a comma or an opening bracket that is not part of a text. */
function hasTooManyValues(body: Buffer): boolean {
  if (body.length <= MOST_VALUES) return false;
  let values = 0;
  let isInText = false;
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at];
    if (byte === 0x22) isInText = !isInText;
    else if (byte === 0x5c)
      at += 1; // it escapes the next one
    else if (!isInText && (byte === 0x2c || byte === 0x5b || byte === 0x7b)) values += 1;
  }
  return values > MOST_VALUES;
}
