// Owns: splitting a record of delimited text into fields (RFC 4180). Line ends are LF, CRLF or CR, also mixed; within quotes they
// belong to the field. Blanks may follow a closing quote. They may stand before the opening one if both are in one line, between
// commas or semicolons. A quote within a field without quotes is an ordinary character.
// Between tabs or bars, a field is quoted if it begins and ends with a quote, and does not have both a line end and the
// delimiter: joined rows would have both. Any other quote there is an ordinary character.

import { because, type Reason } from './reasons.ts';
import type { TextInput } from './text-input.ts';

/** Fields of a record that are kept: no real table is wider, and a line of millions would take any amount of memory. */
export const MOST_FIELDS = 10_000;

const [TAB, LF, CR, BLANK, QUOTE] = [9, 10, 13, 32, 34];

export interface CsvRecord {
  /** The contents of its fields; of a malformed one, the text as it stands. */
  readonly fields: readonly string[];
  /** Where the last of them ends in the text. */
  readonly end: number;
  /** Where the next record begins. */
  readonly next: number;
  /** What is wrong with which field. */
  readonly fault: { readonly field: number; readonly reason: Reason } | undefined;
}

/** Whether a quote is never closed: it takes all that follows. */
export function isOpen({ fault }: CsvRecord): boolean {
  return fault?.reason.code === 'quote-open';
}

/** The records of the text that is there. After a malformed one, the next one is in the next line. */
export function* recordsIn(
  { text, at, ended }: TextInput,
  delimiter: string,
): Generator<CsvRecord & { readonly start: number }, void, void> {
  for (let start = at; start < text.length; ) {
    const record = readRecord(text, start, delimiter, ended);
    if (record === undefined) return;
    yield { ...record, start };
    if (record.fault === undefined) start = record.next;
    else start += (/^[^\r\n]*(?:\r\n?|\n)?/.exec(text.slice(start))?.[0] ?? '').length;
  }
}

/** Programs that write tabs or bars write quotes as they are. */
export function hasQuoting(delimiter: string): boolean {
  return delimiter !== '\t' && delimiter !== '|';
}

/**
 * @param ended whether no more text will follow.
 * @param most fields that are read.
 * @returns undefined if the end of the record has not arrived yet.
 */
export function readRecord(
  text: string,
  start: number,
  delimiter: string,
  ended: boolean,
  most = Number.POSITIVE_INFINITY,
): CsvRecord | undefined {
  const code = delimiter.charCodeAt(0);
  const fields: string[] = [];
  let count = 0;
  let fault: CsvRecord['fault'];
  let end = start - 1;
  do {
    const from = end + 1;
    const first = text.charCodeAt(from);
    const mayBeQuoted = first === QUOTE || first === BLANK;
    const quoted = mayBeQuoted ? readQuoted(text, from, delimiter, ended) : undefined;
    if (quoted === null) return undefined;
    end = quoted === undefined ? endOf(text, from, code) : quoted.end;
    if (end === text.length && !ended) return undefined;
    if (quoted?.reason !== undefined && (fault === undefined || quoted.reason.code === 'quote-open'))
      fault = { field: count, reason: quoted.reason };
    count += 1;
    if (count <= MOST_FIELDS) fields.push(quoted === undefined ? text.slice(from, end) : quoted.content);
  } while (text.charCodeAt(end) === code && count < most);
  if (count > MOST_FIELDS) fault = { field: count, reason: because('field-many', count) };
  const isCr = text.charCodeAt(end) === CR;
  if (isCr && end + 1 === text.length && !ended) return undefined; // an LF may follow
  const isCrLf = isCr && text.charCodeAt(end + 1) === LF;
  return { fields, end, next: Math.min(end + (isCrLf ? 2 : 1), text.length), fault };
}

/**
 * @returns the content of a field in quotes, where it ends, and what is wrong with it; undefined if its quotes are ordinary
 *   characters; null if more text is needed.
 */
function readQuoted(
  text: string,
  start: number,
  delimiter: string,
  ended: boolean,
): { content: string; end: number; reason?: Reason } | undefined | null {
  const code = delimiter.charCodeAt(0);
  const isCsv = hasQuoting(delimiter);
  const open = isCsv ? afterBlanks(text, start, code) : start;
  if (text.charCodeAt(open) !== QUOTE) return undefined;
  const mayBeOrdinary = open > start || !isCsv;
  const close = closeOf(text, open);
  const content = text.slice(open + 1, close === -1 ? text.length : close - 1);
  if (mayBeOrdinary && (isCsv || content.includes(delimiter)) && /[\r\n]/.test(content)) return undefined;
  const end = close === -1 ? text.length : afterBlanks(text, close, code);
  if (end === text.length && !ended) return null;
  if (close !== -1 && (end === text.length || isEnd(text.charCodeAt(end), code))) {
    // Not replaceAll: from a field of millions of quotes it makes a string of as many pieces.
    return { content: content.includes('"') ? content.split('""').join('"') : content, end };
  }
  if (mayBeOrdinary) return undefined;
  if (close === -1) {
    const lines = (text.slice(start).match(/\r\n?|\n/g)?.length ?? 0) + 1;
    return { content: text.slice(start), end, reason: because('quote-open', lines) };
  }
  const last = endOf(text, end, code);
  return { content: text.slice(start, last), end: last, reason: because('quote-text') };
}

/** The index after the closing quote of a field; -1 without one. */
function closeOf(text: string, open: number): number {
  let at = text.indexOf('"', open + 1);
  while (text.charCodeAt(at + 1) === QUOTE && at !== -1) at = text.indexOf('"', at + 2);
  return at === -1 ? -1 : at + 1;
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
