// Owns: request bodies, from bytes on the wire to a JSON object. Content-Type is ignored (rule 7).
// Does not: accept more bytes than the limit or than the memory for bodies holds (rule 22), or anything but a JSON object in
// UTF-8 (rules 4 and 6).

import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { type JsonObject, parseJsonText } from '../json/object.ts';

/** The body is longer than the limit. */
export class BodyTooLarge extends Error {}

/** The client has gone, or was cut off, before its body was complete: there is nobody to answer. */
export class BodyIncomplete extends Error {}

/** Other bodies that are being read use all the memory for bodies. */
export class NoRoomForBody extends Error {}

const EMPTY = Buffer.alloc(0);

/** Largest small body, in bytes. Small bodies have reserved memory, which large ones cannot use up. */
const SMALL = 64 * 1024;

/** Bytes for all small bodies together that are not yet complete, and as many for all larger ones. */
const ROOM = 128 * 1024 * 1024;

/** Bytes for the content of all bodies that are read piece by piece: it takes several times as much memory as they. */
const PIECES_ROOM = 32 * 1024 * 1024;

/**
 * Largest body, in bytes, that needs no room: it takes less memory than its connection. So nobody can take the room of
 * other bodies with bodies that are read before a token is checked.
 */
const TINY = 4096;

interface Room {
  taken: number; // bytes
}

const small: Room = { taken: 0 };
const large: Room = { taken: 0 };
const pieces: Room = { taken: 0 };

/**
 * Reads a whole body. Bytes after the limit are not kept; Node drains them once the answer has been sent.
 * @param limit bytes.
 * @throws BodyTooLarge, NoRoomForBody, BodyIncomplete
 */
export function readBody(request: IncomingMessage, limit: number): Promise<Buffer> {
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
  let body: Buffer = EMPTY;
  let length = 0;
  let room = small;
  let reserved = 0; // bytes in `room`
  const onData = (chunk: Buffer) => {
    const end = length + chunk.length;
    if (end > limit) {
      refuse(new BodyTooLarge());
    } else if (end === announced && length === 0) {
      body = chunk; // most bodies arrive in one piece and need no reservation
    } else if (end <= body.length || makeRoom(end)) {
      chunk.copy(body, length);
    } else {
      refuse(new NoRoomForBody());
    }
    length = end;
  };
  /** One buffer for all chunks: a million chunks of a byte each would take hundreds of times as much memory. */
  const makeRoom = (needed: number): boolean => {
    const size = needed <= TINY ? TINY : Math.min(2 * needed, needed > SMALL ? limit : SMALL);
    const before = body;
    release();
    room = size > SMALL ? large : small;
    const counted = size > TINY ? size : 0;
    // One body alone may exceed ROOM, if the limit is higher.
    if (room.taken + counted > Math.max(ROOM, limit)) return false;
    room.taken += counted;
    reserved = counted;
    body = Buffer.allocUnsafeSlow(size); // a part of Buffer's pool would keep all of it
    before.copy(body, 0, 0, length);
    return true;
  };
  const release = () => {
    room.taken -= reserved;
    reserved = 0;
    body = EMPTY;
  };
  const refuse = (reason: Error) => {
    request.off('data', onData);
    release();
    reject(reason);
  };
  request.on('data', onData);
  request.on('end', () => {
    resolve(body.subarray(0, length));
    release();
  });
  request.on('close', () => {
    release();
    if (!request.complete) reject(new BodyIncomplete());
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

/** Memory for the content of a body that is read piece by piece, until its request has been answered. */
export class BodyRoom implements Disposable {
  /** Most bytes of the body. */
  readonly limit: number;
  #taken = 0; // bytes

  constructor(limit: number) {
    this.limit = limit;
  }

  /** @throws NoRoomForBody */
  take(bytes: number): void {
    // One body alone may exceed PIECES_ROOM, if the limit is higher.
    if (pieces.taken + bytes > Math.max(PIECES_ROOM, this.limit)) throw new NoRoomForBody();
    pieces.taken += bytes;
    this.#taken += bytes;
  }

  [Symbol.dispose](): void {
    pieces.taken -= this.#taken;
    this.#taken = 0;
  }
}

/**
 * The pieces of a body as they arrive. If the reader stops early, the rest of the body is dropped.
 * @throws BodyTooLarge, NoRoomForBody, BodyIncomplete
 */
export async function* bodyPieces(
  request: IncomingMessage,
  room: BodyRoom,
): AsyncGenerator<Buffer, void, void> {
  if (!hasBody(request)) return;
  if (Number(request.headers['content-length']) > room.limit) throw new BodyTooLarge();
  let length = 0;
  try {
    for await (const piece of request.iterator({ destroyOnReturn: false })) {
      length += piece.length;
      if (length > room.limit) throw new BodyTooLarge();
      room.take(piece.length);
      yield piece;
    }
  } catch (error) {
    throw error instanceof BodyTooLarge || error instanceof NoRoomForBody ? error : new BodyIncomplete();
  } finally {
    request.resume();
  }
}

/** Whether a request announces a body. The server lets one that does not emit no events. */
function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}

/** @returns undefined if the bytes are not a JSON object in UTF-8. */
export function parseJsonObject(bytes: Buffer): JsonObject | undefined {
  return isUtf8(bytes) ? parseJsonText(bytes.toString()) : undefined;
}
