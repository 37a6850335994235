// Owns: how much memory of the process may hold bytes that clients have sent or not read, and who waits for some of it (rule 22).

import type { Answer } from './answer.ts';

/** Bytes of bodies that arrive in pieces or are worked on. */
const BODY_BYTES = 128 * 1024 * 1024;

/** Bytes behind answers to the requests before them: without a token, clients that do not read could take any memory. */
const WAITING_BYTES = 64 * 1024 * 1024;

/** Bytes of answers until the system has all of them. */
const ANSWER_BYTES = 128 * 1024 * 1024;

/**
 * Largest body or answer, in bytes, that needs no room: it takes less memory than its connection. So nobody can take the room of
 * others with bodies that are read before a token is checked, and short answers are sent even if there is no room.
 */
export const TINY = 4096;

/** Bytes of one kind in a process. */
class Room {
  readonly most: number;
  taken = 0;

  constructor(most: number) {
    this.most = most;
  }

  get isHalfFree(): boolean {
    return this.taken <= this.most / 2;
  }
}

/** A part of a room. */
export class Share implements Disposable {
  readonly #room: Room;
  readonly #weight: number;
  #taken = 0;

  /** @param weight bytes of memory for each byte. */
  constructor(room: Room, weight = 1) {
    this.#room = room;
    this.#weight = weight;
  }

  /**
   * Takes room for as many bytes, instead of those before. A share that is alone may exceed the room.
   * @returns whether there is room.
   */
  take(bytes: number, mayExceed = false): boolean {
    this[Symbol.dispose]();
    const { taken, most } = this.#room;
    const weighed = this.#weight * bytes;
    if (taken > 0 && taken + weighed > most && !mayExceed) return false;
    this.#taken = weighed;
    this.#room.taken += weighed;
    return true;
  }

  [Symbol.dispose](): void {
    this.#room.taken -= this.#taken;
    this.#taken = 0;
  }
}

export const BODIES = new Room(BODY_BYTES);
export const WAITING = new Room(WAITING_BYTES);
const ANSWERS = new Room(ANSWER_BYTES);

/** The bodies that several answers share, with their number. */
const shared = new Map<Uint8Array, { readonly share: Share; answers: number }>();
/** Those that wait for room for an answer. */
const waiting: (() => void)[] = [];
/** Whether an answer has found no room, and half of it is not free yet. */
let isRefused = false;

/**
 * Takes room for an answer until it is released; for a body that several answers share, once. An answer that has waited for
 * `roomForMore` is never refused.
 * @returns how to release it; undefined if there is no room.
 */
export function takeAnswerRoom({ length = 0, body, waited }: Answer): (() => void) | undefined {
  if (length <= TINY) return () => {};
  const key = body instanceof Uint8Array ? body : undefined;
  const sharing = (key && shared.get(key)) ?? { share: new Share(ANSWERS), answers: 0 };
  if (sharing.answers === 0 && !sharing.share.take(length, waited !== undefined)) {
    isRefused = true;
    return undefined;
  }
  sharing.answers += 1;
  if (key !== undefined) shared.set(key, sharing);
  return () => {
    sharing.answers -= 1;
    if (sharing.answers > 0) return;
    if (key !== undefined) shared.delete(key);
    sharing.share[Symbol.dispose]();
    if (ANSWERS.isHalfFree) for (const resolve of waiting.splice(0)) resolve();
  };
}

/** Whether answers find no room. Meanwhile, clients that do not read have less time. */
export function lacksAnswerRoom(): boolean {
  isRefused &&= !ANSWERS.isHalfFree;
  return isRefused;
}

/** Resolves once half of the room for answers is free. */
export async function roomForMore(): Promise<void> {
  while (!ANSWERS.isHalfFree) {
    isRefused = true;
    await new Promise<void>((resolve) => waiting.push(resolve));
  }
}
