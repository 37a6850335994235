// A DB_URL with several hosts of PostgreSQL: which one a start finds, and what it says of them. What happens when one fails, or
// another takes over, is tested in test/nightly/failover.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unusedPort } from '../support/ports.ts';
import { freshDatabase } from '../support/postgres.ts';
import { startTestService } from '../support/service.ts';

test('rule 26: the host that accepts writes is found after one that is down', async () => {
  const { host, href } = new URL(await freshDatabase());
  const hosts = `127.0.0.1:${await unusedPort()},${host}`;
  const { client } = await startTestService(href.replace(host, hosts));
  assert.equal((await client.create({ title: 'here' })).title, 'here');
});

for (const wanted of ['read-only', 'standby', 'prefer-standby', 'READ-WRITE', '']) {
  test(`rule 26: target_session_attrs=${wanted} is refused by name`, async () => {
    const starting = startTestService(`postgres://localhost/books?target_session_attrs=${wanted}`);
    await assert.rejects(starting, /^Error: DB_URL: .*target_session_attrs must be one of any,/);
  });
}

test('rules 26 and 27: a refusal has hosts as configured, each with its reason, without username and password; the default port is 5432', async () => {
  const dead = await unusedPort();
  const hosts = `[::1]:${dead},127.0.0.1:${dead},standby.invalid/books`;
  await assert.rejects(startTestService(`postgres://me:s%40cret,x@${hosts}`), ({ message }: Error) => {
    assert.ok(message.startsWith(`DB_URL: postgres://${hosts} cannot be opened: [::1]:${dead}: `), message);
    assert.ok(message.includes(`; 127.0.0.1:${dead}: connection refused; standby.invalid:5432: `), message);
    assert.doesNotMatch(message, /cret|me:/);
    return true;
  });
});

for (const hosts of ['a:1,b:port', 'a b,c', '[::1,b', 'a,@b:1:2']) {
  test(`rule 26: an invalid list of hosts is refused: ${hosts}`, async () => {
    const starting = startTestService(`postgres://me:password@${hosts}/books`);
    await assert.rejects(starting, /^Error: DB_URL is not a valid URL/);
  });
}
