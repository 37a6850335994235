// Owns: request bodies, from bytes on the wire to JSON. Content-Type is ignored (rule 7).
// Does not: accept more bytes than a body may have, or than the memory for bodies holds (rule 22), or anything but
// UTF-8 (rule 4).

import { isUtf8 } from 'node:buffer';
import { hasTooManyValues, parseJson } from '../json/parse.ts';
import { BODIES, Share, TINY } from './room.ts';

/** The body is longer than the limit, or has too many parts. */
export class BodyTooLarge extends Error {}

/** The client has gone, or was cut off, before its body was complete: there is nobody to answer. */
export class BodyIncomplete extends Error {}

/** Other bodies use all the memory for bodies. */
export class NoRoomForBody extends Error {}

const EMPTY = Buffer.alloc(0);

/** Gets a body as it arrives. */
export interface BodyTaker {
  /** The bytes stay as they are. */
  take(bytes: Buffer): void;
  /** Whether no more is to come until the request is resumed. */
  readonly isFull?: boolean;
  /** Bytes that must arrive in the time of a whole request, which begins again then; without it, all must. */
  readonly least?: number;
  /** Called once. @param isWhole whether the client has sent all of it. */
  end(isWhole: boolean): void;
}

/** A request whose body may be taken, once. */
export interface Incoming {
  /** Bytes; undefined if that is not known before. */
  readonly bodyLength: number | undefined;
  takeBody(taker: BodyTaker): void;
}

/** A request whose body is taken no faster than its taker can. */
export interface IncomingStream extends Incoming {
  /** After its taker was full. */
  resumeBody(): void;
}

/**
 * Reads a whole body. Bytes after the limit are not kept; the connection drops them.
 * @param limit bytes.
 * @param room for the body until it is read.
 * @throws BodyTooLarge, NoRoomForBody, BodyIncomplete
 */
export async function readBody(request: Incoming, limit: number, room = new Share(BODIES)): Promise<Buffer> {
  const { bodyLength } = request;
  if (bodyLength === 0) return EMPTY;
  if (bodyLength !== undefined && bodyLength > limit) throw new BodyTooLarge();
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  let memory: ArrayBuffer | undefined;
  let body: Buffer = EMPTY;
  let length = 0;
  let isOver = false;
  /** One buffer for all pieces: a million pieces of a byte each would take hundreds of times as much memory. */
  const keep = (bytes: Buffer) => {
    const end = length + bytes.length;
    if (end > limit) throw new BodyTooLarge();
    if (end > body.length) {
      const size = end <= TINY ? TINY : Math.min(2 * end, limit);
      if (size > TINY && !room.take(size)) throw new NoRoomForBody();
      memory = memory?.transfer(size) ?? new ArrayBuffer(size); // a transfer frees the memory before at once
      body = Buffer.from(memory);
    }
    bytes.copy(body, length);
    length = end;
  };
  const end = (settle: () => void) => {
    isOver = true;
    settle();
    room[Symbol.dispose]();
    body = EMPTY;
  };
  request.takeBody({
    take(bytes) {
      if (isOver) return;
      try {
        if (bytes.length !== bodyLength) keep(bytes);
        else [body, length] = [bytes, bodyLength]; // most bodies arrive in one piece and need no room
      } catch (error) {
        end(() => reject(error));
      }
    },
    end(isWhole) {
      if (isWhole) end(() => resolve(body.subarray(0, length)));
      else end(() => reject(new BodyIncomplete())); // with its stack, it takes microseconds
    },
  });
  return promise;
}

/**
 * Waits for the end of a body that has no meaning: a request that is not whole changes nothing.
 * @throws BodyIncomplete
 */
export async function skipBody(request: Incoming): Promise<void> {
  if (request.bodyLength === 0) return;
  await new Promise<void>((resolve, reject) => {
    const end = (isWhole: boolean) => (isWhole ? resolve() : reject(new BodyIncomplete()));
    request.takeBody({ take() {}, end });
  });
}

/**
 * @returns undefined if the body is not JSON in UTF-8 (rule 6).
 * @throws BodyTooLarge if it has too many values.
 */
export function parseBody(body: Buffer): unknown {
  if (hasTooManyValues(body)) throw new BodyTooLarge();
  return isUtf8(body) ? parseJson(body.toString()) : undefined;
}
