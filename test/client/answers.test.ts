// The client with answers and time that the test decides: logins, retries, timeouts, and calls that are aborted.

import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe } from 'node:test';
import { BookCatalogue } from '../../client/src/book-catalogue.ts';
import {
  allOf,
  answer,
  assertRefused,
  BOOK,
  changed,
  errorOf,
  failureOf,
  found,
  PAIR,
  played,
  type Sent,
  SILENCE,
  timed as test,
} from '../support/catalogue.ts';
import { settled } from '../support/virtual-time.ts';

const NOW = Date.parse('2026-11-26T12:00:00Z');
const FOUND = { id: 1, ...BOOK };
const ENOUGH = new Error('enough');

const absent = () => answer(404, null, 'Book not found');
const silent = () => SILENCE;
const loggedIn = () => answer(200, { token: 'played' });

function tokenUntil(time: number): string {
  return `e30.${Buffer.from(JSON.stringify({ exp: time / 1000 })).toString('base64url')}.signature`;
}

describe('the client', () => {
  test('refuses a wrong URL, timeout, fetch or expected book before anything is sent', async () => {
    const make = (url: string, options: object = {}) => new BookCatalogue(url, { ...PAIR, ...options });
    for (const url of ['127.0.0.1:8080', 'ftp://127.0.0.1', 'http://a:b@127.0.0.1']) {
      assert.throws(() => make(url), TypeError);
    }
    for (const timeout of [0, -1, Number.NaN, 2 ** 31]) {
      assert.throws(() => make('http://127.0.0.1', { timeout }), RangeError);
    }
    assert.throws(() => make('http://127.0.0.1', { fetch: null }), TypeError);
    const { catalogue, seen } = played(absent);
    const nothing = { expected: undefined } as object;
    await assert.rejects(catalogue.update(1, { year: 1 }, nothing), TypeError);
    await assert.rejects(catalogue.remove(1, nothing), TypeError);
    assert.deepEqual(seen, []);
  });

  describe('logs in', () => {
    test('once for all calls that need it, and once more when its token is refused', async () => {
      let token = 'first';
      const late = Promise.withResolvers<Response>();
      const refused = () => answer(401, null, 'Invalid token');
      const { catalogue, seen } = played(
        ({ line, headers }) => {
          if (headers.get('authorization') === token) return absent();
          return line === 'GET /book/2' ? late.promise : refused();
        },
        () => answer(200, { token }),
      );
      await catalogue.logIn();
      for (const logins of [1, 2]) {
        const held = catalogue.find(2);
        await Promise.all(Array.from({ length: 50 }, () => catalogue.find(1)));
        if (logins === 2) late.resolve(refused()); // of the first token, when the second one is in use
        assert.equal(await held, undefined);
        await catalogue.logIn();
        assert.equal(seen.filter((line) => line === 'POST /token').length, logins);
        token = 'second';
      }
    });

    test('with a wrong password once, and reports it to every call that waits', async () => {
      const { catalogue, seen } = played(absent, () => answer(401, null, 'Invalid credentials'));
      const message = 'Invalid credentials';
      const failure = { name: 'WrongCredentials', message, status: 401, mayBeDone: false };
      for (const logins of [1, 2]) {
        const calls = Array.from({ length: 20 }, () => failureOf(catalogue.create(BOOK)));
        for (const found of await Promise.all(calls)) assert.deepEqual(found, failure);
        assert.equal(seen.length, logins);
      }
    });

    test('again before the token expires, however wrong the clock of this machine is', async (time) => {
      for (const [hours, seconds, token] of [
        [-24, 900, tokenUntil],
        [+24, 30, tokenUntil],
        [0, 900, () => 'opaque'],
      ] as const) {
        const now = () => NOW + hours * 3_600_000 + time.now;
        let expiry = 0;
        const { catalogue, seen } = played(absent, () => {
          expiry = now() + seconds * 1000;
          return answer(200, { token: token(expiry) }, '', { date: new Date(now()).toUTCString() });
        });
        for (let count = 0; count < 100; count += 1) {
          await catalogue.find(1);
          assert.ok(now() < expiry);
          time.now += seconds * 20; // a fiftieth of the time for which a token is valid
        }
        assert.equal(seen.filter((line) => line === 'POST /token').length, 3);
      }
    });

    test('for the other calls, even if the call that began the login is aborted', async () => {
      const login = Promise.withResolvers<Response>();
      const { catalogue, seen } = played(absent, () => login.promise);
      const leaving = new AbortController();
      const first = catalogue.find(1, { signal: leaving.signal });
      const second = catalogue.find(2);
      leaving.abort(ENOUGH);
      await assert.rejects(first, ENOUGH);
      login.resolve(loggedIn());
      assert.equal(await second, undefined);
      assert.deepEqual(seen, ['POST /token', 'GET /book/2']);
    });
  });

  describe('ends', () => {
    test('after its timeout, and says whether a change may have been executed', async (time) => {
      const { catalogue } = played(silent);
      for (const [call, mayBeDone] of [
        [() => catalogue.create(BOOK), true],
        [() => catalogue.update(1, {}), true],
        [() => catalogue.find(1), false],
        [() => allOf(catalogue), false],
        [() => found(catalogue, {}), false],
        [() => played(absent, silent).catalogue.create(BOOK), false], // it has not even logged in
      ] as const) {
        const message = 'no answer within 10000 ms';
        const failure = { name: 'CatalogueError', message, status: undefined, mayBeDone, after: 10_000 };
        assert.deepEqual(await time.failureOf(call()), failure);
      }
    });

    test('when its caller aborts: before it begins, during a request, a pause or the login', async () => {
      const busy = () => answer(503, null, 'Service unavailable', { 'retry-after': '5' });
      const silentOnce = ({ times }: Sent) => (times === 1 ? SILENCE : loggedIn());
      const busyOnce = ({ times }: Sent) => (times === 1 ? busy() : loggedIn());
      for (const [player, login, requests] of [
        [silent, undefined, 2],
        [absent, silentOnce, 1],
        [absent, busyOnce, 1],
        [busy, undefined, 2],
      ] as const) {
        let last: AbortSignal | undefined;
        const { catalogue, seen } = played((sent) => {
          last = sent.signal;
          return player();
        }, login);
        const leaving = new AbortController();
        const { signal } = leaving;
        const call = catalogue.create(BOOK, { signal });
        await settled();
        assert.equal(seen.length, requests);
        leaving.abort(ENOUGH);
        await assert.rejects(call, ENOUGH);
        assert.deepEqual(getEventListeners(signal, 'abort'), []);
        await assert.rejects(catalogue.create(BOOK, { signal }), ENOUGH);
        await assert.rejects(allOf(catalogue, { signal }), ENOUGH);
        await assert.rejects(catalogue.logIn({ signal }), ENOUGH);
        assert.equal(seen.length, requests);
        if (requests === 2) assert.ok(last?.aborted);
        else assert.equal(await catalogue.find(1), undefined); // it logs in again
      }
      const { signal } = new AbortController();
      await played(absent).catalogue.find(1, { signal });
      assert.deepEqual(getEventListeners(signal, 'abort'), []);
    });
  });

  describe('retries', () => {
    test('after 0.1 s and then up to 2 s, with a jitter, and says why there is no answer', async (time) => {
      const sentAt: number[] = [];
      const { catalogue } = played(() => {
        sentAt.push(time.now);
        throw new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') });
      });
      const error = await time.until(errorOf(catalogue.create(BOOK, { requestId: 'mine:42' })));
      assert.equal(error.message, 'no answer from http://books.test: connect ECONNREFUSED');
      assert.deepEqual([error.requestId, error.mayBeDone, error.isForeign], ['mine:42', true, false]);
      const pauses = sentAt.slice(1).map((at, index) => at - (sentAt[index] ?? 0));
      const ratios = pauses.map((pause, index) => pause / Math.min(100 * 2 ** index, 2000));
      assert.equal(pauses.length, 7);
      for (const ratio of ratios) assert.ok(ratio >= 1 && ratio <= 1.25, String(ratios));
      assert.ok(new Set(ratios.map((ratio) => ratio.toFixed(2))).size > 3);
    });

    test('when Retry-After says; rule 29: also its login, if others have failed too often', async (time) => {
      for (const status of [429, 502, 503, 504]) {
        const busyOnce =
          (give: () => Response) =>
          ({ times }: Sent) =>
            times === 1 ? answer(status, null, 'later', { 'retry-after': '3' }) : give();
        for (const [{ catalogue, seen }, twice] of [
          [played(busyOnce(absent)), 'GET /book/1'],
          [played(absent, busyOnce(loggedIn)), 'POST /token'],
        ] as const) {
          const began = time.now;
          assert.equal(await time.until(catalogue.find(1)), undefined);
          assert.ok(time.now - began >= 3000 && time.now - began <= 3750);
          assert.deepEqual(seen.toSorted(), ['GET /book/1', 'POST /token', twice].toSorted());
        }
      }
    });
  });

  test('says what answers instead of the service, even without words for the status', async () => {
    for (const [status, statusText, words] of [
      [404, '', '404'], // as in HTTP/2
      [200, 'OK', '200 OK'],
    ] as const) {
      const { catalogue } = played(() => new Response('<html>', { status, statusText }));
      const error = await errorOf(catalogue.update(1, {}));
      assert.equal(error.message, `${words}: not the answer of a book catalogue`);
      assert.deepEqual([error.status, error.isForeign, error.mayBeDone], [status, true, true]);
    }
  });

  test('understands a tag that a proxy has weakened, and refuses to continue without one', async () => {
    let headers: Record<string, string> = { etag: 'W/"1"' };
    const tags: (string | null)[] = [];
    const { catalogue, seen } = played((sent) => {
      tags.push(sent.headers.get('if-match'));
      return answer(200, FOUND, '', headers);
    });
    assert.equal(await catalogue.remove(1, { expected: FOUND }), true);
    headers = {};
    const refused = catalogue.remove(1, { expected: FOUND });
    await assertRefused(refused, 200, 'a proxy changes the header ETag, which makes a change safe');
    assert.deepEqual(seen.slice(1), ['GET /book/1', 'DELETE /book/1', 'GET /book/1']);
    assert.deepEqual(tags, [null, '"1"', null]);
  });

  test('reports a tag that is refused although the book is as expected, and not a change of the book', async () => {
    for (const [change, mayBeDone] of [
      [{ year: 1 }, false],
      [{}, true], // as some runtimes repeat a request: it may be done
    ] as const) {
      const { catalogue, seen } = played(({ line }) => {
        if (line.startsWith('PUT')) return answer(412, null, 'Precondition failed');
        return answer(200, FOUND, '', { etag: '"1-xyz"' });
      });
      const error = await errorOf(catalogue.update(1, change, { expected: FOUND }));
      assert.equal(error.name, 'CatalogueError');
      assert.equal(error.message, 'a proxy changes the header ETag, which makes a change safe');
      assert.deepEqual([error.status, error.isForeign, error.mayBeDone], [200, false, mayBeDone]);
      assert.deepEqual(seen.slice(1), ['GET /book/1', 'PUT /book/1', 'GET /book/1']);
    }
  });

  test('reports a change even if it cannot read the book as it is now', async () => {
    const { catalogue } = played(({ line, times }) => {
      if (line.startsWith('PUT')) return answer(412, null, 'Precondition failed');
      return answer(times === 1 ? 200 : 500, times === 1 ? FOUND : null, '', { etag: '"1"' });
    });
    const call = catalogue.update(1, { year: 1 }, { expected: FOUND });
    assert.deepEqual(await changed(call), { current: undefined, mayBeDone: false });
  });
});
