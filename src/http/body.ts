// Owns: request bodies, from bytes on the wire to JSON. Content-Type is ignored (rule 7).
// Does not: accept more bytes than a body may have, or than the memory for bodies holds (rule 22), or anything but
// UTF-8 (rule 4).

import { isUtf8 } from 'node:buffer';
import { parseJson } from '../json/parse.ts';
import { bodyRoom, TINY } from './room.ts';

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

/** Room for one body. */
export class BodyRoom implements Disposable {
  readonly #weight: number;
  #bytes = 0;

  /** @param weight bytes of memory for each byte of the body. */
  constructor(weight = 1) {
    this.#weight = weight;
  }

  /**
   * Takes room for as many bytes of the body, and gives that back that was taken before.
   * @throws NoRoomForBody
   */
  take(length: number): void {
    this[Symbol.dispose]();
    const bytes = this.#weight * length;
    if (!bodyRoom.take(bytes)) throw new NoRoomForBody();
    this.#bytes = bytes;
  }

  [Symbol.dispose](): void {
    bodyRoom.release(this.#bytes);
    this.#bytes = 0;
  }
}

/** Gets a body as it arrives. */
export interface BodyTaker {
  /** The bytes stay as they are. */
  take(bytes: Buffer): void;
  /** Called once. @param isWhole whether the client has sent all of it. */
  end(isWhole: boolean): void;
}

/** A request whose body may be taken, once. */
export interface Incoming {
  /** Bytes; undefined if that is not known before. */
  readonly bodyLength: number | undefined;
  takeBody(taker: BodyTaker): void;
}

/**
 * Reads a whole body. Bytes after the limit are not kept; the connection drops them.
 * @param limit bytes.
 * @param room for the body until it is read.
 * @throws BodyTooLarge, NoRoomForBody, BodyIncomplete
 */
export async function readBody(
  request: Incoming,
  limit: number,
  room: BodyRoom = new BodyRoom(),
): Promise<Buffer> {
  const { bodyLength } = request;
  if (bodyLength === 0) return EMPTY;
  if (bodyLength !== undefined && bodyLength > limit) throw new BodyTooLarge();
  return new Promise((resolve, reject) => {
    request.takeBody(new BodyReader(bodyLength, limit, room, resolve, reject));
  });
}

/** Gathers a body that arrives in pieces. */
class BodyReader implements BodyTaker {
  readonly #whole: number | undefined;
  readonly #limit: number;
  readonly #room: BodyRoom;
  readonly #resolve: (body: Buffer) => void;
  readonly #reject: (error: Error) => void;
  #memory: ArrayBuffer | undefined;
  #body: Buffer = EMPTY;
  #length = 0;
  #isOver = false;

  constructor(
    whole: number | undefined,
    limit: number,
    room: BodyRoom,
    resolve: (body: Buffer) => void,
    reject: (error: Error) => void,
  ) {
    this.#whole = whole;
    this.#limit = limit;
    this.#room = room;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  take(bytes: Buffer): void {
    if (this.#isOver) return;
    const end = this.#length + bytes.length;
    try {
      if (end > this.#limit) throw new BodyTooLarge();
      // Most bodies arrive in one piece and need no room.
      if (bytes.length === this.#whole) this.#body = bytes;
      else this.#keep(bytes, end);
      this.#length = end;
    } catch (error) {
      this.#release();
      this.#reject(error as Error);
    }
  }

  end(isWhole: boolean): void {
    if (isWhole) this.#resolve(this.#body.subarray(0, this.#length));
    else this.#reject(new BodyIncomplete()); // with its stack, it takes microseconds
    this.#release();
  }

  /** One buffer for all pieces: a million pieces of a byte each would take hundreds of times as much memory. */
  #keep(bytes: Buffer, end: number): void {
    if (end > this.#body.length) {
      const size = end <= TINY ? TINY : Math.min(2 * end, this.#limit);
      if (size > TINY) this.#room.take(size);
      this.#memory = (this.#memory ?? new ArrayBuffer()).transfer(size); // which frees the memory before at once
      this.#body = Buffer.from(this.#memory);
    }
    bytes.copy(this.#body, this.#length);
  }

  #release(): void {
    this.#isOver = true;
    this.#room[Symbol.dispose]();
    this.#body = EMPTY;
  }
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
