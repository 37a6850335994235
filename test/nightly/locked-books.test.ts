// Books that another program has locked, on PostgreSQL: their changes wait for seconds, and delay no others.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { StoreUnavailable } from '../../src/books/store.ts';
import { Connections } from '../../src/stores/postgres/connections.ts';
import { connectToWritable, readHosts } from '../../src/stores/postgres/hosts.ts';
import { TIMES } from '../../src/times.ts';
import { connectTo, freshDatabase, sessionsOf, waitingIn } from '../support/postgres.ts';
import { startTestService } from '../support/service.ts';
import { timesWith } from '../support/times.ts';
import { waitUntil } from '../support/wait.ts';

/** Milliseconds between two rounds of requests that are repeated until something else ends. */
const REST = 50;

/** Connections that one process has for books that another program has locked, and connections of all kinds. */
const HELD_CONNECTIONS = 4;
const CONNECTIONS = 22;

/** Of a service whose changes wait for as long as a test takes. */
const LONG = 60_000;
const PATIENT = timesWith({
  books: { deadline: LONG },
  postgres: { query: LONG, statement: { batches: LONG, held: LONG, searches: LONG, counts: LONG } },
});

describe('a book that another program has locked', { concurrency: true }, () => {
  test('rules 9 and 23, E3: delays only its own changes, also on a condition, which get 503 in the end, and are not carried out later', async (context) => {
    const { client, locker } = await startWithLocker(context);
    const { data: held, headers } = await client.request('POST', '/book', { body: { title: 'held' } });
    const known = { 'if-match': headers.get('etag') ?? '' };
    const free = await client.create({ title: 'free' });
    await locker.query('begin');
    await locker.query('select from books where id = $1 for update', [held.id]);

    let ended = 0;
    const stuck = Promise.all(
      [
        client.request('PUT', `/book/${held.id}`, { body: { author: 'x' } }),
        client.request('DELETE', `/book/${held.id}`),
        client.request('PUT', `/book/${held.id}`, { body: { year: 1 }, headers: known }),
        client.request('DELETE', `/book/${held.id}`, { headers: known }),
      ].map((answer) =>
        answer.finally(() => {
          ended += 1;
        }),
      ),
    );
    // Neighbours in the same batches and in all that follow, until the held ones are given up.
    let answered = 0;
    for (let year = 1; ended < 4; year += 1) {
      const [updated, removed, read] = await Promise.all([
        client.request('PUT', `/book/${free.id}`, { body: { year } }),
        client.create({}).then(({ id }) => client.request('DELETE', `/book/${id}`)),
        client.request('GET', `/book/${held.id}`),
      ]);
      assert.deepEqual([updated.status, removed.status, read.status], [200, 200, 200]);
      assert.deepEqual(updated.data, { ...free, year });
      if (ended === 0) answered += 1;
      await pause(REST);
    }
    assert.ok(answered > 0, 'no neighbour was answered before the held ones');
    for (const { status, message, data, headers } of await stuck) {
      assert.deepEqual([status, message, data], [503, 'Service unavailable', null]);
      assert.ok(Number(headers.get('retry-after')) > 0);
    }
    await locker.query('commit');
    // The last statement of the service for this book has ended, and nothing follows.
    assert.equal((await client.request('PUT', `/book/${held.id}`, { body: {} })).status, 200);
    assert.deepEqual((await client.request('GET', `/book/${held.id}`)).data, held);
  });

  test('rule 9: changes that wait for a lock are applied in order once it is released, or get 404', async (context) => {
    const { client, locker, dbUrl } = await startWithLocker(context, PATIENT);
    const { id } = await client.create({ title: 'held' });
    const doomed = await client.create({ title: 'doomed' });
    const gone = await client.create({});
    await locker.query('begin');
    await locker.query('update books set author = $1', ['the locker']);
    await locker.query('delete from books where id = $1', [gone.id]);

    const fields = [{ title: 'a' }, { year: 1 }, { title: 'b' }, { year: 2 }];
    const updates = fields.map((body) => client.request('PUT', `/book/${id}`, { body }));
    const removals = [1, 2, 3].map(() => client.request('DELETE', `/book/${doomed.id}`));
    const late = ['PUT', 'DELETE'].map((method) => client.request(method, `/book/${gone.id}`, { body: {} }));
    await waitUntil(async () => (await waitingIn(dbUrl)).length === 3);
    await locker.query('commit');

    for (const [position, update] of updates.entries()) {
      const { status, data } = await update;
      assert.equal(status, 200);
      assert.equal(data.author, 'the locker');
      const own = Object.entries(fields[position] as object);
      for (const [name, value] of own) assert.equal(data[name], value);
    }
    assert.deepEqual((await client.request('GET', `/book/${id}`)).data, {
      id,
      title: 'b',
      author: 'the locker',
      year: 2,
    });
    const statuses = await Promise.all(removals.map(async (removal) => (await removal).status));
    assert.deepEqual(statuses.toSorted(), [200, 404, 404]);
    for (const answer of late) assert.equal((await answer).status, 404);
  });

  test('E3: a change on a condition waits for the lock alone, and is tested in the state after it', async (context) => {
    const { client, locker, dbUrl } = await startWithLocker(context, PATIENT);
    const create = async () => {
      const { data, headers } = await client.request('POST', '/book', { body: { title: 'held' } });
      const known = { 'if-match': headers.get('etag') ?? '' };
      const path = `/book/${data.id}`;
      return {
        id: Number(data.id),
        path,
        change: (year: number) => client.request('PUT', path, { body: { year }, headers: known }),
        remove: () => client.request('DELETE', path, { headers: known }),
      };
    };
    const [same, changed, removed, free] = [await create(), await create(), await create(), await create()];
    await locker.query('begin');
    await locker.query("update books set author = 'the locker' where id = $1", [changed.id]);
    await locker.query('delete from books where id = $1', [removed.id]);
    await locker.query('select from books where id = $1 for update', [same.id]);

    const answers = [same.change(1), same.change(2), changed.change(1), changed.remove(), removed.change(1)];
    assert.equal((await free.change(1)).status, 200);
    assert.equal((await free.remove()).status, 412);
    await waitUntil(async () => (await waitingIn(dbUrl)).length >= 3);
    await locker.query('commit');

    const statuses = await Promise.all(answers.map(async (answer) => (await answer).status));
    assert.deepEqual(statuses, [200, 412, 412, 412, 404]);
    assert.equal((await client.request('GET', same.path)).data.year, 1);
    assert.equal((await client.request('GET', changed.path)).data.author, 'the locker');
  });

  test('rule 23: changes of a hundred such books get 503 in the end, new books are stored and changed meanwhile, no transaction stays open', async (context) => {
    const { client, locker, dbUrl } = await startWithLocker(context);
    const books = await Promise.all(Array.from({ length: 100 }, () => client.create({})));
    await locker.query('begin; select from books for update');
    let stored = 0;
    // On a busy machine the changes may end before the first new book is sent.
    for (let round = 0; round < 5 && stored === 0; round += 1) {
      let ended = 0;
      const changes = books.map(async ({ id }, position) => {
        const { status } = await (position % 2 === 0
          ? client.request('PUT', `/book/${id}`, { body: { year: 1 } })
          : client.request('DELETE', `/book/${id}`));
        ended += 1;
        return status;
      });
      while (ended < changes.length) {
        const areHeld = (await waitingIn(dbUrl)).length >= HELD_CONNECTIONS;
        const { id } = await client.create({});
        const headers = { 'if-match': '*' };
        assert.equal((await client.request('PUT', `/book/${id}`, { body: {}, headers })).status, 200);
        if (areHeld && ended === 0) stored += 1;
        await pause(REST);
      }
      assert.deepEqual(new Set(await Promise.all(changes)), new Set([503]));
    }
    assert.ok(stored > 0, 'no new book was stored before the changes ended');
    await waitUntil(async () => {
      const sessions = await sessionsOf(dbUrl, "application_name = 'book-catalogue'");
      return sessions.length <= CONNECTIONS && sessions.every(({ state }) => state === 'idle');
    });
    await locker.query('commit');
    assert.equal((await client.request('PUT', `/book/${books[0]?.id}`, { body: { year: 2 } })).data.year, 2);
  });
});

test('rule 9: a process that is frozen in a transaction delays the changes of others for as long as its callers wait', async (context) => {
  const { client, dbUrl, locker } = await startWithLocker(context);
  await client.create({});
  const hosts = readHosts(dbUrl);
  const { address, client: first } = await connectToWritable(hosts, TIMES.postgres);
  await first.end();
  const connections = new Connections(hosts, address, TIMES.postgres);
  const [locked, thawed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const frozen = connections.transaction('held', performance.now() + 2000, async (query) => {
    await query('select from books for update');
    locked.resolve();
    await thawed.promise;
  });
  const failed = assert.rejects(frozen, StoreUnavailable);
  await Promise.race([locked.promise, failed]);
  await locker.query("set lock_timeout = '20s'; update books set year = 1");
  thawed.resolve();
  await failed;
  await connections.close();
});

/** Starts a service, and connects another program that may lock its books; both end with the test. */
async function startWithLocker(context: TestContext, times?: typeof PATIENT) {
  const dbUrl = await freshDatabase();
  const { client } = await startTestService(dbUrl, {}, undefined, times);
  return { client, dbUrl, locker: await connectTo(context, dbUrl) };
}
