// Rules E1 to E4 with several processes, or with a variable, on every store. The other cases are in
// conformance/conditions.ts.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { countTogether } from '../../conformance/conditions.ts';
import type { Book } from '../../conformance/service.ts';
import { BOOK_NOT_FOUND, DELETED, INVALID } from '../../conformance/words.ts';
import { bare, Client } from '../support/client.ts';
import { type RunningService, STORES, startTestService } from '../support/service.ts';
import { verifiedAt } from '../support/verified.ts';

const REQUIRED = { status: 428, message: 'Precondition required', data: null };

/** A tag that no book has. */
const OTHER = '"AAAAAAAAAAAAAAAAAAAAAA"';

for (const store of STORES) {
  describe(`conditions on ${store.name}`, () => {
    let service: RunningService;
    let client: Client;

    before(async () => {
      service = await startTestService(await store.freshUrl());
      client = service.client;
    });
    after(() => service.stop());

    /** A new book with its tag. */
    async function create(
      body: object = { title: 'Emma' },
    ): Promise<{ book: Book; id: number; tag: string }> {
      const { data, headers } = await client.request('POST', '/book', { body });
      return { book: data, id: data.id, tag: tagIn(headers) };
    }

    test('E1: a book has the same tag in every process', async () => {
      const { id, tag } = await create({ title: 'ab', author: 'c', year: 1 });
      const other = await startTestService(service.dbUrl);
      try {
        assert.equal(tagIn((await other.client.request('GET', `/book/${id}`)).headers), tag);
      } finally {
        await other.stop();
      }
    });

    test('E3: clients of two processes that count in one book lose no step', async () => {
      const other = await startTestService(service.dbUrl);
      const both = [verifiedAt(service), verifiedAt(other)] as const;
      try {
        await Promise.all(both.map((verified) => verified.logIn()));
        await countTogether(both);
      } finally {
        for (const verified of both) verified.close();
        await other.stop();
      }
    });

    test('E4: with REQUIRE_IF_MATCH=on, a change or removal without If-Match gets 428', async () => {
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
        assert.deepEqual(bare(await client.request('PUT', '/book/0', { body: {} })), BOOK_NOT_FOUND);
        for (const method of ['PUT', 'DELETE']) {
          const answer = await client.request(method, '/book/9007199254740991', { body: {} });
          assert.deepEqual(bare(answer), BOOK_NOT_FOUND, method);
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

/** The tag in the headers of an answer, which must be a strong one. */
function tagIn(headers: Headers): string {
  const tag = headers.get('etag') ?? '';
  assert.match(tag, /^"[\w-]{22}"$/);
  return tag;
}
