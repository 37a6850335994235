// Workbooks as spreadsheet programs write them, archives, and those that are damaged or made to do harm.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { fromBufferPromise } from 'yauzl';
import type { Book } from '../../conformance/service.ts';
import { OperatorError } from '../../src/operator-error.ts';
import { booksOf, fill, tagOf } from '../support/books.ts';
import { inShort, type Options, PIECE_SIZES, read, refusalsOf } from '../support/files.ts';
import { command, folderWith } from '../support/importing.ts';
import { SQLITE, STORES, startTestService } from '../support/service.ts';
import { archiveOf, partsOf, rowOf, sheetOf, workbookOf } from '../support/workbook.ts';

const HEADER = rowOf('Title', 'Author', 'Year');

describe('a workbook is read', () => {
  test('as Excel and LibreOffice write it: texts that cells share, numbers, dates, formulas and gaps', async () => {
    const shared = [
      '<si><t>Title</t></si><si><t>Author</t></si><si><t>Year</t></si>',
      '<si><r><t>The </t></r><r><rPr><b/></rPr><t xml:space="preserve">Hobbit </t></r></si>',
      '<si><t>東京</t><rPh sb="0" eb="2"><t>トウキョウ</t></rPh></si><si><t>a_x000D_\nb_x005F_x0041_</t></si>',
    ];
    const styles = `<numFmts><numFmt numFmtId="164" formatCode="yyyy&quot; m&quot;"/><numFmt numFmtId="165" formatCode="[Red]0&quot; days&quot;"/></numFmts>
      <cellStyleXfs><xf numFmtId="14"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="164"/><xf numFmtId="165"/></cellXfs>`;
    const rows = `
      <row r="2"><c r="B2" t="s"><v>0</v></c><c r="C2" t="s"><v>1</v></c><c r="E2" t="s"><v>2</v></c></row>
      <row r="3" hidden="1"><c r="B3" t="s"><v>3</v></c><c r="E3"><v>1937</v></c></row>
      <row r="5"><c r="B5" t="s"><v>4</v></c><c r="C5" t="str"><f>A1&amp;"x"</f><v>Basho_x0021_</v></c><c r="E5" s="1"><v>35611.75</v></c></row>
      <row r="6"><c r="B6"><v>1984</v></c><c r="E6" s="2"><v>1</v></c></row>
      <row r="7"><c r="B7" t="b"><v>1</v></c><c r="E7" s="3"><v>1.9E3</v></c></row>
      <row r="8"><c r="B8" t="s"><v>5</v></c><c r="E8" t="d"><v>1997-05-03T00:00:00</v></c></row>
      <row r="9"><c r="B9" s="1"/><c r="C9" s="1"/></row>
      <row r="10"><c r="B10"><f>CONCAT(C1)</f><v/></c><c r="C10" t="s"><v/></c><c r="E10" s="1"><v>-21550</v></c></row>
      <row r="11"><c r="B11" t="str"><v>Emma</v></c><c r="E11" t="e"><v>#N/A</v></c><c r="F11"><v>7</v></c></row>
      <row r="12"><c r="B12"><f t="shared" si="0"/></c><c r="C12" t="inlineStr"><is><t>_xD800_</t></is></c><c r="E12" t="b"><v>true</v></c><c r="XFD12" s="1"/></row>`;
    const file = await workbookOf(rows, { shared: shared.join(''), styles });
    for (const size of PIECE_SIZES) {
      const found = await read(file, { name: 'a.xlsx' }, [size]);
      assert.deepEqual(inShort(found), [
        '3 The Hobbit //1937',
        '5 東京/Basho!/1997',
        '6 1984//1900',
        '7 TRUE//1900',
        '8 a\r\nb_x0041_//1997',
        '10 =CONCAT(C1)//1840',
      ]);
      assert.deepEqual(refusalsOf(found), [
        '11 has 6 fields, the header has 5',
        '12 Year "TRUE" cannot be read as a year',
      ]);
      assert.deepEqual([found.reading.sheet, found.reading.sheets], ['Books', ['Books']]);
    }
  });

  test('with the dates of 1904, names with prefixes, no places, and what stands above its header', async () => {
    const rows = `<x:row><x:c t="inlineStr"><x:is><x:t>My books, all of them,&#10;and more</x:t></x:is></x:c></x:row>
      <x:row><x:c t="inlineStr"><x:is><x:t>Title</x:t></x:is></x:c><x:c t="inlineStr"><x:is><x:t><![CDATA[Ye]]>ar</x:t></x:is></x:c></x:row>
      <x:row><x:c t="inlineStr"><x:is><x:t>Emma, in&#10;two lines</x:t></x:is></x:c><x:c s="1"><x:v>34149</x:v></x:c></x:row>`;
    const sheet = `<x:worksheet xmlns:x="urn:a"><x:sheetData>${rows}</x:sheetData><x:controls><y:row r="0">7</y:row></x:controls></x:worksheet>`;
    const styles = '<cellXfs><xf/><xf numFmtId="14"/></cellXfs>';
    const settings = '<workbookPr date1904="1"/>';
    const { 'xl/workbook.xml': main = '', ...parts } = partsOf({ Books: sheet }, { styles, settings });
    const file = await archiveOf({ ...parts, 'XL/Workbook.xml': main });
    const found = await read(file);
    assert.deepEqual(inShort(found), ['3 Emma, in\ntwo lines//1997']);
    assert.equal(found.reading.above, '"My books, all of them,\nand more"\n');
    assert.deepEqual(inShort(await read(file, { fromLine: 2 })), ['3 Emma, in\ntwo lines//1997']);
  });

  test('whose rejected rows are rows of CSV, which say what is wrong', async () => {
    const rows = `${HEADER}${rowOf('Kim', 'a, "b"', '1901-1902')}${rowOf('Emma', '', '1815')}`;
    const [url, folder] = [await SQLITE.freshUrl(), folderWith({})];
    writeFileSync(join(folder, 'a.xlsx'), await workbookOf(rows));
    const { code, stderr } = await command('import a.xlsx', url, folder);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^a\.xlsx: a workbook, sheet "Books", title from "Title", .*\na\.xlsx:2: Year "1901-1902" cannot be read as a year\n/,
    );
    const rejects =
      '"Title","Author","Year",refused\n"Kim","a, ""b""","1901-1902","Year: cannot be read as a year"\n';
    assert.equal(readFileSync(join(folder, 'a.rejects.csv'), 'utf8'), rejects);
    writeFileSync(join(folder, 'a.rejects.csv'), rejects.replace('1901-1902', '1901'));
    assert.equal((await command('import a.rejects.csv', url, folder)).code, 0);
    assert.deepEqual(
      (await booksOf(url)).map(({ title, author, year }) => `${title}/${author}/${year}`),
      ['Emma//1815', 'Kim/a, "b"/1901'],
    );
  });
});

describe('the sheet of a workbook', () => {
  const NOTES = sheetOf(rowOf('Dear reader'));
  const one = sheetOf(HEADER + rowOf('Emma', '', '1815'));
  const two = sheetOf(HEADER + rowOf('Kim', '', '1901'));

  test('is the one with books, hidden ones aside; of several, a person chooses', async () => {
    const titles = async (sheets: Record<string, string>, options: Options = {}) =>
      inShort(await read(await archiveOf(partsOf(sheets)), options));
    assert.deepEqual(await titles({ Notes: NOTES, Fiction: one, '-Old': two }), ['2 Emma//1815']);
    assert.deepEqual(await titles({ '-Old': two }), ['2 Kim//1901']);
    assert.deepEqual(await titles({ A: one, B: two, '-C': two }, { sheet: 'B' }), ['2 Kim//1901']);
    assert.deepEqual(await titles({ A: one, '-C': two }, { sheet: 'C' }), ['2 Kim//1901']);
    await assert.rejects(titles({ A: one, Notes: NOTES, B: two }), {
      message: 'Several sheets have books: A, B. Choose one with --sheet.',
    });
    await assert.rejects(titles({ A: one, B: two }, { sheet: 'b' }), {
      message: 'There is no sheet "b": the sheets are A, B.',
    });
    await assert.rejects(titles({ A: NOTES, B: NOTES }), OperatorError);
    await assert.rejects(titles({ A: one }, { format: 'json' }), {
      message: 'The file is a workbook: leave out --format json.',
    });
    for (const options of [{ format: 'xlsx' }, { sheet: 'A' }])
      await assert.rejects(read('title\nEmma\n', options), {
        message: 'The file is not a workbook: leave out --format xlsx and --sheet.',
      });
  });

  test('M3: is named in the report; a check takes the first one with books, an import none', async (context) => {
    const service = await startTestService(await SQLITE.freshUrl());
    context.after(() => service.stop());
    const body = await archiveOf(partsOf({ Notes: NOTES, A: one, B: two }));
    const send = (query: string) => service.client.request('POST', `/import?name=a.xlsx${query}`, { body });
    const checked = await send('&dry-run');
    assert.deepEqual([checked.status, checked.message], [200, 'File checked']);
    const { file, options, rejects } = checked.data;
    assert.deepEqual(
      [file.format, file.sheet, file.sheets, file.delimiter, options, rejects.name],
      ['xlsx', 'A', ['Notes', 'A', 'B'], null, { sheet: 'A' }, 'a.rejects.csv'],
    );
    const unasked = await send('');
    assert.deepEqual(
      [unasked.status, unasked.message, unasked.data.fault.code],
      [400, 'Invalid file', 'option'],
    );
    assert.equal((await send('&sheet=B')).data.figures.new, 1);
    assert.deepEqual(
      (await booksOf(service.dbUrl)).map(({ title }) => title),
      ['Kim'],
    );
  });
});

/** Texts that spreadsheets would take for something else, or that XML cannot have. */
const TEXTS = [
  ...[
    '=HYPERLINK("http://a.test","b")',
    '+1',
    '-ism',
    '@home',
    ' =1+1',
    '007',
    '1984',
    '1/2',
    '5 May',
    'TRUE',
    '#REF!',
    "'a'",
  ],
  ...[
    'a\r\nb',
    'a\nb\tc',
    '\r',
    '\u0001\u001f',
    '_x0041_',
    '_x0041\r\n',
    '_x0041\u0001',
    '_x000D_',
    '<b>&amp;"',
    ' blanks ',
    '',
    '\u2028\u0085\ufffe\uffff',
    'é雪😀',
  ],
];
const YEARS = [0, -1, 1815, -9_007_199_254_740_991, 9_007_199_254_740_991];
const ODD = TEXTS.map((title, at) => {
  return { id: 1 + 3 * at, title, author: TEXTS.at(-1 - at) ?? '', year: YEARS[at % 5] ?? 0 };
});

describe('a workbook is written', () => {
  for (const { name, freshUrl } of STORES)
    test(`with the same bytes from ${name}, and read again it has the same books`, async () => {
      const [url, other, folder] = [await freshUrl(), await SQLITE.freshUrl(), folderWith({})];
      await fill(url, ODD);
      const exported = await command('export a.xlsx', url, folder);
      assert.deepEqual(exported, {
        code: 0,
        stdout: '',
        stderr: `${ODD.length} books exported to a.xlsx.\n`,
      });
      const found = readFileSync(join(folder, 'a.xlsx'));
      assert.equal(
        `${await entryOf(found, 'xl/worksheets/sheet1.xml')}`.split('<sheetData>')[1],
        `${rowsOf(ODD)}</sheetData></worksheet>`,
      );
      const { code, stderr } = await command('import a.xlsx', other, folder);
      assert.equal(code, 0, stderr);
      assert.deepEqual(await booksOf(other), ODD);
    });

  test('but not with a text that no cell holds: the command says so', async () => {
    const [url, folder] = [await SQLITE.freshUrl(), folderWith({})];
    const book = { id: 7, title: 'x'.repeat(32_768), author: '', year: 0 };
    await fill(url, [book]);
    const message =
      'Nothing was exported: the title of book 7 is longer than 32767 characters, the most that a cell holds.\n';
    assert.deepEqual(await command('export a.xlsx', url, folder), { code: 1, stdout: '', stderr: message });
    await fill(url, [{ ...book, title: book.title.slice(1) }]);
    assert.equal((await command('export a.xlsx', url, folder)).code, 0);
  });
});

test('an archive with one file is read as that file, also a workbook, and one within another', async () => {
  const csv = 'title,year\nEmma,1815\n';
  const zipped = await archiveOf({ '__MACOSX/._b.csv': 'x', 'books/b.csv': csv });
  for (const [file, name] of [
    [gzipSync(csv), 'b.csv.gz'],
    [zipped, 'b.zip'],
    [gzipSync(zipped), 'b.zip.gz'],
    [
      await archiveOf({ 'b.xlsx': await workbookOf(rowOf('title', 'year') + rowOf('Emma', '1815')) }),
      'b.zip',
    ],
    [gzipSync('[{"title":"Emma","year":1815}]'), 'b.json.gz'],
  ] as const)
    for (const size of PIECE_SIZES) {
      const found = await read(file, { name }, [size]);
      assert.deepEqual(
        inShort(found).map((text) => text.slice(2)),
        ['Emma//1815'],
      );
      const { position } = found.batches.at(-1) ?? {};
      assert.equal(position, file.length, name);
    }
});

describe('a file is refused in one sentence', () => {
  const refuse = async (file: Buffer, message: RegExp) => {
    const fault = await read(file).then(
      (found) => found.fault,
      (error: unknown) => {
        if (error instanceof OperatorError) return error.message;
        throw error;
      },
    );
    assert.match(`${fault}`, message);
  };
  const rows = HEADER + rowOf('Emma', '', '1815');

  test('if it is damaged', async () => {
    const file = await workbookOf(rows);
    await refuse(file.subarray(0, -30), /^The file is damaged \(.*\): save it again\.$/);
    await refuse(
      gzipSync('title\n'.repeat(9)).subarray(0, -9),
      /^The file is damaged \(.*\): save it again\.$/,
    );
    const bytes = Buffer.from(await archiveOf({ 'b.csv': `title\n${'Emma '.repeat(99)}\n` }));
    bytes.writeUInt32LE(7, bytes.lastIndexOf('PK\x01\x02') + 16);
    await refuse(bytes, /^The file is damaged \(the checksum of b\.csv is wrong\): save it again\.$/);
    for (const wrong of [
      '<row r="2"/><row r="2"/>',
      '<row r="1048577"/>',
      '<row r="a"/>',
      '<row><c r="XFD1"><v>1</v></c></row>',
      '<a>'.repeat(101) + '</a>'.repeat(101),
      '<row><c r="B1"/><c r="A1"/></row>',
      '<row><c t="s"><v>9</v></c></row>',
      '<row>&nope;</row>',
      '</row>',
      '<row>',
    ])
      await refuse(
        await workbookOf(wrong),
        /^The workbook is damaged \(xl\/worksheets\/s0\.xml: .*\): save it again\.$/,
      );
    const entities = '<!DOCTYPE a [<!ENTITY a "b"><!ENTITY c "&a;&a;">]>';
    const sheet = sheetOf(rows).replace('<worksheet', `${entities}<worksheet`);
    await refuse(await archiveOf(partsOf({ A: sheet })), /it has a document type/);
  });

  test('if it has several files, none, or archives without end', async () => {
    await refuse(
      await archiveOf({ 'a.csv': 'title\n', 'b.csv': 'title\n' }),
      /^The archive has 2 files: unpack it/,
    );
    await refuse(await archiveOf({ 'a/.b': '' }), /^The archive has 0 files: unpack it/);
    await refuse(
      await archiveOf({ '[Content_Types].xml': '', 'a.bin': '' }),
      /^The file is of another Office format: open it in/,
    );
    let deep = Buffer.from('title\nEmma\n');
    for (let depth = 0; depth < 4; depth += 1) deep = gzipSync(deep);
    await refuse(deep, /^The file has archives within archives: unpack it\.$/);
  });

  test('if it unpacks to far more than its size, without the time or the memory for that', async () => {
    const zeros = Buffer.alloc(80 * 1024 * 1024, '\n');
    const tooLarge = /^The file unpacks to more than 200 times its size/;
    await refuse(gzipSync(zeros), tooLarge);
    await refuse(await archiveOf({ 'a.csv': zeros }), tooLarge);
    const parts = partsOf({ A: '' });
    await refuse(await archiveOf({ ...parts, 'xl/worksheets/s0.xml': zeros }), tooLarge);
    const endless = sheetOf(`<row><c t="str"><v>${'x'.repeat(5 * 1024 * 1024)}`);
    await refuse(
      await archiveOf({ ...parts, 'xl/worksheets/s0.xml': endless }),
      /a text or a tag of it does not end/,
    );
  });
});

function rowsOf(books: readonly Book[]): string {
  const signs: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };
  const escaped = (text: string) =>
    text
      .replaceAll(/[&<>]/g, (sign) => `${signs[sign]}`)
      .replaceAll(/_(?=x[0-9A-F]{4}(?:_|[^ -\ufffd\t\n]))/g, '_x005F_')
      .replaceAll(
        /[^ -\ufffd\t\n]/g,
        (sign) => `_x${sign.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}_`,
      );
  const text = (place: string, value: string, style = 1) =>
    `<c r="${place}" s="${style}" t="inlineStr"><is><t xml:space="preserve">${value}</t></is></c>`;
  const head = ['id', 'title', 'author', 'year', 'etag'].map((name, at) => text(`${'ABCDE'[at]}1`, name, 2));
  const rows = books.map((book, at) => {
    const row = at + 2;
    const year =
      Math.abs(book.year) < 1e15 ? `<c r="D${row}"><v>${book.year}</v></c>` : text(`D${row}`, `${book.year}`);
    const cells = [
      `<c r="A${row}"><v>${book.id}</v></c>`,
      text(`B${row}`, escaped(book.title)),
      text(`C${row}`, escaped(book.author)),
      year,
      text(`E${row}`, `"${tagOf(book)}"`),
    ];
    return `<row r="${row}">${cells.join('')}</row>`;
  });
  return `<row r="1">${head.join('')}</row>${rows.join('')}`;
}

async function entryOf(file: Buffer, name: string): Promise<Buffer> {
  const zip = await fromBufferPromise(file, { autoClose: false });
  for await (const entry of zip.eachEntry())
    if (entry.fileName === name) return buffer(await zip.openReadStreamPromise(entry));
  throw new Error(`there is no ${name}`);
}
