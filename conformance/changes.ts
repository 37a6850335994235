// Owns: rules H1 to H4: what has changed in the catalogue, waiting for a change, and the states of one book. Other programs
// may change other books meanwhile.

import { setTimeout as pause } from 'node:timers/promises';
import { EMPTY } from './cases.ts';
import { expect, expectAnswer, expectEqual } from './complaint.ts';
import {
  type Change,
  follow,
  history,
  PATIENCE,
  position,
  put,
  read,
  refuseOthers,
  remove,
  untilQuiet,
} from './log.ts';
import { expectHead, expectRefused, nextOf } from './pages.ts';
import { ofLog, type Rule } from './rule.ts';
import type { Book } from './service.ts';
import { BOOK_NOT_FOUND, NOT_FOUND } from './words.ts';

/** Pages of a catalogue that is not large. */
const PAGES = 20;

/** Seconds that a wait may take, the longest that the contract has, and those within which its end is noticed. */
const WAIT = 15;
const LONGEST_WAIT = 60;
const NOTICE = 10;

/** Books or states, and the length of their titles, of which one page has not room for all. */
const LARGE = 8;
const LONG_TITLE = 'long '.repeat(60_000);
/** Queries that are refused because of their first parameter. */
const REFUSED = ['cursor=%00', `cursor=${'x'.repeat(5000)}`, 'since=2020', 'offset=1', 'Limit=1', 'q=emma'];

export const CHANGES: readonly Rule[] = [
  ofLog('H1', 'every page has books once each, and one link', async (service) => {
    const one = await read(service, '/changes?limit=1');
    await read(service, one.next);
    await read(service, '/changes');
    await read(service, '/changes?');
  }),
  ofLog.writing('H1', 'the first pages have every book, ascending by id', async (service) => {
    const own = [];
    for (let year = 0; year < 5; year += 1) own.push(await service.create({ title: 'listed', year }));
    const [first, changed, removed] = own as [Book, Book, Book];
    await put(service, changed.id, { title: 'changed' });
    await remove(service, removed.id);
    const kept = [first, { ...changed, title: 'changed' }, ...own.slice(3)];
    const last = Math.max(...kept.map(({ id }) => id));
    const expected = (await service.list()).map(({ id }) => id).filter((id) => id <= last);
    const limit = Math.min(1000, Math.max(2, Math.ceil(expected.length / PAGES)));
    const met = new Map<number, Change>();
    for (let path = `/changes?limit=${limit}`, before = 0; before < last; ) {
      const { changes, next, answer } = await read(service, path);
      expect(changes.length > 0, `Book ${last} comes before a page without elements.`, answer);
      for (const change of changes) {
        if (before >= last) break; // it may be a later change
        expect(change.id > before, `The ids ascend up to ${last}: ${change.id} is above ${before}.`, answer);
        before = change.id;
        met.set(change.id, change);
      }
      path = next;
    }
    for (const book of kept) expectEqual(met.get(book.id)?.book, book, `Book ${book.id} in the pages`);
    expectEqual(met.has(removed.id), false, 'Whether the pages have a book that was removed before');
    // Others may have removed the rest since.
    for (const id of expected.filter((id) => !met.has(id))) {
      expectAnswer(await service.request('GET', `/book/${id}`), BOOK_NOT_FOUND, 'A book that the pages lack');
    }
  }),
  ofLog.writing('H1', 'what has changed comes after the cursor, in its present state', async (service) => {
    const [changed, removed] = [await service.create({ title: 'a' }), await service.create({ title: 'b' })];
    const start = await position(service);
    await put(service, changed.id, { title: 'c' });
    await put(service, changed.id, { author: 'd', year: -7 });
    await remove(service, removed.id);
    const brief = await service.create({ title: 'brief' });
    await remove(service, brief.id);
    const created = await service.create({ title: 'e' });
    const states = {
      [changed.id]: { ...changed, title: 'c', author: 'd', year: -7 },
      [removed.id]: null,
      [created.id]: created,
    };
    for (const limit of [1000, 2, 1]) {
      const begin = start.replace('limit=1000', `limit=${limit}`);
      const { latest } = await follow(service, begin, states);
      // A book that came and went in between need not come, but cannot be there.
      expectEqual(latest.get(brief.id)?.book ?? null, null, 'A book that was removed at once');
    }
  }),
  ofLog.writing('H1', 'an empty page leads to what happens later', async (service) => {
    const quiet = await untilQuiet(service);
    if (quiet === undefined) return;
    const book = await service.create({ title: 'later' });
    await follow(service, quiet, { [book.id]: book });
    await put(service, book.id, { title: 'later still' });
    // A cursor stays valid after it was used.
    const { latest } = await follow(service, quiet, { [book.id]: { ...book, title: 'later still' } });
    expectEqual(latest.get(book.id)?.book, { ...book, title: 'later still' }, 'The book');
  }),
  ofLog.writing('H1', 'with cursor=now, only what happens later comes', async (service) => {
    await service.create({ title: 'earlier' });
    for (const limit of [1, 1000]) {
      const { changes, next } = await read(service, `/changes?cursor=now&limit=${limit}`);
      expectEqual(changes, [], 'The page of the present moment');
      const book = await service.create({ title: 'later' });
      await follow(service, next, { [book.id]: book });
    }
  }),
  ofLog.writing('H1', 'without limit, a page has 100 books, and fewer if they are large', async (service) => {
    const start = await position(service);
    const stored = await service.request('POST', '/books', { body: Array(101).fill({ title: 'x' }) });
    expectAnswer(stored, { status: 201 });
    const large: Book[] = [];
    for (let year = 0; year < LARGE; year += 1) large.push(await service.create({ title: LONG_TITLE, year }));
    const begin = start.replace('limit=1000&', '');
    const small = stored.data.map((id: number) => [id, { id, ...EMPTY, title: 'x' }]);
    const states = Object.fromEntries([...small, ...large.map((book) => [book.id, book])]);
    await follow(service, begin, states);
  }),
  ofLog('H1', 'an invalid parameter gets 400 with its name', (service) =>
    expectRefused(service, '/changes', REFUSED),
  ),
  ofLog('H1, rules 9 and 20', 'the path, the method and the token come before the query', async (service) => {
    await refuseOthers(service, '/changes');
    for (const path of ['/changes/', '/Changes', '/change', '/changes/1']) {
      expectAnswer(await service.request('GET', path, { token: null }), NOT_FOUND);
    }
  }),
  ofLog('H1', 'HEAD is answered like GET, without a body', async (service) => {
    for (const path of ['/changes', '/changes?limit=7']) {
      const head = await service.request('HEAD', path);
      expectAnswer(head, { status: 200 });
      nextOf(head, path);
    }
    expectAnswer(await service.request('HEAD', '/changes?nope'), { status: 400 });
  }),
  ofLog.writing('H3', 'a wait ends with the next change', async (service) => {
    const { id } = await service.create({ title: 'waited for' });
    for (const [seconds, applied] of [
      [WAIT, WAIT],
      [10 ** 12, LONGEST_WAIT],
    ] as const) {
      const quiet = await untilQuiet(service);
      if (quiet === undefined) return;
      const waiting = read(service, quiet, { prefer: `respond-async, wait=${seconds}` });
      await Promise.race([waiting, pause(300)]);
      const since = performance.now();
      const book = await put(service, id, { year: seconds });
      const { changes, next, answer } = await waiting;
      const took = (performance.now() - since) / 1000;
      expect(took < NOTICE, `The answer comes with the change, not ${took.toFixed()} s after it.`, answer);
      expect(changes.length > 0, 'The page that was waited for has a change.', answer);
      expectEqual(answer.headers.get('preference-applied'), `wait=${applied}`, 'preference-applied', answer);
      // The first change may have been another program's.
      if (changes.every((change) => change.id !== id)) await follow(service, next, { [id]: book });
    }
  }),
  ofLog.writing('H3', 'without a change, a wait ends after its seconds', async (service) => {
    for (let attempt = 0; attempt < PATIENCE; attempt += 1) {
      const quiet = await untilQuiet(service);
      if (quiet === undefined) return;
      const since = performance.now();
      const { changes, answer } = await read(service, quiet, { prefer: 'wait=1' });
      const took = performance.now() - since;
      expectEqual(answer.headers.get('preference-applied'), 'wait=1', 'preference-applied', answer);
      if (changes.length > 0) continue; // another program's
      expect(took > 900, `The empty page comes after 1 s, not after ${took.toFixed()} ms.`, answer);
      expect(took < NOTICE * 1000, `The empty page comes after 1 s, not after ${took.toFixed()} ms.`, answer);
      return;
    }
  }),
  ofLog.writing('H3', 'a wait that is not a whole number of seconds has no effect', async (service) => {
    for (const prefer of ['wait=0', 'wait=1.5', 'wait=-1', 'wait=x', 'wait', 'wait=', 'count=exact']) {
      const quiet = await untilQuiet(service);
      if (quiet === undefined) return;
      const { answer } = await read(service, quiet, { prefer });
      expectEqual(answer.headers.get('preference-applied'), null, 'preference-applied', answer);
    }
  }),
];

export const HISTORIES: readonly Rule[] = [
  ofLog.writing('H4', 'a book has its states, the newest first, also after its removal', async (service) => {
    const created = await service.create({ title: 'a', author: 'b', year: 1 });
    const states: (Book | null)[] = [created];
    const expectStates = async () => {
      const found = await history(service, created.id);
      const books = found.map(({ book }) => book);
      expectEqual(books, states.toReversed(), 'The states of the book');
      const numbers = found.map(({ change }) => change);
      expect(
        numbers.every((number) => Number.isSafeInteger(number)) && new Set(numbers).size === states.length,
        `Each state has another number: ${numbers.join()}.`,
      );
    };
    await expectStates();
    for (const body of [{ title: 'c' }, { author: 'd', year: -7 }, { title: 'a', author: 'b', year: 1 }]) {
      states.push(await put(service, created.id, body));
      await expectStates();
    }
    await remove(service, created.id);
    states.push(null);
    await expectStates();
  }),
  ofLog.writing('H4', 'a change that alters nothing is no state', async (service) => {
    const { id, ...fields } = await service.create({ title: 'same', year: 4 });
    for (const body of [{}, fields, { title: 'same' }, { year: 4.0 }]) await put(service, id, body);
    expectEqual((await history(service, id)).length, 1, 'The number of states');
  }),
  ofLog.writing('H4', 'links lead to the older states, one page after the other', async (service) => {
    const { id } = await service.create({ title: '0' });
    for (let year = 1; year < 6; year += 1) await put(service, id, { year });
    const all = await history(service, id);
    expectEqual(all.length, 6, 'The number of states');
    for (const limit of [1, 2, 5, 6, 1000]) {
      expectEqual(await history(service, id, limit), all, `The states of all pages with limit=${limit}`);
    }
  }),
  ofLog.writing('H4', 'a page has fewer states if they are large', async (service) => {
    const { id } = await service.create({ title: LONG_TITLE });
    for (let year = 1; year < LARGE; year += 1) await put(service, id, { year });
    const years = (await history(service, id)).map(({ book }) => book?.year);
    expectEqual(years, [...Array(LARGE).keys()].toReversed(), 'The years of all states');
  }),
  ofLog('H4, rule 10', 'a book that never existed has no history: 404', async (service) => {
    const spellings = ['0', '-1', '+1', '01', '1.0', '1e0', 'abc', '%31', `1${'0'.repeat(30)}`];
    for (const id of spellings) {
      expectAnswer(await service.request('GET', `/book/${id}/history`), BOOK_NOT_FOUND, id);
    }
    const answer = await service.request('GET', `${service.noBook}/history`);
    if (answer.status === 404) return expectAnswer(answer, BOOK_NOT_FOUND);
    expectAnswer(answer, { status: 200 });
    expectEqual(answer.data[0]?.book, null, 'The present state of a book that was removed', answer);
  }),
  ofLog('H4', 'an invalid parameter gets 400 with its name', (service) =>
    expectRefused(service, '/book/1/history', REFUSED),
  ),
  ofLog('H4, rules 9 and 20', 'path, method and token come before query and book', async (service) => {
    await refuseOthers(service, '/book/1/history');
    await refuseOthers(service, '/book/x/history');
    for (const path of ['/book/1/history/', '/book/1/History', '/book/1/history/1', '/books/1/history']) {
      expectAnswer(await service.request('GET', path, { token: null }), NOT_FOUND);
    }
  }),
  ofLog.writing('H4', 'HEAD is answered like GET, without a body', async (service) => {
    const { id } = await service.create({ title: 'headed' });
    await put(service, id, { year: 1 });
    for (const query of ['', '?limit=1']) await expectHead(service, `/book/${id}/history${query}`);
    expectAnswer(await service.request('HEAD', '/book/x/history'), { status: 404 });
  }),
];
