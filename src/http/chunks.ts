// Owns: a body in chunks (RFC 9112 section 7.1). Extensions and trailers are read and dropped. It has no socket.
// Does not: keep anything of the body.

import { FIELD_LINE, LF, TOKEN, type UnreadableStatus } from './head.ts';

/** Bytes of all extensions of a body, as many as Node.js reads; of a line with a size without them, at most. */
const EXTENSIONS = 16 * 1024;
const REST_OF_LINE = 14;

/** Chunks of a call. They cost far more than bytes, so clients without a token could take all the time. */
const AT_ONCE = 64;

const EXTENSION = `;${TOKEN}(?:=(?:${TOKEN}|"[\\t !#-\\[\\]-~]*"))?`;
/** Of 52 bits at most, which a number has exactly. */
const SIZE = new RegExp(`^([0-9A-Fa-f]{1,13})((?:${EXTENSION})*)\\r\\n$`);
const TRAILER = new RegExp(`^${FIELD_LINE}$`);
/** Those that would say something else about the request (RFC 9110 section 6.5.1). */
const NO_TRAILER = /^(?:content-length|transfer-encoding|host|connection|upgrade|expect):/i;

/**
 * @param bytes the beginning of a body.
 * @returns the status of the answer if it cannot be read.
 */
export function unreadableStatusOf(bytes: Buffer, limit: number): UnreadableStatus | undefined {
  const chunks = new Chunks(limit);
  chunks.read(bytes, () => {});
  return chunks.status;
}

export class Chunks {
  /** Bytes of trailers. */
  readonly #limit: number;
  #part: 'size' | 'data' | 'end of data' | 'trailers' = 'size';
  /** Bytes of the chunk that are to come. */
  #left = 0;
  #extensions = 0;
  #trailers = 0;
  /** Whether all of the body has been read. */
  isWhole = false;
  /** Of the answer if the body cannot be read; nothing more is read then. */
  status: UnreadableStatus | undefined;

  /** @param limit bytes of all trailers. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * Reads on, but no more than some chunks.
   * @param take gets the data.
   * @returns how many of the bytes it has read. If it waits for more, it has read all but the beginning of a line.
   */
  read(bytes: Buffer, take: (data: Buffer) => void): number {
    let at = 0;
    for (let chunks = 0; at < bytes.length && chunks < AT_ONCE && !this.isWhole; ) {
      if (this.#part === 'data') {
        const end = Math.min(bytes.length, at + this.#left);
        this.#left -= end - at;
        if (this.#left === 0) this.#part = 'end of data';
        take(bytes.subarray(at, end));
        at = end;
        continue;
      }
      const end = bytes.indexOf(LF, at) + 1;
      const line = bytes.toString('latin1', at, end === 0 ? bytes.length : end);
      this.status = end === 0 ? this.#checkBeginning(line) : this.#readLine(line);
      if (end === 0 || this.status !== undefined) break;
      at = end;
      if (this.#part === 'size') chunks += 1;
    }
    return at;
  }

  #readLine(line: string): UnreadableStatus | undefined {
    if (this.#part === 'end of data') {
      this.#part = 'size';
      return line === '\r\n' ? undefined : 400;
    }
    if (this.#part === 'trailers') {
      this.#trailers += line.length;
      if (this.#trailers > this.#limit) return 431;
      this.isWhole = line === '\r\n';
      return this.isWhole || (TRAILER.test(line) && !NO_TRAILER.test(line)) ? undefined : 400;
    }
    const [, size, extensions = ''] = SIZE.exec(line) ?? [];
    this.#extensions += extensions.length;
    if (size === undefined || this.#extensions > EXTENSIONS) return 400;
    this.#left = Number.parseInt(size, 16);
    this.#part = this.#left === 0 ? 'trailers' : 'data';
    return undefined;
  }

  /** What is wrong with a line before its end has arrived. */
  #checkBeginning(line: string): UnreadableStatus | undefined {
    if (this.#part === 'end of data') return line === '\r' ? undefined : 400;
    if (this.#part === 'trailers') return this.#trailers + line.length > this.#limit ? 431 : undefined;
    return line.length <= EXTENSIONS + REST_OF_LINE && /^[0-9A-Fa-f]/.test(line) ? undefined : 400;
  }
}
