// Owns: rules H7 to H9, rule H5 about events and for a trial, and the parameter `event` of rule F2. Other programs may change other
// books meanwhile, so a run is taken back only if it has none of theirs.
// Does not: check the 5 minutes and the day that end a run.

import { expect, expectAnswer, expectEqual } from './complaint.ts';
import {
  booksOf,
  createMany,
  dayOf,
  EVENTS,
  findListed,
  type ListedEvent,
  makeRun,
  PATIENCE,
  type Page,
  readBooks,
  readEvents,
} from './event-pages.ts';
import { history, put, refuseOthers } from './log.ts';
import { expectHead, expectRefused, TIME } from './pages.ts';
import { ofLog, type Rule } from './rule.ts';
import type { Book } from './service.ts';
import { expectState, newestOf, newestStateOf, undo, undoOne } from './undo.ts';
import {
  CHANGE_NOT_FOUND,
  EVENT_NOT_FOUND,
  eventRetrieved,
  INVALID,
  INVALID_TOKEN,
  invalidParameter,
  METHOD_NOT_ALLOWED,
  NOT_FOUND,
  TOKEN_REQUIRED,
  undoChecked,
  undone,
} from './words.ts';

/** A number that no change has, and a run before all logs. */
const NO_CHANGE = Number.MAX_SAFE_INTEGER;
const NO_RUN = '1-2';

/** Texts that name no event. */
const NO_NAMES = ['0', '-1', '01', '1.0', '1e3', 'x', '1-', '-1-2', '01-2', '1-2-3', '1-x', '2-1'];

/** Books of a page without `limit`. */
const BOOKS = 100;

export const EVENTS_OF_LOG: readonly Rule[] = [
  ofLog.writing('H5', 'an event is taken back, and a book changed later is left', async (service) => {
    const run = await makeRun(service);
    if (run === undefined) return;
    const { event, books } = run;
    const [changed, removed, created] = books;
    const later = await put(service, changed.id, { year: 1900 });
    const left = [{ id: changed.id, reason: 'changed later' }];
    const checked = { books: books.length, checked: books.length, undone: 2, left };
    expectAnswer(await undo(service, { event }, undefined, '?dry-run'), undoChecked(checked));
    await expectState(service, removed.id, null);
    await expectState(service, created.id, created.book);
    const done = await undo(service, { event });
    expectAnswer(done, undone({ change: done.data?.change, undone: 2, left }));
    await expectState(service, changed.id, later);
    await expectState(service, removed.id, removed.before);
    await expectState(service, created.id, null);
    expectAnswer(await undo(service, { event }), undone({ change: null, undone: 0, left }));

    const again = await undo(service, { event: done.data.change });
    expectAnswer(again, undone({ change: again.data?.change, undone: 2, left: [] }));
    await expectState(service, removed.id, null);
    await expectState(service, created.id, created.book);
  }),
  ofLog.writing('H5', 'with dry-run, an undo is checked, and changes nothing', async (service) => {
    const { id } = await service.create({ title: 'a' });
    const { at } = await newestStateOf(service, id);
    const after = await put(service, id, { title: 'b' });
    const change = await newestOf(service, id);
    const checked = { books: 1, checked: 1, undone: 1, left: [] };
    for (const query of ['?dry-run', '?dry-run=']) {
      expectAnswer(await undo(service, { change }, undefined, query), undoChecked(checked));
    }
    const since = await undo(service, { since: at }, undefined, '?dry-run');
    expectAnswer(since, undoChecked(since.data));
    const { books, checked: looked, undone: restored, left } = since.data;
    expectEqual(Object.keys(since.data).toSorted(), Object.keys(checked).toSorted(), 'The fields', since);
    const isSum = looked >= 1 && looked <= Math.min(books, 10_000) && restored + left.length <= looked;
    expect(isSum, 'The books that are checked are some of all, and those as before and left of them.', since);
    await expectState(service, id, after);
    expectEqual((await history(service, id)).length, 2, 'The number of states');
    for (const [body, refusal] of [
      [{ change: NO_CHANGE }, CHANGE_NOT_FOUND],
      [{ event: NO_RUN }, CHANGE_NOT_FOUND],
      [{}, INVALID],
    ] as const) {
      expectAnswer(await undo(service, body, undefined, '?dry-run'), refusal);
    }
    for (const query of ['dry-run=true', 'dry-run=1', 'dry-run&dry-run', 'Dry-run', 'limit=1', '=']) {
      const [name = ''] = query.split(/[=&]/);
      expectAnswer(await undo(service, { change }, undefined, `?${query}`), invalidParameter(name));
    }
    await expectState(service, id, after);
  }),
  ofLog.writing('H5', 'a run that the log does not have gets 404, and another text 400', async (service) => {
    expectAnswer(await undo(service, { event: NO_RUN }), CHANGE_NOT_FOUND);
    // A wrong service that accepts this one has nothing to take back.
    const invalid = NO_NAMES.filter((name) => name !== '2-1');
    for (const event of ['', '1', ...invalid]) expectAnswer(await undo(service, { event }), INVALID);
  }),
  ofLog.writing('H7', 'an undo is an event, and tells by its number what it has done', async (service) => {
    const { id } = await service.create({ title: 'a' });
    await put(service, id, { title: 'b' });
    const event = await undoOne(service, await newestOf(service, id));
    const answer = await service.request('GET', `/event/${event}`);
    const { at } = answer.data ?? {};
    const progress = { books: 1, checked: 1, changedLater: 0, left: [] };
    const told = { event, kind: 'undo', at, until: at, name: null, books: 1, undo: progress };
    expectAnswer(answer, eventRetrieved(told));
    expect(TIME.test(at), 'An event has its time.', answer);
    expectAnswer(await service.request('POST', `/event/${event}`), eventRetrieved(told));
    expectAnswer(await service.request('HEAD', `/event/${event}`), { status: 200 });
  }),
  ofLog.writing('H7', 'single changes are an event together', async (service) => {
    const run = await makeRun(service);
    if (run === undefined) return;
    const { event, at, until, books } = run;
    const told = { event, kind: 'changes', at, until, name: null, books: books.length, undo: null };
    for (const method of ['GET', 'POST']) {
      expectAnswer(await service.request(method, `/event/${event}`), eventRetrieved(told));
    }
    expectAnswer(await service.request('HEAD', `/event/${event}`), { status: 200 });
  }),
  ofLog.writing('H7 and H9', 'what names no event gets 404, also the number of a change', async (service) => {
    const { id } = await service.create({});
    const change = await newestOf(service, id);
    for (const name of [NO_CHANGE, change, NO_RUN, ...NO_NAMES]) {
      for (const method of ['GET', 'HEAD', 'POST'])
        expectAnswer(await service.request(method, `/event/${name}`), of(method, EVENT_NOT_FOUND));
      for (const method of ['GET', 'HEAD'])
        expectAnswer(await service.request(method, `/event/${name}/books`), of(method, EVENT_NOT_FOUND));
    }
  }),
  ofLog('H7, rules 9 and 20', 'the path, the method and the token come before the name', async (service) => {
    for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      const answer = await service.request(method, '/event/x', { token: null });
      expectAnswer(answer, METHOD_NOT_ALLOWED);
      expectEqual(answer.headers.get('allow'), 'GET, HEAD, POST', 'allow', answer);
    }
    for (const method of ['GET', 'HEAD', 'POST']) {
      expectAnswer(await service.request(method, '/event/x', { token: null }), of(method, TOKEN_REQUIRED));
      expectAnswer(await service.request(method, '/event/x', { token: 'x' }), of(method, INVALID_TOKEN));
    }
    for (const path of ['/event', '/event/', '/Event/1', '/event/1/'])
      expectAnswer(await service.request('GET', path, { token: null }), NOT_FOUND);
  }),
  ofLog.writing('H8', 'changes less than 5 minutes apart are one run of the list', async (service) => {
    const { id } = await service.create({ title: 'a' });
    await put(service, id, { title: 'b' });
    const [last, first] = await history(service, id);
    if (first === undefined || last === undefined || dayOf(first.at) !== dayOf(last.at)) return;
    const isRun = ({ kind, at, until }: ListedEvent) =>
      kind === 'changes' && at <= first.at && last.at <= until;
    const { first: _, ...run } = await findListed(service, isRun, 'The run of both changes');
    expectAnswer(await service.request('GET', `/event/${run.event}`), eventRetrieved({ ...run, undo: null }));
  }),
  ofLog.writing('H8', 'the events come page by page, the newest first', async (service) => {
    const { id } = await service.create({ title: 'a' });
    await put(service, id, { title: 'b' });
    const numbers: number[] = [];
    for (let number = await newestOf(service, id); numbers.length <= EVENTS; ) {
      number = await undoOne(service, number);
      numbers.unshift(number);
    }
    const states = (await history(service, id)).map(({ book }) => book);
    for (const limit of ['', '?limit=1', '?limit=7', '?limit=100']) {
      const found: ListedEvent[] = [];
      for (let path: string | undefined = `/events${limit}`; found.length < numbers.length; ) {
        expect(path !== undefined, `Undo ${numbers[found.length]} is in the list.`);
        const page: Page = await readEvents(service, path);
        found.push(...page.events.filter(({ event }) => numbers.includes(event as number)));
        path = page.next;
      }
      for (const [index, event] of numbers.entries()) {
        const { at } = found[index] as ListedEvent;
        const first = [{ id, before: states[index + 1], book: states[index] }];
        const expected = { event, kind: 'undo', at, until: at, name: null, books: 1, first };
        expectEqual(found[index], expected, `Event ${index + 1}`);
      }
    }
  }),
  ofLog('H8', 'the last event is the beginning of the log', async (service) => {
    let page = await readEvents(service, '/events?limit=100');
    for (let pages = 1; page.next !== undefined; pages += 1) {
      if (pages === PATIENCE) return; // the log is long
      page = await readEvents(service, page.next);
    }
    const last = page.events.at(-1);
    const beginning = { kind: 'beginning', until: last?.at, name: null, books: 0, first: [] };
    expectEqual(last, { ...last, event: null, ...beginning }, 'The last event', page.answer);
  }),
  ofLog('H8 and H9', 'an invalid parameter gets 400 with its name', async (service) => {
    const others = ['cursor=%00', 'offset=1', 'Limit=1', 'event=1'];
    await expectRefused(service, '/events', ['limit=101', ...others]);
    await expectRefused(service, `/event/${NO_RUN}/books`, others);
  }),
  ofLog(
    'H8 and H9, rules 9 and 20',
    'path, method and token come before query and event',
    async (service) => {
      for (const path of ['/events', '/event/1/books', '/event/x/books']) await refuseOthers(service, path);
      for (const path of ['/events/', '/Events', '/events/1', '/event/1/Books', '/event/1/books/1']) {
        expectAnswer(await service.request('GET', path, { token: null }), NOT_FOUND);
      }
    },
  ),
  ofLog.writing('H9', 'the books of an event are as before and after it, also later', async (service) => {
    const run = await makeRun(service);
    if (run === undefined) return;
    const [changed] = run.books;
    await put(service, changed.id, { title: 'later' });
    for (const limit of [undefined, 1, 2, 3, 4, 1000]) {
      const found = await booksOf(service, run.event, limit);
      expectEqual(found, run.books, `The books of all pages with limit=${limit}`);
    }
    const undoing = await undoOne(service, await newestOf(service, changed.id));
    const after = { ...(changed.book as Book), title: 'later' };
    const own = [{ id: changed.id, before: after, book: changed.book }];
    expectEqual(await booksOf(service, undoing), own, 'The books of the undo');
  }),
  ofLog.writing('H9', 'without limit, a page has 100 books', async (service) => {
    const { event, ids } = await createMany(service, BOOKS + 1);
    const { books } = await readBooks(service, `/event/${event}/books`);
    expectEqual(books.length, BOOKS, 'The number of books of the page');
    const all = new Set((await booksOf(service, event)).map(({ id }) => id));
    for (const id of ids) expect(all.has(id), `Book ${id} is in a page.`);
  }),
  ofLog.writing('H8 and H9', 'HEAD is answered like GET, without a body', async (service) => {
    const { id } = await service.create({ title: 'a' });
    await put(service, id, { title: 'b' });
    const event = await undoOne(service, await newestOf(service, id));
    await expectHead(service, `/event/${event}/books`);
    // Others may add events meanwhile, but none between these.
    const { next = '/events' } = await readEvents(service, '/events?limit=1');
    await expectHead(service, next);
    await expectHead(service, `/event/${(await createMany(service, 2)).event}/books?limit=1`);
  }),
  ofLog.writing(
    'F2 and F3',
    'a search with event finds the books of an event that are there',
    async (service) => {
      const run = await makeRun(service);
      if (run === undefined) return;
      const [changed, , created] = run.books;
      await service.create({ title: 'new', year: 1800 }); // later
      const found = async (query: string, expected: readonly (Book | null)[]) => {
        const answer = await service.search(`/books?${query}`);
        expectAnswer(answer, { status: 200, data: expected }, query);
      };
      const all = [changed.book, created.book];
      await found(`event=${run.event}`, all);
      await found(`event=${run.event}&sort=-id&limit=1`, [created.book]);
      await found(`event=${run.event}&year=1800`, [changed.book]);
      await found(`event=${run.event}&title_starts_with=new`, [created.book]);
      await found(`event=${run.event}&q=new&year=1800`, []);
      const undoing = await undoOne(service, await newestOf(service, changed.id));
      const { book } = await newestStateOf(service, changed.id);
      await found(`event=${undoing}`, [book]);
      await found(`event=${run.event}`, [book, created.book]);
      for (const unknown of [NO_RUN, NO_CHANGE]) await found(`event=${unknown}`, []);
      for (const name of ['', ...NO_NAMES]) {
        expectAnswer(await service.request('GET', `/books?event=${name}`), invalidParameter('event'));
      }
    },
  ),
];

/** HEAD has no body. */
const of = (method: string, { status, ...body }: { status: number }) =>
  method === 'HEAD' ? { status } : { status, ...body };
