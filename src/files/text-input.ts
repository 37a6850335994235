// Owns: the text of a file as it is read: the part still needed, the line numbers, and whether the file is UTF-8.

import { OperatorError } from '../operator-error.ts';
import { Decoder, markOf } from './decoding.ts';

/** Characters of one record, at most. An unclosed quote must not read a whole file into memory. */
const LONGEST_RECORD = 16 * 1024 * 1024;

/** Characters after the first damaged byte in which a line of UTF-8 is looked for before records are judged. */
const LOOKED_THROUGH = LONGEST_RECORD;

/**
 * Bytes that are decoded together. With 64 KiB, the size of a read from a file, the peak memory of the process was 30
 * MiB higher: V8 keeps such long strings until a full garbage collection.
 */
const PIECE = 16 * 1024;

/** A character that encodings write differently. */
const BEYOND_ASCII = /[^\0-\x7f]/u;

/** What stands for invalid bytes. Where there are any, it cannot be told from one that the file has. */
const DAMAGED = /\ufffd/u;

/** Once there are so many letters for each damaged byte and one more, no other encoding is possible. */
const CERTAIN = 10;

/** Letters of Europe and curved quotes: other encodings hardly ever have their bytes in UTF-8. */
const TELLING = /[\u00c0-\u017f\u2010-\u203a]/u;
/** Damaged bytes for each of them, at most. */
const OF_ONE = 10;

const LF = 10;
const CR = 13;

/** The end of a text, in DOS. */
const END_OF_DOS = '\x1a';

export const BINARY = 'The file is not text: save a spreadsheet as CSV, or unpack an archive.';

/** The file is not text in any encoding. */
export class NotText extends OperatorError {}

/** The file is not UTF-8, and nothing says which encoding it has. */
export class NotUtf8 extends OperatorError {
  /**
   * @param line the first one with a text that is needed and is not UTF-8.
   * @param text that text. In Latin script, most letters are of ASCII.
   */
  constructor(line: number, text: string) {
    const isLatin = count(text, /[a-z]/i) >= count(text, BEYOND_ASCII);
    const encoding = isLatin
      ? 'windows-1252'
      : 'windows-1251 (Russian), windows-1253 (Greek), windows-1255 (Hebrew), windows-1256 (Arabic) or windows-874 (Thai), or convert it to UTF-8 with iconv (Chinese, Japanese, Korean)';
    super(`Line ${line} is not UTF-8 text: set the encoding of the file, such as --encoding ${encoding}.`);
  }
}

/** The text that has been read and is still needed. */
export class TextInput {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #encoding: string | undefined;
  #decoder: Decoder | undefined;
  #unread: Uint8Array = new Uint8Array();
  /** Whether the bytes reach the end of the file. */
  #isFetched = false;
  /** Counts in the text so far: letters beyond ASCII, telling ones among them, and damaged bytes. */
  #letters = 0;
  #telling = 0;
  #damaged = 0;
  #hasLookedThrough = false;
  /** The first damaged text that is needed. */
  #damage: { readonly line: number; readonly text: string } | undefined;
  #afterCarriageReturn = false;
  /** The text; the part before `at` is no longer needed. */
  text = '';
  at = 0;
  /** The line of `at`, from 1. A line ends with LF, CRLF or CR. */
  line = 1;
  /** Bytes read. */
  position = 0;
  /** Whether the text reaches the end of the file. */
  ended = false;
  /** Whether each U+FFFD counts as damaged bytes. */
  isDamaged = false;

  /** @param encoding a label of the WHATWG Encoding Standard, of UTF-8, UTF-16 or single bytes; if undefined, that of the byte order mark, else UTF-8. */
  constructor(bytes: AsyncIterable<Uint8Array>, encoding: string | undefined) {
    this.#chunks = bytes[Symbol.asyncIterator]();
    this.#encoding = encoding;
  }

  /** Of a text that is there already. */
  static of(text: string, isDamaged: boolean): TextInput {
    const input = new TextInput(nothing(), 'utf-8');
    return Object.assign(input, { text, isDamaged, ended: true });
  }

  /** Reads this many characters of the beginning, or all if the file has fewer. */
  async begin(characters: number): Promise<void> {
    while (this.text.length < characters && !this.ended) await this.more();
  }

  /**
   * Reads at least as much again as there is, so that a record of many pieces is scanned only a few times, and not
   * once for each piece. At the first damaged byte it reads on until the file is certainly UTF-8.
   * @throws OperatorError when the record at `at` is too long.
   */
  async more(): Promise<void> {
    const rest = this.text.slice(this.at);
    if (rest.length > LONGEST_RECORD) {
      const [beforeIt = ''] = /^[\s,]*/.exec(rest) ?? [];
      this.advance(this.at + beforeIt.length);
      throw new OperatorError(
        `The record that begins in line ${this.line} has more than 16 MiB: look for an unclosed quote or bracket.`,
      );
    }
    const wanted = Math.min(rest.length, LONGEST_RECORD - rest.length + 1);
    const pieces = [rest];
    let read = 0;
    while (!this.ended && (read === 0 || read < (this.#looksThrough ? LOOKED_THROUGH : wanted))) {
      const piece = this.#decode(await this.#readBytes());
      this.#weigh(piece);
      pieces.push(piece);
      read += piece.length;
    }
    this.#hasLookedThrough ||= this.isDamaged;
    const text = pieces.join('');
    this.text = this.ended && text.endsWith(END_OF_DOS) ? text.slice(0, -1) : text;
    this.at = 0;
  }

  get #looksThrough(): boolean {
    return this.isDamaged && !this.#isCertain && !this.#hasLookedThrough;
  }

  /** Whether the file is UTF-8, as something says, or as its letters show. */
  get #isCertain(): boolean {
    return this.#encoding !== undefined || this.#letters >= CERTAIN * (this.#damaged + 1);
  }

  /**
   * Whether text with bytes that are not UTF-8 is UTF-8 nevertheless: it has at least as many letters beyond ASCII as
   * damaged bytes, or a tenth of them if they are telling. By chance, about one letter of GBK in ten is one of UTF-8, and
   * fewer in encodings of single bytes.
   */
  get #isUtf8(): boolean {
    return this.#isCertain || this.#letters >= this.#damaged || OF_ONE * this.#telling >= this.#damaged;
  }

  #weigh(piece: string): void {
    if (this.#isCertain || !BEYOND_ASCII.test(piece)) return;
    const damaged = this.isDamaged ? count(piece, DAMAGED) : 0;
    this.#damaged += damaged;
    this.#letters += count(piece, BEYOND_ASCII) - damaged;
    this.#telling += count(piece, TELLING);
  }

  /**
   * The fault of a text that is needed: the first of its damaged bytes.
   * @param line of its record.
   * @throws NotUtf8 or NotText when all of the file has been read and none of it is UTF-8.
   */
  damageIn(text: string, line: number): string | undefined {
    // By chance, letters of another encoding are also those of UTF-8.
    if (!this.isDamaged || !BEYOND_ASCII.test(text)) return undefined;
    this.#damage ??= { line, text };
    this.assertUtf8();
    if (!DAMAGED.test(text)) return undefined;
    const encoding = this.#decoder?.encoding.toUpperCase() ?? 'UTF-8';
    return `has a damaged character: \ufffd is not ${encoding}`;
  }

  /**
   * To be called at the end of the file: text of another encoding was taken for damaged UTF-8.
   * @throws NotUtf8 or NotText when a text that was needed is damaged, and none of the file is UTF-8.
   */
  assertUtf8(): void {
    if (this.#damage === undefined || !this.ended || this.#isUtf8) return;
    if (this.text.slice(this.at, this.at + PIECE).includes('\0')) throw new NotText(BINARY);
    throw new NotUtf8(this.#damage.line, this.#damage.text);
  }

  /** Takes the file for one of rejected rows: it is UTF-8, and damage is U+FFFD there. */
  takeForRejects(): void {
    this.#encoding ??= 'utf-8';
    this.isDamaged = true;
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

  /** The first bytes, this many or all if the file has fewer. Valid only before any text is read. */
  async peek(bytes: number): Promise<Uint8Array> {
    await this.#fetch(bytes);
    return this.#unread.subarray(0, bytes);
  }

  /** The next bytes, one piece at most. At the beginning, two byte order marks are one piece. */
  async #readBytes(): Promise<Uint8Array> {
    await this.#fetch(this.#decoder === undefined ? 6 : 1);
    const bytes = this.#unread.subarray(0, PIECE);
    this.#unread = this.#unread.subarray(PIECE);
    this.position += bytes.length;
    this.ended = this.#isFetched && this.#unread.length === 0;
    return bytes;
  }

  /** Gets this many unread bytes, or all. */
  async #fetch(bytes: number): Promise<void> {
    while (this.#unread.length < bytes && !this.#isFetched) {
      const { value, done } = await this.#chunks.next();
      if (done) this.#isFetched = true;
      else this.#unread = joined(this.#unread, value);
    }
  }

  #decode(bytes: Uint8Array): string {
    const mark = this.#decoder === undefined ? markOf(bytes) : undefined;
    this.#encoding ??= mark;
    this.#decoder ??= new Decoder(this.#encoding ?? 'utf-8');
    // A byte order mark of UTF-8 is not part of the text, whatever its encoding.
    const text = this.#decoder.decode(mark === 'utf-8' ? bytes.subarray(3) : bytes, this.ended);
    this.isDamaged ||= this.#decoder.isDamaged;
    return this.position === bytes.length ? text.replace(/^\uFEFF+/, '') : text;
  }
}

async function* nothing(): AsyncGenerator<Uint8Array, void, void> {}

function count(text: string, character: RegExp): number {
  return text.match(new RegExp(character, 'gu'))?.length ?? 0;
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  if (one.length === 0) return other;
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}
