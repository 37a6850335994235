// Owns: the text that a file is read as: its own, that of the one file in a gzip file or a ZIP archive, or the table of a workbook.

import { InvalidOption, OperatorError } from '../operator-error.ts';
import { counted } from '../terminal/counted.ts';
import { Archive, isGzip, isZip, unzipped } from './archive.ts';
import { inShort } from './columns.ts';
import { csv } from './csv.ts';
import { assertNotForeign, SPREADSHEET, textOfBytes } from './foreign.ts';
import type { Format, ReadingOptions } from './format.ts';
import { TextInput } from './text-input.ts';
import { type Sheet, Workbook } from './workbook-reader.ts';

/** Bytes that show the format of a file, also of a text. */
const BEGINNING = 8 * 1024;

/** Files within each other: a workbook in an archive in another one. */
const DEEPEST = 3;

/** What file systems add to an archive. */
const HIDDEN = /(?:^|\/)(?:__MACOSX\/|\.[^/]|Thumbs\.db$|desktop\.ini$)/;

/** Several sheets have books, and none is chosen. */
export class SeveralSheets extends InvalidOption {
  readonly names: readonly string[];

  constructor(names: readonly string[]) {
    super(`Several sheets have books: ${inShort(names)}. Choose one with --sheet.`);
    this.names = names;
  }
}

export interface FileText {
  readonly bytes: AsyncIterable<Uint8Array>;
  /** The name of the file that has it. */
  readonly name: string;
  /** How many bytes of the outermost file were read so far; undefined if it has the text itself. */
  readonly position?: () => number;
  /** Of a workbook. */
  readonly table?: { readonly sheet: string; readonly sheets: readonly string[] };
}

/** Reads the table of a workbook as the CSV that it is given as. Its rejected records become a file of CSV. */
export const workbook: Format = {
  ...csv,
  name: 'xlsx',
  title: 'a workbook',
  recognise: () => false,
  async read(input, options) {
    const { delimiter: _, ...reading } = await csv.read(input, { ...options, delimiter: ',' });
    return { ...reading, format: workbook };
  },
};

/** @throws OperatorError when the file has no text that can be read; SeveralSheets */
export async function unpack(
  bytes: AsyncIterable<Uint8Array>,
  options: ReadingOptions,
  depth = 0,
): Promise<FileText> {
  const { name } = options;
  const { beginning, all, count } = await peek(bytes);
  if (!isGzip(beginning) && !isZip(beginning)) return { bytes: all, name };
  if (depth === DEEPEST) throw new OperatorError('The file has archives within archives: unpack it.');
  if (isGzip(beginning)) {
    const inner = { ...options, name: name.replace(/\.gz$/i, '') };
    return { ...(await unpack(unzipped(all), inner, depth + 1)), position: count };
  }
  assertNotForeign(textOfBytes(beginning));
  const archive = await Archive.open(all);
  const found = await Workbook.open(archive);
  if (found !== undefined) return tableOf(found, options, count());
  if (archive.names.includes('[Content_Types].xml'))
    throw new OperatorError(`The file is of another Office format: ${SPREADSHEET}.`);
  const names = archive.names.filter((one) => !HIDDEN.test(one));
  const [only] = names;
  if (only === undefined || names.length > 1)
    throw new OperatorError(
      `The archive has ${counted(names.length, 'file')}: unpack it, and import the one with the books.`,
    );
  const part = progressIn(count(), archive.sizeOf(only));
  const inner = await unpack(watched(archive.read(only), part.add), { ...options, name: only }, depth + 1);
  return { ...inner, position: part.position };
}

async function tableOf(found: Workbook, options: ReadingOptions, size: number): Promise<FileText> {
  const shown = found.sheets.filter(({ isHidden }) => !isHidden);
  const sheets = shown.length > 0 ? shown : found.sheets;
  const sheet = await chosen(found, sheets, options);
  const part = progressIn(size, found.sizeOf(sheet));
  return {
    bytes: found.rows(sheet, part.add),
    name: options.name,
    position: part.position,
    table: { sheet: sheet.name, sheets: namesOf(sheets) },
  };
}

/** The sheet that a person has chosen, or the only one with books; the first one if none has. */
async function chosen(found: Workbook, sheets: readonly Sheet[], options: ReadingOptions): Promise<Sheet> {
  const wanted = found.sheets.find(({ name }) => name === options.sheet);
  if (options.sheet !== undefined && wanted === undefined)
    throw new InvalidOption(
      `There is no sheet "${options.sheet}": the sheets are ${inShort(namesOf(sheets))}.`,
    );
  if (wanted !== undefined || sheets.length === 1) return wanted ?? (sheets[0] as Sheet);
  const withBooks: Sheet[] = [];
  for (const sheet of sheets) if (await hasBooks(found, sheet, options)) withBooks.push(sheet);
  if (withBooks.length > 1) throw new SeveralSheets(namesOf(withBooks));
  return withBooks[0] ?? (sheets[0] as Sheet);
}

/** Whether the first rows of a sheet have a header with a title, and a book. */
async function hasBooks(found: Workbook, sheet: Sheet, options: ReadingOptions): Promise<boolean> {
  const input = await TextInput.open(found.rows(sheet), 'utf-8', true);
  try {
    return (await workbook.read(input, options)).first.length > 0;
  } catch (error) {
    if (error instanceof OperatorError) return false;
    throw error;
  } finally {
    await input.close();
  }
}

/** How many bytes of a file were read, of which a part is read that has another size. */
function progressIn(size: number, whole: number) {
  let read = 0;
  const add = (bytes: number) => {
    read += bytes;
  };
  return { add, position: () => Math.min(size, Math.round((size * read) / Math.max(1, whole))) };
}

async function* watched(
  bytes: AsyncIterable<Uint8Array>,
  onRead: (bytes: number) => void,
): AsyncGenerator<Uint8Array, void, void> {
  for await (const piece of bytes) {
    onRead(piece.length);
    yield piece;
  }
}

/** The beginning of a file, all of it, and how many of its bytes were read so far. */
async function peek(bytes: AsyncIterable<Uint8Array>) {
  let read = 0;
  const rest = watched(bytes, (length) => {
    read += length;
  });
  const pieces: Uint8Array[] = [];
  while (read < BEGINNING) {
    const { value, done } = await rest.next();
    if (done) break;
    pieces.push(value);
  }
  const beginning = Buffer.concat(pieces);
  async function* all() {
    if (beginning.length > 0) yield beginning;
    yield* rest;
  }
  return { beginning, all: all(), count: () => read };
}

const namesOf = (sheets: readonly Sheet[]) => sheets.map(({ name }) => name);
