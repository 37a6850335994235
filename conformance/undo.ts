// Owns: rule H5: taking changes back. Other programs may change other books meanwhile, so each change is named by its number.
// Does not: take changes back by a time that has come.

import { randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import type { Answer } from './answers.ts';
import { expect, expectAnswer, expectEqual } from './complaint.ts';
import { history, put, remove, type State } from './log.ts';
import { theOnly, together } from './racing.ts';
import { ofLog, type Rule } from './rule.ts';
import type { Book, Service } from './service.ts';
import {
  BOOK_NOT_FOUND,
  CHANGE_NOT_FOUND,
  COMPRESSED,
  INVALID,
  INVALID_KEY,
  INVALID_TOKEN,
  KEY_USED,
  METHOD_NOT_ALLOWED,
  NOT_FOUND,
  retrieved,
  TOKEN_REQUIRED,
  TOO_LARGE,
  undone,
} from './words.ts';

const MEBIBYTE = 1024 * 1024;
const HOUR = 3_600_000;

/** A number that no change has. */
const NO_CHANGE = Number.MAX_SAFE_INTEGER;

/** Requests at the same moment. */
const RACERS = 16;

/** Nothing was to be done. */
const NOTHING = { change: null, undone: 0, left: [] };

/** Bodies that name no changes, whatever the log has. If a wrong service accepts a time, it is one that is to come. */
const INVALID_BODIES: readonly unknown[] = [
  undefined,
  ...['', '{', '[]', '[{"change":1}]', 'null', '1', '"change"', '{}', '{"Change":1}', '{"number":1}'],
  ...['0', '-1', '1.5', '"1"', 'null', 'true', '[1]', '{}', '9007199254740993', '1e400'].flatMap((number) => [
    `{"change":${number}}`,
    `{"event":${number}}`,
  ]),
  ...['', '-01-01', '-01-01T00:00', '-01-01T00:00:00', '-01-01T00:00:00+01', '-13-01T00:00:00Z']
    .concat(['-01-32T00:00:00Z', '-01-01T25:00:00Z'])
    .map((rest) => ({ since: `2999${rest}` })),
  ...['tomorrow', '', ' 2999-01-01T00:00:00Z', 32472144000000, null, ['2999-01-01T00:00:00Z']].map(
    (since) => {
      return { since };
    },
  ),
];

export const UNDOS: readonly Rule[] = [
  ofLog.writing(
    'H5, rule 12',
    'a change, a removal and a new book are taken back by their numbers',
    async (service) => {
      const changed = await service.create({ title: 'a', author: 'b', year: 1 });
      await put(service, changed.id, { title: 'c', year: -7 });
      const removed = await service.create({ title: 'd' });
      await remove(service, removed.id);
      const created = await service.create({ title: 'e' });
      for (const [id, before] of [
        [changed.id, changed],
        [removed.id, removed],
        [created.id, null],
      ] as const) {
        await undoOne(service, await newestOf(service, id));
        await expectState(service, id, before);
      }
      const next = await service.create({});
      expect(next.id > created.id, `The next id is above ${created.id}.`);
    },
  ),
  ofLog.writing('H5', 'an undo is taken back by its number, and that again', async (service) => {
    const before = await service.create({ title: 'a' });
    const after = await put(service, before.id, { title: 'b' });
    let number = await newestOf(service, before.id);
    for (const state of [before, after, before]) {
      number = await undoOne(service, number);
      await expectState(service, before.id, state);
    }
    await remove(service, before.id);
    const removal = await undoOne(service, await newestOf(service, before.id));
    await expectState(service, before.id, before);
    await undoOne(service, removal);
    await expectState(service, before.id, null);
  }),
  ofLog.writing('H5', 'an undo is a new state of the book', async (service) => {
    const { id, ...fields } = await service.create({ title: 'a' });
    await put(service, id, { title: 'b' });
    await undoOne(service, await newestOf(service, id));
    const books = (await history(service, id)).map(({ book }) => book);
    expectEqual(
      books,
      ['a', 'b', 'a'].map((title) => ({ id, ...fields, title })),
      'The states of the book',
    );
  }),
  ofLog.writing(
    'H5',
    'a book that was changed later is left and named, and stays as it is',
    async (service) => {
      const { id } = await service.create({ title: 'a' });
      const creation = await newestOf(service, id);
      await put(service, id, { title: 'b' });
      const change = await newestOf(service, id);
      const later = await put(service, id, { year: 7 });
      const left = { ...NOTHING, left: [{ id, reason: 'changed later' }] };
      for (const number of [change, creation]) {
        expectAnswer(await undo(service, { change: number }), undone(left));
        await expectState(service, id, later);
      }
      await remove(service, id);
      expectAnswer(await undo(service, { change }), undone(left));
      await expectState(service, id, null);
    },
  ),
  ofLog.writing('H5', 'later changes that come to nothing do not count', async (service) => {
    const before = await service.create({ title: 'a' });
    const { id } = before;
    await put(service, id, { title: 'b' });
    const change = await newestOf(service, id);
    for (const title of ['c', 'b']) await put(service, id, { title });
    await undoOne(service, change);
    await expectState(service, id, before);
    // Now it is as it was, and nothing is left to do.
    expectAnswer(await undo(service, { change }), undone(NOTHING));
    await expectState(service, id, before);
  }),
  ofLog.writing(
    'H5, I2',
    'the same request again has the first answer, and changes nothing',
    async (service) => {
      const { id } = await service.create({ title: 'a' });
      await put(service, id, { title: 'b' });
      const change = await newestOf(service, id);
      const key = randomUUID();
      const first = await undo(service, { change }, key);
      expectAnswer(first, undone({ ...first.data, undone: 1, left: [] }));
      expectEqual(first.headers.get('idempotent-replayed'), null, 'idempotent-replayed', first);
      const again = await put(service, id, { title: 'b' });
      for (const [body, sent] of [
        [{ change }, key],
        [{ change }, `"${key}"`],
        [`{"other":[], "change":${change}.0}`, key],
      ] as const) {
        expectReplay(await undo(service, body, sent), first);
        await expectState(service, id, again);
      }
      for (const other of [{ change: await newestOf(service, id) }, { event: change }]) {
        expectAnswer(await undo(service, other, key), KEY_USED);
      }
      const headers = { 'idempotency-key': key };
      expectAnswer(await service.request('POST', '/book', { body: {}, headers }), KEY_USED);
      await expectState(service, id, again);
      await put(service, id, { year: 7 });
      const other = randomUUID();
      const left = await undo(service, { change }, other);
      expectAnswer(left, undone({ ...NOTHING, left: [{ id, reason: 'changed later' }] }));
      await put(service, id, { title: 'b', year: 0 });
      expectReplay(await undo(service, { change }, other), left);
    },
  ),
  ofLog.writing(
    'H5, I1 and I3',
    'an invalid key is refused, and a refused request uses up no key',
    async (service) => {
      const before = await service.create({ title: 'a' });
      const after = await put(service, before.id, { title: 'b' });
      const change = await newestOf(service, before.id);
      for (const key of ['', '""', 'x'.repeat(256), 'a b', 'caf\u00e9']) {
        for (const body of [{ change }, '{']) expectAnswer(await undo(service, body, key), INVALID_KEY);
      }
      await expectState(service, before.id, after);
      const key = randomUUID();
      expectAnswer(await undo(service, { change: NO_CHANGE }, key), CHANGE_NOT_FOUND);
      expectAnswer(await undo(service, {}, key), INVALID);
      const done = await undo(service, { change }, key);
      expectAnswer(done, undone({ ...done.data, undone: 1, left: [] }));
      expectEqual(done.headers.get('idempotent-replayed'), null, 'idempotent-replayed', done);
      await expectState(service, before.id, before);
    },
  ),
  ofLog.writing(
    'H5, I3',
    'of many requests at the same moment, one takes the change back',
    async (service) => {
      for (const key of [randomUUID(), undefined]) {
        const before = await service.create({ title: 'a' });
        await put(service, before.id, { title: 'b' });
        const change = await newestOf(service, before.id);
        const answers = await together(RACERS, () => undo(service, { change }, key));
        const isFirst = (answer: Answer) =>
          answer.data?.undone === 1 && !answer.headers.has('idempotent-replayed');
        const first = theOnly(answers.filter(isFirst), 'the requests takes the change back', answers);
        for (const answer of answers) {
          if (answer === first) expectAnswer(answer, undone({ ...first.data, undone: 1, left: [] }));
          else if (key === undefined) expectAnswer(answer, undone(NOTHING));
          else expectReplay(answer, first);
        }
        await expectState(service, before.id, before);
      }
    },
  ),
  ofLog.writing('H5', 'since a time that is to come, no change is taken back', async (service) => {
    const { id } = await service.create({ title: 'a' });
    const after = await put(service, id, { title: 'b' });
    const { at } = await newestStateOf(service, id); // the service's clock may be another one
    const later = (hours: number) => new Date(Date.parse(at) + hours * HOUR).toISOString();
    for (const since of [
      later(1),
      later(1).replace(/\.\d+/, ''),
      later(1).replace(/\.\d+/, '.123456789'),
      later(1).toLowerCase(),
      later(6.5).replace('Z', '+05:30'),
      later(1).replace('Z', '-00:00'),
    ]) {
      expectAnswer(await undo(service, { since }), undone(NOTHING));
    }
    await expectState(service, id, after);
  }),
  ofLog.writing(
    'H5',
    'an unknown number gets 404, and so does a change that is no event',
    async (service) => {
      const { id } = await service.create({ title: 'a' });
      const after = await put(service, id, { title: 'b' });
      const numbers = [{ change: NO_CHANGE }, { event: NO_CHANGE }, { event: await newestOf(service, id) }];
      for (const body of numbers) expectAnswer(await undo(service, body), CHANGE_NOT_FOUND);
      await expectState(service, id, after);
    },
  ),
  ofLog.writing(
    'H5, rules 5 to 7',
    'a body that does not name one of the three gets 400',
    async (service) => {
      const before = await service.create({ title: 'a' });
      const after = await put(service, before.id, { title: 'b' });
      const change = await newestOf(service, before.id);
      const since = '2999-01-01T00:00:00Z';
      const two = [
        { change, event: change },
        { change, since },
        { event: change, since },
        { change, since: null },
        { import: change },
      ];
      for (const body of [...INVALID_BODIES, ...two]) expectAnswer(await undo(service, body), INVALID);
      const options = { body: gzipSync(JSON.stringify({ change })), headers: { 'content-encoding': 'gzip' } };
      expectAnswer(await service.request('POST', '/undo', options), COMPRESSED);
      const long = `{"change":${change}}${' '.repeat(MEBIBYTE)}`;
      expectAnswer(await undo(service, long), TOO_LARGE);
      await expectState(service, before.id, after);
      const others = `{"Event":1,"import":1,"id":7,"__proto__":{"since":"x"},"change":${NO_CHANGE},"change":${change}}`;
      const done = await undo(service, others);
      expectAnswer(done, undone({ ...done.data, undone: 1, left: [] }));
      await expectState(service, before.id, before);
    },
  ),
  ofLog('H5, rules 9 and 20', 'the path, the method and the token come before the body', async (service) => {
    for (const method of ['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      for (const token of [null, service.token]) {
        const answer = await service.request(method, '/undo', { token });
        expectAnswer(answer, METHOD_NOT_ALLOWED);
        expectEqual(answer.headers.get('allow'), 'POST', 'allow', answer);
      }
    }
    for (const body of ['{', { change: NO_CHANGE }]) {
      expectAnswer(await service.request('POST', '/undo', { body, token: null }), TOKEN_REQUIRED);
      expectAnswer(await service.request('POST', '/undo', { body, token: 'x' }), INVALID_TOKEN);
    }
    for (const path of ['/undo/', '/Undo', '/undo/1', '/book/1/undo']) {
      expectAnswer(await service.request('POST', path, { body: '{', token: null }), NOT_FOUND);
    }
  }),
];

export const undo = (service: Service, body: unknown, key?: string, query = '') =>
  service.request('POST', `/undo${query}`, {
    body,
    headers: key === undefined ? {} : { 'idempotency-key': key },
  });

/** Takes the change of one book back. @returns the number of the undo. */
export async function undoOne(service: Service, change: number): Promise<number> {
  const answer = await undo(service, { change });
  const { data } = answer;
  expectAnswer(answer, undone({ change: data?.change, undone: 1, left: [] }));
  const isNumber = Number.isSafeInteger(data.change) && data.change > 0 && data.change !== change;
  expect(isNumber, 'An undo has another number than the change.', answer);
  return data.change;
}

export async function newestStateOf(service: Service, id: number): Promise<State> {
  const [newest] = await history(service, id);
  return newest as State;
}

/** The number of the latest change of a book. */
export async function newestOf(service: Service, id: number): Promise<number> {
  const { change } = await newestStateOf(service, id);
  expect(Number.isSafeInteger(change), `The latest change of book ${id} has a number, not ${change}.`);
  return change as number;
}

/** @param state null for a book that is gone. */
export async function expectState(service: Service, id: number, state: Book | null): Promise<void> {
  const expected = state === null ? BOOK_NOT_FOUND : retrieved(state);
  expectAnswer(await service.request('GET', `/book/${id}`), expected);
}

function expectReplay(answer: Answer, first: Answer): void {
  expectAnswer(answer, first);
  expectEqual(answer.headers.get('idempotent-replayed'), 'true', 'idempotent-replayed', answer);
}
