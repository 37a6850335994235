// The formats of files, as programs write them and as none should: CSV, JSON and encodings, in pieces of any size; what is
// read, what is rejected, and which files are refused as a whole. Files of random content are in test/fuzz.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import { readBooks } from '../../src/files/reading.ts';
import { sentenceOf } from '../../src/files/reasons.ts';
import { OperatorError } from '../../src/operator-error.ts';
import {
  type Content,
  casesOf,
  inShort,
  type Options,
  PIECE_SIZES,
  read,
  refusalsOf,
} from '../support/files.ts';

describe('CSV', () => {
  /** The result is the same whatever the pieces in which the content arrives. */
  const CASES = casesOf(String.raw`
line ends of all kinds, mixed, the last one missing » title,year\r\na,1\rb,2\n"c\r\nd\re\nf",3\rg,4\r\nh,5
→ 2 a//1 | 3 b//2 | 4 c\r\nd\re\nf//3 | 8 g//4 | 9 h//5
lone CR » title,year\ra,1\rb,2\r → 2 a//1 | 3 b//2
quotes, doubled, empty, and in a field that does not begin with one » title,author,year\n"a, b","say ""hi""",1\n"""","",2\n"""a""","b""",3\n"a""","""""",4\n5" disk,a "b" c,1\n "x" y,y"",2\n
→ 2 a, b/say "hi"/1 | 3 "//2 | 4 "a"/b"/3 | 5 a"/""/4 | 6 5" disk/a "b" c/1 | 7  "x" y/y""/2
blanks before quotes » "title", "author", "year"\n "Emma, a novel", "Austen, Jane" , "1815"\nx, "y" z,1\nx, "y\n"z", " ""q""",2
→ 2 Emma, a novel/Austen, Jane/1815 | 3 x/ "y" z/1 | 4 x/ "y/0 | 5 z/ "q"/2
a mark of DOS at the end » title\na\n\u{1a} → 2 a//0
two byte order marks » \u{feff}\u{feff}title\na\n → 2 a//0
blank lines, and rows of which every field is blank » \n\r\ntitle,author,year\n\na,b,1\r\n\r\n,,\n,,,,,\n\n"",,\n  ,\t,\n"","\n",""\n,,0\n,"" x,\n
→ 5 a/b/1 | 14 //0 ✗ 15 author """ x" has text after its closing quote
blanks and all characters kept, nothing normalised » title,author,year\n\u{a0} a \t,e\u{301}😀\u{feff}\u{2028}, 1 \n
→ 2 \u{a0} a \t/e\u{301}😀\u{feff}\u{2028}/1
a byte order mark » \u{feff}title,year\na,1\n → 2 a//1
a quoted header, with line ends » "the\ntitle","Title","Year"\nx,a,1\n → 3 a//1
semicolons » title;author;year\na,b;"c;d";1\n → 2 a,b/c;d/1
a header after blank lines, with a quote that another delimiter would leave open » \n\n\n\n\n\n\n\nno,title,author,year;"\n1,a,b,1\n2,c,d,2\n
→ 10 a/b/1 | 11 c/d/2
lines of delimiters and of blanks before the header » ,,\n \n\t\t\ntitle,author,year\na,b,1\n → 5 a/b/1
a line that names the delimiter » sep=;\r\n;;\r\ntitle;author;year\r\na,b;c;1\r\n → 4 a,b/c/1
tabs » title\tauthor\tyear\na,b;c\t"d\te"\t1\n → 2 a,b;c/d\te/1
bars, also in a name between commas » title|author|year\na,b|"c|d"|1\n → 2 a,b/c|d/1
bars in a name between commas » title,tags a|b|c|d\nx,y\n → 2 x//0
quotes as they are, beside tabs » title\tauthor\n"Repent, Harlequin!\tEllison\n\nNobody\nWho said "\tX\n"two\nlines"\ta\n"A" is for Alibi\tSue "Q"\n"He said "hi" there"\tB\n""\t"\n"never closed\tC\n
→ 2 "Repent, Harlequin!/Ellison/0 | 5 Who said "/X/0 | 6 two\nlines/a/0 | 8 "A" is for Alibi/Sue "Q"/0 | 9 "He said "hi" there"/B/0
→ 10 /"/0 | 11 "never closed/C/0 ✗ 4 has 1 field, the header has 2
quotes as they are, beside bars » title|review|author\nOne|"Loved it|A\nTwo||B\nThree|nice"|C\nFour|x|"D\nFive|y|"E\n
→ 2 One/A/0 | 3 Two/B/0 | 4 Three/C/0 | 5 Four/"D/0 | 6 Five/"E/0
quotes that join fields, beside tabs » title\treview\tauthor\tyear\ttags\nB\t"great\tbook"\t1985\t\n"a\tb"\tc\tC\t1\tx\n
→ 3 a\tb/C/1 ✗ 2 has 4 fields, the header has 5
quotes that join fields » title,author,year,notes\n"Dune,Herbert",1965,\n"Eats, Shoots",Truss,2003\n
→ 3 Eats, Shoots/Truss/2003 ✗ 2 has 3 fields, the header has 4
quotes that join rows » title,review,author,year\nOne,"Loved it,A,1985\nTwo,ok,B,1982\n\nThree,nice",C,1990\nFour,"a, b\nc, d, e",D,1991\nFive,A,1,"x\n",,,\nSeven,"y,C\nEight,z",D\nNine,"x,A,1\nTen\nEleven,y",B,2\n
→ 6 Four/D/1991 ✗ 2 has 4 lines that look like separate rows: remove the quote that joins them, or the line ends
✗ 8 has 2 lines that look like separate rows: remove the quote that joins them, or the line ends
✗ 10 has 3 fields, the header has 4
✗ 12 has 3 lines that look like separate rows: remove the quote that joins them, or the line ends
quotes that join rows, beside tabs » title\tauthor\nOne\tB\nTwo\t"x\nThree"\ty\n → 2 One/B/0
✗ 3 has 3 fields, the header has 2
lines in one column » title\n"two\nlines"\nb\n
→ 4 b//0 ✗ 2 has 2 lines that look like separate rows: remove the quote that joins them, or the line ends
lines above the header » Table 1,,\n"My ""books""",,\nprinted "1999,\n"Title,\n\nNo,Title,Author\n1,a,b\n → 7 a/b/0
nine lines above the header » 1\n2\n3\n4\n5\n6\n7\n8\n9\nNo;Title;Author\n1;a;b\n → 11 a/b/0
lines above a header of one column » Table 1\ntitle\nTitle\n → 3 Title//0
a title alone, above the header » Title,My books\nAuthor,Ann\n\nTitle,Author\na,b\n → 5 a/b/0
a row like a header, below it » title,author\nTitle,Author\n → 2 Title/Author/0
rejected records, corrected, with and without their reasons » title,author,refused\na,b,has 1 field\nc,d\ne\nl,title: a novel\n"g,h
→ 2 a/b/0 | 3 c/d/0 | 4 e//0 | 5 l/title: a novel/0
✗ 6 title ""g,h" has an unclosed quote: it extends to the end of the file, 1 line
one column » title\na\n\n""\nb → 2 a//0 | 5 b//0
more fields » title,author,year\na,b,1,\na,b,1,"",\na,b,1,c\na,b,1,,"c"\n → 2 a/b/1 | 3 a/b/1
✗ 4 has 4 fields, the header has 3 | 5 has 5 fields, the header has 3
fewer fields, as spreadsheets leave them out » isbn,title,author,year,notes\n1,a,b,1\n1,a,b\n1,a\n1\n1,"a\nc",b\n1,a,b,1
→ 2 a/b/1 | 3 a/b/0 | 4 a//0 | 8 a/b/1 ✗ 5 has 1 field, the header has 5 | 6 has 3 fields, the header has 5
fewer fields, where the file or a line may be cut off » title,author,year\na,b ✗ 2 has 2 fields, the header has 3
fewer fields, where a text without quoting may have a line end » title\tyear\tnotes\na\t1\nb\n → 2 a//1
✗ 3 has 1 field, the header has 3
text after a closing quote » title,author,year\n"a"b,c,1\n"a" ,"c" \t,1\nd,"e"\tf"g",1\nok,"h" \n → 3 a/c/1 | 5 ok/h/0
✗ 2 title ""a"b" has text after its closing quote | 4 author ""e"\tf"g"" has text after its closing quote
a quote that is never closed » title,author,year\na,b,1\nc,"d,1\ne,f,1\n → 2 a/b/1
✗ 3 author ""d,1\ne,f,1\n" has an unclosed quote: it extends to the end of the file, 3 lines
rules 3 and 4: NUL, and invalid years » title,author,year,isbn\na\0,b,1,\na,\0,1,\na,b,1\0,\na,b,1999.13,\na,b,1,\0\n
→ 6 a/b/1 ✗ 2 title "a\0" has a NUL character | 3 author "\0" has a NUL character
✗ 4 year "1\0" cannot be read as a year | 5 year "1999.13" cannot be read as a year`);
  for (const { name, content, books, refused, fault } of CASES) {
    test(name, async () => {
      for (const size of PIECE_SIZES) {
        const outcome = await read(content, { name: 'a.csv' }, [size]);
        const found = [inShort(outcome), refusalsOf(outcome), outcome.fault];
        assert.deepEqual(found, [books, refused, fault], `pieces of ${size}`);
      }
    });
  }
});

describe('JSON', () => {
  /** The same file after a long book, which alone determines the columns: the rest is read piece by piece. */
  function later(content: string): string {
    const long = (before: string, after: string) =>
      `${`${before}{"title":"first",`.padEnd(1024 * 1024 - 32)}"author":"","year":0}${after}`;
    if (content.startsWith('{"title"')) return `${long('', '\n')}${content}`;
    const [beginning, rest] = content.startsWith('[') ? ['[', content.slice(1)] : ['{"0":', content.slice(1)];
    return long(beginning, ',') + rest;
  }

  /** Arrays unless the name says otherwise. The result is the same whatever the pieces in which the content arrives. */
  const CASES = casesOf(String.raw`
an array, compact » [{"title":"a","year":1},{"title":"b"}] → 1 a//1 | 2 b//0
an array, indented » \u{feff}\r\n [\r\n  {\r\n    "title": "a"\r\n  },\r\n  {"title": "b"}\r\n]\r\n\r\n
→ 1 a//0 | 2 b//0
an empty array »  [ ]\n
lines » {"title":"a"}\n\n \t\r\n{"title":"b"}\r{"title":"c"} → 1 a//0 | 4 b//0 | 5 c//0
brackets, quotes, backslashes in texts » [{"title":"]}\\"[{,","x":{"y":["]","}\\\\"]}},{"title":"\\\\","author":"\\\\\\""}]
→ 1 ]}"[{,//0 | 2 \\/\\"/0
several authors » [{"title":"a","author":["x","y z"]},{"title":"b","author":[{"name":"x"},{"fl":"y","lf":"z"}]},{"title":"c","author":[]}]
→ 1 a/x, y z/0 | 2 b/x, y/0 | 3 c//0
authors of other programs » [{"title":"a","author":[{"family":"Example","given":"Ann","suffix":"Jr."},{"literal":"WHO"}]},{"title":"b","author":[{"family":"Alembert","given":"Jean","dropping-particle":"d'"},{"family":"Beauvoir","given":"S.","non-dropping-particle":"de"}]},{"title":"c","author":[{"family":"川端","given":"康成"}]},{"title":"d","author":null,"editor":[{"family":"x"}]},{"title":"e","author":[{"firstName":"A","lastName":"B","creatorType":"author"},{"lastName":"C","creatorType":"translator"},{"name":"Org","creatorType":"author"}]},{"title":"f","author":{"name":"x"}},{"title":"g","author":[null,{"name":""}]}]
→ 1 a/Ann Example Jr., WHO/0 | 2 b/Jean d'Alembert, S. de Beauvoir/0 | 3 c/川端康成/0 | 4 d//0 | 5 e/A B, Org/0 | 6 f/x/0 | 7 g//0
LibraryThing's authors » [{"title":"a","author":[{"fl":"x","role":"Author"},{"fl":"y","role":""},{"fl":"z","role":"Translator"},{"fl":"w","role":"Author of introduction"}]},{"title":"b","author":[[]]},{"title":"c","author":{"fl":"x","role":"Editor"}},{"title":"d","author":[{"name":"x"},{"name":null}]}]
→ 1 a/x, y/0 | 2 b//0 | 3 c//0 | 4 d/x/0
rules 1 to 3: years » [{"title":"a","year":2020.0},{"year":2e3},{"year":-0},{"year":null},{"year":"1997?"},{"year":""},{"year":-720}]
→ 1 a//2020 | 2 //2000 | 3 //0 | 4 //0 | 5 //1997 | 6 //0 | 7 //-720
rules 2 to 4: a text that is not one is never converted » {"title":"ok","author":"","year":1}\n{"title":1}\n{"title":["a"]}\n{"title":"\\u0000"}\n{"title":"\\ud83d"}\n{"author":true}\n{"author":[1]}\n{"author":[["a"]]}\n{"author":{"key":"a"}}\n
→ 1 ok//1 ✗ 2 title "1" is not a string | 3 title "["a"]" is not a string
✗ 4 title "\0" has a NUL character | 5 title "\u{d83d}" has a lone surrogate
✗ 6 author "true" is neither a string nor a list of names | 7 author "[1]" is neither a string nor a list of names
✗ 8 author "[["a"]]" is neither a string nor a list of names | 9 author "{"key":"a"}" is neither a string nor a list of names
rules 2 and 3: a number that is not a year is never converted » {"title":"ok"}\n{"year":1999.5}\n{"year":9007199254740993}\n{"year":true}\n{"year":[true]}\n{"year":"1999.13"}\n{"year":1999.00000000000000000001}\n
→ 1 ok//0 ✗ 2 year "1999.5" is neither a whole number within ±(2^53−1) nor a string
✗ 3 year "["9007199254740993"]" is beyond ±(2^53−1)
✗ 4 year "true" is neither a whole number within ±(2^53−1) nor a string
✗ 5 year "[true]" is neither a whole number within ±(2^53−1) nor a string ✗ 6 year "1999.13" cannot be read as a year
✗ 7 year "["1999.00000000000000000001"]" cannot be read as a year
rule 6: elements that are not objects » [{"title":"a"},1,"b,]",[{"title":"c"}],null,true,\n{"title":"d"}]
→ 1 a//0 | 7 d//0 ✗ 2 is not a JSON object | 3 is not a JSON object | 4 is not a JSON object
✗ 5 is not a JSON object | 6 is not a JSON object
rule 6: lines that are not objects » {"title":"a"}\nnonsense\n{"title":"b"\n[{"title":"c"}]\n"d"\n{"title":"e"} x\n{"title":"f"}\n
→ 1 a//0 | 7 f//0 ✗ 2 is not a JSON object | 3 is not a JSON object | 4 is not a JSON object
✗ 5 is not a JSON object | 6 is not a JSON object
numbers that Python writes, and JSON has not » {"title":"a"}\n{"title":"b","year":NaN}\n{"x":-Infinity, "title":"c"}\n{"title":"d: NaN,"}\n → 1 a//0 | 4 d: NaN,//0
✗ 2 is not a JSON object | 3 is not a JSON object
no book » {"title":"a","x":1}\n{"index":{}}\n{"title":null}\n{"x":1}\n{"author":"b"}\n
→ 1 a//0 | 3 //0 | 5 /b/0 ✗ 2 has neither a title nor an author nor a year | 4 has neither a title nor an author nor a year
rule 5: other keys are ignored, the last of two counts » {"title":"a","__proto__":{"author":"x"},"constructor":1,"title":"b"}\n{"title":"c"}
→ 1 b//0 | 2 c//0
an object of objects » {"1": {"title":"a"},\n "2\\"" : {"title":"b"}, "3":4} → 1 a//0 | 2 b//0
✗ 3 is not a JSON object`);
  for (const { name, content, ...expected } of CASES) {
    test(name, async () => {
      const foundIn = (outcome: Awaited<ReturnType<typeof read>>) => {
        return { books: inShort(outcome), refused: refusalsOf(outcome), fault: outcome.fault };
      };
      const whole = await read(content);
      assert.deepEqual(foundIn(whole), expected);
      if (!/^[[{]/.test(content)) return;
      const before = content.startsWith('{"1"') ? 0 : 1; // these have their own numbers
      const lineBefore = (text: string) => text.replace(/^\d+/, (line) => `${Number(line) - before}`);
      for (const size of PIECE_SIZES) {
        const found = foundIn(await read(later(content), {}, [1024 * 1024, ...Array(500).fill(size)]));
        const [books, refused] = [found.books.slice(1).map(lineBefore), found.refused.map(lineBefore)];
        assert.deepEqual({ ...found, books, refused }, expected, `pieces of ${size}`);
      }
    });
  }

  test('a record that is nested without end is rejected, in an array the whole file', async () => {
    const deep = (depth: number) => `{"title":"a","x":${'['.repeat(depth)}2.0${']'.repeat(depth)}}`;
    const [deepest, deeper] = [deep(50_000), deep(900)];
    const { books, refused } = await read(`${deeper}\n${deepest}\n{"title":""}`);
    assert.deepEqual(
      [books.length, refused.map(({ reason }) => sentenceOf(reason))],
      [2, ['is not a JSON object']],
    );
    await assert.rejects(read(`[{"title":"b"},${deepest}]`), {
      message: /^The array has .+ or 1000 levels: save it as JSON Lines/,
    });
  });
});

describe('encodings', () => {
  const TEXT = 'title,author,year\r\n"Ævar €uro 😀","né\nß",1\r\n';

  test('UTF-8 and UTF-16 are recognised by the byte order mark, others are named', async () => {
    const utf16 = Buffer.from(`\uFEFF${TEXT}`, 'utf16le');
    const marked = [Buffer.from(TEXT), Buffer.from(`\uFEFF${TEXT}`), utf16, Buffer.from(utf16).swap16()];
    for (const [bytes, size] of marked.flatMap((bytes) => PIECE_SIZES.map((size) => [bytes, size] as const)))
      assert.deepEqual(
        inShort(await read(bytes, {}, [size])),
        ['2 Ævar €uro 😀/né\nß/1'],
        `pieces of ${size}`,
      );
    const bytes = Buffer.from('title\n\x80\x93\xe9\n', 'latin1');
    assert.deepEqual(inShort(await read(bytes, { encoding: 'windows-1252' })), ['2 €“é//0']);
    assert.deepEqual(inShort(await read(bytes, { encoding: 'windows-1251' })), ['2 Ђ“й//0']);
    assert.equal((await read(Buffer.from(TEXT, 'utf16le'), { encoding: 'UTF-16LE' })).books.length, 1);
    for (const encoding of ['utf8', 'windows-1252'])
      assert.equal((await read(`\uFEFF${TEXT}`, { encoding })).books.length, 1);
  });

  /** The beginning of the SHA-256 of what bytes 0x80 to 0xFF mean: the `Identifier` of each index of the Encoding Standard. */
  const SINGLE_BYTE = `
    ibm866=db6fe14a559d iso-8859-2=9569c67f22d0 iso-8859-3=af8f1e12df79 iso-8859-4=72f29c92344d
    iso-8859-5=fa9b1f3f5242 iso-8859-6=85bb7b5c2dc7 iso-8859-7=f53d8aeba363 iso-8859-8=7657a9ca3fa8
    iso-8859-8-i=7657a9ca3fa8 iso-8859-10=02c2b5590d8c iso-8859-13=40736338e964 iso-8859-14=2c8651cfc08b
    iso-8859-15=a560aba47bcc iso-8859-16=55676320d2d1 koi8-r=c5497cd9071c koi8-u=19a4da2c3f24
    macintosh=f2c6a4f6406b windows-874=b416583ce125 windows-1250=0669455a7a1c windows-1251=7592ef921679
    windows-1252=e56d49d9176e windows-1253=49fdc881a348 windows-1254=e80a27adf377 windows-1255=cd7fb43c97ee
    windows-1256=161bdb381f16 windows-1257=cc7256bdd10a windows-1258=198bacedfcf2 x-mac-cyrillic=73e8e7642c6f`
    .trim()
    .split(/\s+/)
    .map((row) => row.split('='));

  test('of single bytes: each byte is the character of the Encoding Standard, or is refused', async () => {
    const ascii = String.fromCharCode(...Array(0x80).keys()).replaceAll(/[\0"\r\n]/g, '');
    for (const [encoding = '', identifier] of SINGLE_BYTE) {
      assert.equal((await read(`title\n"${ascii}"\n`, { encoding })).books[0]?.title, ascii, encoding);
      const meant: string[] = [];
      for (let byte = 0x80; byte <= 0xff; byte += 1) {
        const content = Buffer.from(`title\n"${String.fromCharCode(byte)}"\n`, 'latin1');
        const { books, refused } = await read(content, { encoding });
        const isNone = refused[0]?.reason.code === 'damaged';
        meant.push(isNone ? 'None' : `${books[0]?.title.codePointAt(0)}`);
      }
      const hash = createHash('sha256')
        .update(`[${meant.join(', ')}]`)
        .digest('hex');
      assert.equal(hash.slice(0, 12), identifier, encoding);
    }
  });

  /** Of `title,x,author` in UTF-8: bytes as Latin-1 → books, rejected records. The result is the same in any pieces. */
  const DAMAGED: readonly (readonly [content: string, books: string[], refused?: string[]])[] = [
    ['a,\xe1,b\n\xc3\xa9,x,\n', ['2 a/b/0', '3 é//0']],
    ['\xc3\xa9,x,\na,\xe1\xe1\xe1\xe1\xe1,b\n', ['2 é//0', '3 a/b/0']],
    ['a,\xe1,b\n', ['2 a/b/0']], // nothing else shows the encoding, and nothing needs it
    ['\xe1,x,b\n\xc3\xa9,x,\n', ['3 é//0'], ['2 title "\ufffd" has a damaged character: � is not UTF-8']],
    [
      'z,\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9,z\na,x,\xc3\nd,\xc3\xa9,\xf0\x9f\x98\ng,x,"\xe2\x82"\r\n"\xc3",x,e\n',
      ['2 z/z/0'],
      [
        '3 author "\ufffd" has a damaged character: � is not UTF-8',
        '4 author "\ufffd" has a damaged character: � is not UTF-8',
        '5 author "\ufffd" has a damaged character: � is not UTF-8',
        '6 title "\ufffd" has a damaged character: � is not UTF-8',
      ],
    ],
    [
      '"a\n\xc3\xa9\n\xff",x,b\nc,"\n\xed\xa0\x80\xc3\xa9\xc3\xa9\xc3\xa9\n",d\n',
      ['5 c/d/0'],
      ['2 title "a\né\n\ufffd" has a damaged character: � is not UTF-8'],
    ],
    ['\xef\xbf\xbd,x,b\n\xc3\xa9,\xef\xbf\xbd,\xc3\xa9\n', ['2 \ufffd/b/0', '3 é/é/0']], // without any damage
    [
      '\xc3\xa9,\xff,b\n\xef\xbf\xbd,x,b\n',
      ['2 é/b/0'],
      ['3 title "\ufffd" has a damaged character: � is not UTF-8'],
    ],
    ['a,\xe1\0,b\nc,\xc3\xa9,d\0\n', ['2 a/b/0'], ['3 author "d\0" has a NUL character']],
  ];
  test('a damaged byte in a column that is not used costs nothing, and its row in one that is', async () => {
    for (const [rows, books, refused = []] of DAMAGED) {
      for (const size of PIECE_SIZES) {
        const found = await read(Buffer.from(`title,x,author\n${rows}`, 'latin1'), {}, [size]);
        assert.deepEqual([inShort(found), refusalsOf(found), found.fault], [books, refused, undefined], rows);
      }
    }
    const json = Buffer.from(
      '[{"title":"a","x":"\xe1"},{"title":"\xe1"},{"title":"\xc3","author":["\xe1"],"x":"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"},{"title":"\\ud83d"}]',
      'latin1',
    );
    const found = await read(json);
    assert.deepEqual(
      [inShort(found), found.refused.map(({ reason }) => sentenceOf(reason))],
      [
        ['1 a//0'],
        [
          'has a damaged character: � is not UTF-8',
          'has a damaged character: � is not UTF-8',
          'has a lone surrogate',
        ],
      ],
    );
    const marked = Buffer.from('\ufefftitle,author\na\ud83d,b\nc,d\n', 'utf16le');
    for (const bytes of [marked, Buffer.from(marked).swap16()]) {
      const inUtf16 = await read(Buffer.concat([bytes, Buffer.from('\n')]), {}, [3]);
      assert.deepEqual(inShort(inUtf16), ['3 c/d/0']);
      assert.match(refusalsOf(inUtf16)[0] ?? '', / has a damaged character: � is not UTF-16[LB]E$/);
      assert.equal(inUtf16.refused[1]?.line, 4);
    }
  });

  test('a file is of another encoding only if all of it has been read and most of its letters are not UTF-8', async () => {
    const [cafe, plain] = ['Caf\xe9,b\n', 'a,b\n'];
    const utf8 = Buffer.from('Café,b\n').toString('latin1');
    const long = `a,${'b'.repeat(60_000)}\n`;
    for (const [content, books, fault] of [
      [`title,author\n${plain}${cafe}${plain}`, 1, 3],
      [`title,author\n${plain}x,\xe9\xe8\n${long.repeat(50)}`, 1, 3],
      [`title,author\n${cafe.repeat(20)}${utf8.repeat(20)}`, 20, undefined],
      [`title,author\nCAF\xc9\xa0,b\n${cafe.repeat(2)}`, 0, 2], // the first one is also UTF-8
      [`title,author\n\xc9\xbd,a\n\xc7\xed,a\n\xcb\xae,a\n\xba\xba,a\n\xc8\xcb,a\n`, 0, 2], // GBK
      [`t\xedtulo,author\n${plain}`, undefined, 1],
      [`Tabla 1,\nt\xedtulo,author\n${plain}`, undefined, 1],
      [`title,a\xfator\n${plain}`, undefined, 1], // perhaps the author
      [`title,author,year,pa\xeds\n${plain}`, 1, undefined],
      [`title,a\xfator\n${utf8}`, 1, undefined],
      [`title,author\n${cafe}${long.repeat(50)}${utf8}`, 51, undefined],
      [`title,author\n${cafe.repeat(3)}${long.repeat(300)}${utf8.repeat(3)}`, 303, undefined],
      [`title,author\n${cafe}${long.repeat(300)}`, 300, 2],
      [`title,author\n\xc3\xa9\xe9,b\n`, 0, undefined],
      [`title,author\n${cafe}\xd0\xb6,b\n`, 1, undefined],
      [`title,author,refused\n${cafe}`, 0, undefined], // of an earlier import
      [`\xef\xbb\xbftitle,author\n${cafe}`, 0, undefined],
      [`{"t\xedtulo":"a","title":"b"}\n`, undefined, 1],
      [`{"title":"\xe9"}\n`, 0, 1],
    ] as const) {
      const found = await read(Buffer.from(content, 'latin1')).catch(({ message }: Error) => message);
      const said = typeof found === 'string' ? found : found.fault;
      const shown = content.slice(0, 60);
      if (typeof found !== 'string') assert.equal(found.books.length, books, shown);
      else assert.equal(books, undefined, shown);
      assert.equal(
        said === undefined
          ? undefined
          : Number(/^Line (\d+) is not UTF-8 text: .*--encoding/.exec(said)?.[1]),
        fault,
        shown,
      );
    }
    const { fault } = await read(Buffer.from('title\n\xc2\xee\xe9\xed\xe0\n', 'latin1'));
    assert.match(`${fault}`, /such as --encoding windows-1252 .+ or windows-1251 \(Russian\), .+ with iconv/);
  });
});

describe('a file', () => {
  test('has all its rows, although a text beside tabs begins with a quote and 16 MiB follow', async () => {
    const rows = `${'x'.repeat(60_000)}\ty\n`.repeat(300);
    const { books, fault } = await read(Buffer.from(`title\tauthor\n"Repent\tEllison\n${rows}`));
    assert.deepEqual([books[0]?.title, books.length, fault], ['"Repent', 301, undefined]);
  });

  test('is recognised by its name and its beginning', async () => {
    for (const [name, content, found, format] of [
      ['a.csv', '[title],year\n', 'csv'],
      ['a.txt', '[\n {"title":""}]', 'json'],
      ['a.csv', '{"title":""}\n', 'jsonl'],
      ['a.TSV', 'title\tyear\n', 'csv'],
      ['-', 'title\tyear\n', 'csv'],
      ['books', '\n [{"title":""}]', 'json'],
      ['a.json', '{"title":""}\n', 'jsonl'],
      ['a.json', '{"7":{"title":""}}\n', 'json'],
      ['a.jsonl', '', 'jsonl'],
      ['a.ndjson', 'x\n{"title":""}\n', 'jsonl'],
      ['a.csv', '[{"title":""}]', 'json', 'json'],
      ['a.json', 'title\n', 'csv', 'csv'],
    ] as const) {
      assert.equal((await read(content, { name, format })).reading.format.name, found, `${name}: ${content}`);
    }
    const piped = await read('a,title|year\nx|1\n', { delimiter: '|', columns: { title: 'a,title' } });
    assert.deepEqual(inShort(piped), ['2 x//1']);
  });

  const NOISE = Buffer.from('f18b08000000000000034b4c4a06000241243503000000', 'hex');
  const UNSUPPORTED =
    'euc-kr windows-949 big5 big5-hkscs euc-jp shift_jis iso-2022-jp gbk gb18030 x-user-defined'.split(' ');
  /** Of U+1F600, one half also begins U+1F601. */
  const REFUSED: readonly (readonly [RegExp, Content, Options?])[] = [
    [/^The file is empty/, ''],
    [/^The file is empty/, '\r\n\n ;'],
    [/begins with neither \[ nor \{/, '', { name: 'a.json' }],
    [/^Line 2, the header, has a misplaced or unclosed quote, or/, '\n"title,year\na,1\n'],
    [/^Line 1, the header, has a misplaced or unclosed quote, or/, '"title"s,year\na,1\n'],
    [/^Line 1, the header, has .+ more than 10000 columns\.$/, `title${','.repeat(10_000)}\n`],
    [/the title; set --title, --author and --year: the columns are foo, bar\.$/, 'foo;bar\n1;2\n'],
    [/the title; set --title, --author and --year: the columns are foo, bar\.$/, '[{"foo":1},{"bar":2}]'],
    [/^There is no column for the title/, 'title\na\n', { columns: { title: null } }],
    [/^There is no column for the title.+ columns are 1\.$/, '1\n2\n3\n4\n5\n6\n7\n8\n9\n10\nTitle,Author\n'],
    [/^There is no column for the title.{0,200}$/, `${'x'.repeat(1_000_000)}\n`],
    [/the columns are a \[31m , b\.$/, '"a\u001b[31m\n",b\n'],
    [/ "d" for the year: the columns are a, title\.$/, 'a,title\n', { columns: { year: 'd' } }],
    [/ no column "constructor" for/, '{"title":"a"}', { columns: { title: 'constructor' } }],
    [/no column "id"/, 'title\na\n', { ids: 'keep' }],
    [/no column "id"/, '{"title":"a"}', { ids: 'keep' }],
    [/begins with neither \[ nor \{/, 'title\n', { name: 'a.json' }],
    [
      /^None of the first records .+ all between \[ and \] with commas\.$/,
      '{\n  "title": "a",\n  "author": [{"name":"b"}]\n}\n',
    ],
    [
      /^None of the first records is a JSON object .+; the first one is 1\. Put/,
      '1\n2\n',
      { format: 'jsonl' },
    ],
    [/^None of the first records .+ the first one is "a"\. Put/, '{"title":"a"}', { format: 'json' }],
    ...[
      '[{"title":"a"},\n{"title":"b"} oops {"title":"c"}]',
      '[{"title":"a"}\n,\n,{"title":"b"}]',
      '[{"title":"a"}]\n{"title":"b"}',
      '[{"title":"a"},\n{"title":"b"}\n',
      '[{"title":"a"},\n{"title',
      '[{"title":"a"},{"title":}]',
    ].map((content) => [/^The array is malformed: .{20,90}\.$/, content] as const),
    [/^The array is malformed: Unexpected token 'N'/, '[{"title":"a","year":NaN}]'],
    [/^The array has more than 16 MiB, .+: save it as JSON Lines/, `[${' '.repeat(16 * 1024 * 1024)}]`],
    [/^The file is not text: .*--encoding utf-16le or utf-16be/, 't\0i\0t\0l\0e\0,\0y\0\n\0'],
    [/^The file is not text: .*--encoding utf-16le or utf-16be/, '\0t\0i\0t\0l\0e\0,\0y\0\n'],
    [/^Line 1, the header, has other quotation marks/, "'Title','Author'\n'Emma','Jane Austen'\n"],
    [/^The encoding "utf-32le" is not supported: .+ iconv\.$/, Buffer.from('fffe000074000000', 'hex')],
    [/^The encoding "klingon" is not supported/, 'title\na\n', { encoding: 'klingon' }],
    [/^The file is not text: save a spreadsheet as a workbook/, NOISE, { name: 'a.xlsx' }],
    // Node.js decodes some of their characters as others.
    ...UNSUPPORTED.map(
      (encoding) => [/ not supported: .+, or convert .* with iconv/, 'title\n', { encoding }] as const,
    ),
  ];
  test('that cannot be read is refused as a whole, in one sentence', async () => {
    for (const [message, content, options] of REFUSED) {
      const failure = await read(content, options).catch((error) => error);
      assert.ok(failure instanceof OperatorError, String(message));
      assert.match(failure.message, message);
    }
  });

  test('comes in batches of a limited size, each with its position', async () => {
    const content = `title\n${'a title of a book\n'.repeat(2000)}`;
    const { batches } = await read(content);
    assert.ok(batches.every(({ books }) => books.length <= 250));
    const positions = batches.map(({ position }) => position);
    assert.deepEqual(
      positions,
      positions.toSorted((one, other) => one - other),
    );
    assert.equal(positions.at(-1), content.length);
    const long = await read(`title\n${`${'x'.repeat(100_000)}\n`.repeat(5)}`); // each is more than 64 KiB
    const lengths = long.batches.map(({ books }) => books.length);
    assert.deepEqual(lengths.filter(Boolean), [1, 1, 1, 1, 1]);
  });

  test('ends where a record has more than 16 MiB, as with a quote that is never closed', async () => {
    for (const [beginning, line] of [
      ['title,year\na,1\n"b', 3],
      ['{"title":"a"}\n\n{"title":"', 3],
    ] as const) {
      const { books, fault } = await read(`${beginning}${'x,1 '.repeat(17 * 256 * 1024)}"`);
      assert.equal(books.length, 1);
      assert.match(`${fault}`, new RegExp(`^The record that begins in line ${line} has more than 16 MiB`));
    }
  });

  test('is closed when it is not read to its end, or cannot be; an error comes after all books before it', async () => {
    let closed = 0;
    async function* input(line: string, times: number) {
      try {
        for (let time = 0; time < times; time += 1) yield Buffer.from(line);
        throw new Error('disk on fire');
      } finally {
        closed += 1;
      }
    }
    const options = { name: '-', columns: {} };
    for await (const _ of (await readBooks(input('title,x\n', 1e9), options)).batches) break;
    assert.equal(closed, 1);
    await assert.rejects(readBooks(input('foo\n', 1e9), options), /no column/);
    assert.equal(closed, 2);
    let books = 0;
    const { batches } = await readBooks(input('title\n'.repeat(1000), 20), options);
    await assert.rejects(async () => {
      for await (const batch of batches) books += batch.books.length;
    }, /disk on fire/);
    assert.equal(books, 19_999);
  });
});
