// Owns: the text of a file as it is read: the part still needed, and the line numbers.

import { OperatorError } from '../operator-error.ts';
import { Decoder } from './decoding.ts';

/** Characters of one record, at most. An unclosed quote must not read a whole file into memory. */
const LONGEST_RECORD = 16 * 1024 * 1024;

/**
 * Bytes that are decoded together. With 64 KiB, the size of a read from a file, the peak memory of the process was 30
 * MiB higher: V8 keeps such long strings until a full garbage collection.
 */
const PIECE = 16 * 1024;

const NOTHING = new Uint8Array();
const [LF, CR] = [10, 13];

/** The end of a text, in DOS. */
const END_OF_DOS = '\x1a';

/** The text that has been read and is still needed. */
export class TextInput {
  readonly #pieces: AsyncGenerator<Uint8Array, void, void>;
  readonly decoder: Decoder;
  /** Whether a workbook became this text. A line end within quotation marks then ends no line, so that a line is a row. */
  readonly isTable: boolean;
  readonly #position: (() => number) | undefined;
  /** The bytes that are decoded next, if they are read already; at first, the beginning of the file. */
  beginning: Uint8Array | undefined;
  #hasLookedThrough = false;
  #hasCr = true;
  /** The text; the part before `at` is no longer needed. */
  text = '';
  at = 0;
  /** The line of `at`, from 1. A line ends with LF, CRLF or CR. */
  line = 1;
  /** Bytes read. */
  position = 0;
  /** Whether the text reaches the end of the file. */
  ended = false;

  private constructor(
    pieces: AsyncGenerator<Uint8Array, void, void>,
    decoder: Decoder,
    isTable: boolean,
    position?: () => number,
  ) {
    this.#pieces = pieces;
    this.decoder = decoder;
    this.isTable = isTable;
    this.#position = position;
  }

  /**
   * @param isTable whether a workbook became this text.
   * @param position how many bytes of the file were read; if undefined, they are those of the text.
   * @throws InvalidOption if there is no such encoding, as `Decoder` has it.
   */
  static async open(
    bytes: AsyncIterable<Uint8Array>,
    encoding: string | undefined,
    isTable: boolean,
    position?: () => number,
  ): Promise<TextInput> {
    const pieces = piecesOf(bytes);
    const { value: beginning = NOTHING } = await pieces.next();
    try {
      const decoder = new Decoder(beginning, encoding);
      return Object.assign(new TextInput(pieces, decoder, isTable, position), { beginning });
    } catch (error) {
      await pieces.return();
      throw error;
    }
  }

  /** A text of the same file that is there already. */
  with(text: string): TextInput {
    const decoder = new Decoder(NOTHING, 'utf-8');
    if (this.decoder.isDamaged) decoder.takeForRejects();
    return Object.assign(new TextInput(piecesOf([]), decoder, this.isTable), { text, ended: true });
  }

  /** Reads this many characters of the beginning, or all if the file has fewer. */
  async begin(characters: number): Promise<void> {
    await this.#fill(characters - this.text.length);
  }

  /**
   * Reads at least as much again as there is, so that a record of many pieces is scanned only a few times, and not
   * once for each piece.
   * @throws OperatorError when the record at `at` is too long.
   */
  async more(): Promise<void> {
    this.text = this.text.slice(this.at);
    this.at = 0;
    const { length } = this.text;
    if (length > LONGEST_RECORD) {
      this.advance(/\S|$/.exec(this.text)?.index ?? 0);
      throw new OperatorError(
        `The record that begins in line ${this.line} has more than 16 MiB: look for an unclosed quote or bracket.`,
      );
    }
    await this.#fill(Math.max(1, Math.min(length, LONGEST_RECORD - length + 1)));
  }

  /** Reads so many characters, but once after a damaged byte as many as show whether the file is UTF-8. */
  async #fill(characters: number): Promise<void> {
    const { decoder } = this;
    const pieces = [this.text];
    const wanted = () => (decoder.isInDoubt && !this.#hasLookedThrough ? LONGEST_RECORD : characters);
    for (let read = 0; !this.ended && read < wanted(); ) {
      const bytes = this.beginning ?? (await this.#pieces.next()).value;
      this.beginning = undefined;
      this.ended = bytes === undefined;
      this.position = this.#position?.() ?? this.position + (bytes?.length ?? 0);
      const piece = decoder.decode(bytes ?? NOTHING, this.ended);
      pieces.push(piece);
      read += piece.length;
    }
    this.#hasLookedThrough ||= decoder.isDamaged;
    const text = pieces.join('');
    this.text = this.ended && text.endsWith(END_OF_DOS) ? text.slice(0, -1) : text;
    this.#hasCr = text.includes('\r');
  }

  /** Releases the text before an index, and counts its lines. */
  advance(to: number): void {
    const { text } = this;
    if (this.isTable) {
      const lines = text.slice(this.at, to).replaceAll(/"[^"]*"/g, '');
      this.line += lines.split('\n').length - 1;
    } else if (this.#hasCr) {
      for (let at = this.at; at < to; at += 1) {
        const code = text.charCodeAt(at);
        if (code === CR || (code === LF && text.charCodeAt(at - 1) !== CR)) this.line += 1;
      }
    } else {
      let at = text.indexOf('\n', this.at); // many times as fast
      for (; at !== -1 && at < to; at = text.indexOf('\n', at + 1)) this.line += 1;
    }
    this.at = to;
  }

  /** Stops reading, at any point. */
  async close(): Promise<void> {
    await this.#pieces.return();
  }
}

async function* piecesOf(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, void> {
  for await (const bytes of chunks)
    for (let at = 0; at < bytes.length; at += PIECE) yield bytes.subarray(at, at + PIECE);
}
