// Owns: bytes as text, decoded piece by piece, and whether any of them are invalid in the encoding. U+FFFD stands for those.

import { InvalidOption } from '../operator-error.ts';

/**
 * The encodings that Node.js decodes as the Encoding Standard says: UTF-8, UTF-16 and those of single bytes. Of others,
 * such as euc-kr and big5, it decodes some characters, and invalid bytes, as different characters.
 */
const EXACT = /^(?:utf-|ibm|iso-8859-|koi8-|macintosh|windows-|x-mac-)/;

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
  readonly #strict: TextDecoder;
  /** Whether bytes so far are invalid. */
  isDamaged = false;

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
    this.#strict = new TextDecoder(label, { ignoreBOM: true, fatal: true });
  }

  decode(piece: Uint8Array, isLast: boolean): string {
    const options = { stream: !isLast };
    try {
      if (!this.isDamaged) this.#strict.decode(piece, options);
    } catch {
      this.isDamaged = true;
    }
    return this.#decoder.decode(piece, options);
  }
}
