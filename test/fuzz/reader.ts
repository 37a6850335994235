// Owns: what a reader is: a part of the project that reads bytes from outside; and how the bytes of one input are divided
// into choices and content.

import { OperatorError } from '../../src/operator-error.ts';

/** @throws if something that is promised of the reader does not hold for this input. */
export type Reader = (input: Input) => void | Promise<void>;

/** The bytes of one input. The first ones choose among the ways in which the others are read. */
export class Input {
  readonly #bytes: Buffer;
  #at = 0;

  /** @param text one character for each byte. */
  constructor(text: string) {
    this.#bytes = Buffer.from(text, 'latin1');
  }

  /** The next choice, a whole number from 0 below `end`, which is 256 at most. */
  choice(end: number): number {
    const byte = this.#bytes[this.#at] ?? 0;
    this.#at += 1;
    return byte % end;
  }

  /** The bytes after the choices. */
  get content(): Buffer {
    return this.#bytes.subarray(this.#at);
  }

  /** The content, one character for each byte, as Node.js has headers. */
  get text(): string {
    return this.content.toString('latin1');
  }
}

/** Bytes in pieces of this size; 0 is one piece. */
export function* inPieces(bytes: Buffer, size: number): Generator<Buffer, void, void> {
  const step = size === 0 ? bytes.length : size;
  for (let at = 0; at < bytes.length; at += step) yield bytes.subarray(at, at + step);
}

/** @throws the error unless it is one that an operator reads. */
export function messageFor(error: unknown): string {
  if (!(error instanceof OperatorError)) throw error;
  return error.message;
}

/** @throws unless the texts are equal; cheaper than a comparison of structures. */
export function assertSame(actual: unknown, expected: unknown, what: string): void {
  const [one, other] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (one !== other) throw new Error(`${what}\n  is        ${one}\n  should be ${other}`);
}
