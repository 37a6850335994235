// The client's lists in pieces of any size, and its searches in pages, with answers and time that the test decides.

import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { CatalogueError, type PageSearch } from '../../client/src/book-catalogue.ts';
import {
  allOf,
  answer,
  assertRefused,
  BOOK,
  found,
  played,
  type Sent,
  SILENCE,
  timed as test,
} from '../support/catalogue.ts';
import { settled } from '../support/virtual-time.ts';

const HEAD = '{"status":200,"message":"","data":';
const ENOUGH = new Error('enough');

describe('a list', () => {
  test('is refused if it is none', async () => {
    for (const text of [
      ...['', '{', '[]', 'null', '{"status":200}', '<html>', `${HEAD}{}}`, `${HEAD}null}`, `${HEAD}[1]}`],
      ...[`${HEAD}[{},]}`, `${HEAD}[,{}]}`, `${HEAD}[{}{}]}`, `${HEAD}[{}x,{}]}`, `${HEAD}[{}]}{`],
      ...[`${HEAD}[{"id":}]}`, `${HEAD}[]],"x":[]}`, '{"status":503,"message":"","data":[]}'],
      ...[Buffer.from(`${HEAD}[{"title":"\xe9"}]}`, 'latin1')],
    ]) {
      await assert.rejects(allOf(listOf([text]).catalogue), CatalogueError, String(text));
    }
  });

  test('with a second array, whose elements are no books of it, throws', async () => {
    const { catalogue } = listOf([`${HEAD}[],"others":[{"id":1}]}`]);
    await assertRefused(allOf(catalogue), undefined, 'list truncated after 0 books');
  });

  test('is read as fast as it is used, and has no timeout while its caller is busy', async (time) => {
    const endless = (function* () {
      for (let id = 1; ; id += 1) yield `${id === 1 ? `${HEAD}[` : ','}{"id":${id}}`;
    })();
    const list = listOf(endless);
    for await (const { id } of list.catalogue.list()) {
      assert.deepEqual([list.given, time.pending], [id, 0]);
      if (id === 10) break;
    }
    assert.equal(list.isLeft, true);
  });

  test('that breaks off, or falls silent for the whole timeout, throws', async (time) => {
    const pieces = [`${HEAD}[{"id":1}`, ',{"id":2},{'];
    for (const [end, after] of [
      ['breaks off', 0],
      ['falls silent', 10_000],
    ] as const) {
      const { message, mayBeDone, ...failure } = await time.failureOf(allOf(listOf(pieces, end).catalogue));
      assert.deepEqual([message, mayBeDone], ['list truncated after 2 books', false]);
      assert.equal(failure.after, after);
    }
    const leaving = new AbortController();
    const aborted = allOf(listOf(pieces, 'falls silent').catalogue, { signal: leaving.signal });
    await settled();
    leaving.abort(ENOUGH);
    await assert.rejects(aborted, ENOUGH);
  });
});

describe('a search', () => {
  test('has the whole timeout for each page, and none while its caller is busy', async (time) => {
    const search: PageSearch = { year: 1605, sort: undefined };
    const busy = () => answer(503, null, '', { 'retry-after': '7' });
    const { catalogue, seen } = pagesOf(3, ({ times }) => (times === 1 ? busy() : undefined));
    const read = async () => {
      for await (const _ of catalogue.find(search)) assert.equal(time.pending, 0);
    };
    const began = time.now;
    await time.until(read());
    assert.ok(time.now - began >= 3 * 7000);
    const lines = ['', 'cursor=2&', 'cursor=3&'].map((place) => `GET /books?year=1605&${place}limit=1000`);
    const twice = lines.flatMap((line) => [line, line]);
    assert.deepEqual(seen.slice(1), twice);

    const silent = pagesOf(3, ({ line }) => (line.includes('cursor=2') ? SILENCE : undefined));
    const { message, after } = await time.failureOf(found(silent.catalogue, {}));
    assert.deepEqual([message, after], ['no answer within 10000 ms', 10_000]);
  });

  test('ends when its caller aborts: before it, within a page, and while a page is on its way', async () => {
    for (const last of [0, 1, 2]) {
      const leaving = new AbortController();
      const { catalogue } = pagesOf(3, ({ line }) => {
        if (line.includes(`cursor=${last + 1}`)) leaving.abort(ENOUGH);
        return undefined;
      });
      if (last === 0) leaving.abort(ENOUGH);
      const seen: number[] = [];
      const read = async () => {
        for await (const { id } of catalogue.find({}, { signal: leaving.signal })) seen.push(id);
      };
      await assert.rejects(read(), ENOUGH);
      assert.equal(seen.length, last);
    }
  });

  test('keeps to what it was asked for, even if the caller changes that meanwhile', async () => {
    const search = { year_gte: 10, limit: 1 };
    const { catalogue } = pagesOf(2, () => {
      search.year_gte = 1000;
      return undefined;
    });
    const { next, unindexed } = await catalogue.page(search);
    assert.deepEqual(next, { year_gte: 10, limit: 1, cursor: '2' });
    assert.equal(unindexed, 7); // F11: books that are not indexed yet
  });

  test('throws if the answer is no page, and if the service cannot count in time', async () => {
    const { catalogue } = played(() => answer(200, [BOOK]));
    for (const call of [found(catalogue, {}), catalogue.page({}), catalogue.count({})]) {
      await assertRefused(call, 200, 'the answer has no link: it is not a page of books');
    }
    const { catalogue: slow, seen } = pagesOf(1);
    await assertRefused(slow.count({ sort: 'title' }), 200, 'counting takes the service too long');
    assert.equal(seen[1], 'GET /books?sort=id&limit=1'); // the order that costs the least
  });
});

/** A list that arrives in these pieces, each when it is asked for. */
function listOf(pieces: Iterable<Uint8Array | string>, end: 'ends' | 'breaks off' | 'falls silent' = 'ends') {
  const left = Iterator.from(pieces);
  const state = { given: 0, isLeft: false };
  const { catalogue } = played(({ signal }) => {
    const source = {
      start: (stream: ReadableStreamDefaultController) =>
        signal.addEventListener('abort', () => stream.error(signal.reason)),
      pull(stream: ReadableStreamDefaultController) {
        const { done, value } = left.next();
        state.given += 1;
        if (!done) stream.enqueue(Buffer.from(value));
        else if (end === 'ends') stream.close();
        else if (end === 'breaks off') stream.error(new TypeError('terminated'));
      },
      cancel() {
        state.isLeft = true;
      },
    };
    return new Response(new ReadableStream(source, { highWaterMark: 0 }));
  });
  return Object.assign(state, { catalogue });
}

/** A search that finds this many books, with one book on each page. */
function pagesOf(
  count: number,
  player: (sent: Sent) => Response | Promise<never> | undefined = () => undefined,
) {
  return played((sent) => {
    const id = Number(/cursor=(\d+)/.exec(sent.line)?.[1] ?? 1);
    const next = id < count ? `, </elsewhere?sort=title&cursor=${id + 1}>; rel="next"` : '';
    const headers = { link: `</books?limit=1>; rel="first"${next}`, 'x-unindexed-books': '7' };
    return player(sent) ?? answer(200, [{ id, ...BOOK }], '', headers);
  });
}
