// Files of books, as programs write them and as none should: what is read, what is rejected, and that rejected rows can
// be corrected and read again. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { readBookChanges } from '../../src/books/book.ts';
import { correct, correctable } from '../../src/files/correcting.ts';
import { readBooks } from '../../src/files/reading.ts';
import type { ReadBatch, ReadBook, Reading, ReadingOptions, RefusedRecord } from '../../src/files/rows.ts';
import { readYear } from '../../src/files/years.ts';
import { Rejects, rejectsPath } from '../../src/import/rejects.ts';
import { OperatorError } from '../../src/operator-error.ts';
import '../support/random.ts';

type Content = string | Buffer;
type Options = Partial<ReadingOptions>;

const PIECE_SIZES = [1, 2, 3, 7, 1_000_000];
const RUNS = { numRuns: 100 };

interface Outcome {
  readonly reading: Reading;
  readonly batches: readonly ReadBatch[];
  readonly books: readonly ReadBook[];
  readonly refused: readonly RefusedRecord[];
  /** The error message with which the reading broke off. */
  readonly fault: string | undefined;
}

async function* piecesOf(bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Buffer> {
  let at = 0;
  for (let index = 0; at < bytes.length; index += 1) {
    const size = sizes[index % sizes.length] as number;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

async function read(
  content: Content,
  options: Options = {},
  sizes: readonly number[] = [65_536],
): Promise<Outcome> {
  const bytes = Buffer.from(content as string);
  const reading = await readBooks(piecesOf(bytes, sizes), { name: '-', columns: {}, ...options });
  const batches: ReadBatch[] = [];
  let fault: string | undefined;
  try {
    for await (const batch of reading.batches) batches.push(batch);
  } catch (error) {
    fault = (error as Error).message;
  }
  const books = batches.flatMap((batch) => batch.books);
  const refused = batches.flatMap((batch) => batch.refused);
  return { reading, batches, books, refused, fault };
}

/** `line title/author/year` of each book. */
function inShort({ books }: Outcome): string[] {
  return books.map(({ line, title, author, year }) => `${line} ${title}/${author}/${year}`);
}

function idsOf({ books }: Outcome): (number | undefined)[] {
  return books.map(({ id }) => id);
}

/** `line column "value" reason` of each rejected record. */
function refusalsOf({ refused }: Outcome): string[] {
  return refused.map(({ line, column, value, reason }) =>
    column === undefined ? `${line} ${reason}` : `${line} ${column} "${value}" ${reason}`,
  );
}

async function assertRefusedAsWhole(content: Content, pattern: RegExp, options: Options = {}): Promise<void> {
  await assert.rejects(read(content, options), (error: Error) => {
    assert.ok(error instanceof OperatorError);
    assert.match(error.message, pattern);
    return true;
  });
}

function folderOf(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'reading-'));
  context.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

describe('years', () => {
  const YEARS: readonly (readonly [number, ...string[]])[] = [
    [2008, '2008', ' 2008 ', '2008.0', '+002008', '02008', '2008.', '2008-09', '2008-09-14', '2008-9-14'],
    [2008, '2008-09-14T07:00:00+00:00', '2008-12-31 23:59:59', '2008/9/14', '2008.09.14'],
    [2006, '9/16/2006', '16/9/2006', '16.9.2006', '16-09-2006', '9/16/2006 0:00:00', '09/2006'],
    [1997, 'June 26, 1997', 'June 26 1997', 'Jun. 26th, 1997', '26 June 1997', '26th of June 1997'],
    [1997, 'June 1997', 'JUNE, 1997', '26-Jun-1997', 'Jun-1997', '1997 June 26', '1997, Jun'],
    [
      1997,
      '26. Juni 1997',
      '26 juin 1997.',
      '1er juin 1997',
      '26 de junio de 1997',
      'giugno 1997',
      'março 1997',
    ],
    [1997, 'c1997', '©1997', '© 1997', '(c) 1997', 'cp. 1997', '℗ 1997', 'copyright  1997.', 'p1997'],
    [1997, '[1997]', '(1997)', '1997?', '[1997?]', '[c1997]', '[©1997].', 'ca. 1997', 'circa 1997', '1997]'],
    [
      -44,
      '44 BC',
      '44 BCE',
      '44BC',
      '44 b.c.',
      '44 B. C.',
      '44 b.c.e.',
      'c. 44 BC',
      'ca. 44 BCE',
      '-44',
      '-44.0',
    ],
    [79, 'AD 79', '79 AD', '79 A.D.', '79 CE', '79 C.E.', '79'],
    [101, '0101-01-02', '101', '[101]'],
    [0, '', '   ', 'n.d.', 'N. D.', '[n.d.]', 's.a.', '[s. a.]', '?', 'None', 'xxxx', 'uuuu'],
    [0, '0', '-0', '-0.0', '0000', '0101-01-01T00:00:00+00:00', '0101-01-01T01:00:00+01:00'],
    [0, '0100-12-31T19:03:58-04:56'],
    [19_970_626, '19970626'],
    [9_007_199_254_740_991, '9007199254740991'],
    [-9_007_199_254_740_991, '-9007199254740991', '-9007199254740991.000'],
  ];
  test('that are certain', () => {
    for (const [year, ...texts] of YEARS) {
      for (const text of texts) assert.ok(Object.is(readYear(text), year), `"${text}": ${readYear(text)}`);
    }
  });

  const REFUSED: Readonly<Record<string, readonly string[]>> = {
    'is not an unambiguous year': [
      ...[
        '1997-1998 | 1997–1998 | 1997-98 | 1997-13 | 1997/98 | 1700/1. | 1967, c1965 | 1835 or 1836',
        '1641. [1642] | 1726[1727] | 168[5]. | 1850-? | 1997- | between 1694 and 1799 | -0150 - -0100',
        '19-- | 195X | 19uu | [18--?] | 17?? | 1990s | 97? | c97 | 12/05/97 | June 26, 97 | Jun-97',
        'MCMXCVII | twenty | twenty 1997 | before 1900 | [after 1900] | Meiji 1907',
        'DK Publishing Inc | 18th century CE | 5th century B.C. | 0 BC | -44 BC | AD 79 BC',
        '-0043-03-15 | 13/13/1997 | 32.1.1997 | 00/1997 | June 32, 1997 | 1997-00-01 | 1997-02-32',
        '5 June 6, 1997 | 1e3 | 0x7d0 | 1 997 | --5 | + | - | . | ١٩٩٧ | 1997 1997',
      ].flatMap((texts) => texts.split(' | ')),
      '1997\0',
    ],
    'is not a whole number': ['1999.5', '1999,5', '.5', '1,997', '-0.5'],
    'is beyond ±(2^53−1)': ['9007199254740992', '-9007199254740992', '99999999999999999999.0'],
    'is too long for a year': ['1'.repeat(65), ' '.repeat(65)],
  };
  test('that are not certain', () => {
    for (const [reason, texts] of Object.entries(REFUSED)) {
      for (const text of texts) assert.equal(readYear(text), reason, JSON.stringify(text));
    }
  });
});

describe('columns', () => {
  /** A program's file, the columns found, and its first book. */
  const FILES: Readonly<Record<string, readonly [content: string, columns: string, book: string]>> = {
    'our own export': [
      'id,title,author,year\n7,"Don ""Q""","M. de C.",1605\n',
      'title, author, year',
      '2 Don "Q"/M. de C./1605',
    ],
    'goodbooks-10k': [
      'book_id,isbn13,authors,original_publication_year,original_title,title,language_code\n1,9.78043902348e+12,Suzanne Collins,2008.0,The Hunger Games,"The Hunger Games (The Hunger Games, #1)",eng\n',
      'title, authors, original_publication_year',
      '2 The Hunger Games (The Hunger Games, #1)/Suzanne Collins/2008',
    ],
    Goodreads: [
      'Book Id,Title,Author,Author l-f,Additional Authors,ISBN,ISBN13,My Rating,Average Rating,Publisher,Binding,Number of Pages,Year Published,Original Publication Year,Date Read,Date Added,My Review\n' +
        '42036538,Gideon the Ninth (The Locked Tomb #1),Tamsyn Muir,"Muir, Tamsyn",,"=""1250313198""","=""9781250313195""",0,4.20,Tor,Hardcover,448,2020,2019,2020/10/25,2020/10/21,\n',
      'Title, Author, Original Publication Year',
      '2 Gideon the Ninth (The Locked Tomb #1)/Tamsyn Muir/2019',
    ],
    LibraryThing: [
      'Book Id\tTitle\tSort Character\tPrimary Author\tPrimary Author Role\tPublication\tDate\tAcquired\tEntry Date\n5498194\tMarelle\t1\tCortazar, Julio\t\tGallimard (1979), Poche\t1979\t[2007-04-16]\t[2006-08-09]\n',
      'Title, Primary Author, Date',
      '2 Marelle/Cortazar, Julio/1979',
    ],
    'LibraryThing, JSON': [
      '{"190140345": {"books_id":"190140345","title":"Feels Like Home","primaryauthor":"Eclov, Lee","authors":[{"lf":"Eclov, Lee","fl":"Lee Eclov","role":"Author"},{"lf":"Hansen, Collin","fl":"Collin Hansen"}],"lcc":[],"date":"2019","entrydate":"2020-09-27"}}',
      'title, authors, date',
      '1 Feels Like Home/Lee Eclov, Collin Hansen/2019',
    ],
    Calibre: [
      '\uFEFFauthors,author_sort,timestamp,title,title_sort,pubdate,id\n"Seanan McGuire","McGuire, Seanan","2021-01-19T22:41:16+01:00","That Ain\'t Witchcraft","That Ain\'t Witchcraft","2019-03-05T01:00:00+01:00","864"\n',
      'title, authors, pubdate',
      "2 That Ain't Witchcraft/Seanan McGuire/2019",
    ],
    'calibredb list --for-machine': [
      '[\n  {\n    "authors": "John Doe & Jane",\n    "id": 1,\n    "pubdate": "0101-01-01T00:00:00+00:00",\n    "title": "foo"\n  }\n]\n',
      'title, authors, pubdate',
      '2 foo/John Doe & Jane/0',
    ],
    'Open Library': [
      'Work ID,Title,Authors,First Publish Year,Edition ID,Edition Count\nOL1W,"Dune","Frank Herbert | Another",1965,OL1M,3\n',
      'Title, Authors, First Publish Year',
      '2 Dune/Frank Herbert | Another/1965',
    ],
    "Open Library's search": [
      '{"title":"This Is How","author_name":["Amal El-Mohtar","Max Gladstone"],"publish_date":["July 16, 2019"],"first_publish_year":2019}\n',
      'title, author_name, first_publish_year',
      '1 This Is How/Amal El-Mohtar, Max Gladstone/2019',
    ],
    'Book-Crossing': [
      '"ISBN";"Book-Title";"Book-Author";"Year-Of-Publication";"Publisher"\r\n"0195153448";"Classical Mythology";"Mark P. O. Morford";"2002";"Oxford University Press"\r\n',
      'Book-Title, Book-Author, Year-Of-Publication',
      '2 Classical Mythology/Mark P. O. Morford/2002',
    ],
    "Kaggle's Goodreads-books": [
      'bookID,title,authors,average_rating,isbn,  num_pages,publication_date,publisher\n1,Harry Potter,J.K. Rowling/Mary GrandPré,4.57,0439785960,652,9/16/2006,Scholastic Inc.\n',
      'title, authors, publication_date',
      '2 Harry Potter/J.K. Rowling/Mary GrandPré/2006',
    ],
    Zotero: [
      '\uFEFF"Key","Item Type","Publication Year","Author","Title","Publication Title","Date"\n"K","book","1997","Doe, John; Roe, Jane","T","Journal","1997-06-26"\n',
      'Title, Author, Publication Year',
      '2 T/Doe, John; Roe, Jane/1997',
    ],
    Hardcover: [
      'Title,Author,Status,Publish Date\nT,A,Read,2006-01-01\n',
      'Title, Author, Publish Date',
      '2 T/A/2006',
    ],
    StoryGraph: ['Title,Authors,Contributors,Date Added\nT,A,,2020/01/01\n', 'Title, Authors, ', '2 T/A/0'],
  };
  for (const [program, [content, columns, book]] of Object.entries(FILES)) {
    test(`of ${program} are found`, async () => {
      const outcome = await read(content);
      const { title, author, year } = outcome.reading.columns;
      assert.equal([title, author, year].join(', '), columns);
      assert.deepEqual(inShort(outcome), [book]);
    });
  }

  test('rule 12: an id that leaves none for new books is rejected', async () => {
    const csv = await read('id,title,author,year\n4503599627370496,a,b,1\n4503599627370497,a,b,1\n');
    assert.deepEqual(idsOf(csv), [4503599627370496]);
    assert.deepEqual(refusalsOf(csv), ['3 id "4503599627370497" is not an id from 1 to 2^52']);
    const json = await read('{"id":9007199254740991,"title":"a","author":"b","year":1}\n');
    assert.equal(json.refused[0]?.column, 'id');
  });

  test('the year of the edition replaces a missing year of the work, unless a flag names the column', async () => {
    const header = 'Title,Year Published,Original Publication Year\n';
    const rows = 'a,2020,1999\nb,2020,\nc,n.d.,\nd,1997-1998,\ne,1997-1998,-44\n';
    const outcome = await read(`${header}${rows}`);
    assert.deepEqual(inShort(outcome), ['2 a//1999', '3 b//2020', '4 c//0', '6 e//-44']);
    const [refused] = outcome.refused;
    assert.deepEqual([refused?.line, refused?.column], [5, 'Year Published']);
    const named = await read(`${header}b,2020,\n`, { columns: { year: 'Original Publication Year' } });
    assert.deepEqual(inShort(named), ['2 b//0']);

    const json =
      '[{"title":"a","first_publish_year":1999,"publish_date":"May 2001"},{"title":"b","publish_date":"May 2001"}]';
    assert.deepEqual(inShort(await read(json)), ['1 a//1999', '1 b//2001']);
    const wrong = await read('[{"title":"b","first_publish_year":null,"publish_date":["2001"]}]');
    assert.equal(wrong.refused[0]?.column, 'publish_date');
  });

  test('can be named by the caller; the first of two with one name counts', async () => {
    const content = 'a,b,c,a,title\n1,2,3,4,5\n';
    const named = await read(content, { columns: { title: 'a', author: 'B', year: 'c' } });
    assert.deepEqual(inShort(named), ['2 1/2/3']);
    assert.deepEqual(inShort(await read('Title,title\nx,y\n')), ['2 x//0']);
    const inherited = await read('{"constructor":"x"}\n{}\n', { columns: { title: 'constructor' } });
    assert.deepEqual(inShort(inherited), ['1 x//0', '2 //0']);
    await assertRefusedAsWhole('"a\u001b[31m\n",b\n', /the columns are a \[31m , b\.$/);
    assert.deepEqual(inShort(await read('{"x":"1","title":"2"}', { columns: { title: 'x' } })), ['1 1//0']);
    await assertRefusedAsWhole(
      content,
      /^There is no column "d" for the year: the columns are a, b, c, a, title\.$/,
      {
        columns: { year: 'd' },
      },
    );
    await assertRefusedAsWhole('{"title":"a"}', /^There is no column "constructor" for the title/, {
      columns: { title: 'constructor' },
    });
  });

  test('must include a title', async () => {
    const pattern =
      /^There is no column for the title; set --title, --author and --year: the columns are foo, bar\.$/;
    await assertRefusedAsWhole('foo;bar\n1;2\n', pattern);
    await assertRefusedAsWhole('[{"foo":1},{"bar":2}]', pattern);
  });

  test('of objects are collected from many, since some leave out fields without a value', async () => {
    const outcome = await read('{"title":"a"}\n{"title":"b","author":null,"pubdate":"1997-01-01"}\n');
    assert.deepEqual(inShort(outcome), ['1 a//0', '2 b//1997']);
    const { title, author, year } = outcome.reading.columns;
    assert.deepEqual([title, author, year], ['title', 'author', 'pubdate']);
  });

  test('of objects that only later ones have are used from there on, unless a flag leaves them out', async () => {
    const early = Array.from({ length: 5000 }, (_, index) => ({ title: `undated manuscript ${index}` }));
    const late = [
      { title: 'Emma', author: 'Jane Austen', year: 1815 },
      { title: 'Ulysses', year: null, author: 'James Joyce', pages: 730 },
      { title: 'Faust', year: 'x' },
    ];
    const all = [...early, ...late];
    for (const content of [JSON.stringify(all), all.map((book) => JSON.stringify(book)).join('\n')]) {
      const outcome = await read(content);
      const found = outcome.books.slice(early.length).map(({ title, author, year }) => [title, author, year]);
      assert.deepEqual(found, [
        ['Emma', 'Jane Austen', 1815],
        ['Ulysses', 'James Joyce', 0],
      ]);
      assert.deepEqual([outcome.refused.length, outcome.refused[0]?.column], [1, 'year']);
      assert.deepEqual(outcome.reading.names, ['title', 'author', 'year']);
      const without = await read(content, { columns: { author: null, year: null } });
      assert.deepEqual(without.books[early.length], {
        ...without.books[0],
        title: 'Emma',
        line: outcome.books[early.length]?.line,
      });
    }
    const works = [
      ...early.map((book) => ({ ...book, first_publish_year: null })),
      { title: 'Emma', publish_date: '1997' },
    ];
    const edition = await read(JSON.stringify(works));
    assert.deepEqual(edition.books.at(-1)?.year, 1997);
    const keys = early.map((book, index) => ({
      ...book,
      [`key ${index}`]: 1,
      [`other ${index}`]: 1,
      [`third ${index}`]: 1,
    }));
    const many = await read(JSON.stringify([...early, ...keys, { title: 'Emma', author: 'Jane Austen' }]));
    assert.equal(many.books.at(-1)?.author, 'Jane Austen');
    assert.deepEqual(many.reading.names, ['title', 'author']);
  });

  test('can be left out, even if one has a usual name', async () => {
    const { reading, books } = await read('name,author,year\na,b,1\n', {
      columns: { author: null, year: null },
    });
    assert.deepEqual(
      books.map(({ title, author, year }) => [title, author, year]),
      [['a', '', 0]],
    );
    assert.deepEqual(reading.names, ['name', 'author', 'year']);
    await assertRefusedAsWhole('title\na\n', /There is no column for the title/, {
      columns: { title: null },
    });
  });
});

describe('ids', () => {
  const OURS = 'id,title,author,year\n7,"a","b",1\n';

  test('are kept from our own exports, and from other files on request', async () => {
    const keptIds = async (content: string, options: Options = {}) => {
      const outcome = await read(content, options);
      return [outcome.reading.keepsIds, idsOf(outcome)];
    };
    assert.deepEqual(await keptIds(OURS), [true, [7]]);
    assert.deepEqual(await keptIds(OURS, { ids: 'new' }), [false, [undefined]]);
    assert.deepEqual(await keptIds('{"id":7,"title":"a","author":"b","year":1}\n'), [true, [7]]);
    assert.deepEqual(await keptIds('[{"id":7,"title":"a","author":"b","year":1}]'), [true, [7]]);
    assert.deepEqual(await keptIds('id,title,author,year,refused\n7,"a","b",1,"why"\n'), [true, [7]]);
    assert.deepEqual(await keptIds('id,title,author,year,isbn\n7,a,b,1,2\n'), [false, [undefined]]);
    assert.deepEqual(await keptIds('id,title,author,year,isbn\n7,a,b,1,2\n', { ids: 'keep' }), [true, [7]]);
    await assertRefusedAsWhole('title\na\n', /no column "id"/, { ids: 'keep' });
    await assertRefusedAsWhole('{"title":"a"}', /no column "id"/, { ids: 'keep' });
  });

  test('rule 10: are canonical whole numbers from 1 to 2^52', async () => {
    const ids = ['', '0', '007', '-1', '1.0', '9007199254740992', 'abc', '1', '4503599627370496'];
    const csv = await read(`id,title,author,year\n${ids.map((id) => `${id},"t","",0\n`).join('')}`);
    assert.deepEqual(idsOf(csv), [1, 4503599627370496]);
    assert.deepEqual(refusalsOf(csv)[1], '3 id "0" is not an id from 1 to 2^52');
    assert.equal(csv.refused.length, 7);
    const values = ['null', '0', '"x"', '1.5', '9007199254740992', 'true', '{}', '1', '4503599627370496'];
    const json = await read(values.map((id) => `{"id":${id},"title":"t","author":"","year":0}\n`).join(''));
    assert.deepEqual(idsOf(json), [1, 4503599627370496]);
    assert.equal(json.refused.length, 7);
  });
});

describe('CSV', () => {
  /** The result is the same whatever the pieces in which the content arrives. */
  const CASES: Readonly<Record<string, readonly [content: string, books: string[], refused?: string[]]>> = {
    'line ends of all kinds, mixed, the last one missing': [
      'title,year\r\na,1\rb,2\n"c\r\nd\re\nf",3\rg,4\r\nh,5',
      ['2 a//1', '3 b//2', '4 c\r\nd\re\nf//3', '8 g//4', '9 h//5'],
    ],
    'lone CR': ['title,year\ra,1\rb,2\r', ['2 a//1', '3 b//2']],
    'quotes, doubled quotes, empty quotes': [
      'title,author,year\n"a, b","say ""hi""",1\n"""","",2\n"""a""","b""",3\n"a""","""""",4\n',
      ['2 a, b/say "hi"/1', '3 "//2', '4 "a"/b"/3', '5 a"/""/4'],
    ],
    'quotes in a field that does not begin with one': [
      'title,author,year\n5" disk,a "b" c,1\n "x" ,y"",2\n',
      ['2 5" disk/a "b" c/1', '3  "x" /y""/2'],
    ],
    'blank lines, including lines of delimiters only': [
      '\n\r\ntitle,author,year\n\na,b,1\r\n\r\n,,\n,,,,,\n\n"",,\n',
      ['5 a/b/1', '10 //0'],
    ],
    'blanks and all characters kept, nothing normalised': [
      'title,author,year\n\u00a0 a \t,e\u0301\u{1f600}\ufeff\u2028, 1 \n',
      ['2 \u00a0 a \t/e\u0301\u{1f600}\ufeff\u2028/1'],
    ],
    'a byte order mark': ['\uFEFFtitle,year\na,1\n', ['2 a//1']],
    'a quoted header, with line ends': ['"the\ntitle","Title","Year"\nx,a,1\n', ['3 a//1']],
    semicolons: ['title;author;year\na,b;"c;d";1\n', ['2 a,b/c;d/1']],
    // As many blank characters as a row has: if they were counted twice, a row would be lost.
    'a header after blank lines, with a quote that another delimiter would leave open': [
      `${'\n'.repeat(8)}no,title,author,year;"\n1,a,b,1\n2,c,d,2\n`,
      ['10 a/b/1', '11 c/d/2'],
    ],
    'lines of delimiters and of blanks before the header': [
      ',,\n \n\t\t\ntitle,author,year\na,b,1\n',
      ['5 a/b/1'],
    ],
    'a line that names the delimiter': ['sep=;\r\n;;\r\ntitle;author;year\r\na,b;c;1\r\n', ['4 a,b/c/1']],
    tabs: ['title\tauthor\tyear\na,b;c\t"d\te"\t1\n', ['2 a,b;c/d\te/1']],
    'quotes as they are, beside tabs': [
      'title\tauthor\n"Repent, Harlequin!\tEllison\n\nNobody\nWho said "\tX\n"two\nlines"\ta\n"a\tb\nc"\td\n',
      ['6 two\nlines/a/0'],
      [
        '2 has 4 lines that look like separate rows: double the quotes that belong to a text',
        '8 has 2 lines that look like separate rows: double the quotes that belong to a text',
      ],
    ],
    'lines in one column, beside tabs': ['sep=\t\ntitle\n"two\nlines"\n', ['3 two\nlines//0']],
    'rejected records, corrected, with and without their reasons': [
      'title,author,refused\na,b,has 1 field\nc,d\ne\nf,"has 1 field, the header has 2"\n' +
        'i,title: has text after its closing quote\nj,has 2 lines that look like separate rows: double the quotes\n' +
        'k,author: has a NUL character\nl,title: a novel\n"g,h',
      ['2 a/b/0', '3 c/d/0', '9 l/title: a novel/0'],
      [
        '4 has 1 field, the header has 3',
        ...[5, 6, 7, 8].map((line) => `${line} has 2 fields, the header has 3`),
        '10 title ""g,h" has an unclosed quote: it extends to the end of the file, 1 line',
      ],
    ],
    'one column': ['title\na\n\n""\nb', ['2 a//0', '4 //0', '5 b//0']],
    'more and fewer fields': [
      'title,author,year\na,b\na\na,b,1,\na,b,1,"",\na,b,1,c\na,b,1,,"c"\n',
      ['4 a/b/1', '5 a/b/1'],
      [
        '2 has 2 fields, the header has 3',
        '3 has 1 field, the header has 3',
        '6 has 4 fields, the header has 3',
        '7 has 5 fields, the header has 3',
      ],
    ],
    'text after a closing quote': [
      'title,author,year\n"a"b,c,1\n"a" ,c,1\nd,"e"\tf"g",1\nok,h,1\n',
      ['5 ok/h/1'],
      [
        '2 title ""a"b" has text after its closing quote',
        '3 title ""a" " has text after its closing quote',
        '4 author ""e"\tf"g"" has text after its closing quote',
      ],
    ],
    'a quote that is never closed': [
      'title,author,year\na,b,1\nc,"d,1\ne,f,1\n',
      ['2 a/b/1'],
      ['3 author ""d,1\ne,f,1\n" has an unclosed quote: it extends to the end of the file, 3 lines'],
    ],
    'rules 3 and 4: NUL, and invalid years': [
      'title,author,year,isbn\na\0,b,1,\na,\0,1,\na,b,1\0,\na,b,1999.5,\na,b,1,\0\n',
      ['6 a/b/1'],
      [
        '2 title "a\0" has a NUL character',
        '3 author "\0" has a NUL character',
        '4 year "1\0" is not an unambiguous year',
        '5 year "1999.5" is not a whole number',
      ],
    ],
  };
  for (const [name, [content, books, refused = []]] of Object.entries(CASES)) {
    test(name, async () => {
      for (const size of PIECE_SIZES) {
        const outcome = await read(content, { name: 'a.csv' }, [size]);
        assert.deepEqual(inShort(outcome), books, `pieces of ${size}`);
        assert.deepEqual(refusalsOf(outcome), refused, `pieces of ${size}`);
        assert.equal(outcome.fault, undefined);
      }
    });
  }

  test('a named delimiter', async () => {
    assert.deepEqual(
      inShort(await read('a,title|year\nx|1\n', { delimiter: '|', columns: { title: 'a,title' } })),
      ['2 x//1'],
    );
    // Of U+1F600, one half also begins U+1F601.
    for (const delimiter of ['', '||', '"', '\n', '\r', '\u{1f600}']) {
      await assertRefusedAsWhole('title\na\n', /^The delimiter must be one character/, { delimiter });
    }
  });

  test('a missing or unreadable header', async () => {
    await assertRefusedAsWhole('', /^The file is empty/);
    await assertRefusedAsWhole('\r\n\n ;', /^The file is empty/);
    await assertRefusedAsWhole(
      '\n"title,year\na,1\n',
      /^Line 2, the header, has a misplaced or unclosed quote\.$/,
    );
    await assertRefusedAsWhole(
      '"title"s,year\na,1\n',
      /^Line 1, the header, has a misplaced or unclosed quote\.$/,
    );
    await assertRefusedAsWhole(`title${','.repeat(10_000)}\n`, /more than 10000 columns/);
    await assertRefusedAsWhole('t\0i\0t\0l\0e\0,\0y\0\n\0', /not text.*--encoding utf-16le/);
  });

  test('rules 1 to 4: any book comes back as it was written, whatever the pieces', async () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }).map((any) => any.replaceAll('\0', '')),
      fc.string({ unit: fc.constantFrom('"', ',', ';', '\t', '\r', '\n', 'a', 'é', '😀') }),
    );
    const books = fc.array(fc.record({ title: text, author: text, year: fc.maxSafeInteger() }));
    const writing = fc.record({
      delimiter: fc.constantFrom(',', ';', '\t'),
      end: fc.constantFrom('\n', '\r\n', '\r'),
      last: fc.boolean(),
      sizes: fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }),
    });
    await fc.assert(
      fc.asyncProperty(books, writing, async (written, { delimiter, end, last, sizes }) => {
        const field = (value: string) =>
          value === '' || /[",;\t\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
        const lines = ['title,author,year'.replaceAll(',', delimiter)];
        const rows = written.map(({ title, author, year }) =>
          [field(title), field(author), year].join(delimiter),
        );
        const isOfRows = (value: string) => /\t/.test(value) && /[\r\n]/.test(value);
        fc.pre(
          delimiter !== '\t' || !written.some(({ title, author }) => isOfRows(title) || isOfRows(author)),
        );
        lines.push(...rows);
        const outcome = await read(lines.join(end) + (last ? end : ''), { name: 'a.csv' }, sizes);
        assert.deepEqual(
          outcome.books.map(({ title, author, year }) => ({ title, author, year })),
          written.map((book) => ({ ...book, year: book.year + 0 })),
        );
        assert.deepEqual(outcome.refused, []);
      }),
      RUNS,
    );
  });
});

describe('encodings', () => {
  const TEXT = 'title,author,year\r\n"Ævar €uro 😀","né\nß",1\r\n';

  test('UTF-8 and UTF-16, recognised by the byte order mark', async () => {
    const utf16 = Buffer.from(`\uFEFF${TEXT}`, 'utf16le');
    for (const bytes of [
      Buffer.from(TEXT),
      Buffer.from(`\uFEFF${TEXT}`),
      utf16,
      Buffer.from(utf16).swap16(),
    ]) {
      for (const size of PIECE_SIZES) {
        assert.deepEqual(
          inShort(await read(bytes, {}, [size])),
          ['2 Ævar €uro 😀/né\nß/1'],
          `pieces of ${size}`,
        );
      }
    }
  });

  test('that are named', async () => {
    const bytes = Buffer.from([...Buffer.from('title\n'), 0x80, 0x93, 0xe9, 0x0a]);
    assert.deepEqual(inShort(await read(bytes, { encoding: 'windows-1252' })), ['2 €“é//0']);
    assert.deepEqual(inShort(await read(bytes, { encoding: 'windows-1251' })), ['2 Ђ“й//0']);
    assert.deepEqual(inShort(await read(Buffer.from(TEXT, 'utf16le'), { encoding: 'UTF-16LE' })).length, 1);
    assert.deepEqual(inShort(await read(`\uFEFF${TEXT}`, { encoding: 'utf8' })).length, 1);
    await assertRefusedAsWhole('title\na\n', /^There is no encoding "klingon"/, { encoding: 'klingon' });
  });

  /** The SHA-256 of what bytes 0x80 to 0xFF mean: the `Identifier` of each index of the Encoding Standard. */
  const SINGLE_BYTE: Readonly<Record<string, string>> = {
    ibm866: 'db6fe14a559d1601a7667338d83704773d5708dbc641e1ad3c5e21405770f05e',
    'iso-8859-2': '9569c67f22d0b57790e1c407c6eecf227e4562322dc296de43cdab7a0152ec73',
    'iso-8859-3': 'af8f1e12df79b768322b5e83613698cdc619438270a2fc359554331c805054a3',
    'iso-8859-4': '72f29c92344d351fe9e74a946e7e0468d76d542c6894ff82982cb652ebe0feb7',
    'iso-8859-5': 'fa9b1f3f5242df43e2e7bca80e9b6997c67944f20a4af91ee06bacc4e132d9c9',
    'iso-8859-6': '85bb7b5c2dc75975afebe5743935ba4ed5a09c1e9e34e9bfb2ff80293f5d8bbc',
    'iso-8859-7': 'f53d8aeba36314ef950eef02ffcf11dff540638ce27dfe7a86b6ccc6875afb24',
    'iso-8859-8': '7657a9ca3fa875990da960d3f812eea28dcd0ae6ed55a18d5394303c86f5484b',
    'iso-8859-8-i': '7657a9ca3fa875990da960d3f812eea28dcd0ae6ed55a18d5394303c86f5484b',
    'iso-8859-10': '02c2b5590d8ccda9931008c471f6ee2c590b2c8fe5e6ccb3b08638115d778507',
    'iso-8859-13': '40736338e964ab520407cebcb01329f8d450abf6ce12bf88b74b655b60e43300',
    'iso-8859-14': '2c8651cfc08b1f35b17919ee5379f2fa006af3ec809f11b3b7f470785580542b',
    'iso-8859-15': 'a560aba47bccd7510a6ac77f671fe75dca3800f05cf6d676910c311a8f8ff079',
    'iso-8859-16': '55676320d2d1b6e6909f5b3d741a7cf0cefc84e920aa4474afc091459111c2e3',
    'koi8-r': 'c5497cd9071cb352c0e56b219154e539badf63de40b71578f09e2e11fe7d50ae',
    'koi8-u': '19a4da2c3f245118bbc8019326f45a07832949938ff903f03d62ac4da1f61f40',
    macintosh: 'f2c6a4f6406b3e86a50a5dba4d2b7dd48e2e33c0d82aefe764535c934ec11764',
    'windows-874': 'b416583ce125e38474381b31b401a98b19ecf2e57e0998e78a1e18b14894905d',
    'windows-1250': '0669455a7a1c70ba6003ea737991e8ee9adc455125c13cfe6705a361358de5fa',
    'windows-1251': '7592ef921679ba168b00a9e9afa3b4eebd67bf13dc7e84c4b6e120de856826e0',
    'windows-1252': 'e56d49d9176e9a412283cf29ac9bd613f5620462f2a080a84eceaf974cfa18b7',
    'windows-1253': '49fdc881a3488904dd1e8dfba9aef3258454249958b611bcded1d4c981ab5561',
    'windows-1254': 'e80a27adf377438be8ba5bd223875ea56d6a4d47f958cce1c957a2c446825caa',
    'windows-1255': 'cd7fb43c97eefa1651084d92d02af53ad668bd848528c18c3b1af5c06b499651',
    'windows-1256': '161bdb381f16408e8bebcc8f5310c4190af0e359de8d9bbaa3628ce2f0875509',
    'windows-1257': 'cc7256bdd10a5b8dc7fb6f994659f307dfcae60def9aa6c29d811f85e2842c47',
    'windows-1258': '198bacedfcf24390e219240a7b776b6cec34cff070330b08a601a69c67f7eb24',
    'x-mac-cyrillic': '73e8e7642c6fa9de29d42819b47fba55b58666fb1e339faeb4a89a0bd7c24d43',
  };

  test('of single bytes: each byte is the character of the Encoding Standard, or is refused', async () => {
    for (const [encoding, identifier] of Object.entries(SINGLE_BYTE)) {
      const ascii = String.fromCharCode(...Array(0x80).keys()).replaceAll(/[\0"\r\n]/g, '');
      assert.equal((await read(`title\n"${ascii}"\n`, { encoding })).books[0]?.title, ascii, encoding);
      const meant: string[] = [];
      for (let byte = 0x80; byte <= 0xff; byte += 1) {
        const bytes = Buffer.from([...Buffer.from('title\n'), byte]);
        const found = await read(bytes, { encoding }).catch((error: Error) => error);
        if (found instanceof Error) {
          assert.match(found.message, /invalid bytes\.$/);
          meant.push('None');
        } else {
          meant.push(`${found.books[0]?.title.codePointAt(0)}`);
        }
      }
      const hash = createHash('sha256').update(`[${meant.join(', ')}]`);
      assert.equal(hash.digest('hex'), identifier, encoding);
    }
  });

  test('of several bytes are refused, since Node.js decodes some of their characters as others', async () => {
    const labels = ['euc-kr', 'windows-949', 'big5', 'big5-hkscs', 'euc-jp', 'shift_jis', 'iso-2022-jp'];
    for (const encoding of [...labels, 'gbk', 'gb18030', 'x-user-defined']) {
      await assertRefusedAsWhole(
        Buffer.from([...Buffer.from('title\n'), 0x8c, 0x63]),
        new RegExp(
          `^The encoding "${encoding}" is not supported: convert the file to UTF-8 with iconv first\\.$`,
        ),
        { encoding },
      );
    }
  });

  test('bytes that are invalid in the encoding end the reading with their line, and never become U+FFFD', async () => {
    const rows = 'title\r\na\r\n"b\nc"\r\n';
    for (const invalid of [
      [0xe9, 0x0a],
      [0xc3],
      [0xf0, 0x9f, 0x98],
      [0xed, 0xa0, 0x80],
      [0xff, 0xfe],
      [0xc0, 0x80],
    ]) {
      for (const size of PIECE_SIZES) {
        const outcome = await read(Buffer.from([...Buffer.from(`${rows}x`), ...invalid]), {}, [size]);
        assert.deepEqual(inShort(outcome), ['2 a//0', '3 b\nc//0'], `${invalid} in pieces of ${size}`);
        assert.match(outcome.fault ?? '', /^Line 5 is not UTF-8 text.*--encoding windows-1252\.$/);
      }
    }
    const long = `title\n${'a\n'.repeat(100_000)}`;
    const { books, fault } = await read(Buffer.concat([Buffer.from(long), Buffer.from('\xe9', 'latin1')]));
    assert.equal(books.length, 100_000);
    assert.match(fault ?? '', /^Line 100002 is not UTF-8/);
    for (const [before, line] of [
      ['title\nCafé\n', 3],
      [`title\nCafé\n${'a\n'.repeat(100_000)}`, 100_003],
    ] as const) {
      const damaged = await read(Buffer.concat([Buffer.from(before), Buffer.from('\xe9', 'latin1')]));
      assert.match(damaged.fault ?? '', new RegExp(`^Line ${line} is damaged: .+ Correct that line\\.$`));
    }
    const kept = await read('title\na\uFFFDb\n');
    assert.deepEqual(inShort(kept), ['2 a\uFFFDb//0'], 'a U+FFFD of the file must stay');
    const half = Buffer.from('\uFEFFtitle\na\nb\ud83d\nc\n', 'utf16le');
    await assertRefusedAsWhole(half, /^The file is not utf-16le text/);
  });

  test('a spreadsheet or an archive is refused as such', async () => {
    const zip = Buffer.from('504b0304140006000800000021006fa8d3e2b5000000', 'hex');
    await assertRefusedAsWhole(zip, /^The file is not text: save a spreadsheet as CSV/, {
      name: 'a.xlsx',
    });
    const gzip = Buffer.from('1f8b08000000000000034b4c4a06000241243503000000', 'hex');
    await assertRefusedAsWhole(gzip, /^The file is not text/, { name: 'a.csv' });
  });
});

describe('JSON', () => {
  /**
   * The same file with a long book before all others, which alone determines the columns: the rest is read piece by
   * piece. Undefined if the content has no place for it.
   */
  function later(content: string): string | undefined {
    const long = (before: string, after: string) =>
      `${`${before}{"title":"first",`.padEnd(64 * 1024 - 32)}"author":"","year":0}${after}`;
    if (content.startsWith('[')) return long('[', ',') + content.slice(1);
    if (/^\{"\d/.test(content)) return long('{"0":', ',') + content.slice(1);
    return content.startsWith('{') ? `${long('', '\n')}${content}` : undefined;
  }

  function readLater(content: string, sizes: readonly number[]): Promise<Outcome> {
    return read(content, {}, [64 * 1024, ...Array(500).fill(sizes).flat()]);
  }

  /** Arrays unless the name says otherwise. The result is the same whatever the pieces in which the content arrives. */
  const CASES: Readonly<
    Record<string, readonly [content: string, books: string[], refused?: string[], fault?: string]>
  > = {
    'an array, compact': ['[{"title":"a","year":1},{"title":"b"}]', ['1 a//1', '1 b//0']],
    'an array, indented': [
      '\uFEFF\r\n [\r\n  {\r\n    "title": "a"\r\n  },\r\n  {"title": "b"}\r\n]\r\n\r\n',
      ['3 a//0', '6 b//0'],
    ],
    'an empty array': [' [ ]\n', []],
    lines: ['{"title":"a"}\n\n \t\r\n{"title":"b"}\r{"title":"c"}', ['1 a//0', '4 b//0', '5 c//0']],
    'brackets, quotes, backslashes in texts': [
      '[{"title":"]}\\"[{,","x":{"y":["]","}\\\\"]}},{"title":"\\\\","author":"\\\\\\""}]',
      ['1 ]}"[{,//0', '1 \\/\\"/0'],
    ],
    'several authors': [
      '[{"title":"a","author":["x","y z"]},{"title":"b","author":[{"name":"x"},{"fl":"y","lf":"z"}]},{"title":"c","author":[]}]',
      ['1 a/x, y z/0', '1 b/x, y/0', '1 c//0'],
    ],
    'rules 1 to 3: years': [
      '[{"title":"a","year":2020.0},{"year":2e3},{"year":-0},{"year":null},{"year":"1997?"},{"year":""},{"year":-720}]',
      ['1 a//2020', '1 //2000', '1 //0', '1 //0', '1 //1997', '1 //0', '1 //-720'],
    ],
    'rules 2 to 4: a value that is not a field of a book is never converted': [
      '{"title":"ok","author":"","year":1}\n{"title":1}\n{"title":["a"]}\n{"title":"\\u0000"}\n{"title":"\\ud83d"}\n' +
        '{"author":true}\n{"author":[1]}\n{"author":[["a"]]}\n{"author":{"name":"a"}}\n' +
        '{"year":1999.5}\n{"year":9007199254740993}\n{"year":true}\n{"year":[1]}\n{"year":"1999.5"}\n{"year":1999.00000000000000000001}\n',
      ['1 ok//1'],
      [
        '2 title "1" is not a string',
        '3 title "["a"]" is not a string',
        '4 title "\0" has a NUL character or a lone surrogate',
        '5 title "\ud83d" has a NUL character or a lone surrogate',
        '6 author "true" is not a string',
        '7 author "[1]" is not a string',
        '8 author "[["a"]]" is not a string',
        '9 author "{"name":"a"}" is not a string',
        '10 year "1999.5" is neither a whole number within ±(2^53−1) nor a string',
        '11 year "9007199254740992" is neither a whole number within ±(2^53−1) nor a string',
        '12 year "true" is neither a whole number within ±(2^53−1) nor a string',
        '13 year "[1]" is neither a whole number within ±(2^53−1) nor a string',
        '14 year "1999.5" is not a whole number',
        '15 year "NaN" is neither a whole number within ±(2^53−1) nor a string',
      ],
    ],
    'rule 6: elements that are not objects': [
      '[{"title":"a"},1,"b,]",[{"title":"c"}],null,true,{"title":},\n{"title":"d"}]',
      ['1 a//0', '2 d//0'],
      [...Array(6).fill('1 is not a JSON object')],
    ],
    'rule 6: lines that are not objects': [
      '{"title":"a"}\nnonsense\n{"title":"b"\n[{"title":"c"}]\n"d"\n{"title":"e"} x\n{"title":"f"}\n',
      ['1 a//0', '7 f//0'],
      [2, 3, 4, 5, 6].map((line) => `${line} is not a JSON object`),
    ],
    'rule 5: other keys are ignored, the last of two counts': [
      '{"title":"a","__proto__":{"author":"x"},"constructor":1,"title":"b"}\n{"title":"c"}',
      ['1 b//0', '2 c//0'],
    ],
    'text between two elements': [
      '[{"title":"a"},\n{"title":"b"} oops {"title":"c"}]',
      ['1 a//0', '2 b//0'],
      [],
      'The array is malformed in line 2: after an element, a comma or ] should follow.',
    ],
    'no element between two commas': [
      '[{"title":"a"}\n,\n,{"title":"b"}]',
      ['1 a//0'],
      [],
      'The array is malformed in line 3: an element should follow.',
    ],
    'text after the end': [
      '[{"title":"a"}]\n{"title":"b"}',
      ['1 a//0'],
      [],
      'The array is malformed in line 2: there is text after the end of the array.',
    ],
    'a missing end': [
      '[{"title":"a"},\n{"title":"b"}\n',
      ['1 a//0', '2 b//0'],
      [],
      'The array is incomplete: the text that begins in line 3 is cut off at the end of the file.',
    ],
    'a missing end of an element': [
      '[{"title":"a"},\n{"title":"b"},{"title',
      ['1 a//0', '2 b//0'],
      [],
      'The array is incomplete: the text that begins in line 2 is cut off at the end of the file.',
    ],
    'an object of objects': [
      '{"1": {"title":"a"},\n "2\\"" : {"title":"b"}, "3":4}',
      ['1 a//0', '2 b//0'],
      ['2 is not a JSON object'],
    ],
  };
  for (const [name, [content, books, refused = [], fault]] of Object.entries(CASES)) {
    test(name, async () => {
      const whole = await read(content);
      assert.deepEqual([inShort(whole), refusalsOf(whole), whole.fault], [books, refused, fault]);
      const more = later(content);
      if (more === undefined || books.length === 0) return;
      const isLines = whole.reading.format === 'jsonl';
      const lineBefore = (text: string) =>
        isLines ? text.replace(/^\d+/, (line) => `${Number(line) - 1}`) : text;
      for (const size of PIECE_SIZES) {
        const outcome = await readLater(more, [size]);
        assert.deepEqual(inShort(outcome).slice(1).map(lineBefore), books, `pieces of ${size}`);
        assert.deepEqual(refusalsOf(outcome).map(lineBefore), refused, `pieces of ${size}`);
        assert.equal(outcome.fault, fault);
      }
    });
  }

  test('rules 1 to 4: any book comes back as it was written, whatever the pieces', async () => {
    const text = fc.string({ unit: 'binary' }).map((any) => any.replaceAll('\0', ''));
    const books = fc.array(fc.record({ title: text, author: text, year: fc.maxSafeInteger() }), {
      minLength: 1,
    });
    const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 });
    const writing = fc.constantFrom(
      (written: readonly object[]) => JSON.stringify(written),
      (written: readonly object[]) => JSON.stringify(written, undefined, 2),
      (written: readonly object[]) =>
        JSON.stringify(Object.fromEntries(written.map((book, index) => [`${index}`, book]))),
      (written: readonly object[]) => written.map((book) => JSON.stringify(book)).join('\n'),
    );
    await fc.assert(
      fc.asyncProperty(books, writing, sizes, async (written, write, pieces) => {
        const outcome = await readLater(later(write(written)) ?? '', pieces);
        assert.deepEqual(
          outcome.books.slice(1).map(({ title, author, year }) => ({ title, author, year })),
          written.map((book) => ({ ...book, year: book.year + 0 })),
        );
        assert.deepEqual([outcome.refused, outcome.fault], [[], undefined]);
      }),
      RUNS,
    );
  });
});

describe('a file', () => {
  test('is recognised by its name and its beginning', async () => {
    const formatOf = async (name: string, content: string, format?: 'csv' | 'json' | 'jsonl') =>
      (await read(content, { name, format })).reading.format;
    assert.equal(await formatOf('a.csv', '[title],year\n', undefined), 'csv');
    assert.equal(await formatOf('a.TSV', 'title\tyear\n'), 'csv');
    assert.equal(await formatOf('-', 'title\tyear\n'), 'csv');
    assert.equal(await formatOf('books', '\n [{"title":""}]'), 'json');
    assert.equal(await formatOf('a.json', '{"title":""}\n'), 'jsonl');
    assert.equal(await formatOf('a.json', '{"7":{"title":""}}\n'), 'json');
    assert.equal(await formatOf('a.jsonl', ''), 'jsonl');
    assert.equal(await formatOf('a.ndjson', 'x\n{"title":""}\n'), 'jsonl');
    assert.equal(await formatOf('a.csv', '[{"title":""}]', 'json'), 'json');
    assert.equal(await formatOf('a.json', 'title\n', 'csv'), 'csv');
    await assertRefusedAsWhole('title\n', /begins with neither \[ nor \{/, { name: 'a.json' });
    await assertRefusedAsWhole('', /^The file is empty: it has no array/, { name: 'a.json' });
    await assertRefusedAsWhole(
      '{\n  "docs": [{"title":"a"}]\n}\n',
      /^Line 1 has only the beginning of an object/,
    );
    await assertRefusedAsWhole('1\n2\n', /^None of the first records is a JSON object/, { format: 'jsonl' });
    await assertRefusedAsWhole('{"title":"a"}x', /^None of the first records/, { format: 'json' });
  });

  test('comes in batches, each with its position', async () => {
    const content = `title\n${'a title of a book\n'.repeat(20_000)}`;
    const { batches } = await read(content);
    assert.ok(batches.every(({ books }) => books.length <= 250));
    const positions = batches.map(({ position }) => position);
    assert.deepEqual(
      positions,
      positions.toSorted((one, other) => one - other),
    );
    assert.equal(positions.at(-1), content.length);
    const long = await read(`title\n${`${'x'.repeat(100_000)}\n`.repeat(100)}`);
    assert.ok(
      long.batches.every(({ books }) => books.length === 1),
      'a batch has more than 64 KiB and the book in which they end',
    );
    assert.equal(long.books.length, 100);
  });

  test('is closed when it is not read to its end, or cannot be', async () => {
    let closed = 0;
    async function* endless(line: string) {
      try {
        for (;;) yield Buffer.from(line);
      } finally {
        closed += 1;
      }
    }
    for await (const _ of (await readBooks(endless('title,x\n'), { name: '-', columns: {} })).batches) break;
    assert.equal(closed, 1);
    await assert.rejects(readBooks(endless('foo\n'), { name: '-', columns: {} }), /no column/);
    assert.equal(closed, 2);
  });

  test('that becomes unreadable is an error, after all books before that', async () => {
    async function* failing() {
      yield Buffer.from(`title\n${'a\n'.repeat(100_000)}`);
      throw new Error('disk on fire');
    }
    let books = 0;
    const { batches } = await readBooks(failing(), { name: '-', columns: {} });
    await assert.rejects(async () => {
      for await (const batch of batches) books += batch.books.length;
    }, /disk on fire/);
    assert.equal(books, 100_000);
  });
});

describe('rejected rows', () => {
  /** Reads a file and writes its rejected records to another. */
  async function reject(context: TestContext, name: string, content: Content, options: Options = {}) {
    const folder = folderOf(context);
    const input = join(folder, name);
    const outcome = await read(content, { name: input, ...options });
    const rejects = new Rejects(outcome.reading, rejectsPath(input, outcome.reading));
    for (const { refused } of outcome.batches) await rejects.add(refused);
    const path = await rejects.close();
    return { outcome, folder, path, rejected: path === undefined ? undefined : readFileSync(path, 'utf8') };
  }

  const CSV =
    'title;author;year\r\na;b;1\r\n"c ""d""\ne";f;twenty\r\ng;h\r\ni;j;1;k\r\nl;m;1999.5;;\r\nä;"n"o;3\r\n';
  const REJECTED_CSV =
    'title;author;year;refused\n' +
    '"c ""d""\ne";f;twenty;"year: is not an unambiguous year"\n' +
    'g;h;"has 2 fields, the header has 3"\n' +
    'i;j;1;k;"has 4 fields, the header has 3"\n' +
    'l;m;1999.5;"year: is not a whole number"\n' +
    'ä;"n"o;3;"author: has text after its closing quote"\n';

  test('go to a file like the one they come from, with the reason', async (context) => {
    const { path, folder, rejected } = await reject(context, 'books.csv', CSV);
    assert.equal(path, join(folder, 'books.rejects.csv'));
    assert.equal(rejected, REJECTED_CSV);
    const { rejected: utf8 } = await reject(context, 'a.csv', Buffer.from(CSV, 'latin1'), {
      encoding: 'latin1',
    });
    assert.equal(utf8, REJECTED_CSV);
  });

  test('can be corrected there and read again; if not corrected, they stay as they are', async (context) => {
    const again = await reject(context, 'books.rejects.csv', REJECTED_CSV);
    assert.equal(again.outcome.books.length, 0);
    const reasons = again.outcome.refused.map(({ reason }) => reason);
    assert.deepEqual(reasons, [
      'is not an unambiguous year',
      'has 3 fields, the header has 4',
      'has 5 fields, the header has 4',
      'is not a whole number',
      'has text after its closing quote',
    ]);
    assert.equal(again.rejected, REJECTED_CSV);
    const corrected = REJECTED_CSV.replace('twenty', '1920')
      .replace('g;h;', 'g;h;;')
      .replace(';1;k', ';1')
      .replace('1999.5', '')
      .replace('"n"o', '"no"');
    const { outcome, path } = await reject(context, 'books.csv', corrected);
    assert.deepEqual(inShort(outcome), ['2 c "d"\ne/f/1920', '4 g/h/0', '5 i/j/1', '6 l/m/0', '7 ä/no/3']);
    assert.equal(path, undefined, 'there is a file, though nothing was rejected');
  });

  test('after a quote that is never closed are the rest of the file, unchanged', async (context) => {
    const { rejected } = await reject(context, 'a.csv', 'title,year\na,x\n"b,2\nc,3\n');
    assert.equal(rejected, 'title,year,refused\na,x,"year: is not an unambiguous year"\n"b,2\nc,3\n\n');
  });

  test('name their delimiter if the file does', async (context) => {
    const content = 'SEP=|\r\n,,\r\ntitle|year\na,b|1\nc|x\n';
    for (const [options, rejected] of [
      [{}, 'sep=|\ntitle|year|refused\nc|x|"year: is not an unambiguous year"\n'],
      [
        { hasHeader: false, columns: { title: 'column 1', year: 'column 2' } },
        'sep=|\ncolumn 1|column 2|refused\n' +
          'title|year|"column 2: is not an unambiguous year"\nc|x|"column 2: is not an unambiguous year"\n',
      ],
    ] as const) {
      const first = await reject(context, 'a.csv', content, options);
      assert.equal(first.rejected, rejected);
      const again = await reject(context, 'a.rejects.csv', rejected, { ...options, hasHeader: true });
      assert.equal(again.rejected, rejected);
    }
  });

  const LINES =
    '{"title":1}\r\nnonsense\n{"title":"\\u0000","refused":"title: \\"old\\""}\n{ }\n{"year":1e400}\n[1]\n{"title":"ok"}\n';
  const REJECTED_LINES =
    '{"title":1,"refused":"title: is not a string"}\n' +
    'nonsense\n' +
    '{"title":"\\u0000","refused":"title: has a NUL character or a lone surrogate"}\n' +
    '{"year":1e400,"refused":"year: is neither a whole number within ±(2^53−1) nor a string"}\n' +
    '[1]\n';

  test('of JSON go to JSON: an object with the reason, anything else unchanged', async (context) => {
    const lines = await reject(context, 'books.jsonl', LINES);
    assert.equal(lines.path, join(lines.folder, 'books.rejects.jsonl'));
    assert.equal(lines.rejected, REJECTED_LINES);
    const again = await reject(context, 'books.rejects.jsonl', REJECTED_LINES);
    assert.equal(again.rejected, REJECTED_LINES);
    const array = await reject(context, 'books.json', '[{"title":"ok"},\n{\r\n  "title": 1\n},\n[1,\n2]]');
    assert.equal(array.path, join(array.folder, 'books.rejects.json'));
    assert.equal(array.rejected, '[\n{ "title": 1 ,"refused":"title: is not a string"},\n[1, 2]\n]\n');
    const objects = '{"a":{"title":"ok"},"b":{"title":1}}';
    const named = await reject(context, 'books.txt', objects, { format: 'json' });
    assert.equal(named.rejected, '[\n{"title":1,"refused":"title: is not a string"}\n]\n');
  });

  test('of a JSON array are one array, complete after each addition', async (context) => {
    const folder = folderOf(context);
    const { reading, batches } = await read(`[${Array(500).fill('{"title":"é","year":"x"}').join()}]`);
    assert.ok(batches.length > 2);
    const path = join(folder, 'rejects.json');
    const rejects = new Rejects(reading, path);
    let added = 0;
    for (const { refused } of batches) {
      await rejects.add(refused);
      added += refused.length;
      const again = await read(readFileSync(path), { format: 'json' });
      assert.deepEqual([again.refused.length, again.fault], [added, undefined]);
    }
    await rejects.close();
    const corrected = await read(readFileSync(path, 'utf8').replaceAll('"x"', '1815'), { format: 'json' });
    assert.deepEqual([corrected.books.length, corrected.refused, corrected.fault], [500, [], undefined]);
  });

  test('never overwrite another file', async (context) => {
    const folder = folderOf(context);
    const { reading, refused } = await read('title,year\na,x\n', { name: join(folder, 'books.csv') });
    const paths: (string | undefined)[] = [];
    for (let times = 0; times < 3; times += 1) {
      const rejects = new Rejects(reading, join(folder, 'mine.csv'));
      assert.equal(existsSync(join(folder, `mine-${times + 1}.csv`)), false);
      await rejects.add(refused);
      paths.push(await rejects.close());
    }
    assert.deepEqual(
      paths,
      ['mine.csv', 'mine-2.csv', 'mine-3.csv'].map((name) => join(folder, name)),
    );
    writeFileSync(join(folder, 'file'), '');
    assert.throws(
      () => new Rejects(reading, join(folder, 'file', 'rejects.csv')),
      /Rejected rows cannot be written to .* Run the command again with --rejects and another file\.$/,
    );
  });

  /** Corrects the only rejected record of a file. */
  async function corrected(content: string, text: string, options: Options = {}) {
    const { refused, reading } = await read(content, options);
    assert.equal(refused.length, 1);
    return correct(refused[0] as RefusedRecord, text, reading);
  }

  test('are corrected by another value in one column, whatever else is in the record', async () => {
    const csv = 'n,title,year,note,refused\n\n1,"a ""b""\n;",x,"no, ""never""","year: is wrong"\n';
    const { refused, reading } = await read(csv);
    const [record] = refused as [RefusedRecord];
    assert.deepEqual(correctable(record, reading), { column: 'year', text: 'x' });
    const { title, author, year, line } = (await correct(record, '1997', reading)) as ReadBook;
    assert.deepEqual({ title, author, year, line }, { title: 'a "b"\n;', author: '', year: 1997, line: 3 });

    const still = (await correct(record, '1997-98', reading)) as RefusedRecord;
    assert.deepEqual([still.line, still.column, still.value], [3, 'year', '1997-98']);
    assert.equal(still.original, '1,"a ""b""\n;","1997-98","no, ""never"""');
    assert.equal(((await correct(still, '1998', reading)) as ReadBook).year, 1998);
  });

  test('are corrected as a whole where a value cannot be told apart from the others', async () => {
    const { refused, reading } = await read('title,author\na,b,c\n');
    assert.deepEqual(correctable(refused[0] as RefusedRecord, reading), { column: undefined, text: 'a,b,c' });
    const book = (await corrected('title,author\na,b,c\n', '"a,b",c')) as ReadBook;
    assert.deepEqual([book.title, book.author], ['a,b', 'c']);
    assert.equal(((await corrected('title\n"a\n', '"a"')) as ReadBook).title, 'a');
    for (const [text, reason] of [
      ['', 'is empty'],
      ['a,b\nc,d', 'is 2 records instead of one: save the refused rows and import that file'],
      ['a,b,c', 'has 3 fields, the header has 2'],
    ] as const) {
      const still = (await corrected('title,author\na,b,c\n', text)) as RefusedRecord;
      assert.deepEqual([still.reason, still.original, still.line], [reason, text, 2]);
    }
  });

  test('of JSON are corrected in the same way', async () => {
    const options = { format: 'json' } as const;
    const book = (await corrected('[{"title":\n7,"author":"b","year":1}]', 'seven', options)) as ReadBook;
    assert.deepEqual([book.title, book.author, book.year, book.line], ['seven', 'b', 1, 1]);
    assert.equal(((await corrected('{"title":"a","year":"x"}', '-44')) as ReadBook).year, -44);
    const { refused, reading } = await read('{"title":"a"}\n{"title"\n');
    const [record] = refused as [RefusedRecord];
    assert.deepEqual(correctable(record, reading), { column: undefined, text: '{"title"' });
    assert.equal(((await correct(record, '{"title":"b"}', reading)) as ReadBook).title, 'b');
    const still = (await correct(record, '{"title":', reading)) as RefusedRecord;
    assert.equal(still.reason, 'is not a JSON object');
  });

  test('have a file beside the one that is read, or in the working directory for a pipe', async () => {
    const csv = (await read('title\n', { name: '-' })).reading;
    const json = (await read('[]', { name: '-' })).reading;
    assert.equal(rejectsPath('-', csv), 'rejects.csv');
    assert.equal(rejectsPath('-', json), 'rejects.json');
    assert.equal(rejectsPath('in/my.books.tsv', csv), join('in', 'my.books.rejects.csv'));
    assert.equal(rejectsPath('/in/books', json), '/in/books.rejects.json');
    assert.equal(rejectsPath('books.rejects.csv', csv), 'books.rejects.csv');
    assert.equal(rejectsPath('books.rejects-2.csv', csv), 'books.rejects.csv');
  });
});

describe('rules 3 and 4', () => {
  test('are the same as in the service, for CSV and for JSON', async () => {
    const text = fc.string({ unit: fc.constantFrom('a', '\0', '\ud83d', '\ude00', 'é', '"') });
    const year = fc.oneof(
      fc.double(),
      fc.maxSafeInteger(),
      fc.constantFrom(2 ** 53, -(2 ** 53), 1e300, 0.1 + 0.2, -0),
    );
    await fc.assert(
      fc.asyncProperty(text, text, year, async (title, author, number) => {
        const body = JSON.stringify({ title, author, year: number });
        const expected = readBookChanges(JSON.parse(body)); // a number that JSON cannot express is null there
        const accepted = body.includes('"year":null')
          ? readBookChanges({ title, author, year: 0 })
          : expected;
        const [fromJson] = (await read(`${body}\n`)).books;
        assert.deepEqual(fromJson && { ...accepted }, fromJson && pick(fromJson), body);
        assert.equal(fromJson === undefined, accepted === undefined, body);
        if (
          ![title, author].every((value) => value.isWellFormed()) ||
          !Number.isFinite(number) ||
          /e/.test(`${number}`)
        )
          return;
        const quoted = [title, author].map((value) => `"${value.replaceAll('"', '""')}"`);
        const [fromCsv] = (await read(`title,author,year\n${quoted.join()},${number}\n`)).books;
        assert.deepEqual(fromCsv && pick(fromCsv), readBookChanges({ title, author, year: number }), body);
      }),
      RUNS,
    );
  });

  function pick({ title, author, year }: ReadBook) {
    return { title, author, year };
  }
});

describe('hostile files', () => {
  const MEBIBYTE = 1024 * 1024;

  test('endless nesting, brackets that do not match', async () => {
    const deep = `{"title":"a","x":${'['.repeat(MEBIBYTE)}${']'.repeat(MEBIBYTE)}}`;
    for (const content of [
      `[{"title":"a"},${deep},{"title":"b"}]`,
      `{"title":"a"}\n${deep}\n{"title":"b"}`,
    ]) {
      const { books, refused } = await read(content);
      assert.deepEqual(
        books.map(({ title }) => title),
        ['a', 'b'],
      );
      assert.deepEqual(
        refused.map(({ reason }) => reason),
        ['is nested too deeply'],
      );
    }
    const shallow = `{"title":"a","x":${'['.repeat(900)}2.0${']'.repeat(900)}}`;
    assert.equal((await read(shallow)).books.length, 1);
    const crossed = await read('[{"title":"a"},{"title":["b"}],{"title":"c"}]');
    assert.deepEqual([crossed.books.length, refusalsOf(crossed)], [2, ['1 is not a JSON object']]);
  });

  test('a header of a mebibyte', async () => {
    await assertRefusedAsWhole(`${'x'.repeat(MEBIBYTE)}\n`, /^There is no column for the title.{0,200}$/);
    await assertRefusedAsWhole(`${'x,'.repeat(MEBIBYTE / 2)}\n`, /more than 10000 columns/);
    const { books } = await read(`title,"${'x\n'.repeat(MEBIBYTE / 2)}"\na,b\n`);
    assert.deepEqual(
      books.map(({ line }) => line),
      [524_290],
    );
  });

  test('a record of a million fields', async () => {
    const { refused, books } = await read(`title,year\n${'x,'.repeat(MEBIBYTE)}\na,1\n`);
    assert.deepEqual(
      refused.map(({ reason }) => reason),
      ['has 1048577 fields, the header has 2'],
    );
    assert.equal(books.length, 1);
  });

  test('a value of many blanks, a year of many digits, a name of many characters', async () => {
    const outcome = await read(`title,year\na,${' '.repeat(MEBIBYTE)}\nb,${'9'.repeat(MEBIBYTE)}\n`);
    assert.deepEqual(
      outcome.refused.map(({ reason, value }) => [reason, value.length]),
      [
        ['is too long for a year', 81],
        ['is too long for a year', 81],
      ],
    );
  });

  /** The books, or the error message if they are not all. */
  function tell(content: Content, size: number): Promise<string[] | string> {
    return read(content, {}, [size]).then(
      (outcome) => outcome.fault ?? inShort(outcome),
      (error: Error) => error.message,
    );
  }

  test('noise of any kind ends in books and refusals, or in one sentence', async () => {
    const noise = fc.uint8Array({ maxLength: 300 });
    const marks = fc.string({
      unit: fc.constantFrom('"', ',', '\n', '\r', '[', ']', '{', '}', ':', '\\', 'a', '1', ' '),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          noise.map((bytes) => Buffer.from(bytes)),
          marks.map((text) => Buffer.from(text)),
        ),
        async (bytes) => {
          for (const beginning of ['', 'title,year\n', '[', '{"title":', '{"1":{', '{"title":""}\n']) {
            const content = Buffer.concat([Buffer.from(beginning), bytes]);
            const [whole, pieces] = [await tell(content, content.length + 1), await tell(content, 1)];
            // How much is read before an error depends on how much is looked at together.
            if (typeof whole !== 'string' && typeof pieces !== 'string') assert.deepEqual(pieces, whole);
            for (const told of [whole, pieces])
              if (typeof told === 'string') assert.match(told, /^[^\n\r]*\.$/);
          }
        },
      ),
      RUNS,
    );
  });
});
