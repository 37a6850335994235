// Many requests at once, on every store, by one process and by two that share the store: nothing is lost, nothing is done
// twice, and every answer belongs to its request. One process alone is in conformance/racing.ts, but for the ids to come.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { before, describe, test } from 'node:test';
import { together } from '../../conformance/racing.ts';
import type { Book } from '../../conformance/service.ts';
import type { Client } from '../support/client.ts';
import { History } from '../support/history.ts';
import { Ledger, type Writer } from '../support/ledger.ts';
import { scaled } from '../support/scale.ts';
import {
  POSTGRES,
  type RunningService,
  STORES,
  startServiceProcess,
  startTestService,
} from '../support/service.ts';
import { executeOn } from '../support/sql.ts';

/** Triggers that skip drafts, and removals of what stays. */
const SKIPPING = {
  SQLite: ['insert', 'update', 'delete'].map(
    (event) =>
      `create trigger skip_${event} before ${event} on books
       when ${event === 'delete' ? "old.title like 'stays%'" : "new.title = 'draft'"} begin select raise(ignore); end`,
  ),
  PostgreSQL: [
    `create function skip() returns trigger language plpgsql as $$ begin
       if tg_op = 'DELETE' then if old.title like 'stays%' then return null; end if; return old; end if;
       if new.title = 'draft' then return null; end if; return new; end $$`,
    'create trigger skip before insert or update or delete on books for each row execute function skip()',
  ],
};

/** What an operator may have added that refuses a title. */
const LONG = randomBytes(6000).toString('base64');
const REFUSALS = [
  { what: 'a unique index', title: 'taken', statement: 'create unique index only_one on books (title)' },
  { what: 'an index', title: LONG, statement: 'create index titles on books (title)', only: POSTGRES },
  {
    what: 'a trigger',
    title: LONG,
    statement: `create function refuse() returns trigger language plpgsql as $$ begin
       if length(new.title) > 1000 then raise 'too long' using errcode = 'invalid_parameter_value'; end if;
       return new;
     end $$;
     create trigger refuse before insert or update on books for each row execute function refuse()`,
    only: POSTGRES,
  },
];

for (const store of STORES) {
  describe(`many requests at once on ${store.name}`, () => {
    let service: RunningService;
    let client: Client;

    before(async () => {
      service = await startTestService(await store.freshUrl());
      client = service.client;
    });

    for (const { what, title, statement } of REFUSALS.filter(({ only = store }) => only === store)) {
      test(`rules 9 and 23: what ${what} of an operator refuses fails no other request`, async () => {
        const { client, dbUrl } = await startTestService(await store.freshUrl());
        const { id } = await client.create({ title: 'taken' });
        await executeOn(dbUrl, statement);
        const created = await together(200, async (position) => {
          const body = { title: position % 50 === 7 ? title : `free ${position}` };
          return (await client.request('POST', '/book', { body })).status;
        });
        for (const [position, status] of created.entries())
          assert.equal(status, position % 50 === 7 ? 503 : 201);
        const books = await client.list();
        assert.equal(books.length, 197);
        const changed = await together(books.length, async (position) => {
          const book = books[position] as Book;
          const body = book.id === id + 1 ? { title } : { year: 1 };
          return (await client.request('PUT', `/book/${book.id}`, { body })).status;
        });
        for (const [position, { id: changedId }] of books.entries())
          assert.equal(changed[position], changedId === id + 1 ? 503 : 200);
      });
    }

    test('rules 9 and 23: what a trigger of an operator skips gets 503, and fails no other request', async () => {
      const { client, dbUrl } = await startTestService(await store.freshUrl());
      const { id: stays } = await client.create({ title: 'stays' });
      const { id: second } = await client.create({ title: 'stays as well' });
      const { id: goes } = await client.create({ title: 'goes' });
      for (const statement of store === POSTGRES ? SKIPPING.PostgreSQL : SKIPPING.SQLite)
        await executeOn(dbUrl, statement);
      const before = await client.list();
      const headers = { 'if-match': '*' };
      const calls: [expected: number, ...Parameters<Client['request']>][] = [
        [503, 'POST', '/book', { body: { title: 'draft' } }],
        [201, 'POST', '/book', { body: { title: 'new' } }],
        [503, 'POST', '/books', { body: [{ title: 'new' }, { title: 'draft' }] }],
        [503, 'PUT', `/book/${stays}`, { body: { title: 'draft' } }],
        [200, 'PUT', `/book/${second}`, { body: { year: 1 } }],
        [503, 'PUT', `/book/${stays}`, { body: { title: 'draft' }, headers }],
        [503, 'DELETE', `/book/${stays}`],
        [503, 'DELETE', `/book/${second}`, { headers }],
        [200, 'DELETE', `/book/${goes}`],
        [404, 'DELETE', `/book/${goes}0`],
      ];
      const answers = await Promise.all(calls.map(([, ...call]) => client.request(...call)));
      const statuses = answers.map(({ status }) => status);
      assert.deepEqual(
        statuses,
        calls.map(([expected]) => expected),
      );
      const after = (await client.list()).map(({ title, year }) => ({ title, year }));
      assert.deepEqual(after, [
        { title: 'stays', year: 0 },
        { title: 'stays as well', year: 1 },
        { title: 'new', year: 0 },
      ]);
      assert.deepEqual((await client.list())[0], before[0]);
    });

    test('rules 9, 11 and 12: operations of every kind racing for one id are answered as if they came one by one', async () => {
      for (let round = 0; round < 12; round += 1) {
        const id = (await client.create({})).id + 1; // both stores assign consecutive ids, and no other client creates
        const history = new History();
        const observed = history.of(client);
        await together(10, async (position) => {
          if (position === round % 10) {
            const { status } = await observed.request('POST', '/book', {
              body: { title: 'new', year: round },
            });
            return assert.equal(status, 201);
          }
          const method = ['PUT', 'GET', 'PUT', 'GET', 'PUT', 'DELETE'][position % 6] as string;
          const options = method === 'PUT' ? { body: { title: `title ${position}` } } : {};
          const { status } = await observed.request(method, `/book/${id}`, options);
          assert.ok(status === 200 || status === 404);
        });
        await observed.request('GET', `/book/${id}`);
        history.check();
      }
    });
  });

  test(`rules 9, 11, 12 and 13: two processes on one ${store.name} answer writers of the same books, readers and lists as one`, async () => {
    const dbUrl = await store.freshUrl();
    const pair = await Promise.all([startServiceProcess(dbUrl), startServiceProcess(dbUrl)]);
    const ledger = new Ledger();
    const perform = async (client: Client, writer: Writer) => {
      for (let number = 0; number < scaled(640); number += 1) {
        assert.equal(await writer.write(), 'acknowledged');
        if (number % 2 === 0) assert.equal(await ledger.read(client), 'acknowledged');
        if (number % 8 === 0) assert.equal(await ledger.read(client, '/books'), 'acknowledged');
      }
    };
    await Promise.all(
      pair.flatMap(({ client }) => ledger.writers(client, 4).map((writer) => perform(client, writer))),
    );
    await ledger.reconcile(pair[0].client);
  });
}
