// How the page understands a file of books, and which of its rows it offers for import, in Node.js.

import assert from 'node:assert/strict';
import { openAsBlob, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { booksOf } from '../support/books.ts';
import { runCommand } from '../support/command.ts';
import { pathTo } from '../support/repository.ts';
import { SQLITE, temporaryFolder } from '../support/service.ts';

type Listener = (event: { readonly data: unknown }) => void;

let workers = 0;

/** A worker of this process: its program listens and answers through the global object. */
class WorkerHere {
  readonly #listener = Promise.withResolvers<Listener>();
  #answered: Listener = () => {};

  constructor(program: string) {
    Object.assign(globalThis, {
      addEventListener: (_: string, listener: Listener) => this.#listener.resolve(listener),
      postMessage: (data: unknown) => this.#answered({ data }),
    });
    workers += 1;
    const source = program.replace(/\.js$/, '.ts'); // of which the program is built
    import(`${source}?${workers}`).catch(this.#listener.reject);
  }

  addEventListener(type: string, listener: Listener): void {
    if (type === 'message') this.#answered = listener;
  }

  async postMessage(data: unknown): Promise<void> {
    (await this.#listener.promise)({ data });
  }
}

Object.assign(globalThis, { Worker: WorkerHere });
// By its path, and so without its types, which need those of a browser.
const { ImportFile } = await import(pathTo('page/import/file.ts'));

type Content = string | Buffer;
type Titled = { readonly title: string };

/** Chooses a file, and reads it. */
async function choose(name: string, content: Content, choices = {}) {
  const file = new ImportFile(new File([Buffer.from(content as string)], name), () => {});
  return { file, understood: await file.ask('read', file.file, { columns: {}, ...choices }) };
}

/** The books that would be stored, a few at a time. */
async function wantedOf(file: InstanceType<typeof ImportFile>, wanted = {}): Promise<Titled[]> {
  const some = { books: 9, text: 200 };
  const next = () => file.ask('next', { isAll: false, isDoubtfulToo: false, ...wanted }, some);
  const books: Titled[] = [];
  for (let more = await next(); more.length > 0; more = await next()) {
    assert.ok(more.length < 10);
    books.push(...more);
  }
  return books;
}

const titlesOf = (books: readonly Titled[]) => books.map(({ title }) => title);

const YEARS = ['', '1999', '2008.0', 'c1997', '750 BC', '1997-1998', '[1524?]', 'June 26, 1997', 'x', '-44'];
const TITLES = [
  'plain',
  '"with ""quotes"" and\nlines\r\n"',
  "L'Étranger 😀 שלום",
  ' blank ',
  '',
  '"<b>"',
  'a"b',
];

/** Everything that a file of CSV may have. */
const TRICKY = [
  'Year Published,"Title",Authors,original_publication_year,Title,"empty ""name"""',
  ...YEARS.flatMap((year) =>
    TITLES.flatMap((title) => [`1900,${title},Somebody,${year},other,`, `,${title},,${year},other,"x"`]),
  ),
  ...[',,,,,', '1900,title,too few', '1900,title,a,2000,b,c,too many', '"text"after,a,b,1,c,d'],
  '1900,"never closed',
].join('\r\n');

test('a file has the same books and rejected rows as with the command import, but for blanks around a text', async () => {
  const [path, rejects] = ['tricky.csv', 'rejects.csv'].map((name) => join(temporaryFolder(), name));
  writeFileSync(path as string, TRICKY);
  const url = await SQLITE.freshUrl();
  await runCommand(['import', path as string, '--rejects', rejects as string], { DB_URL: url });
  const stored = (await booksOf(url)).map(({ title, author, year }) => {
    return { title: title.trim(), author: author.trim(), year };
  });
  const { file } = await choose('tricky.csv', TRICKY);
  assert.deepEqual(await wantedOf(file, { isDoubtfulToo: true }), stored);
  const refused = await file.ask('refusedFile');
  assert.deepEqual([refused.name, refused.type], ['tricky.rejects.csv', 'text/csv']);
  assert.equal(await refused.text(), readFileSync(rejects as string, 'utf8'));
});

const ELSEWHERE = { title: 'Cien años de soledad', author: 'García Márquez', year: 1967 };
const ROW = Object.values(ELSEWHERE);
const FORMS: readonly (readonly [name: string, content: Content, understood: object])[] = [
  ['a.csv', `title;author;year\n${ROW.join(';')}\n`, { delimiter: ';', encoding: 'UTF-8' }],
  [
    'windows.csv',
    Buffer.from(`title;author;year\n${ROW.join(';')}`, 'latin1'),
    { delimiter: ';', encoding: 'Windows-1252' },
  ],
  [
    'excel.txt',
    Buffer.from(`\ufefftitle\tauthor\tyear\r\n${ROW.join('\t')}`, 'utf16le'),
    { delimiter: '\t', encoding: 'UTF-16' },
  ],
  ['a.json', JSON.stringify([ELSEWHERE]), { format: 'json', delimiter: undefined }],
  ['a.jsonl', JSON.stringify(ELSEWHERE), { format: 'jsonl' }],
  ['a.csv', `id,title,author,year\n77,${ROW.join()}\n`, { hasIds: true }],
];

test('a file of any form and encoding is understood', async () => {
  for (const [name, content, expected] of FORMS) {
    const { file, understood } = await choose(name, content);
    assert.deepEqual(understood, { ...understood, ...expected, first: [ELSEWHERE], rows: 1 }, name);
    assert.deepEqual(await wantedOf(file), [ELSEWHERE]);
  }
});

test('a file that cannot be read is refused in words; one that breaks off is read until there', async () => {
  for (const [name, content, complaint] of [
    ['noise.csv', Buffer.from([0xff, 0xd7, 0xff, 0, 0, 1, 2, 3]), /^This file is not text/],
    ['books.csv', 'PK\u0003\u0004', /^The file is an archive \(ZIP or gzip\): unpack it/],
    [
      'books.xls',
      '<html><table><tr><td>Title</td></tr></table>',
      /^The file is a web page .* save it as CSV/,
    ],
    ['half.csv', Buffer.from('title\n', 'utf16le'), /^This file is not text/],
    ['empty.csv', '', /The file is empty/],
    ['books.json', 'title\n', /books.json is not JSON/],
    ['cut.json', '[{"title":"a"},{"title', /^The array is malformed: /],
  ] as const) {
    await assert.rejects(choose(name, content), { message: complaint }, name);
  }
  const { file, understood } = await choose('books.csv', `title\na\n"${'b'.repeat(17 * 1024 * 1024)}`);
  assert.match(understood.fault, /^The record that begins in line 3 has more than 16 MiB/);
  assert.deepEqual(titlesOf(await wantedOf(file)), ['a']);
});

test('the first row is a book if a cell of it is a year; otherwise only a person can tell', async () => {
  const [withYear, without] = ['Emma,Jane Austen,1815\nIt,,1986', 'Emma,Jane Austen\nIt,'];
  const seen = async (...chosen: Parameters<typeof choose>) => {
    const { understood } = await choose(...chosen);
    return [understood.firstRow?.[0], understood.hasHeader, titlesOf(understood.first)];
  };
  const byNumber = { title: 'column 1' };
  assert.deepEqual(await seen('a.csv', withYear), ['Emma', false, []]);
  assert.deepEqual(await seen('a.csv', withYear, { hasHeader: false, columns: byNumber }), [
    undefined,
    false,
    ['Emma', 'It'],
  ]);
  assert.deepEqual(await seen('a.csv', without), ['Emma', undefined, []]);
  assert.deepEqual(await seen('a.csv', without, { hasHeader: true, columns: { title: 'Emma' } }), [
    undefined,
    true,
    ['It'],
  ]);
  assert.deepEqual(await seen('a.json', '[{"1815":"Emma"}]'), [undefined, undefined, []]); // keys are no book
});

test('a file of which half is UTF-8 is never another encoding; rows above the header, and its delimiter, can be chosen', async () => {
  const damaged = Buffer.from('title,author,x\n\xe9,a,b\nb,c,\xff\nCaf\xc3\xa9,d,\xc3\xa9\n', 'latin1');
  const { file, understood } = await choose('a.csv', damaged);
  assert.deepEqual([understood.encoding, titlesOf(understood.first)], ['UTF-8', ['b', 'Café']]);
  assert.deepEqual([understood.refused[0].column, understood.refused[0].text], ['title', '\ufffd']);
  assert.equal((await file.ask('correct', 0, '\ufffd!')).book, undefined);
  const refused = Buffer.from(await (await file.ask('refusedFile')).arrayBuffer()).toString();
  assert.match(refused, /^title,author,x,refused\n"�!",a,b,"title: has a damaged character: /);
  assert.equal((await file.ask('correct', 0, 'é!')).book.title, 'é!');

  const noted = (await choose('a.csv', 'Note,x\nTitle,Shelf\nEmma,A1\n')).file;
  const below = await noted.ask('read', noted.file, { columns: {}, fromLine: 2 });
  assert.deepEqual([below.firstRow, titlesOf(below.first)], [undefined, ['Emma']]);

  const marked = Buffer.from('efbbbf7469746c650a610ae90a', 'hex');
  assert.deepEqual((await choose('a.csv', marked)).understood.refused.length, 1);

  const read = async (content: string, choices = {}) => {
    const { understood: found } = await choose('a.csv', content, choices);
    const { firstRow, firstLine, above, short, delimiter, first } = found;
    return [firstRow, firstLine, above, short, delimiter, titlesOf(first)];
  };
  assert.deepEqual(await read('Table 1,,\nTitle,Author\nEmma,J\nIt\n'), [
    undefined,
    undefined,
    'Table 1,,',
    1,
    ',',
    ['Emma', 'It'],
  ]);
  const unknown = 'Table 1,,\n\nBook;a,b,c;Writer\nEmma;x,y;J\n';
  assert.deepEqual(await read(unknown), [['Table 1', '', ''], 1, '', 0, undefined, []]);
  assert.deepEqual(await read(unknown, { fromLine: 2 }), [
    ['Book;a', 'b', 'c;Writer'],
    3,
    '',
    0,
    undefined,
    [],
  ]);
  const chosen = { fromLine: 2, delimiter: ';', hasHeader: true, columns: { title: 'Book' } };
  assert.deepEqual(await read(unknown, chosen), [undefined, undefined, '', 0, ';', ['Emma']]);
});

test('dates in UTC that are of the new year elsewhere are counted', async () => {
  const rows = 'a,1999-12-31T23:00:00Z\nb,1999-12-31T05:00:00Z\n';
  const { understood } = await choose('a.csv', `title,year\n${rows}`);
  assert.deepEqual([understood.newYears, understood.first[0].year], [1, 2000]);
});

test('books that are the same to the eye, in the file or in the catalogue, are doubtful', async () => {
  const rows = ['Cien a\u{f1}os', 'Cien  a\u{f1}os', 'Cien an\u{303}os', 'Cien a\u{f1}os', 'Ubik', 'Solaris'];
  const { file } = await choose('a.csv', `title\n${rows.join('\n')}\n`);
  const doubts = async () => {
    const { fresh, here, twice, doubtful } = await file.ask('figures');
    return [fresh, here, twice, doubtful.fresh, doubtful.first.map(({ doubt }: { doubt: string }) => doubt)];
  };
  const twice = 'is like another row, but for blanks or how letters are composed';
  assert.deepEqual(await doubts(), [5, 0, 1, 2, [twice, twice]]);
  await file.ask('beginComparison');
  await file.ask('compare', ['Ubi\u{200b}k\0\x000', 'Solaris\0\x000']);
  const here = 'is like a book here, but for blanks or how letters are composed';
  assert.deepEqual(await doubts(), [4, 1, 1, 3, [twice, twice, here]]);
  assert.deepEqual(titlesOf(await wantedOf(file)), [rows[0]]);
  await file.ask('beginComparison');
  assert.deepEqual(await doubts(), [5, 0, 1, 2, [twice, twice]]);
});

test('rows that are here already, twice in the file, or doubtful, are stored only if they are wanted', async () => {
  const rows = ['Emma,,1815', 'Emma, ,1815', ' It ,,0', 'Late,,9999', ' ,Nobody,1900', 'Late,,9999'];
  const { file } = await choose('a.csv', `title,author,year\n${rows.join('\n')}`);
  const compared = async (keys: readonly string[]) => {
    await file.ask('beginComparison');
    await file.ask('compare', keys);
    const { fresh, here, twice, yearless, doubtful } = await file.ask('figures');
    return [fresh, here, twice, yearless, doubtful.fresh, doubtful.all];
  };
  assert.deepEqual(await compared(['It\0\x000', 'Persuasion\0\x000']), [3, 1, 2, { fresh: 0, all: 1 }, 2, 3]);
  assert.deepEqual(await compared([]), [4, 0, 2, { fresh: 1, all: 1 }, 2, 3]); // it has been deleted meanwhile
  await compared(['It\0\x000']);
  for (const [isAll, isDoubtfulToo, titles] of [
    [false, false, ['Emma']],
    [false, true, ['Emma', 'Late', '']],
    [true, false, ['Emma', 'Emma', 'It']],
    [true, true, ['Emma', 'Emma', 'It', 'Late', '', 'Late']],
  ] as const) {
    await file.ask('read', file.file, { columns: {} });
    await compared(['It\0\x000']);
    assert.deepEqual(titlesOf(await wantedOf(file, { isAll, isDoubtfulToo })), titles);
  }
  const [late, untitled] = (await file.ask('figures')).doubtful.first;
  assert.deepEqual([late.book.title, late.doubt], ['Late', 'this year is yet to come']);
  assert.deepEqual([untitled.book.author, untitled.doubt], ['Nobody', 'has no title']);
});

test('a refused row that is corrected is stored, unless it then equals another, or is corrected to nonsense', async () => {
  const { file } = await choose('a.csv', 'title,year\nEmma,18?15\nEmma,1815\nIt,soon\n');
  const correct = async (place: number, text: string) => {
    const { book, row, figures } = await file.ask('correct', place, text);
    return [book?.year, row.reason, figures.fresh, figures.twice, figures.refused];
  };
  const reason = 'is not an unambiguous year';
  assert.deepEqual(await correct(0, '1815'), [1815, reason, 1, 1, 1]);
  assert.deepEqual(await correct(0, 'x'), [undefined, reason, 1, 0, 2]);
  assert.deepEqual(await correct(0, '1816'), [1816, reason, 2, 0, 1]);
  assert.deepEqual(await wantedOf(file), [
    { title: 'Emma', author: '', year: 1815 },
    { title: 'Emma', author: '', year: 1816 },
  ]);
  assert.equal(
    await (await file.ask('refusedFile')).text(),
    `title,year,refused\nIt,soon,"year: ${reason}"\n`,
  );
});

test('of thousands of refused rows the first hundred are shown; one that is too long cannot be corrected', async () => {
  const rows = Array.from(
    { length: 3000 },
    (_, at) => `Book ${at},year ${at}${'x'.repeat(at === 1 ? 2000 : 0)}`,
  );
  const { file, understood } = await choose('a.csv', `title,year\n${rows.join('\n')}\n`);
  assert.deepEqual([understood.refused.length, understood.figures.refused], [100, 3000]);
  const shown = understood.refused
    .slice(0, 2)
    .map(({ line, text }: { line: number; text?: string }) => [line, text]);
  assert.deepEqual(shown, [
    [2, 'year 0'],
    [3, undefined],
  ]);
  assert.equal((await (await file.ask('refusedFile')).text()).split('\n').length, 3002);
});

test('a file that was saved again after it was chosen, or is gone, is to be chosen again; a book that was read is not lost', async () => {
  const path = join(temporaryFolder(), 'books.csv');
  const save = (text: string) => writeFileSync(path, `title\n${text}\n`);
  const chosen = async () => new ImportFile(Object.assign(await openAsBlob(path), { name: path }), () => {});
  const changed = {
    message: 'The file was saved again after it was chosen, or it cannot be read. Choose it again.',
  };
  save('Emma');
  const file = await chosen();
  await file.ask('read', file.file, { columns: {} });
  save('Emma\nPersuasion');
  assert.deepEqual(await wantedOf(file), [{ title: 'Emma', author: '', year: 0 }]);
  await assert.rejects(file.ask('read', file.file, { columns: {} }), changed);
  const unread = await chosen();
  save('Emma');
  await assert.rejects(unread.ask('read', unread.file, { columns: {} }), changed);
  const bytes = {
    name: 'a.csv',
    size: 11,
    slice: () => new Blob(['titl']),
    stream: () => new Blob(['title\nEm']).stream(),
  };
  await assert.rejects(unread.ask('read', bytes, { columns: {} }), changed, 'the browser has not noticed it');
  const gone = {
    slice: () => ({ arrayBuffer: () => Promise.reject(new DOMException('', 'NotFoundError')) }),
  };
  await assert.rejects(unread.ask('read', gone, { columns: {} }), {
    message: 'The file was moved, renamed or deleted after it was chosen. Choose it again.',
  });
});
