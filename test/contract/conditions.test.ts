// Rules E1 to E4, over a socket, with the same suite on every store: the tag of a book, and requests that are carried out
// only in the state of a book that their sender knows.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Answer, type Book, Client, type RequestOptions, request } from '../support/client.ts';
import { type RunningService, STORES, startTestService } from '../support/service.ts';

const UNMET = { status: 412, message: 'Precondition failed', data: null };
const REQUIRED = { status: 428, message: 'Precondition required', data: null };
const NOT_FOUND = { status: 404, message: 'Book not found', data: null };
const INVALID = { status: 400, message: 'Invalid input', data: null };
const DELETED = { status: 200, message: 'Book deleted successfully', data: null };

/** A tag that no book has. */
const OTHER = '"AAAAAAAAAAAAAAAAAAAAAA"';

/** Header values that are no list of tags. */
const UNREADABLE = ['', 'x', '"', '"x', 'w/"x"', '"x" "y"', '"x",y', `"x"${', '.repeat(3000)}y`];

for (const store of STORES) {
  describe(`conditions on ${store.name}`, () => {
    let service: RunningService;
    let client: Client;

    before(async () => {
      service = await startTestService(await store.freshUrl());
      client = service.client;
    });
    after(() => service.stop());

    const read = (id: number, headers = {}) => client.request('GET', `/book/${id}`, { headers });
    const change = (id: number, body: unknown, headers = {}) => {
      return client.request('PUT', `/book/${id}`, { body, headers });
    };
    const remove = (id: number, headers = {}) => client.request('DELETE', `/book/${id}`, { headers });

    /** A new book with its tag. */
    async function create(
      body: object = { title: 'Emma' },
    ): Promise<{ book: Book; id: number; tag: string }> {
      const { data, headers } = await client.request('POST', '/book', { body });
      return { book: data, id: data.id, tag: tagIn(headers) };
    }

    test('E1: every answer with one book has its tag, and no other answer has one', async () => {
      const { id, tag } = await create();
      for (const method of ['GET', 'HEAD'])
        assert.equal((await client.request(method, `/book/${id}`)).headers.get('etag'), tag);
      const changed = await change(id, { year: 1815 });
      assert.equal(tagIn(changed.headers), tagIn((await read(id)).headers));
      const others = [
        await client.request('GET', '/books'),
        await client.request('GET', `/books?limit=1`),
        await change(id, { year: null }),
        await remove(id),
        await read(id),
      ];
      for (const { status, headers } of others) assert.equal(headers.get('etag'), null, String(status));
    });

    test('E1: every state of a book has its own tag; the same state has the same', async () => {
      const { id, tag } = await create({ title: 'ab', author: 'c', year: 1 });
      const tags = [tag];
      const bodies = [
        { title: 'a', author: 'bc' },
        { title: 'abc', author: '' },
        { title: '', author: 'abc' },
        { title: '"', author: '\\' },
        { title: '\u00e9', author: '\u{1f4d6}' },
        { title: 'e\u0301' },
        { author: '' },
        { year: 0 },
        { year: -1 },
        { year: 9007199254740991 },
      ];
      for (const body of bodies) tags.push(tagIn((await change(id, body)).headers));
      assert.equal(new Set(tags).size, tags.length);
      assert.notEqual((await create({ title: 'ab', author: 'c', year: 1 })).tag, tag, 'of another book');
      assert.equal(tagIn((await change(id, { title: 'ab', author: 'c', year: 1 })).headers), tag);
      assert.equal(tagIn((await change(id, {})).headers), tag);

      const other = await startTestService(service.dbUrl);
      try {
        assert.equal(tagIn((await other.client.request('GET', `/book/${id}`)).headers), tag);
      } finally {
        await other.stop();
      }
    });

    test('E2: a client that has the book gets 304 without a body', async () => {
      const { book, id, tag } = await create();
      for (const known of [tag, `W/${tag}`, '*', `${OTHER}, ${tag}`, `${OTHER} ,,\t W/${tag} ,`]) {
        for (const method of ['GET', 'HEAD']) {
          const headers = { 'if-none-match': known };
          const answer = await client.request(method, `/book/${id}`, { headers });
          assert.equal(answer.status, 304, known);
          assert.equal(answer.headers.get('etag'), tag);
          assert.equal(answer.headers.get('cache-control'), 'no-store');
          assert.notEqual(answer.headers.get('x-request-id'), null);
          assert.equal(answer.headers.get('content-type'), null);
        }
      }
      const unreadable = [...UNREADABLE, `${tag} x`, `${tag},x`];
      for (const known of [OTHER, tag.toLowerCase(), tag.slice(1, -1), ...unreadable]) {
        assert.deepEqual(retrieved(await read(id, { 'if-none-match': known })), book, known);
      }
      await change(id, { year: 1 });
      assert.equal((await read(id, { 'if-none-match': tag })).status, 200);
      await remove(id);
      assert.deepEqual(bare(await read(id, { 'if-none-match': '*' })), NOT_FOUND);
      assert.equal(
        (await client.request('GET', '/books', { headers: { 'if-none-match': '*' } })).status,
        200,
      );
    });

    test('E3: a book is changed in the state that the client knows, and in no other', async () => {
      const { book, id, tag } = await create();
      const unreadable = [...UNREADABLE, `${tag} x`, `${tag},x`];
      for (const known of [OTHER, `W/${tag}`, tag.slice(1, -1), `${OTHER}, W/${tag}`, ...unreadable]) {
        assert.deepEqual(bare(await change(id, { year: 1 }, { 'if-match': known })), UNMET, known);
        assert.deepEqual(bare(await remove(id, { 'if-match': known })), UNMET, known);
        assert.deepEqual(bare(await read(id, { 'if-match': known })), UNMET, known);
      }
      const unmet = await client.request('HEAD', `/book/${id}`, { headers: { 'if-match': OTHER } });
      assert.equal(unmet.status, 412);
      assert.deepEqual((await read(id, { 'if-match': tag })).data, book);
      const answer = await change(id, { year: 1815 }, { 'if-match': `${OTHER}, ${tag}` });
      assert.deepEqual(bare(answer), {
        status: 200,
        message: 'Book updated successfully',
        data: { ...book, year: 1815 },
      });
      const now = tagIn(answer.headers);
      assert.deepEqual(bare(await change(id, { year: 1 }, { 'if-match': tag })), UNMET);
      assert.deepEqual((await read(id)).data, { ...book, year: 1815 });
      assert.equal((await change(id, {}, { 'if-match': now })).status, 200);
      assert.equal((await change(id, { author: 'Jane Austen' }, { 'if-match': '*' })).status, 200);
      assert.deepEqual(bare(await remove(id, { 'if-match': now })), UNMET);
      assert.deepEqual(bare(await remove(id, { 'if-match': tagIn((await read(id)).headers) })), DELETED);
      assert.equal((await read(id)).status, 404);
    });

    test('E3: If-None-Match is the opposite, and both may be there', async () => {
      const { id, tag } = await create();
      for (const known of [tag, `W/${tag}`, '*']) {
        assert.deepEqual(bare(await change(id, { year: 1 }, { 'if-none-match': known })), UNMET, known);
        assert.deepEqual(bare(await remove(id, { 'if-none-match': known })), UNMET, known);
      }
      const both = (match: string, none: string) => ({ 'if-match': match, 'if-none-match': none });
      assert.deepEqual(bare(await change(id, { year: 1 }, both(tag, tag))), UNMET);
      assert.deepEqual(bare(await change(id, { year: 1 }, both(OTHER, OTHER))), UNMET);
      assert.deepEqual(bare(await read(id, both(OTHER, tag))), UNMET);
      assert.equal((await read(id, both(tag, tag))).status, 304);
      assert.equal((await change(id, { year: 1 }, both(tag, OTHER))).status, 200);
      assert.deepEqual(bare(await remove(id, { 'if-none-match': tag })), DELETED);
    });

    test('E3: a request that would fail without a condition fails likewise with one', async () => {
      const { id } = await create();
      const headers = { 'if-match': OTHER };
      for (const method of ['PUT', 'DELETE']) {
        const { status } = await request(service, method, `/book/${id}`, { headers });
        assert.equal(status, 401, method);
      }
      assert.deepEqual(bare(await change(id, { year: null }, headers)), INVALID);
      assert.equal((await client.request('POST', '/book', { body: {}, headers })).status, 201);
      await remove(id);
      for (const known of [OTHER, '*', '']) {
        assert.deepEqual(bare(await change(id, { year: null }, { 'if-match': known })), NOT_FOUND, known);
        assert.deepEqual(bare(await remove(id, { 'if-match': known })), NOT_FOUND, known);
      }
      assert.deepEqual(bare(await client.request('DELETE', '/book/0', { headers })), NOT_FOUND);
    });

    test('E3: of 32 changes and removals with one tag exactly one takes place', async () => {
      for (let round = 0; round < 20; round += 1) {
        const { book, id, tag } = await create();
        const headers = { 'if-match': tag };
        const answers = await Promise.all(
          Array.from({ length: 32 }, (_, year) => {
            return year % 4 === 3 ? remove(id, headers) : change(id, { year: year + 1 }, headers);
          }),
        );
        const [done, ...more] = answers.filter(({ status }) => status === 200);
        assert.ok(done !== undefined && more.length === 0, `round ${round}`);
        for (const answer of answers) {
          if (answer === done) continue;
          const expected: object = done.data === null ? NOT_FOUND : UNMET;
          assert.deepEqual(bare(answer), expected, `round ${round}`);
        }
        const { status, data } = await read(id);
        assert.deepEqual([status, data], done.data === null ? [404, null] : [200, done.data]);
        if (data !== null) assert.deepEqual({ ...data, year: 0 }, { ...book, year: 0 });
      }
    });

    test('E3: clients of two processes that count in one book lose no step', async () => {
      const other = await startTestService(service.dbUrl);
      try {
        const { id } = await create({ year: 0 });
        const path = `/book/${id}`;
        const STEPS = 20;
        const clients = [client, other.client, client, other.client, client, other.client];
        await Promise.all(
          clients.map(async (client) => {
            for (let steps = 0; steps < STEPS; ) {
              const { data, headers } = await client.request('GET', path);
              const options: RequestOptions = {
                body: { year: data.year + 1 },
                headers: { 'if-match': tagIn(headers) },
              };
              const { status } = await client.request('PUT', path, options);
              assert.ok([200, 412].includes(status), String(status));
              if (status === 200) steps += 1;
              // Others, without a condition, change another field.
              if (steps % 5 === 0) await client.request('PUT', path, { body: { title: `${Math.random()}` } });
            }
          }),
        );
        assert.equal((await read(id)).data.year, clients.length * STEPS);
      } finally {
        await other.stop();
      }
    });

    test('E4: with REQUIRE_IF_MATCH=on, a change or removal without If-Match is 428', async () => {
      // YAML files turn `on` into `true`.
      const REQUIRE_IF_MATCH = store.name === 'SQLite' ? 'on' : 'true';
      const strict = await startTestService(service.dbUrl, { REQUIRE_IF_MATCH });
      try {
        const client = await Client.logIn(strict);
        const { data: book, headers } = await client.request('POST', '/book', { body: {} });
        const path = `/book/${book.id}`;
        for (const headers of [{}, { 'if-none-match': OTHER }]) {
          assert.deepEqual(bare(await client.request('PUT', path, { body: { year: 1 }, headers })), REQUIRED);
          assert.deepEqual(bare(await client.request('DELETE', path, { headers })), REQUIRED);
        }
        assert.deepEqual(bare(await client.request('PUT', path, { body: { year: '1' } })), INVALID);
        assert.deepEqual(bare(await client.request('PUT', '/book/0', { body: {} })), NOT_FOUND);
        for (const method of ['PUT', 'DELETE']) {
          const answer = await client.request(method, '/book/9007199254740991', { body: {} });
          assert.deepEqual(bare(answer), NOT_FOUND, method);
        }
        assert.deepEqual((await client.request('GET', path)).data, book);
        const matching = { headers: { 'if-match': tagIn(headers) } };
        const { status } = await client.request('PUT', path, { body: {}, ...matching });
        assert.equal(status, 200);
        assert.deepEqual(bare(await client.request('DELETE', path, matching)), DELETED);
      } finally {
        await strict.stop();
      }
    });
  });
}

function bare({ status, message, data }: Answer): Omit<Answer, 'headers'> {
  return { status, message, data };
}

function retrieved({ status, data }: Answer): Book {
  assert.equal(status, 200);
  return data;
}

/** The tag in the headers of an answer, which must be a strong one. */
function tagIn(headers: Headers): string {
  const tag = headers.get('etag') ?? '';
  assert.match(tag, /^"[\w-]{22}"$/);
  return tag;
}
