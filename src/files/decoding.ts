// Owns: the text of a file, decoded from its bytes piece by piece: the encoding, the line numbers, the part still
// needed, and the damaged bytes.
// Does not: replace a byte that is invalid in the encoding with U+FFFD. It becomes a lone surrogate, U+DC00 plus the
// byte (as in Python, PEP 383). No valid text has one, so the record can be read, and written with the same bytes.

import { InvalidOption, OperatorError } from '../operator-error.ts';

/** Characters of one record, at most. An unclosed quote must not read a whole file into memory. */
const LONGEST_RECORD = 16 * 1024 * 1024;

/** Characters after the first damaged byte in which a line of UTF-8 is looked for before records are judged. */
const LOOKED_THROUGH = LONGEST_RECORD;

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
const BEYOND_ASCII = /[^\0-\x7f]/u;

/** A lone surrogate: the flag `u` keeps pairs together. */
const DAMAGED = /[\ud800-\udfff]/u;

/** The surrogate of byte 0. */
const BYTE_0 = 0xdc00;

/** Stands for half a unit of UTF-16. It forms no pair with the unit before it. */
const HALF_A_UNIT = '\ud800';

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
  readonly #evidence = new Evidence();
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
  /** Whether there is U+0000 in the text. */
  holdsNul = false;
  /** Whether there are damaged bytes in the text. */
  isDamaged = false;

  /** @param encoding a label of the WHATWG Encoding Standard, of UTF-8, UTF-16 or single bytes; if undefined, that of the byte order mark, else UTF-8. */
  constructor(bytes: AsyncIterable<Uint8Array>, encoding: string | undefined) {
    this.#chunks = bytes[Symbol.asyncIterator]();
    this.#encoding = encoding;
  }

  /** Of a text that is there already. */
  static of(text: string): TextInput {
    const input = new TextInput(nothing(), 'utf-8');
    input.#set(text);
    input.ended = true;
    return input;
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
      throw new OperatorError(
        `The record that begins in line ${this.line + lineEnds(beforeIt)} has more than 16 MiB: look for an unclosed quote or bracket.`,
      );
    }
    const wanted = Math.min(rest.length, LONGEST_RECORD - rest.length + 1);
    const pieces = [rest];
    let read = 0;
    while (!this.ended && (read === 0 || read < (this.#looksThrough ? LOOKED_THROUGH : wanted))) {
      const piece = this.#decode(await this.#readBytes());
      this.#evidence.add(piece);
      pieces.push(piece);
      read += piece.length;
    }
    this.#hasLookedThrough ||= this.#evidence.hasDamage;
    const text = pieces.join('');
    this.#set(this.ended && text.endsWith(END_OF_DOS) ? text.slice(0, -1) : text);
  }

  get #looksThrough(): boolean {
    const { hasDamage, isCertain } = this.#evidence;
    return hasDamage && !isCertain && !this.#hasLookedThrough;
  }

  #set(text: string): void {
    this.text = text;
    this.at = 0;
    this.holdsNul = text.includes('\0');
    this.isDamaged = !text.isWellFormed();
  }

  /**
   * The fault of a text that is needed: the first of its damaged bytes.
   * @param line of its record.
   * @throws NotUtf8 or NotText when all of the file has been read and none of it is UTF-8.
   */
  damageIn(text: string, line: number): string | undefined {
    const [damage] = DAMAGED.exec(text) ?? [];
    // By chance, letters of another encoding are also those of UTF-8.
    if (damage === undefined && !(this.#evidence.hasDamage && BEYOND_ASCII.test(text))) return undefined;
    this.#damage ??= { line, text };
    this.assertUtf8();
    if (damage === undefined) return undefined;
    const encoding = this.#decoder?.encoding.toUpperCase() ?? 'UTF-8';
    return `has a damaged character: ${withBytesShown(damage)} is not ${encoding}`;
  }

  /**
   * To be called at the end of the file: text of another encoding was taken for damaged UTF-8.
   * @throws NotUtf8 or NotText when a text that was needed is damaged, and none of the file is UTF-8.
   */
  assertUtf8(): void {
    if (this.#damage === undefined || this.#encoding !== undefined) return;
    if (!this.ended || this.#evidence.isUtf8) return;
    if (this.text.slice(this.at, this.at + PIECE).includes('\0')) throw new NotText(BINARY);
    throw new NotUtf8(this.#damage.line, this.#damage.text);
  }

  /** Takes the file for UTF-8, whatever its bytes are. */
  trust(): void {
    this.#evidence.isCertain = true;
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

  /** The next bytes, one piece at most; at the beginning, at least as many as two byte order marks have. */
  async #readBytes(): Promise<Uint8Array> {
    while (this.#unread.length < (this.#decoder === undefined ? 6 : 1) && !this.ended) {
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

  #decode(bytes: Uint8Array): string {
    if (this.#decoder !== undefined) return this.#decoder.decode(bytes, this.ended);
    const mark = markOf(bytes);
    this.#encoding ??= mark;
    this.#decoder = new Decoder(this.#encoding ?? 'utf-8');
    // A byte order mark of UTF-8 is not part of the text, whatever its encoding.
    const content = mark === 'utf-8' ? bytes.subarray(3) : bytes;
    return this.#decoder.decode(content, this.ended).replace(/^\uFEFF+/, '');
  }
}

async function* nothing(): AsyncGenerator<Uint8Array, void, void> {}

function lineEnds(text: string): number {
  return text.match(/\r\n?|\n/g)?.length ?? 0;
}

/** The encoding of a byte order mark. */
function markOf([one, two, three, four]: Uint8Array): string | undefined {
  if (one === 0xff && two === 0xfe && three === 0 && four === 0) return 'utf-32le';
  if (one === 0xff && two === 0xfe) return 'utf-16le';
  if (one === 0xfe && two === 0xff) return 'utf-16be';
  return one === 0xef && two === 0xbb && three === 0xbf ? 'utf-8' : undefined;
}

/** Once there are so many letters for each damaged byte and one more, no other encoding is possible. */
const CERTAIN = 10;

/** Letters of Europe and curved quotes: other encodings hardly ever have their bytes in UTF-8. */
const TELLING = /[\u00c0-\u017f\u2010-\u203a]/u;
/** Damaged bytes for each of them, at most. */
const OF_ONE = 10;

/**
 * Whether text with bytes that are not UTF-8 is UTF-8 nevertheless: it has at least as many letters beyond ASCII as
 * damaged bytes, or a tenth of them if they are telling. By chance, about one letter of GBK in ten is one of UTF-8, and
 * fewer in encodings of single bytes.
 */
class Evidence {
  #letters = 0;
  #telling = 0;
  #damaged = 0;
  isCertain = false;

  get hasDamage(): boolean {
    return this.#damaged > 0;
  }

  get isUtf8(): boolean {
    return this.isCertain || this.#letters >= this.#damaged || OF_ONE * this.#telling >= this.#damaged;
  }

  add(piece: string): void {
    if (this.isCertain || !BEYOND_ASCII.test(piece)) return;
    const damaged = count(piece, DAMAGED);
    this.#damaged += damaged;
    this.#letters += count(piece, BEYOND_ASCII) - damaged;
    this.#telling += count(piece, TELLING);
    this.isCertain = this.#letters >= CERTAIN * (this.#damaged + 1);
  }
}

function count(text: string, character: RegExp): number {
  return text.match(new RegExp(character, 'gu'))?.length ?? 0;
}

/** Decodes bytes piece by piece. */
class Decoder {
  /** Its standard name, in lower case. */
  readonly encoding: string;
  readonly #decoder: TextDecoder;
  /** The bytes at the end that begin a character. */
  #begun: Uint8Array = new Uint8Array();

  /** @throws OperatorError when there is no such encoding, or it would not be decoded exactly. */
  constructor(label: string) {
    try {
      this.#decoder = new TextDecoder(label, { fatal: true, ignoreBOM: true });
    } catch {
      throw new InvalidOption(
        `There is no encoding "${label}": use one such as utf-8, utf-16le or windows-1252, or convert the file to UTF-8 with iconv.`,
      );
    }
    this.encoding = this.#decoder.encoding;
    if (!EXACT.test(this.encoding))
      throw new InvalidOption(
        `The encoding "${label}" is not supported: convert the file to UTF-8 with iconv first.`,
      );
  }

  decode(piece: Uint8Array, isLast: boolean): string {
    const bytes = joined(this.#begun, piece);
    const end = isLast ? bytes.length : this.#completeEnd(bytes);
    this.#begun = bytes.slice(end);
    const complete = bytes.subarray(0, end);
    try {
      return this.#decoder.decode(complete);
    } catch {
      if (this.encoding === 'utf-8') return this.#decodeDamagedUtf8(complete);
      if (this.encoding.startsWith('utf-16')) return decodeDamagedUtf16(complete, this.encoding);
      return this.#decodeEach(complete);
    }
  }

  /** Where the last complete character ends. */
  #completeEnd(bytes: Uint8Array): number {
    const { length } = bytes;
    const { encoding } = this;
    if (encoding.startsWith('utf-16')) {
      const whole = length - (length % 2);
      const high = bytes[whole - (encoding === 'utf-16le' ? 1 : 2)] ?? 0;
      return high >= 0xd8 && high < 0xdc ? whole - 2 : whole;
    }
    if (encoding !== 'utf-8') return length;
    for (let back = 1; back <= Math.min(3, length); back += 1) {
      const byte = bytes[length - back] as number;
      if (byte >= 0xc0) return lengthBy(byte) > back ? length - back : length;
      if (byte < 0x80) return length;
    }
    return length;
  }

  #decodeDamagedUtf8(bytes: Uint8Array): string {
    let text = '';
    let from = 0; // where the valid bytes begin
    for (let at = 0; at < bytes.length; ) {
      const length = validLength(bytes, at);
      if (length === 0) {
        text += this.#decoder.decode(bytes.subarray(from, at)) + surrogateOf(bytes[at]);
        from = at + 1;
      }
      at += length || 1;
    }
    return text + this.#decoder.decode(bytes.subarray(from));
  }

  /** Of an encoding of single bytes. */
  #decodeEach(bytes: Uint8Array): string {
    const characters = Array.from({ length: 256 }, (_, byte) => {
      try {
        return this.#decoder.decode(Uint8Array.of(byte));
      } catch {
        return surrogateOf(byte);
      }
    });
    return Array.from(bytes, (byte) => characters[byte]).join('');
  }
}

/** Bytes of a character of UTF-8, by its first one; 0 if none begins so. */
function lengthBy(first: number): number {
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/** Bytes of the character of UTF-8 there (the Unicode Standard, table 3-7); 0 if there is none. */
function validLength(bytes: Uint8Array, at: number): number {
  const first = bytes[at] as number;
  const length = lengthBy(first);
  for (let index = 1; index < length; index += 1) {
    const byte = bytes[at + index] ?? 0;
    const lowest = index > 1 ? 0x80 : first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80;
    const highest = index > 1 ? 0xbf : first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf;
    if (byte < lowest || byte > highest) return 0;
  }
  return length;
}

/** Half a pair stands for itself. */
function decodeDamagedUtf16(bytes: Uint8Array, encoding: string): string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let text = '';
  for (let at = 0; at + 1 < bytes.length; at += 2) {
    text += String.fromCharCode(view.getUint16(at, encoding === 'utf-16le'));
  }
  return bytes.length % 2 === 0 ? text : text + HALF_A_UNIT;
}

function surrogateOf(byte = 0): string {
  return String.fromCharCode(BYTE_0 + byte);
}

/** Whether a lone surrogate stands for a byte. */
function isByte(code: number): boolean {
  return code >= BYTE_0 + 0x80 && code <= BYTE_0 + 0xff;
}

/** A text in UTF-8, with its damaged bytes as they were. Those of half a pair are no UTF-8 either. */
export function bytesOf(text: string): Uint8Array {
  const encoder = new TextEncoder();
  if (text.isWellFormed()) return encoder.encode(text);
  const bytes = new Uint8Array(3 * text.length); // the most that they can be
  let length = 0;
  for (const part of text.split(/([\ud800-\udfff])/u)) {
    const code = part.charCodeAt(0);
    if (!DAMAGED.test(part)) length += encoder.encodeInto(part, bytes.subarray(length)).written;
    else if (isByte(code)) bytes[length++] = code - BYTE_0;
    else {
      bytes.set([0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f)], length);
      length += 3;
    }
  }
  return bytes.slice(0, length);
}

/** A text in which damaged bytes are shown, such as `Caf\xE9`. */
export function withBytesShown(text: string): string {
  return text.replace(/[\ud800-\udfff]/gu, (damage) => {
    const code = damage.charCodeAt(0);
    return `\\x${(isByte(code) ? code - BYTE_0 : code).toString(16).toUpperCase()}`;
  });
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  if (one.length === 0) return other;
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}
