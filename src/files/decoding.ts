// Owns: bytes as text, piece by piece, and whether they are of the encoding that they are decoded from. U+FFFD stands for
// invalid bytes.
// Does not: take the letters of another encoding for damaged UTF-8.

import { InvalidOption, OperatorError } from '../operator-error.ts';
import { because, type Reason } from './reasons.ts';

/**
 * The encodings that Node.js decodes as the Encoding Standard says: UTF-8, UTF-16 and those of single bytes. Of others,
 * such as euc-kr and big5, it decodes some characters, and invalid bytes, as different characters.
 */
const EXACT = /^(?:utf-|ibm|iso-8859-|koi8-|macintosh|windows-|x-mac-)/;

/** Characters that encodings write differently. */
const BEYOND_ASCII = /[^\0-\x7f]/gu;

/** What stands for invalid bytes. Where there are any, it cannot be told from one that the file has. */
const DAMAGED = /\ufffd/g;

/** Letters of Europe and curved quotes: other encodings hardly ever have their bytes in UTF-8, so one counts as ten others. */
const TELLING = /[\u00c0-\u017f\u2010-\u203a]/g;

/** With so many letters more than damaged bytes, a file is UTF-8, whatever follows. */
const CERTAIN = 100;

/** The file is not UTF-8, and nothing says which encoding it has. */
export class NotUtf8 extends OperatorError {}

export class Decoder {
  readonly #lenient: TextDecoder;
  readonly #strict: TextDecoder;
  /** Letters beyond ASCII less damaged bytes. By chance, one letter of GBK in ten is one of UTF-8, and fewer in single bytes. */
  #evidence = 0;
  #isBegun = false;
  #isEnded = false;
  /** Where the first damaged text is that is needed. */
  #damaged: string | undefined;
  /** Whether bytes so far are invalid, so that each U+FFFD counts as damage. */
  isDamaged = false;
  /** What the records of the file are counted by. */
  unit: 'Line' | 'Element' = 'Line';

  /**
   * @param first bytes of the file, with the byte order mark.
   * @param label of the encoding; if undefined, the mark determines it, else it is UTF-8.
   * @throws InvalidOption when there is no such encoding, or it would not be decoded exactly.
   */
  constructor(first: Uint8Array, label: string | undefined) {
    const known = label ?? encodingOf(first);
    if (known !== undefined) this.#evidence = CERTAIN;
    this.#lenient = decoderOf(known ?? 'utf-8', false);
    this.#strict = decoderOf(known ?? 'utf-8', true);
  }

  /** Its name in the Encoding Standard. */
  get encoding(): string {
    return this.#lenient.encoding;
  }

  /** Whether more text can show that the file is UTF-8 although it is damaged. */
  get isInDoubt(): boolean {
    return this.isDamaged && this.#evidence < CERTAIN;
  }

  decode(piece: Uint8Array, isLast: boolean): string {
    // A byte order mark is not part of the text; that of UTF-8 whatever the encoding.
    const bytes = !this.#isBegun && encodingOf(piece) === 'utf-8' ? piece.subarray(3) : piece;
    const options = { stream: !isLast };
    try {
      if (!this.isDamaged) this.#strict.decode(bytes, options);
    } catch {
      this.isDamaged = true;
    }
    const text = this.#lenient.decode(bytes, options);
    if (this.#evidence < CERTAIN && isBeyondAscii(text)) {
      const damaged = this.isDamaged ? count(text, DAMAGED) : 0;
      this.#evidence += count(text, BEYOND_ASCII) + 9 * count(text, TELLING) - 2 * damaged;
    }
    this.#isEnded = isLast;
    if (this.#isBegun) return text;
    this.#isBegun = true;
    return text.replace(/^\uFEFF+/, '');
  }

  /** Takes the file for one of rejected rows: it is UTF-8, and damage is U+FFFD there. */
  takeForRejects(): void {
    this.#evidence = CERTAIN;
    this.isDamaged = true;
  }

  /**
   * The fault of a text that is needed: the first of its damaged bytes.
   * @param line of its record.
   * @throws NotUtf8 when all of the file has been decoded and it is not UTF-8.
   */
  damageIn(text: string, line: number): Reason | undefined {
    // By chance, letters of another encoding are also those of UTF-8.
    if (!this.isDamaged || !isBeyondAscii(text)) return undefined;
    this.#damaged ??= `${this.unit} ${line}`;
    this.assertUtf8();
    return text.includes('\ufffd') ? because('damaged', this.encoding.toUpperCase()) : undefined;
  }

  /**
   * To be called at the end of the file: text of another encoding was taken for damaged UTF-8.
   * @throws NotUtf8 when a text that was needed is damaged, and the file is not UTF-8.
   */
  assertUtf8(): void {
    if (this.#damaged === undefined || !this.#isEnded || this.#evidence >= 0) return;
    throw new NotUtf8(
      `${this.#damaged} is not UTF-8 text: set the encoding of the file, such as --encoding windows-1252 (Western Europe) or windows-1251 (Russian), or convert it to UTF-8 with iconv.`,
    );
  }
}

function isBeyondAscii(text: string): boolean {
  return /[^\0-\x7f]/.test(text);
}

function count(text: string, character: RegExp): number {
  return text.match(character)?.length ?? 0;
}

/** Of a byte order mark. */
function encodingOf([one, two, three, four]: Uint8Array): string | undefined {
  if (one === 0xff && two === 0xfe && three === 0 && four === 0) return 'utf-32le';
  if (one === 0xff && two === 0xfe) return 'utf-16le';
  if (one === 0xfe && two === 0xff) return 'utf-16be';
  return one === 0xef && two === 0xbb && three === 0xbf ? 'utf-8' : undefined;
}

/** @throws InvalidOption if there is no such encoding, or it would not be decoded exactly. */
export function decoderOf(label: string, fatal: boolean): TextDecoder {
  try {
    const decoder = new TextDecoder(label, { ignoreBOM: true, fatal });
    if (EXACT.test(decoder.encoding)) return decoder;
  } catch {
    // There is no such encoding.
  }
  throw new InvalidOption(
    `The encoding "${label}" is not supported: use one such as utf-8, utf-16le or windows-1252, or convert the file to UTF-8 with iconv.`,
  );
}
