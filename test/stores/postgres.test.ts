// What only PostgreSQL can do to the service: lock a book, go away and come back, ask for TLS, hold an
// older structure, give up a transaction. The contract itself is tested in contract.test.ts.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, type TestContext, test } from 'node:test';
import pg from 'pg';
import type { Client } from '../support/client.ts';
import { execute, freshDatabase, PostgresServer } from '../support/postgres.ts';
import { pathTo } from '../support/repository.ts';
import { startServiceProcess, startTestService } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

describe('a book that somebody else has locked', () => {
  test('rules 9 and 23: holds up its own changes, nobody else’s, and ends in 503 within 5 s', async (context) => {
    const { client, locker } = await startWithLocker(context);
    const held = await client.create({ title: 'held' });
    const free = await client.create({ title: 'free' });
    await locker.query('begin');
    await locker.query('select from books where id = $1 for update', [held.id]);

    const began = performance.now();
    const stuck = ['PUT', 'DELETE'].map(async (method) => {
      const body = method === 'PUT' ? { body: { author: 'x' } } : {};
      const answer = await client.request(method, `/book/${held.id}`, body);
      return { ...answer, milliseconds: performance.now() - began };
    });
    let ended = false;
    const all = Promise.all(stuck).finally(() => {
      ended = true;
    });
    // Neighbours in the same batches and in all that follow, until the held ones give up.
    for (let year = 1; !ended; year += 1) {
      const [updated, removed, read] = await Promise.all([
        client.request('PUT', `/book/${free.id}`, { body: { year } }),
        client.create({}).then(({ id }) => client.request('DELETE', `/book/${id}`)),
        client.request('GET', `/book/${held.id}`),
      ]);
      assert.deepEqual([updated.status, removed.status, read.status], [200, 200, 200]);
      assert.deepEqual(updated.data, { ...free, year });
    }
    for (const answer of await all) {
      assert.equal(answer.status, 503);
      assert.equal(answer.message, 'Service unavailable');
      assert.equal(answer.data, null);
      assert.ok(Number(answer.headers.get('retry-after')) > 0);
      assert.ok(answer.milliseconds < 5000 + 500, `${answer.milliseconds} ms`); // 500 for a slow machine
    }
    await locker.query('commit');
    assert.deepEqual((await client.request('GET', `/book/${held.id}`)).data, held);
  });

  test('rule 9: changes that wait for a lock are applied in order once it is released', async (context) => {
    const { client, locker, dbUrl } = await startWithLocker(context);
    const { id } = await client.create({ title: 'held' });
    const doomed = await client.create({ title: 'doomed' });
    await locker.query('begin');
    await locker.query('update books set author = $1', ['the locker']);

    const fields = [{ title: 'a' }, { year: 1 }, { title: 'b' }, { year: 2 }];
    const updates = fields.map((body) => client.request('PUT', `/book/${id}`, { body }));
    const removals = [1, 2, 3].map(() => client.request('DELETE', `/book/${doomed.id}`));
    await waitUntilWaiting(dbUrl, 2);
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
  });

  test('rule 9: a book removed by the one who held it is 404', async (context) => {
    const { client, locker, dbUrl } = await startWithLocker(context);
    const { id } = await client.create({ title: 'held' });
    await locker.query('begin');
    await locker.query('delete from books');
    const requests = [
      client.request('PUT', `/book/${id}`, { body: { title: 'x' } }),
      client.request('DELETE', `/book/${id}`),
    ];
    await waitUntilWaiting(dbUrl, 2);
    await locker.query('commit');
    for (const request of requests) assert.equal((await request).status, 404);
  });

  test('rule 23: of a hundred at once each ends in 503 within 5 s, new ones are stored, nothing is left open', async (context) => {
    const { client, locker, dbUrl } = await startWithLocker(context);
    const books = await Promise.all(Array.from({ length: 100 }, () => client.create({})));
    await locker.query('begin; select from books for update');
    const began = performance.now();
    let ended = false;
    const changes = Promise.all(
      books.map(async ({ id }, position) => {
        const answer = await (position % 2 === 0
          ? client.request('PUT', `/book/${id}`, { body: { year: 1 } })
          : client.request('DELETE', `/book/${id}`));
        assert.equal(answer.status, 503);
        assert.ok(performance.now() - began < 5000 + 500); // 500 for a slow machine
      }),
    ).finally(() => {
      ended = true;
    });
    while (!ended) {
      const asked = performance.now();
      await client.create({});
      assert.ok(performance.now() - asked < 2000, 'it waited for the locked ones'); // who take 4 s
    }
    await changes;
    await waitUntil(async () => {
      const sessions = await execute<{ state: string }>(
        dbUrl,
        `select state from pg_stat_activity
         where application_name = 'book-catalogue' and datname = current_database()`,
      );
      return sessions.length <= 18 && sessions.every(({ state }) => state === 'idle');
    });
    await locker.query('commit');
    assert.equal((await client.request('PUT', `/book/${books[0]?.id}`, { body: { year: 2 } })).data.year, 2);
  });
});

test('rule 23: a table locked as a whole is 503 within 5 s, and no request is lost for good', async (context) => {
  const { client, locker } = await startWithLocker(context);
  const { id } = await client.create({ title: 'here' });
  await locker.query('begin; lock table books in access exclusive mode');
  const began = performance.now();
  const answers = await Promise.all([
    client.request('POST', '/book', { body: {} }),
    client.request('GET', '/books'),
    client.request('GET', `/book/${id}`),
    client.request('PUT', `/book/${id}`, { body: { title: 'x' } }),
    client.request('DELETE', `/book/${id}`),
  ]);
  assert.ok(performance.now() - began < 5000 + 500); // 500 for a slow machine
  for (const { status, message } of answers) {
    assert.deepEqual([status, message], [503, 'Service unavailable']);
  }
  await locker.query('commit');
  assert.deepEqual(await client.list(), [{ id, title: 'here', author: '', year: 0 }]);
});

test('rule 23: the server goes away and comes back; the service stays and nothing answered is lost', async () => {
  const server = await PostgresServer.start();
  const service = await startServiceProcess(server.url());
  const { client } = service;
  try {
    for (let round = 1; round <= 3; round += 1) {
      const stored = new Set<number>();
      let stopped = false;
      const writers = Array.from({ length: 8 }, async () => {
        while (!stopped) {
          const { status, message, data } = await client.request('POST', '/book', { body: { year: round } });
          if (status === 201) stored.add(data.id);
          else assert.deepEqual([status, message, data], [503, 'Service unavailable', null]);
        }
      });
      await waitUntil(() => stored.size > 50);
      await server.stop();
      const answer = await client.request('GET', '/books');
      assert.equal(answer.status, 503);
      await server.startAgain();
      const seen = stored.size;
      await waitUntil(() => stored.size > seen + 50);
      stopped = true;
      await Promise.all(writers);
      const listed = new Set((await client.list()).map(({ id }) => id));
      assert.ok([...stored].every((id) => listed.has(id)));
    }
    assert.equal(service.process.exitCode, null);
  } finally {
    await service.stop();
    await server.remove();
  }
});

test('rule 9: where the server gives transactions up, they are sent again', async () => {
  const dbUrl = await freshDatabase();
  const name = new URL(dbUrl).pathname.slice(1);
  await execute(dbUrl, `alter database ${name} set default_transaction_isolation = 'serializable'`);
  const services = await Promise.all([startTestService(dbUrl), startTestService(dbUrl)]);
  const [one, other] = services.map(({ client }) => client) as [Client, Client];
  try {
    const { id } = await one.create({});
    for (let year = 1; year <= 100; year += 1) {
      const [first, second] = await Promise.all([
        one.request('PUT', `/book/${id}`, { body: { year } }),
        other.request('PUT', `/book/${id}`, { body: { title: `${year}` } }),
        one.create({}),
        other.create({}),
      ]);
      assert.deepEqual([first.status, second.status], [200, 200]);
      const { data } = await one.request('GET', `/book/${id}`);
      assert.deepEqual(data, { id, title: `${year}`, author: '', year });
    }
  } finally {
    await Promise.all(services.map((service) => service.stop()));
  }
});

for (const code of ['40001', '40P01']) {
  test(`rule 9: a transaction given up by ${code} is sent again, and its book is stored once`, async () => {
    const service = await startTestService(await freshDatabase());
    const { client } = service;
    try {
      const { id } = await client.create({ year: 1 });
      await giveUp(service.dbUrl, code, 3);
      const { id: added } = await client.create({ title: 'added' });
      await giveUp(service.dbUrl, code, 3);
      const { status, data } = await client.request('PUT', `/book/${id}`, { body: { year: 2 } });
      assert.deepEqual([status, data], [200, { id, title: '', author: '', year: 2 }]);
      await giveUp(service.dbUrl, code, 3);
      assert.equal((await client.request('DELETE', `/book/${id}`)).status, 200);
      assert.deepEqual(await client.list(), [{ id: added, title: 'added', author: '', year: 0 }]);
    } finally {
      await service.stop();
    }
  });

  test(`rule 23: a transaction given up by ${code} for ever is 503 within 5 s, and nothing is stored`, async () => {
    const service = await startTestService(await freshDatabase());
    const { client } = service;
    try {
      const book = await client.create({ year: 1 });
      await giveUp(service.dbUrl, code, 1_000_000);
      const began = performance.now();
      const answers = await Promise.all([
        client.request('POST', '/book', { body: {} }),
        client.request('PUT', `/book/${book.id}`, { body: { year: 2 } }),
        client.request('DELETE', `/book/${book.id}`),
      ]);
      assert.ok(performance.now() - began < 5000 + 500); // 500 for a slow machine
      for (const { status } of answers) assert.equal(status, 503);
      assert.deepEqual(await client.list(), [book]);
    } finally {
      await service.stop();
    }
  });
}

describe('the structure', () => {
  test('rule 27: a start does not read all books', async () => {
    const dbUrl = await freshDatabase();
    await (await startTestService(dbUrl)).stop();
    await execute(
      dbUrl,
      "insert into books (title) select 'x' from generate_series(1, 50000); analyze books",
    );
    const scans = async () => {
      const sql = "select seq_scan, idx_scan from pg_stat_user_tables where relname = 'books'";
      const [row] = await execute<{ seq_scan: string; idx_scan: string }>(dbUrl, sql);
      return { whole: Number(row?.seq_scan), indexed: Number(row?.idx_scan) };
    };
    const before = await scans();
    await (await startTestService(dbUrl)).stop();
    // What it did is known once its connection has ended.
    await waitUntil(
      async () => (await scans()).indexed > before.indexed || (await scans()).whole > before.whole,
    );
    assert.equal((await scans()).whole, before.whole);
  });

  test('rule 27: an older table is brought up to date and its books are kept', async () => {
    const dbUrl = await freshDatabase();
    await execute(
      dbUrl,
      `create table books (id bigserial primary key, title text, author varchar(40), year integer, extra text);
       insert into books (title, author, year, extra) values ('Emma', 'Jane Austen', 1815, 'x'), (null, null, null, 'y')`,
    );
    const service = await startTestService(dbUrl);
    try {
      assert.deepEqual(await service.client.list(), [
        { id: 1, title: 'Emma', author: 'Jane Austen', year: 1815 },
        { id: 2, title: '', author: '', year: 0 },
      ]);
      const body = { title: 't', author: 'a'.repeat(100), year: 9007199254740991 };
      assert.deepEqual(await service.client.create(body), { id: 3, ...body });
    } finally {
      await service.stop();
    }
  });

  test('rule 27: columns that are missing are added', async () => {
    const dbUrl = await freshDatabase();
    await execute(dbUrl, 'create table books (id bigserial primary key); insert into books default values');
    const service = await startTestService(dbUrl);
    try {
      assert.deepEqual(await service.client.list(), [{ id: 1, title: '', author: '', year: 0 }]);
    } finally {
      await service.stop();
    }
  });

  test('rule 27: a role that may use the table, but create nothing, is enough', async () => {
    const dbUrl = await freshDatabase();
    await (await startTestService(dbUrl)).stop();
    const role = `reader_${process.pid}`;
    await execute(
      dbUrl,
      `create role ${role} login password 'only use';
       grant select, insert, update, delete on books to ${role};
       grant usage on sequence books_id_seq to ${role}`,
    );
    const url = new URL(dbUrl);
    url.username = role;
    url.password = 'only use';
    const service = await startTestService(url.href);
    try {
      const { id } = await service.client.create({ title: 'x' });
      assert.equal((await service.client.request('PUT', `/book/${id}`, { body: {} })).status, 200);
      assert.equal((await service.client.request('DELETE', `/book/${id}`)).status, 200);
    } finally {
      await service.stop();
      await execute(dbUrl, `drop owned by ${role}; drop role ${role}`);
    }
  });

  test('rule 12: books that came with ids of their own leave the next one free, in every process', async () => {
    const dbUrl = await freshDatabase();
    await (await startTestService(dbUrl)).stop();
    await execute(dbUrl, 'insert into books (id) select generate_series(1, 1000)');
    const services = await Promise.all([1, 2, 3, 4].map(() => startTestService(dbUrl)));
    try {
      const created = await Promise.all(services.map(({ client }) => client.create({})));
      assert.deepEqual(
        created.map(({ id }) => id).toSorted((a, b) => a - b),
        [1001, 1002, 1003, 1004],
      );
    } finally {
      await Promise.all(services.map((service) => service.stop()));
    }
  });

  test('rule 12: books that come with ids of their own while the service runs cost no creation', async (context) => {
    const dbUrl = await freshDatabase();
    const services = await Promise.all([startTestService(dbUrl), startTestService(dbUrl)]);
    for (const service of services) context.after(() => service.stop());
    for (let round = 1; round <= 3; round += 1) {
      await execute(
        dbUrl,
        'insert into books (id) select generate_series(max(id) + 1, max(id) + 700) from books',
      );
      await Promise.all(
        services.flatMap(({ client }) => Array.from({ length: 100 }, () => client.create({ year: round }))),
      );
    }
    const [{ count } = {}] = await execute(dbUrl, 'select count(*)::int from books where year > 0');
    assert.equal(count, 600);
  });

  test('rule 12: an id drawn while another process starts is not given out again', async () => {
    const dbUrl = await freshDatabase();
    const first = await startTestService(dbUrl);
    await execute(dbUrl, 'insert into books (id) values (3)');
    const writer = new pg.Client({ connectionString: dbUrl });
    await writer.connect();
    try {
      await writer.query(
        "begin; insert into books select nextval('books_id_seq') from generate_series(1, 2)",
      );
      const second = startTestService(dbUrl);
      await waitUntilWaiting(dbUrl, 1);
      await writer.query("select nextval('books_id_seq') from generate_series(3, 5); commit");
      const service = await second;
      assert.equal((await service.client.create({})).id, 6);
      await service.stop();
    } finally {
      await writer.end();
      await first.stop();
    }
  });

  test('rule 27: a table whose ids come from elsewhere is refused', async () => {
    const dbUrl = await freshDatabase();
    await execute(
      dbUrl,
      "create sequence s; create table books (id bigint default nextval('s') primary key)",
    );
    await assert.rejects(startTestService(dbUrl), /^Error: DB_URL: .* "books_id_seq" is not\.$/);
  });

  test('rule 27: ids that are always generated are refused', async () => {
    const dbUrl = await freshDatabase();
    await execute(dbUrl, 'create table books (id bigint generated always as identity primary key)');
    await assert.rejects(startTestService(dbUrl), /^Error: DB_URL: .* "generated by default" would do\.$/);
    await execute(dbUrl, 'alter table books alter id set generated by default');
    const service = await startTestService(dbUrl);
    try {
      assert.equal((await service.client.create({})).id, 1);
    } finally {
      await service.stop();
    }
  });

  test('rules 4 and 27: a database that has no room for every text is refused', async () => {
    const url = new URL(await freshDatabase());
    const name = `${url.pathname.slice(1)}_latin`;
    await execute(url.href, `create database ${name} encoding 'LATIN1' locale 'C' template template0`);
    try {
      const latin = new URL(`/${name}`, url);
      await assert.rejects(startTestService(latin.href), /^Error: DB_URL: .* its encoding is LATIN1, /);
    } finally {
      await execute(url.href, `drop database ${name} with (force)`);
    }
  });

  test('rule 27: a server that takes no writes is refused', async () => {
    const url = await freshDatabase();
    await execute(
      url,
      `alter database ${new URL(url).pathname.slice(1)} set default_transaction_read_only = on`,
    );
    await assert.rejects(startTestService(url), /^Error: DB_URL: .* cannot be opened: it is read-only\.$/);
  });

  test('rule 12: no id beyond 2^53-1 is ever given out', async () => {
    const service = await startTestService(await freshDatabase());
    try {
      await execute(service.dbUrl, "select setval('books_id_seq', 9007199254740990)");
      const last = await service.client.create({ title: 'last' });
      assert.equal(last.id, 9007199254740991);
      assert.equal((await service.client.request('POST', '/book', { body: {} })).status, 503);
      assert.deepEqual(await service.client.list(), [last]);
    } finally {
      await service.stop();
    }
  });
});

describe('rule 26: TLS by sslmode', () => {
  const certificate = (name: string) => pathTo(`test/fixtures/tls/${name}`);
  const authority = `sslrootcert=${certificate('authority.crt')}`;
  const stranger = `sslrootcert=${certificate('stranger.crt')}`;
  let server: PostgresServer;
  let plainServer: PostgresServer;

  before(async () => {
    const files = {
      'server.crt': await readFile(certificate('server.crt'), 'utf8'),
      'server.key': await readFile(certificate('server.key'), 'utf8'),
      'pg_hba.conf': [
        'hostssl   tls_only   all all password',
        'host      tls_only   all all reject',
        'hostnossl plain_only all all password',
        'host      plain_only all all reject',
        'host      all        all all password',
      ].join('\n'),
    };
    [server, plainServer] = await Promise.all([
      PostgresServer.start(['ssl=on', 'ssl_cert_file=server.crt', 'ssl_key_file=server.key'], files),
      PostgresServer.start(),
    ]);
    await execute(server.url(), 'create database tls_only');
    await execute(server.url(), 'create database plain_only');
  });
  after(() => Promise.all([server.remove(), plainServer.remove()]));

  const works: [title: string, url: () => string, encrypted: boolean][] = [
    ['disable', () => server.url('postgres', 'sslmode=disable'), false],
    ['allow', () => server.url('postgres', 'sslmode=allow'), false],
    ['allow, where only TLS is let in', () => server.url('tls_only', 'sslmode=allow'), true],
    ['nothing', () => server.url(), true],
    ['nothing, to a server without TLS', () => plainServer.url(), false],
    ['prefer', () => server.url('postgres', 'sslmode=prefer'), true],
    ['prefer, where only plain text is let in', () => server.url('plain_only', 'sslmode=prefer'), false],
    ['require', () => server.url('postgres', 'sslmode=require'), true],
    ['require, with the right authority', () => server.url('postgres', `sslmode=require&${authority}`), true],
    ['verify-ca, by a wrong name', () => server.url('postgres', `sslmode=verify-ca&${authority}`), true],
    ['verify-full', () => byName(server.url('postgres', `sslmode=verify-full&${authority}`)), true],
  ];
  for (const [title, url, encrypted] of works) {
    test(`${title}: works ${encrypted ? 'with' : 'without'} TLS`, async () => {
      const service = await startTestService(url());
      try {
        assert.equal((await service.client.create({})).title, '');
        assert.ok((await service.client.list()).length > 0);
        const asked = url().includes(`:${plainServer.port}/`) ? plainServer : server;
        const sessions = await execute<{ ssl: boolean }>(
          asked.url(),
          `select ssl from pg_stat_ssl join pg_stat_activity using (pid)
           where application_name = 'book-catalogue'`,
        );
        assert.ok(sessions.length > 0);
        assert.ok(sessions.every(({ ssl }) => ssl === encrypted));
      } finally {
        await service.stop();
      }
    });
  }

  const refused: [title: string, url: () => string][] = [
    ['disable, where only TLS is let in', () => server.url('tls_only', 'sslmode=disable')],
    ['require, to a server without TLS', () => plainServer.url('postgres', 'sslmode=require')],
    ['require, where only plain text is let in', () => server.url('plain_only', 'sslmode=require')],
    ['require, with a wrong authority', () => server.url('postgres', `sslmode=require&${stranger}`)],
    ['verify-ca, with a wrong authority', () => server.url('postgres', `sslmode=verify-ca&${stranger}`)],
    ['verify-ca, without an authority', () => server.url('postgres', 'sslmode=verify-ca')],
    ['verify-full, by a wrong name', () => server.url('postgres', `sslmode=verify-full&${authority}`)],
    [
      'verify-full, with a wrong authority',
      () => byName(server.url('postgres', `sslmode=verify-full&${stranger}`)),
    ],
    ['a parameter that would undo it', () => server.url('postgres', 'sslmode=require&ssl=0')],
    ['a parameter misspelt', () => server.url('postgres', 'SSLMODE=require')],
    ['a file that is not there', () => server.url('postgres', 'sslmode=verify-full&sslrootcert=nowhere.crt')],
  ];
  test('rule 27: a server without TLS, where that is no matter, is refused for what is the matter', async () => {
    const url = plainServer.url('nowhere');
    const refusal = /^Error: DB_URL: postgres:[^ ]* cannot be opened: database "nowhere" does not exist\.$/;
    await assert.rejects(startTestService(url), refusal);
  });

  for (const [title, url] of refused) {
    test(`${title}: is refused`, async () => {
      await assert.rejects(startTestService(url()), /^Error: DB_URL: postgres:\/\/[^@]* cannot be opened: /);
    });
  }

  /** The certificate names localhost only. */
  function byName(url: string): string {
    return url.replace('127.0.0.1', 'localhost');
  }
});

/** A service, and somebody else who may lock its books; both end with the test. */
async function startWithLocker(context: TestContext) {
  const service = await startTestService(await freshDatabase());
  const locker = new pg.Client({ connectionString: service.dbUrl });
  await locker.connect();
  context.after(async () => {
    await locker.end();
    await service.stop();
  });
  return { client: service.client, dbUrl: service.dbUrl, locker };
}

/** So many times from now on the server gives up every transaction that writes. */
async function giveUp(dbUrl: string, code: string, times: number): Promise<void> {
  await execute(
    dbUrl,
    `create sequence if not exists attempts;
     select setval('attempts', 1, false);
     create or replace function give_up() returns trigger language plpgsql as $$
       begin
         if nextval('attempts') <= ${times} then raise exception 'given up' using errcode = '${code}'; end if;
         return null;
       end $$;
     create or replace trigger give_up before insert or update or delete on books execute function give_up()`,
  );
}

/** Waits until as many of the service's statements wait for a lock. */
async function waitUntilWaiting(dbUrl: string, statements: number): Promise<void> {
  await waitUntil(async () => {
    const waiting = await execute(
      dbUrl,
      "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
    );
    return waiting.length >= statements;
  });
}
