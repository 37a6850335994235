// Owns: how much memory of the process may hold bytes that clients have sent or not read, and who waits for some of it (rule 22).
// Independent of what the bytes are.

import type { Answer } from './answer.ts';

const MIB = 1024 * 1024;

/** Bytes of one kind in a process. */
export class Room {
  readonly #most: number;
  #taken = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** @returns whether there is room. One that takes it alone may exceed it. */
  take(bytes: number): boolean {
    if (this.#taken > 0 && this.#taken + bytes > this.#most) return false;
    this.#taken += bytes;
    return true;
  }

  /** Takes room that is there or not. */
  exceed(bytes: number): void {
    this.#taken += bytes;
  }

  release(bytes: number): void {
    this.#taken -= bytes;
  }

  get isHalfFree(): boolean {
    return this.#taken <= this.#most / 2;
  }
}

/** For bodies that arrive in pieces or are worked on. */
export const bodyRoom = new Room(128 * MIB);

/** For bytes behind answers to the requests before them: without a token, clients that do not read could take any memory. */
export const waitingRoom = new Room(64 * MIB);

/** For answers until the system has all of them. */
const answerRoom = new Room(128 * MIB);

/**
 * Largest body or answer, in bytes, that needs no room: it takes less memory than its connection. So nobody can take the room of
 * others with bodies that are read before a token is checked, and small answers are sent even if there is no room.
 */
export const TINY = 4096;

/** How many answers have each body that several share, which takes its room once. */
const shared = new Map<Uint8Array, number>();
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
  const sharers = key === undefined ? undefined : shared.get(key);
  if (sharers === undefined && !answerRoom.take(length)) {
    if (waited === undefined) {
      isRefused = true;
      return undefined;
    }
    answerRoom.exceed(length);
  }
  if (key !== undefined) shared.set(key, (sharers ?? 0) + 1);
  return () => {
    const others = key === undefined ? 0 : (shared.get(key) as number) - 1;
    if (key !== undefined && others > 0) return void shared.set(key, others);
    if (key !== undefined) shared.delete(key);
    answerRoom.release(length);
    if (answerRoom.isHalfFree) for (const resolve of waiting.splice(0)) resolve();
  };
}

/** Whether answers find no room. Meanwhile, clients that do not read have less time. */
export function lacksAnswerRoom(): boolean {
  isRefused &&= !answerRoom.isHalfFree;
  return isRefused;
}

/** Resolves once half of the room for answers is free. */
export async function roomForMore(): Promise<void> {
  while (!answerRoom.isHalfFree) {
    isRefused = true;
    await new Promise<void>((resolve) => waiting.push(resolve));
  }
}
