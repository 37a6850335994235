// Many requests at once, on every store, by one process and by two that share the store: nothing is lost, nothing is
// done twice, and every answer belongs to its request.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { type Book, type Client, type RequestOptions, requestAll } from '../support/client.ts';
import {
  type RunningService,
  type ServiceProcess,
  STORES,
  startServiceProcess,
  startTestService,
} from '../support/service.ts';

const NOT_FOUND = { status: 404, message: 'Book not found', data: null };
const INVALID = { status: 400, message: 'Invalid input', data: null };
const INVALID_TOKEN = { status: 401, message: 'Invalid token', data: null };
const DELETED = { status: 200, message: 'Book deleted successfully', data: null };
const created = (data: object) => ({ status: 201, message: 'Book created successfully', data });
const retrieved = (data: object) => ({ status: 200, message: 'Book retrieved successfully', data });
const updated = (data: object) => ({ status: 200, message: 'Book updated successfully', data });

for (const store of STORES) {
  describe(`many requests at once on ${store.name}`, () => {
    let service: RunningService;
    let client: Client;

    before(async () => {
      service = await startTestService(await store.freshUrl());
      client = service.client;
    });
    after(() => service.stop());

    test('rule 9: in 200 pairs of simultaneous updates of different fields, none is lost', async () => {
      await together(25, async () => {
        const { id } = await client.create({});
        for (let round = 1; round <= 8; round += 1) {
          const fields = { title: `title ${round}`, author: `author ${round}`, year: round };
          const { title, author, year } = fields;
          await Promise.all([
            ask(client, 'PUT', `/book/${id}`, { body: { title, year } }),
            ask(client, 'PUT', `/book/${id}`, { body: { author } }),
          ]);
          assert.deepEqual(await ask(client, 'GET', `/book/${id}`), retrieved({ id, ...fields }));
        }
      });
    });

    test('rule 9: 64 simultaneous updates of one book are answered as if they came one by one', async () => {
      let book = await client.create({});
      for (let round = 0; round < 5; round += 1) book = await raceUpdates([client], book, round);
    });

    test('rule 9: pipelined changes of one book are applied in order', async () => {
      const { id } = await client.create({});
      const count = 1200;
      const changes = Array.from({ length: count }, (_, position) => {
        return position % 2 === 0 ? { title: `${position}` } : { year: position };
      });
      const answers = await requestAll(
        service,
        changes.map((body) => ['PUT', `/book/${id}`, { token: client.token, body }]),
      );
      let book = { id, title: '', author: '', year: 0 };
      for (const [position, { status, message, data }] of answers.entries()) {
        book = { ...book, ...changes[position] };
        assert.deepEqual({ status, message, data }, updated(book));
      }
    });

    test('rule 11: of 32 deletes racing for one book exactly one is 200', async () => {
      await together(5, () => raceDeletes([client]));
    });

    test('rules 9, 11 and 12: operations of every kind racing for one id are answered consistently', async () => {
      for (let round = 0; round < 12; round += 1) {
        const id = (await client.create({})).id + 1; // both stores assign consecutive ids, and no other client creates
        const original = { id, title: 'new', author: 'its author', year: round };
        const titles = ['new'];
        const answers = await together(24, async (position) => {
          if (position === round) {
            assert.deepEqual(await ask(client, 'POST', '/book', { body: original }), created(original));
            return undefined;
          }
          const title = `title ${position}`;
          const method = ['PUT', 'GET', 'PUT', 'GET', 'PUT', 'DELETE'][position % 6] as string;
          const options = method === 'PUT' ? { body: { title } } : {};
          const answer = await ask(client, method, `/book/${id}`, options);
          if (method === 'PUT' && answer.status === 200) {
            assert.deepEqual(answer, updated({ ...original, title }));
            titles.push(title);
          }
          return { method, answer };
        });

        const final = await ask(client, 'GET', `/book/${id}`);
        let removals = 0;
        for (const { method, answer } of [...answers, { method: 'GET', answer: final }].filter(isThere)) {
          if (answer.status === 404) assert.deepEqual(answer, NOT_FOUND);
          else if (method === 'DELETE') {
            assert.deepEqual(answer, DELETED);
            removals += 1;
          } else if (method === 'GET') {
            assert.ok(titles.includes(answer.data.title), answer.data.title);
            assert.deepEqual(answer, retrieved({ ...original, title: answer.data.title }));
          }
        }
        assert.equal(removals, final.status === 404 ? 1 : 0);
      }
    });

    test('rule 12: each of 800 creates by 16 clients gets a unique id and is answered with its own book', async () => {
      const books = await together(16, async (maker) => {
        const made: Book[] = [];
        for (let position = 0; position < 50; position += 1) {
          const fields = { title: `title ${maker}/${position}`, author: `author ${maker}`, year: position };
          const book = await client.create(fields);
          assert.deepEqual(book, { id: book.id, ...fields });
          made.push(book);
          if (position % 4 > 0) continue; // the list shows all of them
          assert.deepEqual(await ask(client, 'GET', `/book/${book.id}`), retrieved(book));
        }
        return made;
      });
      const ids = new Map(books.flat().map((book) => [book.id, book]));
      assert.equal(ids.size, 800);
      const listed = (await client.list()).filter(({ id }) => ids.has(id));
      assert.deepEqual(
        listed,
        [...ids.values()].sort((one, other) => one.id - other.id),
      );
    });

    test('rules 2 to 10 and 18: an invalid request never fails its neighbours', async () => {
      const { id } = await client.create({ title: 'kept' });
      const faults: [string, string, RequestOptions, object][] = [
        ['POST', '/book', { body: '{"title":' }, INVALID],
        ['POST', '/book', { body: { title: null } }, INVALID],
        ['POST', '/book', { body: '{"title":"\\u0000"}' }, INVALID],
        ['POST', '/book', { body: '{"title":"\\ud800"}' }, INVALID],
        ['POST', '/book', { body: '{"year":9223372036854775808}' }, INVALID],
        ['POST', '/book', { body: { title: 'ok' }, token: 'x.y.z' }, INVALID_TOKEN],
        ['PUT', `/book/${id}`, { body: { year: '1' } }, INVALID],
        ['PUT', '/book/9007199254740991', { body: { title: 'x' } }, NOT_FOUND],
        ['PUT', '/book/9007199254740991', { body: '[]' }, NOT_FOUND],
        ['PUT', '/book/9223372036854775808', { body: {} }, NOT_FOUND],
        ['GET', '/book/9007199254740991', {}, NOT_FOUND],
        ['GET', '/book/18446744073709551616', {}, NOT_FOUND],
        ['DELETE', '/book/9007199254740991', {}, NOT_FOUND],
        ['DELETE', '/book/-1', {}, NOT_FOUND],
      ];
      await Promise.all([
        together(5 * faults.length, async (position) => {
          const [method, path, options, expected] = faults[
            position % faults.length
          ] as (typeof faults)[number];
          assert.deepEqual(await ask(client, method, path, options), expected);
        }),
        together(50, async (position) => {
          const socket = connect(service.port, '127.0.0.1');
          await once(socket, 'connect');
          const body = position % 2 === 0 ? '{"title":"abandoned"}' : '{"title":"half';
          socket.write(
            `PUT /book/${id} HTTP/1.1\r\nHost: x\r\nAuthorization: ${client.token}\r\nContent-Length: 21\r\n\r\n${body}`,
          );
          socket.destroy();
        }),
        together(60, async (position) => {
          const fields = { title: `good ${position}`, author: '', year: position };
          const book = await client.create(fields);
          assert.deepEqual(book, { id: book.id, ...fields });
          const body = { author: `author ${position}` };
          const expected = { ...book, ...body };
          assert.deepEqual(await ask(client, 'PUT', `/book/${book.id}`, { body }), updated(expected));
          assert.deepEqual(await ask(client, 'GET', `/book/${book.id}`), retrieved(expected));
          assert.deepEqual(await ask(client, 'DELETE', `/book/${book.id}`), DELETED);
        }),
      ]);
      const { data } = await ask(client, 'GET', `/book/${id}`);
      assert.ok(['kept', 'abandoned'].includes(data.title), data.title);
      assert.deepEqual(data, { id, title: data.title, author: '', year: 0 });
    });
  });

  describe(`two processes on one ${store.name}`, () => {
    let services: [ServiceProcess, ServiceProcess];
    let clients: [Client, Client];

    before(async () => {
      const dbUrl = await store.freshUrl();
      services = await Promise.all([startServiceProcess(dbUrl), startServiceProcess(dbUrl)]);
      clients = [services[0].client, services[1].client];
    });
    after(() => Promise.all(services.map((service) => service.stop())));

    test('rules 12 and 27: books created through both at once have unique ids, and both list all of them', async () => {
      const books = await together(16, async (maker) => {
        const made: Book[] = [];
        const client = clients[maker % 2] as Client;
        for (let position = 0; position < 25; position += 1) {
          const fields = { title: `title ${maker}/${position}`, author: `author ${maker}`, year: position };
          const book = await client.create(fields);
          assert.deepEqual(book, { id: book.id, ...fields });
          made.push(book);
        }
        return made;
      });
      const all = books.flat().sort((one, other) => one.id - other.id);
      assert.equal(new Set(all.map(({ id }) => id)).size, 400);
      const last = (books: readonly Book[]) => books.slice(-all.length);
      for (const client of clients) assert.deepEqual(last(await client.list()), all);
    });

    test('rule 9: updates of different fields of the same books through both are never lost', async () => {
      await together(20, async () => {
        const { id } = await clients[0].create({});
        for (let round = 1; round <= 15; round += 1) {
          const fields = { title: `title ${round}`, author: `author ${round}`, year: round };
          const { title, author, year } = fields;
          await Promise.all([
            ask(clients[0], 'PUT', `/book/${id}`, { body: { title, year } }),
            ask(clients[1], 'PUT', `/book/${id}`, { body: { author } }),
          ]);
          for (const client of clients) {
            assert.deepEqual(await ask(client, 'GET', `/book/${id}`), retrieved({ id, ...fields }));
          }
        }
      });
    });

    test('rule 9: 64 updates of one book through both are answered as if they came one by one', async () => {
      let book = await clients[0].create({});
      for (let round = 0; round < 5; round += 1) book = await raceUpdates(clients, book, round);
    });

    test('rule 11: of 32 deletes racing for one book through both exactly one is 200', async () => {
      await together(5, () => raceDeletes(clients));
    });
  });
}

/** Calls `act` so many times, all at once. */
function together<Result>(times: number, act: (position: number) => Promise<Result>): Promise<Result[]> {
  return Promise.all(Array.from({ length: times }, (_, position) => act(position)));
}

/** Status, message and data of one answer. */
async function ask(client: Client, method: string, path: string, options?: RequestOptions) {
  const { status, message, data } = await client.request(method, path, options);
  return { status, message, data };
}

function isThere<Value>(value: Value | undefined): value is Value {
  return value !== undefined;
}

/**
 * Sends 64 updates of one book at once, of its title or its author, no value twice, and checks that the answers are
 * those of updates that came one by one, in some order.
 * @returns the resulting book.
 */
async function raceUpdates(clients: readonly Client[], before: Book, round: number): Promise<Book> {
  const answers = await together(64, async (position) => {
    const field = position % 2 === 0 ? 'title' : 'author';
    const value = `${round}/${position}`;
    const client = clients[(position >> 1) % clients.length] as Client;
    const { status, data } = await ask(client, 'PUT', `/book/${before.id}`, { body: { [field]: value } });
    assert.equal(status, 200);
    assert.equal(data[field], value);
    return { field, after: data as Book } as const;
  });
  const { data: final } = await ask(clients[0] as Client, 'GET', `/book/${before.id}`);

  let book = before;
  const left = new Set(answers);
  while (left.size > 0) {
    const fitting = [...left].filter(({ field, after }) => {
      return isDeepStrictEqual(after, { ...book, [field]: after[field] });
    });
    // Of consecutive updates of the same field, only the value of the last one was seen by others, or is final.
    const isLast = (one: (typeof answers)[number]) =>
      isDeepStrictEqual(one.after, final) ||
      answers.some((other) => other !== one && other.after[one.field] === one.after[one.field]);
    const next = fitting.find((one) => !isLast(one)) ?? fitting[0];
    assert.ok(next, `none of ${JSON.stringify([...left])} can follow ${JSON.stringify(book)}`);
    left.delete(next);
    book = next.after;
  }
  assert.deepEqual(book, final);
  return final;
}

/** Sends 32 deletes of one book at once. */
async function raceDeletes(clients: readonly Client[]): Promise<void> {
  const { id } = await (clients[0] as Client).create({});
  const answers = await together(32, (position) => {
    return ask(clients[position % clients.length] as Client, 'DELETE', `/book/${id}`);
  });
  assertOneDeleted(answers);
  for (const client of clients) assert.deepEqual(await ask(client, 'GET', `/book/${id}`), NOT_FOUND);
}

function assertOneDeleted(answers: readonly { readonly status: number }[]): void {
  const [first, ...others] = answers.toSorted((one, other) => one.status - other.status);
  assert.deepEqual(first, DELETED);
  for (const other of others) assert.deepEqual(other, NOT_FOUND);
}
