// Owns: the text of a file, out of its bytes, piece by piece: the encoding, the lines, what of it is still needed.
// Refuses what is not text in that encoding, rather than put U+FFFD for it, and a record that never ends.

import { isUtf8 } from 'node:buffer';
import { OperatorError } from '../operator-error.ts';

/** Characters that one record may have. One quote that is never closed must not eat up a whole file. */
const LONGEST_RECORD = 16 * 1024 * 1024;

/**
 * Bytes that are turned into text together. With 64 KiB, as files are read, the peak of a whole process was 30 MiB
 * higher: texts so long are kept by V8 until it collects everything.
 */
const PIECE = 16 * 1024;

const LF = 10;
const CR = 13;

/**
 * Turns bytes into text. What is cut off at their end is kept for the next ones.
 * @throws NotText
 */
type Decoder = (bytes: Buffer, isLast: boolean) => string;

/** Bytes that are no text in the encoding, and the text before them. */
class NotText extends Error {
  readonly before: string;

  constructor(before: string) {
    super();
    this.before = before;
  }
}

/** What is read and not yet done with. */
export class TextInput {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #encoding: string | undefined;
  #decoder: Decoder | undefined;
  #unread: Buffer = Buffer.alloc(0);
  /** What to throw once the text before it is done with. */
  #fault: OperatorError | undefined;
  #afterCarriageReturn = false;
  /** The text. What is before `at` is done with. */
  text = '';
  at = 0;
  /** The line of `at`, from 1. A line ends with LF, CRLF or CR. */
  line = 1;
  /** Bytes read. */
  position = 0;
  /** Whether the text goes to the end of the file. */
  ended = false;
  /** Whether there is U+0000 in the text. */
  holdsNul = false;

  /** @param encoding a label of the WHATWG Encoding Standard; undefined lets a byte order mark decide, or is UTF-8. */
  constructor(bytes: AsyncIterable<Uint8Array>, encoding: string | undefined) {
    this.#chunks = bytes[Symbol.asyncIterator]();
    this.#encoding = encoding;
  }

  /** Reads so many characters, if there are, before any of them is done with. */
  async begin(characters: number): Promise<void> {
    while (this.text.length < characters && !this.ended && this.#fault === undefined) await this.more();
  }

  /**
   * Reads on, at least as much again as there is: a record of many pieces is gone through a few times then, not
   * once with each of them.
   * @throws OperatorError when there is no more text, or the record at `at` is too long.
   */
  async more(): Promise<void> {
    if (this.#fault !== undefined) throw this.#fault;
    const rest = this.text.slice(this.at);
    if (rest.length > LONGEST_RECORD) {
      const [beforeIt = ''] = /^[\s,]*/.exec(rest) ?? [];
      throw new OperatorError(
        `Line ${this.line + lineEnds(beforeIt)} begins a record of more than 16 MiB: is there a quote or a bracket that is never closed?`,
      );
    }
    const wanted = Math.min(rest.length, LONGEST_RECORD - rest.length + 1);
    const pieces = [rest];
    let read = 0;
    let broken: Buffer | undefined;
    while (!this.ended && broken === undefined && (read === 0 || read < wanted)) {
      const bytes = await this.#readBytes();
      let piece: string;
      try {
        piece = this.#decode(bytes);
      } catch (error) {
        if (!(error instanceof NotText)) throw error;
        piece = error.before;
        broken = bytes;
      }
      pieces.push(piece);
      read += piece.length;
    }
    this.text = pieces.join('');
    this.at = 0;
    this.holdsNul = this.text.includes('\0');
    if (broken !== undefined) this.#fault = this.#explain(broken);
  }

  /** Goes back to the beginning of the file, as long as none of it is done with by reading on. */
  rewind(): void {
    this.at = 0;
    this.line = 1;
    this.#afterCarriageReturn = false;
  }

  /** Is done with the text before an index; counts its lines. */
  advance(to: number): void {
    const { text } = this;
    for (let index = this.at; index < to; index += 1) {
      const code = text.charCodeAt(index);
      if (code === CR || (code === LF && !this.#afterCarriageReturn)) this.line += 1;
      this.#afterCarriageReturn = code === CR;
    }
    this.at = to;
  }

  /** Ends the reading, wherever it is. */
  async close(): Promise<void> {
    await this.#chunks.return?.();
  }

  /** The next bytes, a piece at most; to begin with as many as a byte order mark has. */
  async #readBytes(): Promise<Buffer> {
    while (this.#unread.length < (this.#decoder === undefined ? 3 : 1) && !this.ended) {
      const { value, done } = await this.#chunks.next();
      if (done) {
        this.ended = true;
      } else {
        this.#unread = Buffer.concat([this.#unread, value]);
      }
    }
    const bytes = this.#unread.subarray(0, PIECE);
    this.#unread = this.#unread.subarray(PIECE);
    this.position += bytes.length;
    return bytes;
  }

  /** @throws NotText */
  #decode(bytes: Buffer): string {
    if (this.#decoder === undefined) {
      this.#encoding ??= encodingOf(bytes);
      this.#decoder = this.#encoding === undefined ? makeUtf8Decoder() : makeNamedDecoder(this.#encoding);
    }
    return this.#decoder(bytes, this.ended);
  }

  #explain(broken: Buffer): OperatorError {
    this.ended = false; // the text does not go to the end
    const line = this.line + lineEnds(this.text);
    if (this.#encoding !== undefined) {
      return new OperatorError(
        `The file is not ${this.#encoding} text: there is something else in line ${line} or later.`,
      );
    }
    if (broken.includes(0)) {
      return new OperatorError(
        'The file is not text: a spreadsheet must be saved as CSV first, an archive unpacked.',
      );
    }
    return new OperatorError(
      `Line ${line} is not UTF-8 text: name the encoding of the file, such as --encoding windows-1252.`,
    );
  }
}

function lineEnds(text: string): number {
  return text.match(/\r\n?|\n/g)?.length ?? 0;
}

/** The encoding that a byte order mark tells; undefined for UTF-8, which has no need of one. */
function encodingOf(bytes: Buffer): string | undefined {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le';
  return bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : undefined;
}

/** @throws OperatorError when there is no such encoding. */
function makeNamedDecoder(label: string): Decoder {
  let decoder: TextDecoder;
  try {
    decoder = new TextDecoder(label, { fatal: true });
  } catch {
    throw new OperatorError(
      `There is no encoding "${label}": it is one such as utf-8, utf-16le or windows-1252.`,
    );
  }
  if (decoder.encoding === 'utf-8') return makeUtf8Decoder();
  return (bytes, isLast) => {
    try {
      return decoder.decode(bytes, { stream: !isLast });
    } catch {
      throw new NotText('');
    }
  };
}

/** Several times as fast as a TextDecoder that is fed piece by piece, and knows where the fault is. */
function makeUtf8Decoder(): Decoder {
  let held: Buffer = Buffer.alloc(0);
  let begun = false;
  return (chunk, isLast) => {
    const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    const start = !begun && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
    const end = isLast ? bytes.length : wholeCharacters(bytes);
    begun = true;
    if (!isUtf8(bytes.subarray(start, end))) {
      throw new NotText(bytes.toString('utf8', start, validLength(bytes, start)));
    }
    held = Buffer.from(bytes.subarray(end));
    return bytes.toString('utf8', start, end);
  };
}

/** How many bytes there are without a character at their end that is cut off. */
function wholeCharacters(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] as number;
    if (byte < 0x80) return bytes.length;
    if (byte >= 0xc0) {
      const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return length > back ? bytes.length - back : bytes.length;
    }
  }
  return bytes.length;
}

/** Where the last line ends before which everything is UTF-8. */
function validLength(bytes: Buffer, start: number): number {
  let end = start;
  for (let index = start; index < bytes.length; index += 1) {
    if (bytes[index] !== LF && bytes[index] !== CR) continue;
    if (!isUtf8(bytes.subarray(end, index + 1))) return end;
    end = index + 1;
  }
  return end;
}
