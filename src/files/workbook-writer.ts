// Owns: how books are written into a workbook (.xlsx: ECMA-376, Office Open XML), so that no text becomes a formula, a number or a
// date, neither when it is opened nor when it is corrected.
// Does not: shorten a text or leave a book out. A workbook that cannot hold them ends with BeyondFormat.

import { Readable } from 'node:stream';
import { ZipFile } from 'yazl';
import { type Book, FIELD_NAMES, valuesOf } from '../books/book.ts';
import { tagOf } from '../books/condition.ts';
import { ETAG } from './columns.ts';

/** A format cannot hold a book. The message says which and why, for people. */
export class BeyondFormat extends Error {}

export const WORKBOOK_TYPE = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet';

/** Rows of a sheet, and UTF-16 code units of a cell, in Excel and LibreOffice. */
const ROWS = 1_048_576;
const CELL = 32_767;

/** Numbers below have 15 digits, all that spreadsheets keep; others are texts. */
const PRECISE = 1e15;

/** Bytes of a sheet as XML: more would need ZIP64, which Excel does not read everywhere. */
const SHEET = 2 ** 32 - 2 ** 24;

/** In a ZIP file, a time has no time zone. One that is always the same makes files that are. */
const OPTIONS = { mtime: new Date(1980, 0, 1), forceDosTimestamp: true, mode: 0o100644 };

const XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
const OFFICE = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';
const PACKAGE = 'http://schemas.openxmlformats.org/package/2006';
const MAIN = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main';
const CONTENT = 'application/vnd.openxmlformats-officedocument.spreadsheetml';

/** Styles: of years and ids, of texts (the number format 49 is `@`, text), and of the header. */
const [TEXT, HEAD] = [1, 2];

const COLUMNS = ['id', ...FIELD_NAMES, ETAG] as const;
const WIDTHS = { id: 8, title: 50, author: 30, year: 8, [ETAG]: 27 };
const LETTERS = Array.from(COLUMNS, (_, index) => String.fromCharCode('A'.charCodeAt(0) + index));

/** All but the sheet, by their paths. */
const PARTS = {
  '[Content_Types].xml': `<Types xmlns="${PACKAGE}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType="${CONTENT}.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="${CONTENT}.worksheet+xml"/><Override PartName="/xl/styles.xml" ContentType="${CONTENT}.styles+xml"/></Types>`,
  '_rels/.rels': `<Relationships xmlns="${PACKAGE}/relationships"><Relationship Id="rId1" Type="${OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
  'xl/workbook.xml': `<workbook xmlns="${MAIN}" xmlns:r="${OFFICE}"><sheets><sheet name="Books" sheetId="1" r:id="rId1"/></sheets></workbook>`,
  'xl/_rels/workbook.xml.rels': `<Relationships xmlns="${PACKAGE}/relationships"><Relationship Id="rId1" Type="${OFFICE}/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="rId2" Type="${OFFICE}/styles" Target="styles.xml"/></Relationships>`,
  'xl/styles.xml': `<styleSheet xmlns="${MAIN}"><fonts count="2"><font><sz val="11"/><name val="Calibri"/></font><font><b/><sz val="11"/><name val="Calibri"/></font></fonts><fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills><borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="3"><xf xfId="0"/><xf numFmtId="49" applyNumberFormat="1" xfId="0"/><xf fontId="1" applyFont="1" xfId="0"/></cellXfs><cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>`,
};

const isText = (name: string) => name !== 'id' && name !== 'year';
const columns = COLUMNS.map((name, index) => {
  const style = isText(name) ? ` style="${TEXT}"` : '';
  return `<col min="${index + 1}" max="${index + 1}" width="${WIDTHS[name]}" customWidth="1"${style}/>`;
});

/** The header stays in view. The cells of a column for texts are texts, also below the last book. */
const BEFORE = `<worksheet xmlns="${MAIN}"><sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews><cols>${columns.join('')}</cols><sheetData>`;
const AFTER = '</sheetData></worksheet>';

/** The chunks of a workbook with one sheet. @throws BeyondFormat */
export async function* writeWorkbook(
  batches: AsyncIterable<readonly Book[]>,
): AsyncGenerator<Uint8Array, void, void> {
  const zip = new ZipFile();
  const output = zip.outputStream as Readable;
  for (const [path, xml] of Object.entries(PARTS)) zip.addBuffer(Buffer.from(XML + xml), path, OPTIONS);
  const sheet = Readable.from(sheetOf(batches), { objectMode: false });
  sheet.on('error', (error) => output.destroy(error));
  zip.addReadStream(sheet, 'xl/worksheets/sheet1.xml', OPTIONS);
  zip.end();
  try {
    yield* output;
  } finally {
    sheet.destroy();
  }
}

async function* sheetOf(batches: AsyncIterable<readonly Book[]>): AsyncGenerator<string, void, void> {
  yield XML +
    BEFORE +
    rowOf(
      1,
      COLUMNS.map((name, index) => textCell(name, index, 1, HEAD)),
    );
  let row = 1;
  let bytes = 0;
  for await (const books of batches) {
    let rows = '';
    for (const book of books) {
      row += 1;
      if (row > ROWS) throw new BeyondFormat(`a workbook holds ${ROWS - 1} books at most`);
      rows += rowOf(row, cellsOf(book, row));
    }
    bytes += Buffer.byteLength(rows);
    if (bytes > SHEET) throw new BeyondFormat('a workbook holds 4 GiB of text at most');
    yield rows;
  }
  yield AFTER;
}

function rowOf(row: number, cells: readonly string[]): string {
  return `<row r="${row}">${cells.join('')}</row>`;
}

function cellsOf(book: Book, row: number): string[] {
  return [book.id, ...valuesOf(book), `"${tagOf(book)}"`].map((value, index) => {
    if (typeof value === 'number' && Math.abs(value) < PRECISE)
      return `<c r="${LETTERS[index]}${row}"><v>${value}</v></c>`;
    const text = `${value}`;
    if (text.length <= CELL) return textCell(text, index, row, TEXT);
    throw new BeyondFormat(
      `the ${COLUMNS[index]} of book ${book.id} is longer than ${CELL} characters, the most that a cell holds`,
    );
  });
}

function textCell(text: string, index: number, row: number, style: number): string {
  return `<c r="${LETTERS[index]}${row}" s="${style}" t="inlineStr"><is><t xml:space="preserve">${escaped(text)}</t></is></c>`;
}

/** Signs that XML cannot have, or would change, and texts that look like such a sign: `_x000D_` (ST_Xstring). */
const UNWRITABLE = /[^\t\n -\ufffd]|_(?=x[\dA-Fa-f]{4}(?:_|[^\t\n -\ufffd]))/g;

function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll(UNWRITABLE, (sign) => `_x${sign.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}_`);
}
