// Owns: the text of a file, decoded from its bytes piece by piece: the encoding, the line numbers, the part still
// needed.
// Does not: replace bytes that are invalid in the encoding with U+FFFD, but refuses them, and a record that never
// ends.

import { InvalidOption, OperatorError } from '../operator-error.ts';

/** Characters of one record, at most. An unclosed quote must not read a whole file into memory. */
const LONGEST_RECORD = 16 * 1024 * 1024;

/**
 * Bytes that are decoded together. With 64 KiB, the size of a read from a file, the peak memory of the process was 30
 * MiB higher: V8 keeps such long strings until a full garbage collection.
 */
const PIECE = 16 * 1024;

/**
 * The encodings that Node.js decodes as the Encoding Standard says: UTF-8, UTF-16 and those of single bytes. Of others,
 * such as euc-kr and big5, it decodes some characters, and invalid bytes, as different characters.
 */
const EXACT = /^(?:utf-|ibm|iso-8859-|koi8-|macintosh|windows-|x-mac-)/;

/** A character that encodings write differently. */
const BEYOND_ASCII = /[^\0-\x7f]/;

const LF = 10;
const CR = 13;

/** The file is not text in any encoding. */
export class NotText extends OperatorError {}

/** The file is not UTF-8, and nothing says which encoding it has. */
export class NotUtf8 extends OperatorError {
  /** The first one with invalid bytes. */
  readonly line: number;

  constructor(line: number) {
    super(`Line ${line} is not UTF-8 text: set the encoding of the file, such as --encoding windows-1252.`);
    this.line = line;
  }
}

/** The bytes are invalid in the encoding; has the text before them. */
class InvalidBytes extends Error {
  readonly before: string;

  constructor(before: string) {
    super();
    this.before = before;
  }
}

/** The text that has been read and is still needed. */
export class TextInput {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #encoding: string | undefined;
  #decoder: Decoder | undefined;
  #unread: Uint8Array = new Uint8Array();
  /** The error to throw once the text before it has been used. */
  #fault: OperatorError | undefined;
  #afterCarriageReturn = false;
  /** Whether the text so far has characters beyond ASCII. */
  #hasLetters = false;
  /** The text; the part before `at` is no longer needed. */
  text = '';
  at = 0;
  /** The line of `at`, from 1. A line ends with LF, CRLF or CR. */
  line = 1;
  /** Bytes read. */
  position = 0;
  /** Whether the text reaches the end of the file. */
  ended = false;
  /** Whether there is U+0000 in the text. */
  holdsNul = false;

  /** @param encoding a label of the WHATWG Encoding Standard, of UTF-8, UTF-16 or single bytes; if undefined, that of the byte order mark, else UTF-8. */
  constructor(bytes: AsyncIterable<Uint8Array>, encoding: string | undefined) {
    this.#chunks = bytes[Symbol.asyncIterator]();
    this.#encoding = encoding;
  }

  /** Of a text that is there already. */
  static of(text: string): TextInput {
    return new TextInput(inOnePiece(new TextEncoder().encode(text)), 'utf-8');
  }

  /** Reads this many characters of the beginning, or all if the file has fewer. */
  async begin(characters: number): Promise<void> {
    while (this.text.length < characters && !this.ended && this.#fault === undefined) await this.more();
  }

  /**
   * Reads at least as much again as there is, so that a record of many pieces is scanned only a few times, and not
   * once for each piece.
   * @throws OperatorError when the bytes that follow are not text, or the record at `at` is too long.
   */
  async more(): Promise<void> {
    if (this.#fault !== undefined) throw this.#fault;
    const rest = this.text.slice(this.at);
    if (rest.length > LONGEST_RECORD) {
      const [beforeIt = ''] = /^[\s,]*/.exec(rest) ?? [];
      throw new OperatorError(
        `The record that begins in line ${this.line + lineEnds(beforeIt)} has more than 16 MiB: look for an unclosed quote or bracket.`,
      );
    }
    const wanted = Math.min(rest.length, LONGEST_RECORD - rest.length + 1);
    const pieces = [rest];
    let read = 0;
    let broken: Uint8Array | undefined;
    while (!this.ended && broken === undefined && (read === 0 || read < wanted)) {
      const bytes = await this.#readBytes();
      let piece: string;
      try {
        piece = this.#decode(bytes);
        this.#hasLetters ||= piece.length < bytes.length && BEYOND_ASCII.test(piece);
      } catch (error) {
        if (!(error instanceof InvalidBytes)) throw error;
        piece = error.before;
        this.#hasLetters ||= BEYOND_ASCII.test(piece);
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

  /** Goes back to the beginning of the file. Valid only before `more` has dropped text. */
  rewind(): void {
    this.at = 0;
    this.line = 1;
    this.#afterCarriageReturn = false;
  }

  /** Releases the text before an index, and counts its lines. */
  advance(to: number): void {
    const { text } = this;
    for (let index = this.at; index < to; index += 1) {
      const code = text.charCodeAt(index);
      if (code === CR || (code === LF && !this.#afterCarriageReturn)) this.line += 1;
      this.#afterCarriageReturn = code === CR;
    }
    this.at = to;
  }

  /** Stops reading, at any point. */
  async close(): Promise<void> {
    await this.#chunks.return?.();
  }

  /** The next bytes, one piece at most; at the beginning, at least as many as a byte order mark has. */
  async #readBytes(): Promise<Uint8Array> {
    while (this.#unread.length < (this.#decoder === undefined ? 3 : 1) && !this.ended) {
      const { value, done } = await this.#chunks.next();
      if (done) {
        this.ended = true;
      } else {
        this.#unread = joined(this.#unread, value);
      }
    }
    const bytes = this.#unread.subarray(0, PIECE);
    this.#unread = this.#unread.subarray(PIECE);
    this.position += bytes.length;
    return bytes;
  }

  /** @throws InvalidBytes */
  #decode(bytes: Uint8Array): string {
    if (this.#decoder === undefined) {
      this.#encoding ??= encodingOf(bytes);
      this.#decoder = new Decoder(this.#encoding ?? 'utf-8');
    }
    return this.#decoder.decode(bytes, this.ended);
  }

  #explain(broken: Uint8Array): OperatorError {
    this.ended = false; // the text does not reach the end of the file
    const line = this.line + lineEnds(this.text);
    if (this.#encoding !== undefined) {
      return new OperatorError(
        `The file is not ${this.#encoding} text: line ${line} or a later one has invalid bytes.`,
      );
    }
    if (broken.includes(0)) {
      return new NotText('The file is not text: save a spreadsheet as CSV, or unpack an archive.');
    }
    // Text of another encoding would hardly have been valid so far.
    if (this.#hasLetters)
      return new OperatorError(
        `Line ${line} is damaged: the text before it is UTF-8, and some of its bytes are not. Correct that line.`,
      );
    return new NotUtf8(line);
  }
}

async function* inOnePiece(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, void> {
  yield bytes;
}

function lineEnds(text: string): number {
  return text.match(/\r\n?|\n/g)?.length ?? 0;
}

/** The encoding of a byte order mark; undefined for UTF-8, which needs none. */
function encodingOf(bytes: Uint8Array): string | undefined {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le';
  return bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : undefined;
}

/** Decodes bytes piece by piece, and finds where the invalid ones are. */
class Decoder {
  readonly #decoder: TextDecoder;
  /** The latest bytes, as many as there may be of a character that is not complete. */
  #latest = new Uint8Array();

  /** @throws OperatorError when there is no such encoding, or it would not be decoded exactly. */
  constructor(label: string) {
    try {
      this.#decoder = new TextDecoder(label, { fatal: true });
    } catch {
      throw new InvalidOption(
        `There is no encoding "${label}": use one such as utf-8, utf-16le or windows-1252.`,
      );
    }
    if (!EXACT.test(this.#decoder.encoding))
      throw new InvalidOption(
        `The encoding "${label}" is not supported: convert the file to UTF-8 with iconv first.`,
      );
  }

  /** @throws InvalidBytes */
  decode(bytes: Uint8Array, isLast: boolean): string {
    const before = this.#latest;
    this.#latest = Uint8Array.from((bytes.length < 3 ? joined(before, bytes) : bytes).subarray(-3));
    try {
      return this.#decoder.decode(bytes, { stream: !isLast });
    } catch {
      const isUtf8 = this.#decoder.encoding === 'utf-8';
      throw new InvalidBytes(isUtf8 ? validLines(before, bytes) : '');
    }
  }
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  if (one.length === 0) return other;
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}

/**
 * The first lines of UTF-8, those before the invalid bytes.
 * @param before the latest bytes before them; none at the beginning of the file.
 */
function validLines(before: Uint8Array, bytes: Uint8Array): string {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: before.length > 0 });
  const lines = joined(begunCharacter(before), bytes);
  let text = '';
  let start = 0;
  try {
    for (let index = 0; index < lines.length; index += 1) {
      if (lines[index] !== LF && lines[index] !== CR) continue;
      text += decoder.decode(lines.subarray(start, index + 1), { stream: true });
      start = index + 1;
    }
  } catch {
    // these are the invalid ones
  }
  return text;
}

/** The bytes at the end that begin a character: a decoder waits for the rest of it. */
function begunCharacter(bytes: Uint8Array): Uint8Array {
  for (let start = 0; ; start += 1) {
    const end = bytes.subarray(start);
    try {
      const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
      if (decoder.decode(end, { stream: true }) === '') return end;
    } catch {
      // it begins within a character
    }
  }
}
