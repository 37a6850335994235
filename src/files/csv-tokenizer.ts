// Owns: where a record of a delimited text ends, and where its fields are (RFC 4180). Line ends are LF, CRLF or CR,
// also mixed; within quotes they belong to the field. In a field that does not begin with a quote, quotes are ordinary
// characters.
// Does not: return a record whose end has not arrived yet. The record is read again from its beginning when there is
// more text.

const LF = 10;
const CR = 13;
const QUOTE = 34;

/** How a field is written. */
const PLAIN = 0;
const QUOTED = 1;
const DOUBLED = 2; // quoted, with quotes inside, each doubled

/** What is wrong with a record, and in which field. */
export interface Fault {
  readonly field: number;
  readonly reason: string;
}

export class Tokenizer {
  readonly delimiter: string;
  /** How many fields of a record are located; the others are only counted. */
  readonly #kept: number;
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #forms: number[] = [];
  #text = '';
  #start = 0;
  /** Number of fields of the record. */
  count = 0;
  /** Where it ends. */
  end = 0;
  /** Where the next one begins. */
  next = 0;
  /** Lines that it spans. */
  lines = 0;
  /** Whether any field that is not kept has text. */
  hasMore = false;
  /** Whether a quote in it is never closed. */
  isOpen = false;
  /** What is wrong with the first malformed field. */
  fault: Fault | undefined = undefined;

  constructor(delimiter: string, kept: number) {
    this.delimiter = delimiter;
    this.#kept = kept;
  }

  /**
   * Reads a record.
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
      const from = at;
      let form = PLAIN;
      if (at < length && text.charCodeAt(at) === QUOTE) {
        form = QUOTED;
        let closed = false;
        at += 1;
        while (!closed && at < length) {
          code = text.charCodeAt(at);
          at += 1;
          if (code === QUOTE) {
            if (at === length || text.charCodeAt(at) !== QUOTE) {
              closed = true;
            } else {
              form = DOUBLED;
              at += 1;
            }
          } else if (code === LF || (code === CR && text.charCodeAt(at) !== LF)) {
            lines += 1;
          }
        }
        if (!closed) {
          if (!ended) return false;
          this.isOpen = true;
          this.fault = {
            field: count,
            reason: `has an unclosed quote: it extends to the end of the file, ${lines} line${lines === 1 ? '' : 's'}`,
          };
        } else {
          const close = at;
          while (at < length) {
            code = text.charCodeAt(at);
            if (code === delimiter || code === LF || code === CR) break;
            at += 1;
          }
          if (at > close) this.fault ??= { field: count, reason: 'has text after its closing quote' };
        }
      } else {
        while (at < length) {
          code = text.charCodeAt(at);
          if (code === delimiter || code === LF || code === CR) break;
          at += 1;
        }
      }
      if (at === length && !ended) return false;
      if (count < this.#kept) {
        this.#starts[count] = from;
        this.#ends[count] = at;
        this.#forms[count] = form;
      } else if (at - from > (form === PLAIN ? 0 : 2)) {
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

  /** The content of a field; a malformed one as it stands. */
  field(index: number): string {
    const start = this.#starts[index] as number;
    const end = this.#ends[index] as number;
    const form = this.#forms[index];
    if (form === PLAIN || this.fault?.field === index) return this.#text.slice(start, end);
    const content = this.#text.slice(start + 1, end - 1);
    // Not replaceAll: from a field of millions of quotes it makes a string of as many pieces.
    return form === DOUBLED ? content.split('""').join('"') : content;
  }

  /** The text of the record's first fields, as it stands. */
  beginning(fields: number): string {
    const end = fields <= this.#kept ? this.#ends[fields - 1] : this.end;
    return this.#text.slice(this.#start, end);
  }
}
