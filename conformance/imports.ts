// Owns: rules M1 to M7: importing a file, and the report of what becomes of each of its rows. A mark that no other
// book has is in the rows of a rule, to find those that became books.
// Does not: send more than a file of a few rows, or end a process whose import is not complete.

import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type { Answer } from './answers.ts';
import { Complaint, expect, expectAnswer, expectEqual } from './complaint.ts';
import { booksOf, findListed, nameOf } from './event-pages.ts';
import { put } from './log.ts';
import { together } from './racing.ts';
import { ofBoth, ofImports, type Rule } from './rule.ts';
import type { Book, Service } from './service.ts';
import { newestStateOf } from './undo.ts';
import {
  COMPRESSED,
  fileChecked,
  IMPORT_NOT_FOUND,
  INVALID_KEY,
  INVALID_TOKEN,
  imported,
  importInProgress,
  importRetrieved,
  importsRetrieved,
  invalidFile,
  invalidParameter,
  KEY_USED,
  METHOD_NOT_ALLOWED,
  NOT_FOUND,
  TOKEN_REQUIRED,
} from './words.ts';

/** A number that no import has. */
const NO_IMPORT = Number.MAX_SAFE_INTEGER;

/** Imports in the list, at most. */
const LISTED = 20;

/** Requests at the same moment. */
const RACERS = 8;

/** Milliseconds until an import in progress is asked for again, and how often. */
const PAUSE = 200;
const PATIENCE = 300;

/** Queries whose last parameter is refused. */
const REFUSED =
  `nope Title=a limit=1 dry-run&nope=1 dry-run=maybe dry-run&dry-run title=a&title=a on-duplicate=keep doubtful=
  ids=old header=maybe format=xml from-line=0 from-line=1.5 name=%ff corrections= corrections=[]
  corrections={"3":1}`.split(/\s+/);

/** Files without a book. */
const NO_BOOKS = [
  '',
  '\n',
  'a,b\n1,2\n',
  '[',
  '[1',
  Buffer.from('PK\x03\x04\0\0\0\0'),
  gzipSync('a,b\n1,2\n'),
];

const FIELDS_OF_LIST = 'books dryRun fault figures import name phase read size state'.split(' ');
const FIELDS = [...FIELDS_OF_LIST, ...'file options refused rejects rows'.split(' ')].sort();
const FIELDS_OF_FILE =
  'above columns delimiter encoding first format header ids names otherYears sheet sheets'.split(' ');

/** Options, a file, and the new books in it. `#` stands for a text that no book has. */
const OPTIONS: readonly (readonly [query: string, file: string, ...books: readonly string[]])[] = [
  ['title=b&author=a&year=', 'a,b,year\nx,#,1900\n', '#,x,0'],
  ['header=no&title=column+2', 'x,#\nv,w#\n', '#,,0', 'w#,,0'],
  ['delimiter=|', 'title|author,x\n#|z,w\n', '#,,0'],
  ['delimiter=\\t', 'title\tyear\n#,z\t1900\n', '#,z,,1900'],
  ['from-line=3', 'title,x\na#,b\ntitle\n#\n', '#,,0'],
  ['encoding=windows-1252', 'title\n\xe9#\n', '\u00e9#,,0'],
  ['format=csv', '[title\n#\n', '#,,0'],
  ['on-duplicate=add', 'title\n#\n#\n', '#,,0', '#,,0'],
  ['doubtful=skip', 'title,author\n,#\n#,\n', '#,,0'],
  ['ids=new', 'id,title,author,year\nx,#,,0\n', '#,,0'],
];

interface Sent {
  readonly body?: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The answer to a file, and the report at its end. */
interface Done {
  readonly answer: Answer;
  readonly data: Answer['data'];
}

export const IMPORTS: readonly Rule[] = [
  ofImports.writing('M1, M6', 'an unknown, repeated or invalid parameter gets 400', async (service) => {
    for (const query of REFUSED) {
      const [name = ''] = query.replace(/.*&/, '').split('=');
      for (const path of ['/import', `/import/${NO_IMPORT}`]) {
        const answer = await service.request('POST', `${path}?${query}`, { body: 'title\n' });
        expectAnswer(answer, invalidParameter(name));
      }
    }
  }),
  ofImports.writing('M1', 'a parameter is refused before the file is there', async (service) => {
    const connection = service.connect();
    const headers = { 'content-length': '1000' };
    await connection.send(service.bytes('POST', '/import?nope', { headers }));
    const [answer] = await connection.answers(1);
    expectAnswer(answer, invalidParameter('nope'));
    connection.close();
  }),
  ofImports.writing('M1', 'a file of each format is read, whatever Content-Type says', async (service) => {
    const mark = randomUUID();
    const row = JSON.stringify({ title: mark, author: 'b', year: 1901 });
    for (const [format, body] of [
      ['csv', `title,author,year\n${mark},b,1901\n`],
      ['json', `[${row}]`],
      ['jsonl', `${row}\n${row}\n`],
    ] as const) {
      for (const type of ['', 'application/json', 'text/csv', 'x']) {
        const done = await post(service, '/import?dry-run', { body, headers: { 'content-type': type } });
        expectReport(done, { file: { format } });
        expectNew(done, mark, ['#,b,1901']);
      }
    }
  }),
  ofImports.writing('M1', 'the options say how a file is read', async (service) => {
    const mark = randomUUID();
    for (const [query, file, ...books] of OPTIONS) {
      const body = Buffer.from(file.replaceAll('#', mark), 'latin1');
      const done = await post(service, `/import?dry-run&${query}`, { body });
      expectNew(done, mark, books);
      const options = Object.fromEntries(new URLSearchParams(query));
      expectEqual(done.data.options, options, 'The options', done.answer);
    }
  }),
  ofImports('M1 and M5, rules 9 and 20', 'the path, the method and the token come first', async (service) => {
    for (const path of ['/import?nope', '/import/x?nope']) {
      for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
        const answer = await service.request(method, path, { token: null });
        expectAnswer(answer, METHOD_NOT_ALLOWED);
        expectEqual(answer.headers.get('allow'), 'GET, HEAD, POST', 'allow', answer);
      }
      for (const method of ['GET', 'HEAD', 'POST']) {
        expectAnswer(await service.request(method, path, { token: null }), of(method, TOKEN_REQUIRED));
        expectAnswer(await service.request(method, path, { token: 'x' }), of(method, INVALID_TOKEN));
      }
    }
    for (const path of ['/import/', '/Import', '/imports', '/import/1/'])
      expectAnswer(await service.request('POST', path, { body: 'title\n', token: null }), NOT_FOUND);
  }),
  ofImports.writing('M2', 'a file is stored, and one that is checked is not', async (service) => {
    const mark = randomUUID();
    const body = `title,author,year\n${mark},\u00e9 "b,-7\n${mark},,1901\n`;
    const checked = await post(service, '/import?dry-run=true', { body }, fileChecked);
    expectReport(checked, { state: 'checked', books: 0, dryRun: true });
    await expectBooks(service, mark, []);
    const done = await post(service, '/import?dry-run=false', { body }, imported);
    expectReport(done, { state: 'stored', books: 2, dryRun: false });
    expect(done.data.import !== checked.data.import, 'Each import has another number.', done.answer);
    await expectBooks(service, mark, ['#,\u00e9 "b,-7', '#,,1901']);
  }),
  ofImports.writing(
    'M2, rule 7',
    'a file without books gets 400 and a report, a compressed one 415',
    async (service) => {
      for (const body of NO_BOOKS) {
        for (const query of ['', '?dry-run']) {
          const done = await post(service, `/import${query}`, { body }, invalidFile);
          expectReport(done, { file: null, books: 0 });
          const isSaid = typeof done.data.fault?.code === 'string' && done.data.fault.message !== '';
          expect(isSaid, 'The fault has a code and a message.', done.answer);
        }
      }
      const sent = { body: gzipSync('title\na\n'), headers: { 'content-encoding': 'gzip' } };
      expectAnswer(await service.request('POST', '/import', sent), COMPRESSED);
    },
  ),
  ofImports.writing('M3', 'the report has the file, and what becomes of its rows', async (service) => {
    const mark = randomUUID();
    const { data: book } = await service.request('POST', '/book', {
      body: { title: `${mark} here`, year: 1815 },
    });
    const rows = [
      'Title,Who,year',
      '# here,,1815',
      '# new,b,1900',
      '# new,b,1900',
      ',#,0',
      '# bad,b,1901-1902',
      '# worse,b,x',
    ];
    const body = `${rows.join('\n').replaceAll('#', mark)}\n`;
    const done = await post(service, '/import?name=x/books.csv&author=Who', { body });
    const { data, answer } = done;
    expectEqual(Object.keys(data).sort(), FIELDS, 'The fields', answer);
    expectEqual(Object.keys(data.file).sort(), FIELDS_OF_FILE, 'The fields of file', answer);
    const title = `${mark} bad`;
    expectReport(done, {
      ...{ name: 'books.csv', options: { author: 'Who' }, fault: null },
      ...{ phase: 'done', read: body.length, size: body.length },
      file: { names: ['Title', 'Who', 'year'], columns: { title: 'Title', author: 'Who', year: 'year' } },
      figures: { rows: 6, new: 1, here: 1, repeated: 1, doubtful: 1, refused: 2 },
      rows: { new: [{ line: 3, doubt: null }], here: [{ line: 2 }, { line: 4 }], doubtful: [{ line: 5 }] },
      refused: [
        { line: 6, title, column: 'year', text: '1901-1902', proposal: '1901' },
        { line: 7, proposal: null },
      ],
    });
    expectEqual(data.file.first[0], [book.title, '', '1815'], 'The first row', answer);
    const [{ reason, record }, other] = data.refused;
    const areCodes = [data.rows.doubtful[0].doubt, reason.code].every((code) => typeof code === 'string');
    expect(areCodes && Array.isArray(reason.values), 'Doubts and reasons have codes.', answer);
    // A file of the refused rows, in which a text has been put right, can be imported.
    const { before, between, after } = data.rejects;
    const rest = `${before}${record.replace('1901-1902', '1902')}${between}${other.record}${after}`;
    const again = await post(service, '/import?author=Who', { body: rest });
    await expectBooks(service, mark, ['# here,,1815', '# new,b,1900', ',#,0', '# bad,b,1902']);
    expectReport(again, { books: 1, figures: { rows: 2, refused: 1 } });
  }),
  ofBoth.writing(
    'M4, H5 and H7 to H9',
    'an import is an event, and is taken back by its number',
    async (service) => {
      const mark = randomUUID();
      const body = `title\n${mark} a\n${mark} b\n`;
      const around = await service.create({ title: 'before' });
      const { at: begin } = await newestStateOf(service, around.id);
      const { data } = await post(service, '/import?name=books.csv', { body });
      await put(service, around.id, { title: 'after' });
      const { at: end } = await newestStateOf(service, around.id);
      const path = `/event/${data.import}`;
      const event = await service.request('GET', path);
      const { at } = event.data ?? {};
      const of = { event: data.import, kind: 'import', at, until: at, name: 'books.csv', books: 2 };
      expectAnswer(event, { status: 200, data: { ...of, undo: null } });
      const listed = await findListed(service, (one) => one.event === data.import, 'The import');
      const books = await booksOf(service, data.import);
      expectEqual(listed, { ...of, first: books }, 'The import in the list of events');
      const titles = books.map(({ before, book }) => [before, book?.title]);
      expectEqual(
        titles,
        [
          [null, `${mark} a`],
          [null, `${mark} b`],
        ],
        'The books before and after the import',
      );
      const ofRun = new Set((await booksOf(service, nameOf(begin, end))).map(({ id }) => id));
      const isApart = ofRun.has(around.id) && books.every(({ id }) => !ofRun.has(id));
      expect(isApart, 'The run before and after the import has no book of it.', service.latest);
      await expectBooks(service, mark, ['# a,,0', '# b,,0']);
      const undo = await service.request('POST', '/undo', { body: { event: data.import } });
      expectAnswer(undo, { status: 200, data: { ...undo.data, undone: 2, left: [] } });
      await expectBooks(service, mark, []);
      const report = await service.request('GET', `/import/${data.import}`);
      expectAnswer(report, importRetrieved({ ...data, state: 'undone' }));
      const again = await post(service, '/import', { body });
      await expectBooks(service, mark, ['# a,,0', '# b,,0']);
      expectReport(again, { books: 2 });
    },
  ),
  ofImports.writing('M5', 'a report is kept under its number, and is in the list', async (service) => {
    const mark = randomUUID();
    for (const [query, body, status] of [
      ['?dry-run&name=a.csv', 'title\nx\n', 200],
      ['', 'a,b\n1,2\n', 400],
      ['', `title\n${mark}\n`, 200],
    ] as const) {
      const { data } = await post(service, `/import${query}`, { body }, { status });
      await service.adopt(mark);
      expectAnswer(await service.request('GET', `/import/${data.import}?x`), importRetrieved(data));
      expectAnswer(await service.request('HEAD', `/import/${data.import}`), { status: 200 });
      const list = await service.request('GET', '/import?x');
      expectAnswer(list, importsRetrieved);
      const numbers: number[] = list.data.map((one: typeof data) => one.import);
      const newest = numbers.toSorted((one, other) => other - one).slice(0, LISTED);
      expectEqual(numbers, newest, 'The newest first', list);
      const inShort = Object.fromEntries(FIELDS_OF_LIST.map((name) => [name, data[name]]));
      expectEqual(list.data[numbers.indexOf(data.import)], inShort, 'The import in the list', list);
    }
    expectAnswer(await service.request('HEAD', '/import'), { status: 200 });
    for (const number of [NO_IMPORT, 0, -1, '01', '1.0', 'x'])
      for (const method of ['GET', 'HEAD', 'POST'])
        expectAnswer(await service.request(method, `/import/${number}`), of(method, IMPORT_NOT_FOUND));
  }),
  ofImports.writing('M6', 'the file of a check is stored with other options, once', async (service) => {
    const mark = randomUUID();
    const body = `a,b,c\n${mark} x,${mark} y,1900\n`;
    const checked = await post(service, '/import?dry-run&name=a.csv&year=c', { body }, invalidFile);
    const path = `/import/${checked.data.import}`;
    await post(service, `${path}?title=d`, {}, invalidFile);
    expectNew(await post(service, `${path}?dry-run&title=b`, {}, fileChecked), mark, ['# y,,1900']);
    await expectBooks(service, mark, []);
    const done = await post(service, `${path}?author=a`, {}, imported);
    const options = { title: 'b', author: 'a', year: 'c' };
    expectReport(done, {
      import: checked.data.import,
      name: 'a.csv',
      options,
      dryRun: false,
      state: 'stored',
    });
    expectAnswer(await service.request('POST', `${path}?title=a`), importRetrieved(done.data));
    await expectBooks(service, mark, ['# y,# x,1900']);
  }),
  ofImports.writing('M1 and M6', 'corrections take the places of wrong texts', async (service) => {
    const mark = randomUUID();
    const body = `title,year\n${mark} a,1900\n${mark} b,1901-1902\n${mark} c,x\n`;
    const checked = await post(service, '/import?dry-run&corrections={"3":"1902"}', { body });
    expectReport(checked, { figures: { refused: 1 }, refused: [{ line: 4 }] });
    const path = `/import/${checked.data.import}?corrections={"2":"7","3":"1901","4":"y","99":"1"}`;
    const done = await post(service, path, {}, imported);
    await expectBooks(service, mark, ['# a,,1900', '# b,,1901']);
    expectReport(done, { books: 2, refused: [{ line: 4, text: 'y' }] });
  }),
  ofImports.writing('M7, I1 and I2', 'with one key, a file is stored once', async (service) => {
    const mark = randomUUID();
    const path = '/import?on-duplicate=add';
    const sent = { body: `title\n${mark}\n`, headers: { 'idempotency-key': randomUUID() } };
    for (const key of ['', '""', 'x'.repeat(256), 'a b']) {
      const headers = { 'idempotency-key': key };
      expectAnswer(await service.request('POST', path, { ...sent, headers }), INVALID_KEY);
    }
    const first = await post(service, path, sent, imported);
    const again = await post(service, path, sent, imported);
    await expectBooks(service, mark, ['#,,0']);
    expectEqual(again.data, first.data, 'The report', again.answer);
    const replays = [first, again].map(({ answer }) => answer.headers.get('idempotent-replayed'));
    expectEqual(replays, [null, 'true'], 'idempotent-replayed', again.answer);
    for (const [other, body] of [
      [path, 'title\nx\n'],
      ['/import', sent.body],
      [`${path}&dry-run`, sent.body],
      ['/book', '{}'],
    ] as const)
      expectAnswer(await service.request('POST', other, { ...sent, body }), KEY_USED);
    const check = { ...sent, headers: { 'idempotency-key': randomUUID() } };
    const checks = [
      await post(service, '/import?dry-run', check),
      await post(service, '/import?dry-run', check),
    ];
    expectEqual(checks[1]?.data, checks[0]?.data, 'The report of a check', checks[1]?.answer);
    const plain = await post(service, '/import', { body: sent.body });
    await expectBooks(service, mark, ['#,,0']);
    expectReport(plain, { books: 0, figures: { new: 0, here: 1 } });
    expect(plain.data.import !== first.data.import, 'Without a key, it is another import.', plain.answer);
  }),
  ofImports.writing(
    'M7, I3',
    'of many requests with one key at once, one stores the file',
    async (service) => {
      const mark = randomUUID();
      const sent = { body: `title\n${mark}\n`, headers: { 'idempotency-key': randomUUID() } };
      const all = await together(RACERS, () => post(service, '/import?on-duplicate=add', sent));
      await expectBooks(service, mark, ['#,,0']);
      const firsts = all.filter(({ answer }) => !answer.headers.has('idempotent-replayed'));
      const numbers = new Set(all.map(({ data }) => data.import));
      expectEqual([firsts.length, numbers.size], [1, 1], 'First answers, numbers', all[0]?.answer);
    },
  ),
];

/** HEAD has no body. */
const of = (method: string, { status, ...body }: { status: number }) =>
  method === 'HEAD' ? { status } : { status, ...body };

/**
 * Sends a file, or has one read again, and waits for the end of the import.
 * @param expected its answer, unless it takes longer.
 */
export async function post(
  service: Service,
  path: string,
  sent: Sent,
  expected: { readonly status: number; readonly message?: string } = { status: 200 },
): Promise<Done> {
  const answer = await service.request('POST', encodeURI(path), sent);
  const { status, data } = answer;
  const location = `/import/${data?.import}`;
  expectAnswer(answer, status === importInProgress.status ? importInProgress : expected);
  expectEqual(answer.headers.get('location'), location, 'location', answer);
  if (status !== importInProgress.status) return { answer, data };
  for (let time = 0; time < PATIENCE; time += 1) {
    const report = await service.request('GET', location);
    expectAnswer(report, importRetrieved(report.data));
    if (report.data.state !== 'open') return { answer, data: report.data };
    await pause(PAUSE);
  }
  throw new Complaint('An import of a few rows ends.', answer);
}

/** Fails unless the report has these values, whatever else. */
export function expectReport({ data, answer }: Done, expected: object): void {
  expectEqual(partOf(data, expected), expected, 'The report', answer);
}

/** @returns what there is of it where the other one has something. */
function partOf(value: Answer['data'], like: unknown): unknown {
  if (typeof like !== 'object' || like === null || typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((element, at) => partOf(element, (like as unknown[])[at]));
  return Object.fromEntries(Object.entries(like).map(([name, part]) => [name, partOf(value[name], part)]));
}

/** @param books such as `#,Austen,1815`, with `#` for the mark. */
function expectNew({ data, answer }: Done, mark: string, books: readonly string[]): void {
  expectEqual(
    data.rows.new.map((row: Book) => textOf(row, mark)),
    books,
    'The new books',
    answer,
  );
}

/** The books that have the mark, which are removed after the rule. */
export async function expectBooks(service: Service, mark: string, books: readonly string[]): Promise<void> {
  const stored = await service.adopt(mark);
  expectEqual(
    stored.map((book) => textOf(book, mark)),
    books,
    'The books',
  );
}

function textOf({ title, author, year }: Omit<Book, 'id'>, mark: string): string {
  return `${title},${author},${year}`.replaceAll(mark, '#');
}
