// What the files of programs mean: which columns are those of a book, what is a year or an id, and that rejected rows can be
// corrected and read again. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import promises from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { asRefused, correct, correctable } from '../../src/files/correcting.ts';
import type { ReadBook, RefusedRecord } from '../../src/files/format.ts';
import { because, doubtOf, type ReasonCode, sentenceOf } from '../../src/files/reasons.ts';
import { readYear } from '../../src/files/years.ts';
import { Rejects, rejectsPath } from '../../src/import/rejects.ts';
import { type Content, casesOf, inShort, read, refusalsOf } from '../support/files.ts';
import { temporaryFolder } from '../support/service.ts';

describe('years', () => {
  const NEW_YEARS = [
    '1999-12-31T23:00:00+00:00 | 1999-12-31T23:00:00Z | 1999-12-31 23:00:00+00 | 1999-12-31T22:00:00.000Z',
    '1999-12-31T12:00Z | 1999-12-31T10:00:00.000000+00:00 | 1999-12-31 13:00:00 UTC | 1999/12/31 11:00:00+0000',
    '1999-12-31T10:15:00Z | 1999-12-31T11:15:00Z | 1999-12-31T15:15:00Z | 1999-12-31T18:15:00Z',
    '1999-12-31T13:30:00Z | 1999-12-31T14:30:00Z | 1999-12-31T17:30:00Z | 1999-12-31T18:30:00Z',
    '1999-12-31T19:30:00Z | 1999-12-31T20:30:00Z | Fri, 31 Dec 1999 23:00:00 GMT | 1999-12-31T23:00Z[UTC]',
    '2000-01-01T00:00:00Z | 2000-01-01T05:00:00+00:00 | 2000-01-01T12:00:00Z | 2000-01-01T00:00:00+14:00',
    '2000-12-31T00:00:00Z | 2000-12-31T09:45:00Z | 2000-12-30T23:00:00Z | 2000-06-30T22:00:00Z',
  ];
  const SAME_YEARS = [
    '1999-12-31T23:15:42Z | 1999-12-31T23:00:01Z | 1999-12-31T23:00:00.5Z | 1999-12-31T22:15:00Z',
    '1999-12-31T23:00:00 | 1999-12-31 23:00:00 | 1999-12-31T23:00:00+01:00 | 1999-12-31T23:00:00-05:00',
  ];
  const YEARS: readonly (readonly [number, ...string[]])[] = [
    [2008, '2008', ' 2008 ', '2008.0', '+002008', '02008', '2008.', '2008-09', '2008-09-14', '2008-9-14'],
    [2008, '2008-09-14T07:00:00+00:00', '2008-12-31 23:59:59', '2008/9/14', '2008.09.14'],
    [2006, '9/16/2006', '16/9/2006', '16.9.2006', '16-09-2006', '9/16/2006 0:00:00', '09/2006'],
    [1997, 'June 26, 1997', 'June 26 1997', 'Jun. 26th, 1997', '26 June 1997', '26th of June 1997'],
    [1997, 'June 1997', 'JUNE, 1997', '26-Jun-1997', 'Jun-1997', '1997 June 26', '1997, Jun'],
    [1997, '26. Juni 1997', '26 juin 1997.', '1er juin 1997', '26 de junio de 1997', 'giugno 1997'],
    [1997, ...'março 1997 | 1er trim. 1997 | Q1 1997 | May/June 1997 | Sommer 1997 | 1997 май'.split(' | ')],
    [1997, ...'aout 1997 | DL 1997 | ~1997 | May–June 1997 | June [1997] | \u200f1997'.split(' | ')],
    [1997, ...'26 мая 1997 г.'.split(' | ')],
    [1997, ...'1997年 | 1997年3月 | 1997年3月5日 | 1997年刊 | [1997.3] | 1997.10 | 1997년 3월'.split(' | ')],
    [1997, ...'1997. 3. 5. | 1997/3 | 1997/03'.split(' | ')],
    [
      1997,
      ...'１９９７ | １９９７．３ | ［１９９７］ | 一九九七年十二月 | ١٩٩٧ | ۱۹۹۷ | १९९७ | ๑๙๙๗ | 05.1997 | 1997.5'.split(
        ' | ',
      ),
    ],
    [1997, ...'1997 г. | 1997 год | 1997 r. | anno 1997 | 公元1997年 | 西暦1997年 | 1997 н. э.'.split(' | ')],
    [1997, ...'1997 م | ค.ศ. 1997'.split(' | ')],
    [1997, ...'1997,0 | 1997,00 | 1997, | 1997; | [1997], ©1997 | 1997 [c1997] | 1997-00-00'.split(' | ')],
    [1997, ...'+1997-03-00T00:00:00Z'.split(' | ')],
    [1997, ...'about 1997 | Δεκέμβριος 1997 | ?1997 | 1997~ | 昭和11年(1997) | 1997 [平成9]'.split(' | ')],
    [1997, ...'1997(令和元)年 | Heisei 9 (1997) | 1997(平9)'.split(' | ')],
    [1997, ...'Thursday, June 26, 1997 | Thu, 26 Jun 1997 00:00:00 GMT'.split(' | ')],
    [1997, ...'Thu Jun 26 1997 02:00:00 GMT+0200 (CEST)'.split(' | ')],
    [
      2004,
      ...'2004 printing | [2004 printing] | printed 2004 | 2004 reprint | repr. 2004 | 2nd ed. 2004'.split(
        ' | ',
      ),
    ],
    [
      2004,
      ...'2004 printing, c2004 | 2004 ed. | Nachdr. 2004 | 3. Aufl. 2004 | publ. 2004 | ©2004'.split(' | '),
    ],
    [-44, '−44', '－44', '–44', 'M.Ö. 44', '44 eaa.'],
    [0, ...'NULL | \\N | NaN | N/A | - | — | unknown | undated | nd | s/f | s.f. | s/d | б/г'.split(' | ')],
    [0, ...'bez daty'.split(' | ')],
    [0, ...'0001-01-01T00:00:00 | 1/1/0001 12:00:00 AM | 01.01.0001 00:00:00 | 0000-00-00'.split(' | ')],
    [0, ...'0000-00-00 00:00:00'.split(' | ')],
    [-44, '44 v. Chr.', '44 av. J.-C.', '44 до н. э.', '44 p.n.e.', '公元前44年', '44 ق.م'],
    [79, '79 ap. J.-C.', '79 n. Chr.'],
    [0, 's.d.', 'o. J.', '[z.j.]', 'u.å.', 'б. г.', '刊年不明', 'n.d', '[sans date]'],
    [1997, 'c1997', '©1997', '© 1997', '(c) 1997', 'cp. 1997', '℗ 1997', 'copyright  1997.', 'p1997'],
    [1997, '[1997]', '(1997)', '1997?', '[1997?]', '[c1997]', '[©1997].', 'ca. 1997', 'circa 1997', '1997]'],
    [-44, '44 BC', '44 BCE', '44BC', '44 b.c.', '44 B. C.', '44 b.c.e.', 'c. 44 BC', 'ca. 44 BCE'],
    [-44, '-44', '-44.0'],
    [79, 'AD 79', '79 AD', '79 A.D.', '79 CE', '79 C.E.', '79'],
    [101, '0101-01-02', '101', '[101]'],
    [0, '', '   ', 'n.d.', 'N. D.', '[n.d.]', 's.a.', '[s. a.]', '?', 'None', 'xxxx', 'uuuu'],
    [0, '0', '-0', '-0.0', '0000', '0101-01-01T00:00:00+00:00', '0101-01-01T01:00:00+01:00'],
    [0, '0100-12-31T19:03:58-04:56'],
    // The beginning of a day from UTC+14 to UTC+1, in UTC, and odd minutes from before 1942.
    ...NEW_YEARS.map((texts) => [2000, ...texts.split(' | ')] as const),
    [1815, '1814-12-31T23:06:32+00:00', '1814-12-31T18:06:40Z'],
    [1999, ...SAME_YEARS.flatMap((texts) => texts.split(' | '))],
    [0, '0100-12-31T23:00:00Z', '0000-12-31T23:00:00+00:00'],
    [19_970_626, '19970626'],
    [9_007_199_254_740_991, '9007199254740991'],
    [-9_007_199_254_740_991, '-9007199254740991', '-9007199254740991.000'],
  ];
  test('that are certain', () => {
    for (const [year, ...texts] of YEARS) {
      for (const text of texts) assert.ok(Object.is(readYear(text), year), `"${text}": ${readYear(text)}`);
    }
  });

  const OF_ERAS = [
    '昭和12年 | 昭和12.6 | [平成元年] | 令和３年 | 昭12.6 | S12 | R3 | h.10 | Showa 12 | ㍼12 | 昭和六十年',
    '民國99年 | 中華民国99 | 民88 | ROC 99 | 光緒12年 | 寛政三年',
  ];
  const REFUSED: Readonly<Record<string, readonly string[]>> = {
    'cannot be read as a year': [
      ...[
        '1997-1998 | 1997–1998 | 1997-98 | 1997-13 | 1997/98 | 1700/1. | 1967, c1965 | 2004, c1999 | 2004 [c1999] | c1999, 2004 printing | 1999 (2004 printing) | [200-?] | 1835 or 1836',
        '1641. [1642] | 1726[1727] | 168[5]. | 1850-? | 1997- | between 1694 and 1799 | -0150 - -0100',
        '19-- | 195X | 19uu | [18--?] | 17?? | 1990s | 97? | c97 | 12/05/97 | June 26, 97 | Jun-97',
        'MCMXCVII | twenty | twenty 1997 | before 1900 | [after 1900] | 195? | 1997年13月 | 5 1997',
        'DK Publishing Inc | 18th century CE | 5th century B.C. | 0 BC | -44 BC | AD 79 BC | ca1. 44 BC',
        '-0043-03-15 | 13/13/1997 | 32.1.1997 | 00/1997 | June 32, 1997 | 1997-00-01 | 1997-02-32',
        '5 June 6, 1997 | 1e3 | 0x7d0 | 1 997 | --5 | + | . | 1997 1997 | –1997 | 1997, c1996 | 1997, 1997, 1997',
        'Monday 1997 | Meiji 1907 | 昭和1937 [1938] | พ.ศ. 2560 | พ.ศ. 2560 (2561) | BE 2560 | 2560 B.E.',
        '1399 ش | ۱۳۹۹ شمسی | 1441 هـ | AH 1441 | 1441 H | תשפ"א | AM 5781 | Saka 1942 | V.S. 2077',
        "2013 ዓ.ም. | an VII | l'an 7 | 12 germinal 1798",
      ].flatMap((texts) => texts.split(' | ')),
      ...OF_ERAS.flatMap((texts) => texts.split(' | ')),
      ...'1999.13 | 1999,5 | .5 | 1,997 | -0.5 | ۱۳۹۹ | ١٤٤١ | ๒๕๖๐'.split(' | '),
      ...['1997\0', '1'.repeat(65), ' '.repeat(65)],
    ],
    'is beyond ±(2^53−1)': ['9007199254740992', '-9007199254740992', '99999999999999999999.0'],
  };
  test('that are not certain', () => {
    for (const [reason, texts] of Object.entries(REFUSED)) {
      for (const text of texts)
        assert.equal(sentenceOf(because(readYear(text) as ReasonCode)), reason, JSON.stringify(text));
    }
  });
});

describe('columns', () => {
  /** A program » its file → its first book. */
  const FILES = casesOf(String.raw`
our own export » id,title,author,year\n7,"Don ""Q""","M. de C.",1605\n → 2 Don "Q"/M. de C./1605
goodbooks-10k » book_id,isbn13,authors,original_publication_year,original_title,title,language_code\n1,9.78043902348e+12,Suzanne Collins,2008.0,The Hunger Games,"The Hunger Games (The Hunger Games, #1)",eng\n
→ 2 The Hunger Games (The Hunger Games, #1)/Suzanne Collins/2008
Goodreads » Book Id,Title,Author,Author l-f,Additional Authors,ISBN,ISBN13,My Rating,Average Rating,Publisher,Binding,Number of Pages,Year Published,Original Publication Year,Date Read,Date Added,My Review\n42036538,Gideon the Ninth (The Locked Tomb #1),Tamsyn Muir,"Muir, Tamsyn",,"=""1250313198""","=""9781250313195""",0,4.20,Tor,Hardcover,448,2020,2019,2020/10/25,2020/10/21,\n
→ 2 Gideon the Ninth (The Locked Tomb #1)/Tamsyn Muir/2019
LibraryThing » Book Id\tTitle\tSort Character\tPrimary Author\tPrimary Author Role\tPublication\tDate\tAcquired\tEntry Date\n5498194\tMarelle\t1\tCortazar, Julio\t\tGallimard (1979), Poche\t1979\t[2007-04-16]\t[2006-08-09]\n
→ 2 Marelle/Cortazar, Julio/1979
LibraryThing, JSON » {"190140345": {"books_id":"190140345","title":"Feels Like Home","primaryauthor":"Eclov, Lee","authors":[{"lf":"Eclov, Lee","fl":"Lee Eclov","role":"Author"},{"lf":"Hansen, Collin","fl":"Collin Hansen"}],"lcc":[],"date":"2019","entrydate":"2020-09-27"}}
→ 190140345 Feels Like Home/Lee Eclov, Collin Hansen/2019
Calibre » \u{feff}authors,author_sort,timestamp,title,title_sort,pubdate,id\n"Seanan McGuire","McGuire, Seanan","2021-01-19T22:41:16+01:00","That Ain't Witchcraft","That Ain't Witchcraft","2019-03-05T01:00:00+01:00","864"\n
→ 2 That Ain't Witchcraft/Seanan McGuire/2019
calibredb list --for-machine » [\n  {\n    "authors": "John Doe & Jane",\n    "id": 1,\n    "pubdate": "0101-01-01T00:00:00+00:00",\n    "title": "foo"\n  }\n]\n
→ 1 foo/John Doe & Jane/0
Open Library » Work ID,Title,Authors,First Publish Year,Edition ID,Edition Count\nOL1W,"Dune","Frank Herbert | Another",1965,OL1M,3\n
→ 2 Dune/Frank Herbert \| Another/1965
Open Library's search » {"title":"This Is How","author_name":["Amal El-Mohtar","Max Gladstone"],"publish_date":["July 16, 2019"],"first_publish_year":2019}\n
→ 1 This Is How/Amal El-Mohtar, Max Gladstone/2019
Book-Crossing » "ISBN";"Book-Title";"Book-Author";"Year-Of-Publication";"Publisher"\r\n"0195153448";"Classical Mythology";"Mark P. O. Morford";"2002";"Oxford University Press"\r\n
→ 2 Classical Mythology/Mark P. O. Morford/2002
Kaggle's Goodreads-books » bookID,title,authors,average_rating,isbn,  num_pages,publication_date,publisher\n1,Harry Potter,J.K. Rowling/Mary GrandPré,4.57,0439785960,652,9/16/2006,Scholastic Inc.\n
→ 2 Harry Potter/J.K. Rowling/Mary GrandPré/2006
Zotero » \u{feff}"Key","Item Type","Publication Year","Author","Title","Publication Title","Date"\n"K","book","1997","Doe, John; Roe, Jane","T","Journal","1997-06-26"\n
→ 2 T/Doe, John; Roe, Jane/1997
Hardcover » Title,Author,Status,Publish Date\nT,A,Read,2006-01-01\n → 2 T/A/2006
StoryGraph » Title,Authors,Contributors,Date Added\nT,A,,2020/01/01\n → 2 T/A/0`);
  test('of the files of programs are found', async () => {
    for (const { name, content, books } of FILES) assert.deepEqual(inShort(await read(content)), books, name);
  });

  const DATES = casesOf(`
dates of CSL JSON » [{"title":"a","issued":{"date-parts":[["1999",5]]}},{"title":"b","issued":{"date-parts":[[1999,5],[1999,6]],"circa":true}},{"title":"c","issued":{"raw":"circa 1850"}},{"title":"d","issued":{"literal":"n.d."}},{"title":"e","issued":{"date-parts":[["-0044"]],"season":"1"}},{"title":"f","issued":null},{"title":"g","issued":{"date-parts":[[]]}},{"title":"h","issued":{}},{"title":"i","issued":{"date-parts":[[1999],[2001]]}},{"title":"j","issued":{"literal":"19--"}},{"title":"k","issued":{"date-parts":[[1999.5]]}}]
→ 1 a//1999 | 2 b//1999 | 3 c//1850 | 4 d//0 | 5 e//-44 | 6 f//0 | 7 g//0 | 8 h//0
✗ 9 issued "{"date-parts":[[1999],[2001]]}" cannot be read as a year | 10 issued "{"literal":"19--"}" cannot be read as a year
✗ 11 issued "{"date-parts":[[1999.5]]}" is neither a whole number within ±(2^53−1) nor a string
Project Gutenberg's own date » [{"title":"a","issued":"2004-01-01"}] → 1 a//0`);
  test('are dates of CSL JSON too, but no text that Project Gutenberg has there', async () => {
    for (const { name, content, books, refused } of DATES) {
      const outcome = await read(content);
      assert.deepEqual([inShort(outcome), refusalsOf(outcome)], [books, refused], name);
    }
    // Also where the first objects have none.
    const late = `${'{"title":"a"}\n'.repeat(6000)}{"title":"b","issued":{"date-parts":[[1999]]}}`;
    assert.equal((await read(late)).books.at(-1)?.year, 1999);
  });

  test('another year of publication replaces one that is missing, unless a flag names the column', async () => {
    const header = 'Title,Year Published,Original Publication Year\n';
    const outcome = await read(`${header}a,2020,1999\nb,2020,\nc,n.d.,\nd,1997-1998,\ne,1997-1998,-44\n`);
    assert.deepEqual(inShort(outcome), ['2 a//1999', '3 b//2020', '4 c//0', '6 e//-44']);
    assert.deepEqual(refusalsOf(outcome), ['5 Year Published "1997-1998" cannot be read as a year']);
    const named = await read(`${header}b,2020,\n`, { columns: { year: 'Original Publication Year' } });
    assert.deepEqual(inShort(named), ['2 b//0']);
    const json = await read(
      '[{"title":"a","first_publish_year":1999,"publish_date":"May 2001"},{"title":"b","publish_date":"May 2001"}]',
    );
    assert.deepEqual(inShort(json), ['1 a//1999', '2 b//2001']);
    for (const [table, year] of [
      ['Year Published,Date Published\n,May 2001', 2001],
      ['Publication Year,Date\n,c. 1850', 1850], // Zotero
      ['Original Year Published,Original Date Published,Year Published\n,,2001', 2001],
      // Perhaps the day when it was read or added.
      ['Year,Date,Date Read,Date Added\n,2003-12-01,2003-12-01,2003-12-01', 0],
      ['Year Published,Date\n,2003-12-01', 0],
    ] as const)
      assert.equal((await read(`Title,${table.replace('\n', '\na,')}\n`)).books[0]?.year, year, table);
  });

  test('are found by their names in other languages, whatever their accents, case and signs', async () => {
    for (const header of `
      TITEL,Verfasser/in,Erscheinungsjahr | Titel,Autor:in,Jahr | Titre,Auteur(s),Annee | Titre,Auteur,Année de publication
      Título,Autor(a),Año | Titulo,Autores,Ano de publicação | Titolo,Autori,Anno | Titel,Auteur,Jaar van uitgave
      Tytuł,Autor,Rok wydania | TYTUL,AUTORZY,ROK | Titel,Författare,År | Titel,Forfattare,Utgivningsar
      dc.title[en],dc.contributor.author,dc.date.issued | Dublin Core:Title,Dublin Core:Creator,Dublin Core:Date
      Naslov,Avtor,Leto izida | Títol,Autor,Any | Libro,Author1,Release Year | Judul,Penulis,Tahun terbit
      Название,Автор,Год издания | ЗАГЛАВИЕ,Авторы,Год | 書名,著者,出版年`
      .trim()
      .split(/ \| |\n\s*/)) {
      assert.deepEqual(inShort(await read(`${header}\na,b,1\n`)), ['2 a/b/1'], header);
    }
    // A name is more often that of a person.
    assert.deepEqual(inShort(await read('Name,Titel,Jahr\na,b,1\n')), ['2 b//1']);
    const years = 'Jahr,Erscheinungsjahr,Original Publication Year';
    assert.deepEqual(inShort(await read(`Titel,${years}\na,1,2,\nb,1,2,3\n`)), ['2 a//2', '3 b//3']);
  });

  test('can be named or left out by the caller; the first of two with one name counts', async () => {
    for (const [content, columns, books] of [
      ['a,b,c,a,title\n1,2,3,4,5\n', { title: 'a', author: 'B', year: 'c' }, ['2 1/2/3']],
      ['Title,title\nx,y\n', {}, ['2 x//0']],
      ['{"constructor":"x"}\n{"constructor":""}\n', { title: 'constructor' }, ['1 x//0', '2 //0']],
      ['{"x":"1","title":"2"}', { title: 'x' }, ['1 1//0']],
      ['name,author,year\na,b,1\n', { author: null, year: null }, ['2 a//0']],
    ] as const) {
      assert.deepEqual(inShort(await read(content, { columns })), books);
    }
  });

  test('of objects are those of the first one, if it has more than 1 MiB', async () => {
    const title = 'y'.repeat(1024 * 1024);
    for (const content of [
      `[{"title":"${title}"},{"title":"b"}]`,
      `{"1":{"title":"${title}"},"2":{"title":"b"}}`,
      `{"title":"${title}"}\n{"title":"b"}`,
    ]) {
      const { books } = await read(content);
      assert.ok(books.map((book) => book.title).join(' ') === `${title} b`);
    }
  });

  test('of objects are those that any of the first 1 MiB have, unless a flag leaves them out', async () => {
    const early = Array.from({ length: 20_000 }, (_, index) => ({ title: `undated manuscript ${index}` }));
    const late = [
      { title: 'Emma', author: 'Jane Austen', year: 1815 },
      { title: 'Ulysses', year: null, author: 'James Joyce', pages: 730 },
      { title: 'Faust', year: 'x' },
    ];
    const all = [...early, ...late];
    for (const content of [JSON.stringify(all), all.map((book) => JSON.stringify(book)).join('\n')]) {
      const { books, refused, reading } = await read(content);
      const found = inShort({ books: books.slice(early.length) }).map((book) => book.replace(/^\d+ /, ''));
      assert.deepEqual(found, ['Emma/Jane Austen/1815', 'Ulysses/James Joyce/0']);
      assert.deepEqual([refused.length, refused[0]?.column], [1, 'year']);
      assert.deepEqual(reading.names, ['title', 'author', 'year', 'pages']);
      const without = await read(content, { columns: { author: null, year: null } });
      const { author, year } = without.books[early.length] as ReadBook;
      assert.deepEqual([author, year], ['', 0]);
    }
  });
});

describe('rows that the file calls something else', () => {
  test('are rejected by that word, in whatever case and language; what may be a book is imported', async () => {
    const reason = 'is not a book: leave it empty if the row is one';
    for (const [column, others, books] of [
      ['item_type', 'movie | game | music | Video Game', 'book | Book | | audiobook | journal'],
      ['Media', 'DVD | Music CD | Blu-ray | VHS', 'Paper Book | Ebook | Audiobook | CD | Manuscript'],
      [
        'Item Type',
        'film | videoRecording | tvBroadcast | computerProgram',
        'bookSection | journalArticle | audioRecording',
      ],
      ['Binding', 'DVD | Video Game', 'Paperback | Audio CD | Kindle Edition | Board book'],
      ['type', 'motion_picture | broadcast | software', 'book | chapter | Films and games | graphic'],
      ['Medienart', 'Spielfilm | Brettspiel', 'Buch | Hörbuch | Zeitschrift'],
      ['Type de document', 'Jeu vidéo | FILM | musique', 'Livre | Revue | Partition'],
      ['Genre', '', 'Music | Film | Game'],
    ] as const) {
      const [ofOthers, ofBooks] = [others, books].map((words) => (words === '' ? [] : words.split(' | ')));
      for (const json of [false, true]) {
        const rows = [...(ofOthers ?? []), ...(ofBooks ?? [])];
        const content = json
          ? rows.map((kind) => `${JSON.stringify({ title: 'a', [column]: kind })}\n`).join('')
          : `Title,${column}\n${rows.map((kind) => `a,${kind}\n`).join('')}`;
        const found = await read(content);
        assert.equal(found.books.length, ofBooks?.length, column);
        const refused = ofOthers?.map((kind, at) => `${at + (json ? 1 : 2)} ${column} "${kind}" ${reason}`);
        assert.deepEqual(refusalsOf(found), refused);
      }
    }
    const { refused, reading } = await read('Title,Type\nAda,film\n');
    assert.deepEqual(
      inShort({ books: [(await correct(refused[0] as RefusedRecord, '', reading)) as ReadBook] }),
      ['2 Ada//0'],
    );
    assert.deepEqual(inShort(await read('Type\nfilm\n', { columns: { title: 'Type' } })), ['2 film//0']);
  });
});

describe('words for nothing', () => {
  test('are no year and no author, and those that are no words are no title; our exports have each as it is', async () => {
    const words = [
      'NULL',
      '\\N',
      'nan',
      'N/A',
      'null',
      'None',
      'NaN',
      '#N/A',
      'n/a',
      '<NA>',
      'undefined',
      '(null)',
    ];
    const noTitles = ['\\N', '#N/A', '<NA>'];
    const kept = [
      ['Null', 'Null'],
      ['Nan', 'Nan'],
      ['NULL', 'NULL, G.'],
      ['It', 'N. A.'],
    ] as const;
    const rows = [
      ...words.map((word) => [word, word, word]),
      ...kept.map(([title, author]) => [title, author, '1']),
    ];
    const expected = [
      ...words.map((word) => `${noTitles.includes(word) ? '' : word}//0`),
      ...kept.map(([title, author]) => `${title}/${author}/1`),
    ];
    const table = `Title\tAuthor\tYear\n${rows.map((row) => `${row.join('\t')}\n`).join('')}`;
    const csv = `Title,Author,Year\n${rows.map((row) => `"${row.join('","')}"\n`).join('')}`;
    const json = JSON.stringify(rows.map(([title, author, year]) => ({ title, author: [author], year })));
    for (const content of [table, csv, json])
      assert.deepEqual(
        inShort(await read(content)).map((book) => book.replace(/^\d+ /, '')),
        expected,
      );
    for (const content of [
      'id,title,author,year\n1,"\\N","NULL",1\n',
      '{"id":1,"title":"\\\\N","author":"NULL","year":1}',
    ]) {
      const [{ title, author } = { title: '', author: '' }] = (await read(content)).books;
      assert.deepEqual([title, author], ['\\N', 'NULL']);
    }
    for (const word of ['NA', 'NaT', 'invalid date', '-nan', '<null>', 'nil'])
      assert.equal(readYear(word), 0, word);
  });
});

describe('ids', () => {
  test('are kept from our own exports, and from other files on request', async () => {
    const ours = 'id,title,author,year\n7,"a","b",1\n';
    const padded = 'id,title,author,year,,\n7,"a","b",1,,\n';
    const theirs = 'id,title,author,year,isbn\n7,a,b,1,2\n';
    for (const [content, ids, id] of [
      [ours, undefined, 7],
      [ours, 'new', undefined],
      ['{"id":7,"title":"a","author":"b","year":1}\n', undefined, 7],
      ['[{"id":7,"title":"a","author":"b","year":1}]', undefined, 7],
      ['id,title,author,year,refused\n7,"a","b",1,"why"\n', undefined, 7],
      [padded, undefined, 7],
      [theirs, undefined, undefined],
      [theirs, 'keep', 7],
    ] as const) {
      const { reading, books } = await read(content, { ids });
      assert.deepEqual([reading.keepsIds, books.map((book) => book.id)], [id !== undefined, [id]]);
    }
  });

  test('rules 10 and 12: are canonical whole numbers from 1 to 2^52', async () => {
    const right = ['1', '4503599627370496'];
    const csv = ['', '0', '007', '-1', '1.0', '9007199254740993', 'abc', '4503599627370497', ...right];
    const json = ['null', '0', '"x"', '1.5', '9007199254740993', 'true', '{}', '4503599627370497', ...right];
    const ofJson = (id: string) => `{"id":${id},"title":"t","author":"","year":0}\n`;
    const rows = csv.map((id) => `${id},"t","",0\n`);
    for (const content of [`id,title,author,year\n${rows.join('')}`, json.map(ofJson).join('')]) {
      const { books, refused } = await read(content);
      assert.deepEqual([books.map(({ id }) => id), refused.length], [[undefined, ...right.map(Number)], 7]);
      assert.equal(refused.at(-1)?.reason.code, 'id-range');
    }
  });
});

describe('rejected rows', () => {
  /** Reads a file and writes its rejected records to another one in a new folder. */
  async function rejectedOf(name: string, content: Content): Promise<string> {
    const input = join(temporaryFolder(), name);
    const { reading, refused } = await read(content, { name: input });
    const rejects = new Rejects(reading, rejectsPath(input, reading));
    await rejects.add(refused);
    return readFileSync(`${await rejects.close()}`, 'utf8');
  }

  const [YEAR, UNCLEAR] = ['title,year,refused\n', '"year: cannot be read as a year"\n'];
  const REJECTED = `title;author;year;refused
"c ""d""\ne";f;twenty;"year: cannot be read as a year"
i;j;1;k;"has 4 fields, the header has 3"
l;m;1999.13;"year: cannot be read as a year"
ä;"n"o;3;"author: has text after its closing quote"
`;
  const REJECTED_LINES = `{"title":1,"refused":"title: is not a string"}
nonsense
{"title":"\\u0000","refused":"title: has a NUL character"}
{"year":1e400,"refused":"year: cannot be read as a year"}
[1]
`;
  const LINES =
    '{"title":1}\r\nnonsense\n{"title":"\\u0000","refused":"title: \\"old\\""}\n{"title":""}\n{"year":1e400}\n[1]\n';
  const ROWS =
    'title;author;year\r\na;b;1\r\n"c ""d""\ne";f;twenty\r\ni;j;1;k\r\nl;m;1999.13;;\r\nä;"n"o;3\r\n';
  const ONE = '"refused":"title: is not a string"}';
  const CASES: readonly (readonly [name: string, content: string, rejected: string])[] = [
    ['a.csv', ROWS, REJECTED],
    ['as they were.csv', REJECTED, REJECTED],
    [
      'short.csv',
      'title,year,x,y\na,b\n',
      'title,year,x,y,refused\na,b,,,"year: cannot be read as a year"\n',
    ],
    ['fewer fields.csv', 'isbn,title\n1\n', 'isbn,title,refused\n1\n'],
    ['fewer fields, again.csv', 'isbn,title,refused\n1\n', 'isbn,title,refused\n1\n'],
    ['an open quote.csv', 'title,year\na,x\n"b,2\nc,3\n', `${YEAR}a,x,${UNCLEAR}"b,2\nc,3\n\n`],
    ['sep.csv', 'SEP=|\r\n,,\r\ntitle|year\na,b|1\nc|x\n', `sep=|\ntitle|year|refused\nc|x|${UNCLEAR}`],
    ['a.jsonl', `${LINES}{"title":"ok"}\n`, REJECTED_LINES],
    ['as they were.jsonl', REJECTED_LINES, REJECTED_LINES],
    ['a.json', '[{"title":"ok"},\n{\r\n  "title": 1\n},\n[1,\n2]]', `[\n{"title":1,${ONE},\n[1,2]\n]\n`],
    [
      'numbers.json',
      '[{"title":"ok"},{"title":"a","year":1e400,"x":12345678901234567890}]',
      '[\n{"title":"a","year":["1e400"],"x":["12345678901234567890"],"refused":"year: cannot be read as a year"}\n]\n',
    ],
    ['objects.json', '{"1":{"title":"ok"},"2":{"title":1}}', `[\n{"title":1,${ONE}\n]\n`],
  ];
  test('go to a file like the one they come from, with the reason, again and again', async () => {
    for (const [name, content, rejected] of CASES)
      assert.equal(await rejectedOf(name, content), rejected, name);
  });

  test('have U+FFFD for damaged bytes, and are rejected for it again until they are corrected', async () => {
    const reasons = (list: readonly RefusedRecord[]) =>
      list.map(({ value, reason }) => [value, sentenceOf(reason)]);
    for (const [name, content] of [
      ['a.csv', 'title,x\nCaf\xe9,x\nb,\xff\nok \xc3,x\nb,\xc3\xa9\xc3\xa9\xc3\xa9\n'],
      [
        'a.json',
        '[{"title":"Caf\xe9"},{"title":"b","x":"\xff"},{"title":"ok \xc3"},\n{"title":"\xc3\xa9\xc3\xa9\xc3\xa9"}]',
      ],
    ] as const) {
      const input = join(temporaryFolder(), name);
      const { books, reading, refused } = await read(Buffer.from(content, 'latin1'), { name: input });
      assert.equal(books.length, 2);
      const reason = 'has a damaged character: \ufffd is not UTF-8';
      assert.deepEqual(reasons(refused), [
        ['Caf\ufffd', reason],
        ['ok \ufffd', reason],
      ]);
      const rejects = new Rejects(reading, rejectsPath(input, reading));
      await rejects.add(refused);
      const written = readFileSync(`${await rejects.close()}`, 'utf8');
      const again = await read(written, { name });
      assert.deepEqual([again.books, again.fault, reasons(again.refused)], [[], undefined, reasons(refused)]);
      const corrected = await read(written.replace('Caf\ufffd', 'Café'), { name });
      assert.deepEqual(
        corrected.books.map(({ title }) => title),
        ['Café'],
      );
      const [record] = refused as [RefusedRecord];
      assert.equal(((await correct(record, 'Café', reading)) as ReadBook).title, 'Café');
      assert.equal('reason' in (await correct(record, record.value, reading)), true);
    }
  });

  test('of a JSON array are one array, and a full disk ends the import with the way out', async (context) => {
    const { reading, batches } = await read(`[${Array(500).fill('{"title":"é","year":"x"}').join()}]`);
    assert.ok(batches.length > 2);
    const path = join(temporaryFolder(), 'rejects.json');
    const rejects = new Rejects(reading, path);
    for (const { refused } of batches) await rejects.add(refused);
    await rejects.close();
    const written = await read(readFileSync(path), { format: 'json' });
    assert.deepEqual([written.refused.length, written.fault], [500, undefined]);
    await using handle = await promises.open(path);
    const files = Object.getPrototypeOf(handle) as typeof handle;
    context.mock.method(files, 'appendFile', async () => {
      throw new Error('no space left on device');
    });
    const full =
      /Rejected rows cannot be written to .*: no space left on device\. Run the command again with/;
    await assert.rejects(new Rejects(reading, path).add(written.refused), full);
  });

  test('never overwrite another file, and are in one beside that which is read, or in the working directory for a pipe', async () => {
    const path = join(temporaryFolder(), 'mine.csv');
    const { reading: csv, refused } = await read('title,year\na,x\n', { name: path });
    writeFileSync(path, 'theirs');
    for (const number of [2, 3]) {
      const rejects = new Rejects(csv, path);
      await rejects.add(refused);
      assert.equal(await rejects.close(), path.replace('.', `-${number}.`));
    }
    assert.equal(readFileSync(path, 'utf8'), 'theirs');
    const { reading: json } = await read('[]');
    for (const [reading, name, expected] of [
      [csv, '-', 'rejects.csv'],
      [json, '-', 'rejects.json'],
      [csv, '/dev/fd/63', 'rejects.csv'],
      [csv, '/dev/stdin', 'rejects.csv'],
      [csv, '/dev/shm/a.csv', '/dev/shm/a.rejects.csv'],
      [csv, 'in/my.books.tsv', 'in/my.books.rejects.csv'],
      [json, '/in/books', '/in/books.rejects.json'],
      [csv, 'books.rejects.csv', 'books.rejects.csv'],
      [csv, 'books.rejects-2.csv', 'books.rejects.csv'],
    ] as const) {
      assert.equal(rejectsPath(name, reading), expected);
    }
  });

  test('are corrected by another value in one column, whatever else is in the record', async () => {
    const csv = 'n,title,year,note,refused\n\n1,"a ""b""\n;",x,"no, ""never""","year: is wrong"\n';
    const { refused, reading } = await read(csv);
    const [record] = refused as [RefusedRecord];
    assert.deepEqual(correctable(record, reading), { column: 'year', text: 'x' });
    const book = (await correct(record, '1997', reading)) as ReadBook;
    assert.deepEqual(inShort({ books: [book] }), ['3 a "b"\n;//1997']);
    const still = (await correct(record, '1997-98', reading)) as RefusedRecord;
    assert.deepEqual([still.line, still.column, still.value], [3, 'year', '1997-98']);
    assert.equal(still.original, '1,"a ""b""\n;","1997-98","no, ""never"""');
    assert.equal(((await correct(still, '1998', reading)) as ReadBook).year, 1998);
  });

  const TWO = 'is 2 records instead of one: save the refused rows and import that file';
  test('are corrected as a whole where a value cannot be told apart from the others', async () => {
    for (const [content, shown, text, found] of [
      ['title,author\na,b,c\n', 'a,b,c', '"a,b",c', '2 a,b/c/0'],
      ['title,author\na,b,c\n', 'a,b,c', '', 'is empty'],
      ['title,author\na,b,c\n', 'a,b,c', 'a,b\nc,d', TWO],
      ['title,author\na,b,c\n', 'a,b,c', 'a,b,c', 'has 3 fields, the header has 2'],
      ['title\n"a\n', '"a\n', '"a"', '2 a//0'],
      ['[{"title":\n7,"author":"b","year":1}]', '7', 'seven', '1 seven/b/1'],
      ['{"title":"a","year":"x"}', 'x', '-44', '1 a//-44'],
      ['{"title":"a"}\n{"title"\n', '{"title"', '{"title":"b"}', '2 b//0'],
      ['{"title":"a"}\n{"title"\n', '{"title"', '{"title":', 'is not a JSON object'],
    ] as const) {
      const { refused, reading } = await read(content);
      const [record] = refused as [RefusedRecord];
      assert.equal(correctable(record, reading).text, shown);
      const result = await correct(record, text, reading);
      if ('reason' in result) assert.deepEqual([sentenceOf(result.reason), result.original], [found, text]);
      else assert.deepEqual(inShort({ books: [result] }), [found]);
    }
  });

  test('of JSON may have a million spaces: their time does not grow with the square of them', async () => {
    const { reading, refused } = await read(`{"title":1${' '.repeat(1_000_000)}}\n`);
    const [record] = refused as [RefusedRecord];
    assert.match(asRefused(record, reading), /^\{"title":1 {1000000},"refused":"title: is not a string"\}$/);
    assert.equal((await correct(record, '2', reading)).line, 1);
  });
});

test('a book is doubtful without a title, or in a year that is more often a mistake', () => {
  const next = new Date().getFullYear() + 1;
  const isDoubtful = (year: number, title = 'Emma') => doubtOf({ title, year }) !== undefined;
  for (const year of [0, -3000, 100, 1815, next]) assert.equal(isDoubtful(year), false, String(year));
  for (const year of [-3001, 1, 99, next + 10, 9780141439587]) assert.ok(isDoubtful(year), String(year));
  assert.ok(isDoubtful(1815, ''));
});
