// Owns: where in a delimited text a record ends, and where its fields are (RFC 4180). Line ends are LF, CRLF or CR,
// also mixed; within quotes they belong to the field. A quote within a field that does not begin with one is as good
// as any other character. Reads no record whose end is not there yet: it begins anew with more text.

const LF = 10;
const CR = 13;
const QUOTE = 34;

/** How a field is written. */
const PLAIN = 0;
const QUOTED = 1;
const DOUBLED = 2; // quoted, with quotes within, each doubled

/** What is wrong with a record, and in which of its fields. */
export interface Fault {
  readonly field: number;
  readonly reason: string;
}

export class Tokenizer {
  readonly delimiter: string;
  /** Fields of a record of which is known where they are. */
  readonly #kept: number;
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #forms: number[] = [];
  #text = '';
  #start = 0;
  /** Fields of the record. */
  count = 0;
  /** Where it ends. */
  end = 0;
  /** Where the next one begins. */
  next = 0;
  /** Lines that it takes. */
  lines = 0;
  /** Whether there is anything in the fields that are not kept. */
  hasMore = false;
  /** Whether a quote in it is never closed. */
  isOpen = false;
  /** The first field that is malformed. */
  fault: Fault | undefined = undefined;

  constructor(delimiter: string, kept: number) {
    this.delimiter = delimiter;
    this.#kept = kept;
  }

  /**
   * Reads a record.
   * @param ended whether no more text will follow.
   * @returns false when the text does not go to the record's end.
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
            reason: `has a quote that is never closed, up to the end of the file, ${lines} lines`,
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
      at += 1; // over what ended the field
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

  /** What is in a field; one that is malformed as it stands. */
  field(index: number): string {
    const start = this.#starts[index] as number;
    const end = this.#ends[index] as number;
    const form = this.#forms[index];
    if (form === PLAIN || this.fault?.field === index) return this.#text.slice(start, end);
    const content = this.#text.slice(start + 1, end - 1);
    // Not replaceAll: of a field of millions of quotes it makes a string of as many pieces.
    return form === DOUBLED ? content.split('""').join('"') : content;
  }

  /** The record up to the end of its first so many fields, as it stands. */
  beginning(fields: number): string {
    const end = fields <= this.#kept ? this.#ends[fields - 1] : this.end;
    return this.#text.slice(this.#start, end);
  }
}
