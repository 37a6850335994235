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

/** A clock that is ahead by the days in its file, and the environment of the programs that have it. */
function makeClock() {
  const file = join(temporaryFolder(), 'ahead');
  chmodSync(dirname(file), 0o755); // PostgreSQL runs as another user
  const [LD_PRELOAD = assert.fail('faketime must be installed (Debian: apt-get install faketime)')] =
    globSync('/usr/lib/*/faketime/libfaketimeMT.so.1');
  const set = (days: number) => writeFileSync(file, `${days < 0 ? '' : '+'}${days}d`);
  set(0);
  const options = { FAKETIME_NO_CACHE: '1', FAKETIME_DONT_FAKE_MONOTONIC: '1' };
  return { set, env: { LD_PRELOAD, FAKETIME_TIMESTAMP_FILE: file, ...options } };
}

for (const { name } of STORES) {
  test(`on ${name}, a clock that is set changes no key, no book and no limit; tokens follow it`, async (context) => {
    const clock = makeClock();
    Object.assign(process.env, clock.env); // for the server
    const server = name === 'PostgreSQL' ? await PostgresServer.start() : undefined;
    for (const variable of Object.keys(clock.env)) delete process.env[variable];
    context.after(() => server?.remove());
    const service = await startServiceProcess(server?.url() ?? (await SQLITE.freshUrl()), clock.env);
    const isSet = async (ahead: number) => {
      const { headers } = await request(service, 'GET', '/');
      const rows = server && (await execute<{ now: Date }>(server.url(), 'select now()'));
      const times = [Date.parse(headers.get('date') ?? ''), ...(rows?.map(({ now }) => Number(now)) ?? [])];
      return times.every((time) => Math.abs(time - Date.now() - ahead * DAY) < DAY / 2);
    };
    const delayed = async () =>
      sumOf(await scrape(operationsOf(service).url), 'book_catalogue_logins_total', { outcome: 'delayed' });
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
      await waitUntil(() => isSet(ahead));
      const { status } = await client.request('GET', '/books');
      assert.equal(status, ahead > before ? 401 : 200, `token ${before} to ${ahead}`);
      before = ahead;
      client = await Client.logIn(service);

      assert.equal(await once(client), ids[0], `${ahead} days ahead`);
      const { id } = await client.create({ title: `${ahead} days ahead` });
      ids.push(id);
      await client.request('PUT', `/book/${id}`, { body: { author: 'ahead' } });
      const listed = (await client.list()).map((book) => book.id);
      assert.deepEqual(listed, ids);
      const found = async () => (await client.request('GET', '/books?author=ahead')).data.length;
      await waitUntil(async () => (await found()) === ids.length - 1);
      const earlier = await delayed();
      assert.equal((await request(service, 'POST', '/token', isWrong)).status, 401);
      assert.equal(await delayed(), earlier + 1);
      assert.equal((await fetch(`${operationsOf(service).url}/readyz`)).status, 200);
    }
  });
}
