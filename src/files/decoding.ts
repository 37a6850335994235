// Owns: bytes as text, decoded piece by piece, and text as bytes.
// Does not: replace a byte that is invalid in the encoding with U+FFFD. It becomes a lone surrogate, U+DC00 plus the
// byte (as in Python, PEP 383). No valid text has one, so the record can be read, and written with the same bytes.

import { InvalidOption } from '../operator-error.ts';

/**
 * The encodings that Node.js decodes as the Encoding Standard says: UTF-8, UTF-16 and those of single bytes. Of others,
 * such as euc-kr and big5, it decodes some characters, and invalid bytes, as different characters.
 */
const EXACT = /^(?:utf-|ibm|iso-8859-|koi8-|macintosh|windows-|x-mac-)/;

/** A lone surrogate: the flag `u` keeps pairs together. */
export const DAMAGED = /[\ud800-\udfff]/u;

/** The surrogate of byte 0. */
const BYTE_0 = 0xdc00;

/** Stands for half a unit of UTF-16. It forms no pair with the unit before it. */
const HALF_A_UNIT = '\ud800';

/** The encoding of a byte order mark. */
export function markOf([one, two, three, four]: Uint8Array): string | undefined {
  if (one === 0xff && two === 0xfe && three === 0 && four === 0) return 'utf-32le';
  if (one === 0xff && two === 0xfe) return 'utf-16le';
  if (one === 0xfe && two === 0xff) return 'utf-16be';
  return one === 0xef && two === 0xbb && three === 0xbf ? 'utf-8' : undefined;
}

/** Decodes bytes piece by piece. */
export class Decoder {
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

export function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  if (one.length === 0) return other;
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}
