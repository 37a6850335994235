// Owns: bytes as text, decoded piece by piece.
// Does not: take damage for a character of the file. Each sequence of bytes that is invalid in the encoding becomes a
// lone surrogate, which no valid text has: the record can be read, and is written with U+FFFD in its place.

import { InvalidOption } from '../operator-error.ts';

/**
 * The encodings that Node.js decodes as the Encoding Standard says: UTF-8, UTF-16 and those of single bytes. Of others,
 * such as euc-kr and big5, it decodes some characters, and invalid bytes, as different characters.
 */
const EXACT = /^(?:utf-|ibm|iso-8859-|koi8-|macintosh|windows-|x-mac-)/;

/** What stands for invalid bytes; the flag `u` keeps pairs of surrogates together. */
export const DAMAGED = /[\ud800-\udfff]/u;
const DAMAGE = '\udfff';

/** U+FFFD in the encodings that have it. */
const REPLACEMENTS: Readonly<Record<string, readonly number[]>> = {
  'utf-8': [0xef, 0xbf, 0xbd],
  'utf-16le': [0xfd, 0xff],
  'utf-16be': [0xff, 0xfd],
};

/** The encoding of a byte order mark. */
export function markOf([one, two, three, four]: Uint8Array): string | undefined {
  if (one === 0xff && two === 0xfe && three === 0 && four === 0) return 'utf-32le';
  if (one === 0xff && two === 0xfe) return 'utf-16le';
  if (one === 0xfe && two === 0xff) return 'utf-16be';
  return one === 0xef && two === 0xbb && three === 0xbf ? 'utf-8' : undefined;
}

export class Decoder {
  /** Its standard name, in lower case. */
  readonly encoding: string;
  readonly #decoder: TextDecoder;
  /** The bytes at the end that begin a character. */
  #begun: Uint8Array = new Uint8Array();

  /** @throws OperatorError when there is no such encoding, or it would not be decoded exactly. */
  constructor(label: string) {
    try {
      this.#decoder = new TextDecoder(label, { ignoreBOM: true });
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
    const text = this.#decoder.decode(complete);
    return text.includes('\ufffd') ? this.#decodeDamaged(complete) : text;
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
    const last = encoding === 'utf-8' ? bytes.subarray(-3).findLastIndex((byte) => byte >= 0xc0) : -1;
    return last === -1 ? length : Math.max(0, length - 3) + last;
  }

  /** Decodes bytes of which some are invalid, or are U+FFFD. */
  #decodeDamaged(bytes: Uint8Array): string {
    const replacement = REPLACEMENTS[this.encoding];
    const step = this.encoding.startsWith('utf-16') ? 2 : 1;
    let text = '';
    let from = 0;
    for (let at = 0; replacement !== undefined && at < bytes.length; at += step) {
      if (!replacement.every((byte, index) => bytes[at + index] === byte)) continue;
      text += `${withDamage(this.#decoder.decode(bytes.subarray(from, at)))}\ufffd`;
      from = at + replacement.length;
    }
    return text + withDamage(this.#decoder.decode(bytes.subarray(from)));
  }
}

/** A text in which each U+FFFD stands for damage, as in a file of rejected rows. */
export function withDamage(text: string): string {
  return text.replaceAll('\ufffd', DAMAGE);
}

export function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  if (one.length === 0) return other;
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}
