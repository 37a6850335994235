// Owns: reading a workbook (.xlsx: ECMA-376, Office Open XML): its sheets, and the rows of one as CSV, in which a text is quoted and a
// number is not.
// Does not: calculate. A formula without its value is read as its text: it is not an empty cell.

import { posix } from 'node:path';
import { quoted } from '../books/line.ts';
import { OperatorError } from '../operator-error.ts';
import type { Archive } from './archive.ts';
import { attributeOf, Damage, type XmlHandlers, XmlReader } from './xml.ts';

/** Rows of a sheet in Excel and LibreOffice; and columns: no table of books is wider. */
const ROWS = 1_048_576;
const COLUMNS = 1000;

/** Sheets of a workbook, and bytes of all texts that its cells share. */
const SHEETS = 1000;
const SHARED = 128 * 1024 * 1024;

/** The first day of the two calendars, and the day that never was, 29 February 1900, before which the first is one day off. */
const [DAY, EPOCH, EPOCH_OF_1904, LEAP] = [86_400_000, Date.UTC(1899, 11, 30), Date.UTC(1904, 0, 1), 60];

/** The numbers of formats that are built in and show a date. */
const DATES = new Set([14, 15, 16, 17, 22, 27, 28, 29, 30, 31, 36, 50, 51, 52, 53, 54, 57, 58]);

/** What is no part of a date in a format: texts, escaped signs, colours and languages, room. */
const AROUND_DATES = /"[^"]*"|\\.|\[[^\]]*\]|_.|\*./g;

export interface Sheet {
  readonly name: string;
  readonly isHidden: boolean;
  readonly path: string;
}

/** What a cell needs that its sheet does not have. */
interface Surroundings {
  readonly shared: SharedTexts;
  /** Whether a style shows a date. */
  readonly dates: readonly boolean[];
  readonly epoch: number;
}

export class Workbook {
  readonly sheets: readonly Sheet[];
  readonly #archive: Archive;
  readonly #around: Surroundings;

  private constructor(archive: Archive, sheets: readonly Sheet[], around: Surroundings) {
    this.#archive = archive;
    this.sheets = sheets;
    this.#around = around;
  }

  /** @returns undefined if the archive is no workbook. @throws OperatorError when it cannot be read. */
  static async open(archive: Archive): Promise<Workbook | undefined> {
    const path = (await relationsOf(archive, '')).find(({ type }) => type === 'officeDocument')?.target;
    if (path === undefined || !path.endsWith('.xml')) return undefined;
    const relations = await relationsOf(archive, path);
    const parts = new Map(relations.map(({ id, type, target }) => [id, type === 'worksheet' ? target : '']));
    const sheets: Sheet[] = [];
    let epoch = EPOCH;
    await readPart(archive, path, {
      open(name, attributes) {
        const read = (attribute: string) => attributeOf(attributes, attribute);
        if (name === 'workbookPr' && isOn(read('date1904'))) epoch = EPOCH_OF_1904;
        const part = name === 'sheet' && parts.get(read('id'));
        // It may be a chart. Two sheets of one part would cost twice what the file has.
        if (!part || sheets.some((other) => other.path === part)) return;
        const isHidden = (read('state') ?? 'visible') !== 'visible';
        sheets.push({ name: read('name') ?? '', isHidden, path: part });
        if (sheets.length > SHEETS) throw new Damage(`it has more than ${SHEETS} sheets`);
      },
    });
    if (sheets.length === 0) return undefined;
    const targetOf = (kind: string) => relations.find(({ type }) => type === kind)?.target ?? '';
    const dates = await datesOf(archive, targetOf('styles'));
    const shared = await sharedOf(archive, targetOf('sharedStrings'));
    return new Workbook(archive, sheets, { shared, dates, epoch });
  }

  /** Bytes of a sheet. */
  sizeOf({ path }: Sheet): number {
    return this.#archive.sizeOf(path);
  }

  /**
   * The rows of a sheet as lines of CSV, also empty ones, so that a line is a row, unless a text in it has several.
   * @param onRead is called with the bytes of the sheet that were read.
   * @throws OperatorError when it is damaged, after the rows before the damage.
   */
  async *rows(
    { path }: Sheet,
    onRead: (bytes: number) => void = () => {},
  ): AsyncGenerator<Uint8Array, void, void> {
    const rows = new RowReader(this.#around);
    const xml = new XmlReader(rows);
    for await (const bytes of this.#archive.read(path)) {
      const fault = faultOf(() => xml.write(bytes), path);
      onRead(bytes.length);
      const text = rows.take();
      if (text !== '') yield Buffer.from(text);
      if (fault !== undefined) throw fault;
    }
    const fault = faultOf(() => xml.end(), path);
    if (fault !== undefined) throw fault;
  }
}

/** The text of an element: that of its runs, without the pronunciation of Japanese. */
class Runs {
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

class RowReader {
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
class SharedTexts {
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

function isOn(value: string | undefined): boolean {
  return value === '1' || value === 'true';
}

interface Relation {
  readonly id: string | undefined;
  readonly type: string;
  readonly target: string;
}

/** What a part of the package refers to. @param path of the part; '' for the package. */
async function relationsOf(archive: Archive, path: string): Promise<readonly Relation[]> {
  const { dir, base } = posix.parse(path);
  const relations: Relation[] = [];
  await readPart(archive, posix.join(dir, '_rels', `${base}.rels`), {
    open(name, { Id, Type = '', Target = '' }) {
      if (name !== 'Relationship') return;
      const target = posix.resolve('/', dir, Target).slice(1);
      relations.push({ id: Id, type: posix.basename(Type), target });
    },
  });
  return relations;
}

/** Whether each style of a cell shows a date. */
async function datesOf(archive: Archive, path: string): Promise<readonly boolean[]> {
  const own = new Map<number, string>();
  const styles: number[] = [];
  let isOfCells = false;
  await readPart(archive, path, {
    open(name, { numFmtId, formatCode = '' }) {
      if (name === 'cellXfs') isOfCells = true;
      if (name === 'numFmt') own.set(Number(numFmtId), formatCode);
      if (name === 'xf' && isOfCells) styles.push(Number(numFmtId ?? 0));
    },
    close(name) {
      if (name === 'cellXfs') isOfCells = false;
    },
  });
  return styles.map((format) => {
    const code = own.get(format)?.replaceAll(AROUND_DATES, '');
    return code === undefined ? DATES.has(format) : /[dy]/i.test(code);
  });
}

/** The texts that the cells share. @throws OperatorError when they are too long. */
async function sharedOf(archive: Archive, path: string): Promise<SharedTexts> {
  const texts = new SharedTexts(archive.sizeOf(path));
  let runs = new Runs();
  await readPart(archive, path, {
    open(name) {
      if (name === 'si') runs = new Runs();
      runs.open(name);
    },
    text: (text) => runs.text(text),
    close(name) {
      runs.close(name);
      if (name === 'si') texts.add(runs.all);
    },
  });
  return texts;
}

async function readPart(archive: Archive, path: string, handlers: Partial<XmlHandlers>): Promise<void> {
  const xml = new XmlReader({ open() {}, text() {}, close() {}, ...handlers });
  let isEmpty = true;
  for await (const bytes of archive.read(path)) {
    isEmpty = false;
    assertRead(() => xml.write(bytes), path);
  }
  if (!isEmpty) assertRead(() => xml.end(), path);
}

/** @throws OperatorError when a part cannot be read. */
function assertRead(read: () => void, path: string): void {
  const fault = faultOf(read, path);
  if (fault !== undefined) throw fault;
}

function faultOf(read: () => void, path: string): OperatorError | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    if (!(error instanceof Damage)) throw error;
    return new OperatorError(`The workbook is damaged (${path}: ${error.message}): save it again.`);
  }
}
