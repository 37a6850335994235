// Owns: splitting a record of delimited text into fields (RFC 4180). Line ends are LF, CRLF or CR, also mixed; within quotes they
// belong to the field. Blanks may follow a closing quote. They may stand before the opening one if both are in one line, between
// commas or semicolons. A quote within a field without quotes is an ordinary character. So is a stray quote between tabs or bars: it
// would make a row malformed, or join rows, and the row is whole without it.
// Does not: return a record whose end has not arrived yet. It is read again from its beginning when there is more text.

const LF = 10;
const CR = 13;
const QUOTE = 34;
const BLANK = 32;
const TAB = 9;

/** Delimiters of programs that write quotes as they are. */
export const WITHOUT_QUOTING: readonly string[] = ['\t', '|'];

/** How a field is written. */
const PLAIN = 0;
const QUOTED = 1;
const DOUBLED = 2; // quoted, with quotes inside, each doubled

/** A fault of a record: its reason, and the field. */
export interface Fault {
  readonly field: number;
  readonly reason: string;
}

export class Tokenizer {
  readonly delimiter: string;
  /** How many fields of a record are located; the others are only counted. */
  readonly #kept: number;
  /** How many fields a row may have; empty if no quote is stray. */
  readonly #rowLengths: readonly number[];
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #forms: number[] = [];
  /** The form of the latest quoted field, and the line ends in it. */
  #form = QUOTED;
  #lineEnds = 0;
  #text = '';
  #start = 0;
  /** Number of fields of the record. */
  count = 0;
  /** Where the record ends. */
  end = 0;
  /** Where the next record begins. */
  next = 0;
  /** Number of lines of the record. */
  lines = 0;
  /** Whether any field that is not kept has text. */
  hasMore = false;
  /** Whether a quote in the record is never closed. */
  isOpen = false;
  /** The fault of the first malformed field. */
  fault: Fault | undefined = undefined;

  /** @param rowLengths how many fields a row may have, if that is known. */
  constructor(delimiter: string, kept: number, rowLengths: readonly number[] = []) {
    this.delimiter = delimiter;
    this.#kept = kept;
    this.#rowLengths = WITHOUT_QUOTING.includes(delimiter) ? rowLengths : [];
  }

  /**
   * @param ended whether no more text will follow.
   * @returns false when the text ends before the record does.
   */
  read(text: string, start: number, ended: boolean): boolean {
    const delimiter = this.delimiter.charCodeAt(0);
    const { length } = text;
    let at = start;
    let code = 0;
    let count = 0;
    let lines = 1;
    this.hasMore = false;
    this.isOpen = false;
    this.fault = undefined;
    do {
      let from = at;
      let form = PLAIN;
      let end = -1;
      if (text.charCodeAt(at) === BLANK && this.#isQuotedAfterBlanks(text, at, count)) {
        from = afterBlanks(text, at, delimiter);
        at = from;
      }
      if (at < length && text.charCodeAt(at) === QUOTE) {
        end = this.#closeOf(text, from, count);
        if (end === -1 && !ended) return false;
        at = end === -1 ? length : afterBlanks(text, end, delimiter);
        const isClosed = end !== -1 && (at === length || isEnd(text.charCodeAt(at), delimiter));
        if (end === from || (!isClosed && this.#isRow(text, from, count))) {
          at = from; // its quotes are ordinary characters
        } else {
          form = this.#form;
          lines += this.#lineEnds;
          if (end === -1) {
            const reason = `has an unclosed quote: it extends to the end of the file, ${lines} line${lines === 1 ? '' : 's'}`;
            this.fault = { field: count, reason };
            this.isOpen = true;
          } else if (!isClosed) {
            this.fault ??= { field: count, reason: 'has text after its closing quote' };
            at = endOf(text, at, delimiter);
          }
          if (!isClosed) end = at;
        }
      }
      if (form === PLAIN) {
        at = endOf(text, at, delimiter);
        end = at;
      }
      code = text.charCodeAt(at);
      if (at === length && !ended) return false;
      if (count < this.#kept) {
        this.#starts[count] = from;
        this.#ends[count] = end;
        this.#forms[count] = form;
      } else if (end - from > (form === PLAIN ? 0 : 2)) {
        this.hasMore = true;
      }
      count += 1;
      at += 1; // past the delimiter or line end
    } while (at <= length && code === delimiter);
    const end = at - 1;
    if (end < length && code === CR) {
      if (at === length && !ended) return false; // an LF may follow
      if (at < length && text.charCodeAt(at) === LF) at += 1;
    }
    this.#text = text;
    this.#start = start;
    this.count = count;
    this.end = end;
    this.next = Math.min(at, length);
    this.lines = lines;
    return true;
  }

  /**
   * Finds the closing quote of a field.
   * @returns the index after the quote; -1 if the text has no such quote; the start of the field if its quotes are ordinary characters.
   */
  #closeOf(text: string, start: number, field: number): number {
    const delimiter = this.delimiter.charCodeAt(0);
    let mayBeRows = this.#rowLengths.length > 0;
    let hasDelimiter = false;
    this.#form = QUOTED;
    this.#lineEnds = 0;
    for (let at = start + 1; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        at += 1;
        if (text.charCodeAt(at) !== QUOTE) return at;
        this.#form = DOUBLED;
      } else if (code === LF || (code === CR && text.charCodeAt(at + 1) !== LF)) {
        this.#lineEnds += 1;
      } else if (code === delimiter) {
        hasDelimiter = true;
      }
      if (mayBeRows && hasDelimiter && this.#lineEnds > 0) {
        mayBeRows = false;
        if (this.#isRow(text, start, field)) return start;
      }
    }
    return -1;
  }

  /** Whether a field is in quotes, with blanks before them, and ends in the same line. */
  #isQuotedAfterBlanks(text: string, start: number, field: number): boolean {
    const delimiter = this.delimiter.charCodeAt(0);
    const quote = afterBlanks(text, start, delimiter);
    if (WITHOUT_QUOTING.includes(this.delimiter) || text.charCodeAt(quote) !== QUOTE) return false;
    const end = this.#closeOf(text, quote, field);
    if (this.#lineEnds > 0) return false;
    const next = end === -1 ? text.length : afterBlanks(text, end, delimiter);
    return next === text.length ? end !== -1 : isEnd(text.charCodeAt(next), delimiter);
  }

  /**
   * Whether the line is a whole row if the quotes from a field to the end of the line are ordinary characters. A field that also
   * ends with a quote is quoted, however badly.
   */
  #isRow(text: string, start: number, field: number): boolean {
    const delimiter = this.delimiter.charCodeAt(0);
    let end = endOf(text, start, delimiter);
    if (end > start + 1 && text.charCodeAt(end - 1) === QUOTE) return false;
    let count = field + 1;
    for (; text.charCodeAt(end) === delimiter; count += 1) end = endOf(text, end + 1, delimiter);
    return this.#rowLengths.includes(count);
  }

  /** The content of a field; the text of a malformed one as it stands. */
  field(index: number): string {
    const start = this.#starts[index] as number;
    const end = this.#ends[index] as number;
    const form = this.#forms[index];
    if (form === PLAIN || this.fault?.field === index) return this.#text.slice(start, end);
    const content = this.#text.slice(start + 1, end - 1);
    // Not replaceAll: from a field of millions of quotes it makes a string of as many pieces.
    return form === DOUBLED ? content.split('""').join('"') : content;
  }

  /** The contents of the fields that are located. */
  get fields(): string[] {
    return Array.from({ length: Math.min(this.count, this.#kept) }, (_, index) => this.field(index));
  }

  /** The text of the record's first fields, as it stands. */
  beginning(fields: number): string {
    const end = fields <= this.#kept ? this.#ends[fields - 1] : this.end;
    return this.#text.slice(this.#start, end);
  }
}

function isEnd(code: number, delimiter: number): boolean {
  return code === delimiter || code === LF || code === CR;
}

/** Where a field ends whose quotes are ordinary characters. */
function endOf(text: string, start: number, delimiter: number): number {
  let at = start;
  while (at < text.length && !isEnd(text.charCodeAt(at), delimiter)) at += 1;
  return at;
}

function afterBlanks(text: string, start: number, delimiter: number): number {
  let at = start;
  for (let code = text.charCodeAt(at); (code === BLANK || code === TAB) && code !== delimiter; ) {
    at += 1;
    code = text.charCodeAt(at);
  }
  return at;
}
