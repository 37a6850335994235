// Owns: the rows of a sheet of a workbook as lines of CSV, in which a text is quoted and a number is not; and the texts that cells
// share.
// Does not: calculate. A formula without its value is read as its text: it is not an empty cell.

import { quoted } from '../books/line.ts';
import { OperatorError } from '../operator-error.ts';
import { Damage, type XmlHandlers } from './xml.ts';

/** Rows of a sheet in Excel and LibreOffice; and columns: no table of books is wider. */
const ROWS = 1_048_576;
const COLUMNS = 1000;

/** Bytes of all texts that the cells share. */
const SHARED = 128 * 1024 * 1024;

/** The first day of the two calendars. */
export const EPOCH = Date.UTC(1899, 11, 30);
export const EPOCH_OF_1904 = Date.UTC(1904, 0, 1);

/** Milliseconds of a day; and the day that never was, 29 February 1900, before which the first calendar is one day off. */
const [DAY, LEAP] = [86_400_000, 60];

/** What a cell needs that its sheet does not have. */
export interface Surroundings {
  readonly shared: SharedTexts;
  /** Whether a style shows a date. */
  readonly dates: readonly boolean[];
  readonly epoch: number;
}

/** The text of an element: that of its runs, without the pronunciation of Japanese. */
export class Runs {
  #isPhonetic = false;
  /** Of the element that was opened last. */
  #own = '';
  all = '';

  open(name: string): void {
    this.#own = '';
    if (name === 'rPh') this.#isPhonetic = true;
  }

  text(text: string): void {
    this.#own += text;
  }

  /** @returns the text of the element alone. */
  close(name: string): string {
    if (name === 'rPh') this.#isPhonetic = false;
    if (name === 't' && !this.#isPhonetic) this.all += this.#own;
    return this.#own;
  }
}

export class RowReader implements XmlHandlers {
  readonly #around: Surroundings;
  #lines = '';
  #isInTable = false;
  #row = 0;
  #width = 0;
  /** The fields of the row that is being read, by their columns. */
  #fields: string[] = [];
  #column = 0;
  #type = 'n';
  #isDate = false;
  #value: string | undefined;
  #formula: string | undefined;
  #runs = new Runs();

  constructor(around: Surroundings) {
    this.#around = around;
  }

  /** The lines of the rows that are complete and were not taken before. */
  take(): string {
    const lines = this.#lines;
    this.#lines = '';
    return lines;
  }

  open(name: string, attributes: Readonly<Record<string, string>>): void {
    if (name === 'sheetData') this.#isInTable = true;
    if (!this.#isInTable) return;
    if (name === 'row') this.#beginRow(Number(attributes.r ?? this.#row + 1));
    else if (name === 'c') this.#beginCell(attributes);
    this.#runs.open(name);
  }

  text(text: string): void {
    this.#runs.text(text);
  }

  close(name: string): void {
    if (name === 'sheetData') this.#isInTable = false;
    if (!this.#isInTable) return;
    const text = this.#runs.close(name);
    if (name === 'v') this.#value = text;
    else if (name === 'f') this.#formula = text;
    else if (name === 'c') this.#endCell();
    else if (name === 'row') this.#endRow();
  }

  #beginRow(row: number): void {
    if (!(row > this.#row && row <= ROWS)) throw new Damage(`row ${row} follows row ${this.#row}`);
    this.#lines += '\n'.repeat(row - this.#row - 1);
    this.#row = row;
    this.#fields = [];
    this.#column = 0;
  }

  #endRow(): void {
    // Programs leave out empty cells at the end of a row.
    this.#width = Math.max(this.#width, this.#fields.length);
    this.#lines += `${Array.from({ length: this.#width }, (_, index) => this.#fields[index] ?? '').join()}\n`;
  }

  #beginCell({ r: place, t: type = 'n', s: style = '0' }: Readonly<Record<string, string>>): void {
    const column = place === undefined ? this.#column + 1 : columnOf(place);
    if (!(column > this.#column)) throw new Damage(`row ${this.#row} has a cell ${place}`);
    this.#column = column;
    this.#type = type;
    this.#isDate = this.#around.dates[Number(style)] ?? false;
    this.#value = undefined;
    this.#formula = undefined;
    this.#runs = new Runs();
  }

  #endCell(): void {
    const field = this.#field();
    if (field === '') return;
    if (this.#column > COLUMNS) throw new Damage(`row ${this.#row} has more than ${COLUMNS} columns`);
    this.#fields[this.#column - 1] = field;
  }

  #field(): string {
    const value = this.#value === '' && this.#type !== 'str' ? undefined : this.#value;
    if (this.#type === 'inlineStr') return quoted(unescaped(this.#runs.all));
    if (value === undefined) return this.#formula === undefined ? '' : quoted(`=${this.#formula || '…'}`);
    if (this.#type === 's') return quoted(unescaped(this.#around.shared.at(Number(value))));
    if (this.#type === 'str') return quoted(unescaped(value));
    if (this.#type === 'b') return isOn(value) ? 'TRUE' : 'FALSE';
    const number = value.trim() === '' ? Number.NaN : Number(value);
    if (this.#type !== 'n' || !Number.isFinite(number)) return quoted(value);
    return (this.#isDate ? dateOf(number, this.#around.epoch) : undefined) ?? `${number}`;
  }
}

/** Texts outside the heap of JavaScript, which a large file would fill. */
export class SharedTexts {
  readonly #bytes: Buffer;
  /** Where each text ends. */
  readonly #ends: number[] = [];

  /** @param size bytes of the texts at most. The system has memory only for those that are written. */
  constructor(size: number) {
    this.#bytes = Buffer.allocUnsafeSlow(Math.min(size, SHARED));
  }

  /** @throws OperatorError when all texts together are too long. */
  add(text: string): void {
    const start = this.#ends.at(-1) ?? 0;
    const end = start + Buffer.byteLength(text);
    if (end > this.#bytes.length)
      throw new OperatorError('The workbook has more than 128 MiB of text: save it as CSV in UTF-8.');
    this.#bytes.write(text, start);
    this.#ends.push(end);
  }

  /** @throws Damage if there is no such text. */
  at(index: number): string {
    const end = this.#ends[index];
    if (end === undefined) throw new Damage(`there is no text ${index}`);
    return this.#bytes.toString('utf8', this.#ends[index - 1] ?? 0, end);
  }
}

/** @returns such as 28 for `AB12`. */
function columnOf(place: string): number {
  const letters = /^[A-Z]{1,3}(?=\d+$)/.exec(place)?.[0] ?? '';
  return Array.from(letters).reduce((column, letter) => 26 * column + letter.charCodeAt(0) - 64, 0);
}

/** @returns such as `1997-05-03`; undefined if it is no day. */
function dateOf(serial: number, epoch: number): string | undefined {
  const day = Math.floor(serial) + (epoch === EPOCH && serial > 0 && serial < LEAP ? 1 : 0);
  const date = new Date(epoch + day * DAY);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString().slice(0, -'T00:00:00.000Z'.length);
}

/** A text with the signs that XML cannot have (ST_Xstring): `_x000D_`. */
function unescaped(text: string): string {
  if (!text.includes('_x')) return text;
  const own = text.replaceAll(/_x([\dA-Fa-f]{4})_/g, (_, code) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
  return own.isWellFormed() ? own : text;
}

export function isOn(value: string | undefined): boolean {
  return value === '1' || value === 'true';
}
