// Owns: rules F1 to F12: the parameters of GET /books, which books they find, and the pages. The rules store books whose
// authors share a word that no other book has, so that they find these alone.

import { linksOf } from './answers.ts';
import type { Fields } from './cases.ts';
import { expect, expectAnswer, expectEqual } from './complaint.ts';
import { encoded, expectFound, expectToFind, markOf, page, store, walk } from './found.ts';
import { expectHead, expectRefused } from './pages.ts';
import { full, type Rule } from './rule.ts';
import { INVALID_TOKEN, invalidParameter } from './words.ts';

const HUGE = 9007199254740991;

/** The most books of a page. */
const LARGEST_PAGE = 1000;

const BOOKS: readonly Fields[] = [
  { title: 'Pride and Prejudice', author: 'Jane Austen', year: 1813 },
  { title: 'Emma', author: 'Jane Austen', year: 1815 },
  { title: 'Ilias', author: 'Homer', year: -720 },
  { title: 'Winnie-the-Pooh', author: 'A. A. Milne', year: 1926 },
  { title: 'Emma Brown', author: 'A. A. Milne', year: 2003 },
  { title: '', author: '', year: 0 },
];

/** Queries, and the books that they find, from 1, by their place in BOOKS. MARK is the word of all authors. */
const FOUND: readonly (readonly [query: string, found: readonly number[]])[] = [
  ['author_contains=MARK', [1, 2, 3, 4, 5, 6]],
  ['q=MARK', [1, 2, 3, 4, 5, 6]],
  ['q=+&author_contains=MARK&title_contains=', [1, 2, 3, 4, 5, 6]],
  ['title_starts_with=&author_contains=MARK', [1, 2, 3, 4, 5, 6]],
  ['title=&author_contains=MARK', [6]],
  ['author=MARK&title=', [6]],
  ['q=emma+MARK&sort=id', [2, 5]],
  ['q=emma&author_contains=MARK', [2, 5]],
  ['q=emma+brown&author_contains=MARK', [5]],
  ['q=brown%20emma&author_contains=MARK', [5]],
  ['q=e%6Dm%41&author_contains=MARK', [2, 5]],
  ['%71=emma&author_contains=MARK', [2, 5]],
  ['q=emma&year_lte=1900&author_contains=MARK', [2]],
  ['author=JANE+AUSTEN+MARK', [1, 2]],
  ['author_contains=jane+MARK&title_contains=pride', [1]],
  ['author_starts_with=jane&author_contains=MARK', [1, 2]],
  ['title_starts_with=emm&author_contains=MARK', [2, 5]],
  ['title_starts_with=emma+&author_contains=MARK', [2, 5]],
  ['title=emma&author_contains=MARK', [2]],
  [`title=${'x'.repeat(1000)}`, []],
  [`title=${'🙂'.repeat(1000)}`, []],
  ['year=1815&author_contains=MARK', [2]],
  ['year=-0&author_contains=MARK', [6]],
  ['year_gte=1813&year_lte=1815&author_contains=MARK', [1, 2]],
  ['year_lte=-1&author_contains=MARK', [3]],
  [`year_gte=-${HUGE}&year_lte=${HUGE}&q=MARK`, [1, 2, 3, 4, 5]],
  ['year_gte=2&year_lte=1', []],
  ['sort=title&author_contains=MARK', [6, 2, 5, 3, 1, 4]],
  ['sort=+title&author_contains=MARK', [6, 2, 5, 3, 1, 4]],
  ['sort=%2Btitle&author_contains=MARK', [6, 2, 5, 3, 1, 4]],
  ['sort=-title&author_contains=MARK', [4, 1, 3, 5, 2, 6]],
  ['sort=-id&author_contains=MARK', [6, 5, 4, 3, 2, 1]],
  ['sort=author,-title&author_contains=MARK', [4, 5, 3, 1, 2, 6]],
  ['sort=author,title&author_contains=MARK', [5, 4, 3, 2, 1, 6]],
  ['sort=-year,title&author_contains=MARK', [5, 4, 2, 1, 6, 3]],
  ['limit=2&author_contains=MARK', [1, 2]],
  ['limit=2&offset=1&author_contains=MARK', [2, 3]],
  ['limit=1000&author_contains=MARK', [1, 2, 3, 4, 5, 6]],
  ['offset=6&author_contains=MARK', []],
  [`offset=${HUGE}&author_contains=MARK`, []],
  ['limit=2&sort=title&offset=4&author_contains=MARK', [1, 4]],
];

/** Queries that are refused because of their first parameter. */
const REFUSED = [
  ...'page=1 per_page=10 _sort=title filter[year]=1 Q=emma constructor=1 hasOwnProperty q=a&q=b'.split(' '),
  ...'offset=-1 offset=9007199254740992 offset=x year= year=1999.5 year=9007199254740992 year=0x10'.split(
    ' ',
  ),
  ...'year_gte=%20 year_lte=--1 sort= sort=isbn sort=title, sort=title,-title sort=--title sort=Title'.split(
    ' ',
  ),
  ...'q=ha* title_contains=a+b* q=%ff q=%zz %ff=1'.split(' '),
  ...['q', 'title', 'author_starts_with'].map((name) => `${name}=${'x'.repeat(1001)}`),
  `q=${Array.from({ length: 17 }, (_, number) => `w${number}`).join('+')}`,
  `title=${encodeURIComponent('🙂'.repeat(1001))}`,
];

/** Letters, and what folding makes of them. */
const LETTERS =
  'ß=ss æ=ae œ=oe ø=o đ=d ð=d þ=th ħ=h ł=l ŧ=t ŋ=n ĸ=k ƒ=f ǝ=e ə=e ɨ=i ı=i ƀ=b ǥ=g ɉ=j ɍ=r ʉ=u ƶ=z ς=σ'
    .split(' ')
    .map((pair) => pair.split('='));

/** Titles, and the texts of `q` and `title_contains` that find them. */
const WORDS: readonly (readonly [title: string, queries: readonly string[]])[] = [
  ['L’Étranger', ['letranger', "l'etranger", 'étranger', 'ETRANGER', 'L', 'etran*']],
  ['J. R. R. Tolkien', ['jrr', 'J.R.R.', 'j r r', 'tolkien jrr', 'r']],
  ['百年孤独', ['孤独', '百', '年孤', '百年孤独']],
  ['Harry Potter', ['harr*', 'potter harry', 'POT*']],
  ['Ma\u0301rquez, García', ['marquez', 'garcia márquez']],
  ['Straße', ['strasse', 'STRASSE', 'straße']],
  ['Æon: Łódź', ['aeon', 'lodz', 'łódź æon']],
  ['ﬁne Ｔｗｏ²', ['fine', 'two2']],
  ['???', ['???']],
  ...[LETTERS.slice(0, 12), LETTERS.slice(12)].map((some): [string, string[]] => [
    some.map(([letter], at) => `n${at}${letter}x`).join(' '),
    [some.map(([, plain], at) => `n${at}${plain}x`).join(' ')],
  ]),
  ['ØRE', ['ore', 'øre']],
  // As far as a word is compared, and a text searched.
  ['x'.repeat(70), ['x'.repeat(64), 'x'.repeat(65)]],
  [`${'y '.repeat(997)}zebra beyond`, ['zebra', 'zeb*']],
  ['हिन्दी किताब', ['किताब']],
  ['がくせい', ['がく', 'ガク']],
  ['Qurʾān ʿAbd Gogolʹ Obʺem', ["qur'an abd gogol ob'em", 'quran obem', 'ob"em']],
  ['צה״ל', ['צהל', 'צה"ל', "צה''ל"]],
  ['كتاب علي ٢٠٢٤', ['کتاب علی', '2024', '۲۰۲۴']],
];

/** Titles, and texts of `title_contains` that do not find them. */
const OTHER_WORDS: readonly (readonly [title: string, queries: readonly string[]])[] = [
  ['किताब', ['कताब', 'कुताब']],
  ['がくせい', ['かくせい', 'かく']],
  ['Acme™', ['acmetm']],
  [`${'x'.repeat(63)}a`, [`${'x'.repeat(63)}b`, 'x'.repeat(63), 'x'.repeat(24)]],
  [`${'y '.repeat(997)}zebra beyond`, ['beyond']],
  ['ماء لڑکے', ['ما', 'لڑکی']],
  ['Emma', ['emm', 'emmas', 'mma', 'mma*', 'aemma']],
  ['häuser', ['haeuser']],
];

/** Titles, and other spellings of their keys. */
const KEYS: readonly (readonly [title: string, same: readonly string[]])[] = [
  ['L’Étranger', ["l'etranger", 'L ETRANGER', 'l-étranger!']],
  ['Straße', ['strasse', 'STRASSE']],
  ['ŁÓDŹ', ['lodz', 'Łódź']],
  ['ΟΔΟΣ', ['οδός', 'οδοσ']],
  ['Winnie-the-Pooh', ['winnie the pooh', 'Winnie, the Pooh.']],
  [LETTERS.map(([letter]) => letter).join('-'), [LETTERS.map(([, plain]) => plain).join(' ')]],
];

/** A text whose key has 250 characters; what comes after them does not count, and the last of them does. */
const LONG_KEY = `${'ab '.repeat(83)}c`;

export const FINDING: readonly Rule[] = [
  full('rule F1', 'an empty query string is the list, and no page', async (service) => {
    for (const path of ['/books', '/books?']) {
      const answer = await service.request('GET', path);
      expectAnswer(answer, { status: 200, message: 'Books retrieved successfully' });
      for (const name of ['link', 'x-total-count']) expectEqual(answer.headers.get(name), null, name, answer);
    }
  }),
  full.writing('rule F1', 'other paths ignore their query', async (service) => {
    const answer = await service.request('POST', '/book?limit=0', { body: { title: 'gone' } });
    expectAnswer(answer, { status: 201 });
    for (const method of ['GET', 'DELETE']) {
      expectAnswer(await service.request(method, `/book/${answer.data.id}?limit=0`), { status: 200 });
    }
  }),
  full.writing('rules F2, F3 and F8 to F10', 'each parameter finds and orders books', async (service) => {
    const { mark, ids } = await store(service, BOOKS);
    await store(service, BOOKS); // of other authors, so that each condition leaves some out
    for (const [query, found] of FOUND) {
      const books = found.map((place) => ids[place - 1]);
      await expectToFind(service, encoded(query.replaceAll('MARK', mark)), books);
    }
  }),
  full('rule F3', 'an invalid parameter gets 400 with its name', (service) =>
    expectRefused(service, '/books', REFUSED),
  ),
  full.writing('rules F3 and F5', 'a cursor is valid with its own order and no offset', async (service) => {
    const { mark, ids } = await store(service, BOOKS);
    const first = await page(service, `sort=title&limit=2&author_contains=${mark}`);
    const next = linksOf(first).next ?? '';
    const [, cursor = ''] = /[?&](cursor=[^&]+)/.exec(next) ?? [];
    expect(cursor !== '', 'The link to the next page has a cursor.', first);
    expectFound(await service.search(next), [ids[4], ids[2]]);
    for (const [query, name] of [
      [`${cursor}&sort=-title`, 'cursor'],
      [`${cursor}&sort=author`, 'cursor'],
      [cursor, 'cursor'],
      [`${cursor}&sort=title&offset=1`, 'offset'],
      [`offset=1&sort=title&${cursor}`, 'cursor'],
    ] as const) {
      expectAnswer(await service.request('GET', `/books?${query}`), invalidParameter(name));
    }
  }),
  full.writing('rule F12', 'quotation marks, OR, NOT and minus have no meaning', async (service) => {
    const { mark, ids } = await store(service, BOOKS);
    for (const [q, found] of [
      ['%22brown+emma%22', [5]],
      ['emma+-brown', [5]],
      ['emma+OR+ilias', []],
      ['emma+NOT+brown', []],
    ] as const) {
      const books = found.map((place) => ids[place - 1]);
      await expectToFind(service, `q=${q}&author_contains=${mark}`, books);
    }
  }),
  full.writing('rules F1 and F3', 'HEAD is answered like GET, without a body', async (service) => {
    const { mark } = await store(service, BOOKS);
    await expectHead(service, `/books?sort=title&limit=2&author_contains=${mark}`);
    expectAnswer(await service.request('HEAD', '/books?nope'), { status: 400 });
  }),
  full('rule 9', 'the token is checked before the query', async (service) => {
    expectAnswer(await service.request('GET', '/books?nope', { token: 'x' }), INVALID_TOKEN);
  }),
  full.writing('rule F4', 'links lead to the next page and to the first', async (service) => {
    const { mark, ids } = await store(service, BOOKS);
    const begin = `/books?sort=-title&limit=4&author_contains=${mark}`;
    const first = await service.search(begin);
    expectFound(first, [ids[3], ids[0], ids[2], ids[4]]);
    expectEqual(linksOf(first).first, begin, 'The link to the first page', first);
    const last = await service.search(linksOf(first).next ?? '');
    expectFound(last, [ids[1], ids[5]]);
    expectEqual(linksOf(last), { first: begin }, 'The links of the last page', last);
  }),
  full.writing('rule F4', 'with an offset, links go by offset', async (service) => {
    const { mark } = await store(service, BOOKS);
    const begin = `/books?author_contains=${mark}&limit=2`;
    const linksAt = async (offset: number) => linksOf(await service.search(`${begin}&offset=${offset}`));
    expectEqual(
      await linksAt(3),
      { next: `${begin}&offset=5`, first: begin, prev: `${begin}&offset=1` },
      'The links of a page',
    );
    expectEqual((await linksAt(1)).prev, `${begin}&offset=0`, 'The link to the page before');
    expectEqual((await linksAt(0)).prev, undefined, 'The link to the page before the first one');
    expectEqual((await linksAt(4)).next, undefined, 'The link to the page after the last one');
  }),
  full.writing(
    'rule F4',
    'without limit, a page has 100 books and less than 1 MiB of texts',
    async (service) => {
      const many = await store(service, Array(101).fill({ title: 'x' }));
      await expectToFind(service, `q=${many.mark}`, many.ids.slice(0, 100));
      const title = 'long '.repeat(60_000);
      const large = await store(service, Array(4).fill({ title }));
      await expectToFind(service, `q=${large.mark}`, large.ids.slice(0, 3));
      const all = await walk(service, `/books?q=${large.mark}&limit=1000`);
      expectEqual(all, large.ids, 'The books of all pages');
    },
  ),
  full.writing('rules F3, F4 and F6', 'a page has 1,000 books if so many are asked for', async (service) => {
    const mark = markOf();
    const books = Array.from({ length: LARGEST_PAGE + 1 }, (_, at) => ({
      title: at < LARGEST_PAGE ? 'most' : 'last',
      author: mark,
    }));
    const stored = await service.request('POST', '/books', { body: books });
    expectAnswer(stored, { status: 201 });
    const ids: number[] = stored.data;
    const query = `q=${mark}&limit=${LARGEST_PAGE}`;
    const first = await page(service, query, { prefer: 'count=exact' });
    expectFound(first, ids.slice(0, -1));
    const counted = first.headers.get('x-total-count');
    // Counting may take too long.
    if (counted !== null) expectEqual(counted, String(ids.length), 'x-total-count', first);
    expectFound(await service.search(linksOf(first).next ?? ''), ids.slice(-1));
    const most = await page(service, `q=${mark}+most&limit=1`);
    expectEqual(most.headers.get('x-total-count'), String(LARGEST_PAGE), 'x-total-count', most);
  }),
  full.writing('rule F5', 'a walk meets every book once, even if others are removed', async (service) => {
    const books = Array.from({ length: 60 }, (_, at) => ({ title: `${at % 7}`, year: at % 3 }));
    const { mark, ids } = await store(service, books);
    const path = `/books?sort=year,-title&limit=7&author_contains=${mark}`;
    const expected = await walk(service, path);
    const ascending = expected.toSorted((one, other) => one - other);
    expectEqual(ascending, ids, 'The books of all pages');
    const removed = new Set<number>();
    const met = await walk(service, path, async (sofar) => {
      // The last book of the page, after which the next one starts, and one that has not been met.
      for (const id of [sofar.at(-1), expected.find((id) => !sofar.includes(id) && !removed.has(id))]) {
        if (id === undefined) continue;
        expectAnswer(await service.request('DELETE', `/book/${id}`), { status: 200 });
        if (!sofar.includes(id)) removed.add(id);
      }
    });
    const left = expected.filter((id) => !removed.has(id));
    expectEqual(met, left, 'The books of all pages, while others are removed');
  }),
  full.writing('rule F6', 'a total of 1,000 or fewer is shown, and any on demand', async (service) => {
    const { mark } = await store(service, BOOKS);
    for (const [query, prefer, total] of [
      [`q=${mark}&limit=1`, undefined, '6'],
      [`q=${mark}+emma&limit=1`, undefined, '2'],
      [`q=${mark}+nothing`, undefined, '0'],
      [`q=${mark}+emma&offset=5`, undefined, '2'],
      [`q=${mark}+emma`, 'count=exact', '2'],
      [`q=${mark}+emma`, 'return=minimal, Count="exact"; x', '2'],
      [`q=${mark}+emma`, 'count=planned', '2'],
    ] as const) {
      const answer = await page(service, query, prefer === undefined ? {} : { prefer });
      expectEqual(answer.headers.get('x-total-count'), total, 'x-total-count', answer);
      const applied = prefer === undefined || prefer === 'count=planned' ? null : 'count=exact';
      expectEqual(answer.headers.get('preference-applied'), applied, 'preference-applied', answer);
    }
  }),
  full.writing('rules F7 and F8', 'words are found however they are written', async (service) => {
    for (const [title, queries] of WORDS) {
      const { mark, ids } = await store(service, [{ title }]);
      for (const query of queries) {
        const words = encodeURIComponent(query);
        await expectToFind(service, `title_contains=${words}&author_contains=${mark}`, ids);
        await expectToFind(service, `q=${words}&author_contains=${mark}`, ids);
      }
      await expectToFind(service, `q=nowhere&author_contains=${mark}`, []);
    }
    for (const [title, queries] of OTHER_WORDS) {
      const { mark } = await store(service, [{ title }]);
      for (const query of queries) {
        await expectToFind(
          service,
          `title_contains=${encodeURIComponent(query)}&author_contains=${mark}`,
          [],
        );
      }
    }
  }),
  full.writing('rule F8', 'titles with one key are equal, and have equal beginnings', async (service) => {
    for (const [title, same] of KEYS) {
      const { mark, ids } = await store(service, [{ title }]);
      for (const text of same) {
        const value = encodeURIComponent(text);
        await expectToFind(service, `title=${value}&author_contains=${mark}`, ids);
        await expectToFind(service, `title_starts_with=${value}&author_contains=${mark}`, ids);
        await expectToFind(service, `title=${value}x&author_contains=${mark}`, []);
      }
    }
    const { mark, ids } = await store(service, [{ title: LONG_KEY }]);
    for (const [text, found] of [
      [`${LONG_KEY}d`, ids],
      [`${LONG_KEY.slice(0, -1)}d`, []],
    ] as const) {
      const value = encodeURIComponent(text);
      await expectToFind(service, `title=${value}&author_contains=${mark}`, found);
    }
  }),
  full.writing('rule F10', 'titles that are q come first, then those that begin with it', async (service) => {
    const titles = ['Before Emma', 'Emma Woodhouse', 'Emma', 'Emmanuelle, and Emma', 'Emma Brown', 'EMMA!'];
    const books = titles.map((title) => ({ title }));
    const { mark, ids } = await store(service, books);
    const order = (places: number[]) => places.map((place) => ids[place]);
    await expectToFind(service, `q=emma&author_contains=${mark}`, order([2, 5, 4, 1, 0, 3]));
    await expectToFind(service, `q=emma*&author_contains=${mark}`, order([2, 5, 4, 1, 3, 0]));
  }),
  full.writing('rule F11', 'a search sees every write that was answered before it', async (service) => {
    const { mark, ids } = await store(service, [{ title: 'one' }]);
    const [id] = ids;
    await expectToFind(service, `q=one+${mark}`, ids);
    await service.request('PUT', `/book/${id}`, { body: { title: 'other' } });
    await expectToFind(service, `q=one+${mark}`, []);
    await expectToFind(service, `q=other+${mark}`, ids);
    await service.request('DELETE', `/book/${id}`);
    await expectToFind(service, `q=${mark}`, []);
  }),
];
