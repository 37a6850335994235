// A clock that is set while the service and its store are running, by a day or a month in either direction, as on a
// machine without a battery when its network arrives: rules 17, 29 and I4. Debian's faketime sets the clock of both.

import assert from 'node:assert/strict';
import { chmodSync, globSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { Client, request } from '../support/client.ts';
import { operationsOf } from '../support/operations.ts';
import { execute, PostgresServer } from '../support/postgres.ts';
import { scrape, sumOf } from '../support/prometheus.ts';
import { SQLITE, STORES, startServiceProcess, temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

/** Days that the clock is ahead, in the order in which it is set. */
const STEPS = [1, 0, -1, 30, -30, 0];

/** Milliseconds. */
const DAY = 86_400_000;

/** Failed logins of an address before the next ones are delayed. */
const MOST_FAILURES = 10;

/** The clock of all programs that are started with its environment. */
class Clock {
  readonly #file = join(temporaryFolder(), 'ahead');
  readonly env: Readonly<Record<string, string>>;

  constructor() {
    const [library] = globSync('/usr/lib/*/faketime/libfaketimeMT.so.1');
    if (library === undefined)
      throw new Error('faketime must be installed (Debian: apt-get install faketime)');
    this.env = {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    };
    chmodSync(dirname(this.#file), 0o755); // PostgreSQL runs as another user
    this.set(0);
  }

  set(daysAhead: number): void {
    writeFileSync(this.#file, `${daysAhead < 0 ? '' : '+'}${daysAhead}d`);
  }
}

interface Store {
  readonly url: string;
  /** What its clock shows, in milliseconds; undefined if that is the clock of the service. */
  time(): Promise<number | undefined>;
  end(): Promise<void>;
}

const STORES_OF: Readonly<Record<string, (clock: Clock) => Promise<Store>>> = {
  SQLite: async () => ({ url: await SQLITE.freshUrl(), time: async () => undefined, end: async () => {} }),
  async PostgreSQL({ env }) {
    Object.assign(process.env, env);
    const server = await PostgresServer.start();
    for (const name of Object.keys(env)) delete process.env[name];
    const url = server.url();
    const time = async () => Number((await execute<{ now: Date }>(url, 'select now()'))[0]?.now);
    return { url, time, end: () => server.remove() };
  },
};

for (const { name } of STORES) {
  test(`on ${name}, a clock that is set changes no key, no book and no limit; tokens follow it`, async (context) => {
    const clock = new Clock();
    const store = await STORES_OF[name]?.(clock);
    assert.ok(store);
    context.after(store.end);
    const service = await startServiceProcess(store.url, clock.env);
    context.after(() => service.stop());
    const isWrong = { body: { username: 'librarian', password: 'wrong' } };
    for (let failure = 0; failure < MOST_FAILURES; failure += 1)
      await request(service, 'POST', '/token', isWrong);

    const once = async (client: Client) => {
      const headers = { 'idempotency-key': 'the-first' };
      const answer = await client.request('POST', '/book', { body: { title: 'Emma' }, headers });
      assert.equal(answer.status, 201);
      return answer.data.id;
    };
    let client: Client = service.client;
    let before = 0;
    const ids = [await once(client)];
    for (const ahead of STEPS) {
      clock.set(ahead);
      await waitUntil(async () => {
        const { headers } = await request(service, 'GET', '/');
        const shown = Date.parse(headers.get('date') ?? '');
        const times = [shown, (await store.time()) ?? shown];
        return times.every((time) => Math.abs(time - Date.now() - ahead * DAY) < DAY / 2);
      });
      const isOver = ahead > before;
      assert.equal(
        (await client.request('GET', '/books')).status,
        isOver ? 401 : 200,
        `token ${before} to ${ahead}`,
      );
      before = ahead;
      client = await Client.logIn(service);

      assert.equal(await once(client), ids[0], `${ahead} days ahead`);
      const { id } = await client.create({ title: `${ahead} days ahead` });
      ids.push(id);
      await client.request('PUT', `/book/${id}`, { body: { author: 'ahead' } });
      assert.deepEqual(
        (await client.list()).map((book) => book.id),
        ids,
      );
      const found = async () => (await client.request('GET', '/books?author=ahead')).data.length;
      await waitUntil(async () => (await found()) === ids.length - 1);
      const delayed = async () =>
        sumOf(await scrape(operationsOf(service).url), 'book_catalogue_logins_total', { outcome: 'delayed' });
      const earlier = await delayed();
      assert.equal((await request(service, 'POST', '/token', isWrong)).status, 401);
      assert.equal(await delayed(), earlier + 1);
      assert.equal((await fetch(`${operationsOf(service).url}/readyz`)).status, 200);
    }
  });
}
