// How the service comes and goes: restarts, sudden deaths, orderly ends, and several at once. The real
// command in processes of its own, on every store.

import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import pg from 'pg';
import { accepts, parseAnswers, type RawAnswer, type Target } from '../support/client.ts';
import { Ledger } from '../support/ledger.ts';
import { execute } from '../support/postgres.ts';
import {
  ENVIRONMENT,
  fileOf,
  type ServiceProcess,
  STORES,
  spawnService,
  startServiceProcess,
} from '../support/service.ts';
import { dieYoung, examine, liveAndDie } from '../support/sudden-death.ts';
import { waitUntil } from '../support/wait.ts';

// The stores side by side, since each has a test that waits for many seconds; of the others a few at a time.
describe('lifecycle', { concurrency: STORES.length, timeout: 240_000 }, () => {
  for (const store of STORES) {
    for (const workers of ['1', '2']) {
      const name = `on ${store.name}, WORKERS=${workers}`;
      describe(name, { concurrency: 3 }, () => testLifecycle(store, workers));
    }
  }
});

function testLifecycle(store: (typeof STORES)[number], workers: string): void {
  const isSqlite = store.name === 'SQLite';

  /** Starts the real command; whatever becomes of it, it is gone when the test is. */
  async function start(
    context: TestContext,
    dbUrl: string,
    env: Record<string, string> = {},
  ): Promise<ServiceProcess> {
    const service = await startServiceProcess(dbUrl, { WORKERS: workers, ...env });
    context.after(() => kill(service.process));
    return service;
  }

  test('rule 27: SIGTERM ends it within 10 s whoever hangs on to it', async (context) => {
    const service = await start(context, await store.freshUrl());
    await addBigBooks(service.dbUrl);
    const { token } = service.client;
    await dial(context, service); // idle
    const mute = connect(service.port, '127.0.0.1'); // never says anything
    mute.on('error', () => {});
    context.after(() => mute.destroy());
    const halfHead = await dial(context, service);
    halfHead.socket.write('GET /books HTTP/1.1\r\nHost: x\r\n');
    const halfBody = await dial(context, service);
    halfBody.socket.write(`${head('POST', '/book', token, 1000)}{"title":`);
    const stalled = connect(service.port, '127.0.0.1');
    stalled.on('error', () => {});
    context.after(() => stalled.destroy());
    stalled.write(head('GET', '/books', token));
    await once(stalled, 'readable'); // the list has begun, and nobody reads it
    await service.client.request('GET', '/book/1'); // by now all of it has arrived
    await endsWell(service, 'SIGTERM');
  });

  test('rule 27: a second signal ends it at once', async (context) => {
    const service = await start(context, await store.freshUrl());
    const halfHead = await dial(context, service);
    halfHead.socket.write('GET /books HTTP/1.1\r\n');
    await service.client.request('GET', '/book/1');
    service.process.kill('SIGINT');
    await waitUntil(() => isStopping(service));
    const ended = once(service.process, 'exit');
    await waitUntil(() => {
      service.process.kill('SIGINT'); // one that comes soon is taken for the first one
      return service.process.signalCode !== null;
    });
    await ended;
    assert.equal(service.process.signalCode, 'SIGINT');
  });

  test('rule 27: one Ctrl-C that comes as two signals ends it well', async (context) => {
    const service = await start(context, await store.freshUrl());
    service.process.kill('SIGINT');
    await waitUntil(() => isStopping(service));
    service.process.kill('SIGINT');
    await once(service.process, 'exit');
    assert.equal(service.process.exitCode, 0);
  });

  test('rule 27: what is under way at SIGTERM is stored and answered; nobody new is let in', async (context) => {
    const service = await start(context, await store.freshUrl());
    const { token } = service.client;
    const clients = await Promise.all(Array.from({ length: 60 }, () => dial(context, service)));

    const letWritesGo = await holdWrites(service.dbUrl);
    const titles = clients.map((_, position) => `book ${position}`);
    clients.forEach(({ socket }, position) => {
      const body = JSON.stringify({ title: titles[position] });
      socket.write(head('POST', '/book', token, body.length) + body);
    });
    await service.client.request('GET', '/book/1'); // by now all of them have arrived
    const end = endsWell(service, 'SIGTERM');
    await waitUntil(() => isStopping(service));
    await waitUntil(async () => !(await accepts('127.0.0.1', service.port)));
    await letWritesGo();
    await end;

    await waitUntil(() => clients.every(({ socket }) => socket.closed));
    for (const { answers } of clients) {
      const [created] = answers();
      assert.equal(created?.status, 201);
      assert.equal(created?.headers.connection, 'close');
    }
    const again = await start(context, service.dbUrl);
    const stored = (await again.client.list()).map(({ title }) => title);
    assert.deepEqual(stored.sort(), titles.sort());
  });

  test('rule 27: requests behind each other on a connection are all answered at SIGTERM', async (context) => {
    const service = await start(context, await store.freshUrl());
    const { token } = service.client;
    const clients = await Promise.all(Array.from({ length: 20 }, () => dial(context, service)));
    const letWritesGo = await holdWrites(service.dbUrl);
    clients.forEach(({ socket }, position) => {
      const requests = [1, 2, 3].map((count) => {
        const body = JSON.stringify({ title: `${position}/${count}` });
        return head('POST', '/book', token, body.length) + body;
      });
      socket.write(requests.join(''));
    });
    await service.client.request('GET', '/book/1'); // by now all of them have arrived
    const end = endsWell(service, 'SIGTERM');
    await waitUntil(() => isStopping(service));
    await waitUntil(async () => !(await accepts('127.0.0.1', service.port)));
    await letWritesGo();
    await end;
    await waitUntil(() => clients.every(({ socket }) => socket.closed));
    clients.forEach(({ answers }, position) => {
      const titles = answers().map(({ status, body }) => [status, JSON.parse(body).data.title]);
      assert.deepEqual(
        titles,
        [1, 2, 3].map((count) => [201, `${position}/${count}`]),
      );
      assert.equal(answers().at(-1)?.headers.connection, 'close');
    });
  });

  test('rule 27: under fire at SIGINT, what is stored is answered and what is answered is stored', async (context) => {
    const service = await start(context, await store.freshUrl());
    const answered: string[] = [];
    let end: Promise<void> | undefined;
    const writers = Array.from({ length: 64 }, async (_, writer) => {
      for (let count = 0; ; count += 1) {
        const title = `${writer}/${count}`;
        const outcome = await service.client
          .request('POST', '/book', { body: { title } })
          .catch((error: unknown) => {
            if (error instanceof TypeError) return undefined; // how fetch says that the connection is gone
            throw error;
          });
        if (outcome === undefined) return;
        assert.equal(outcome.status, 201);
        answered.push(title);
        if (answered.length === 300) end = endsWell(service, 'SIGINT');
      }
    });
    await Promise.all(writers);
    await end;

    const again = await start(context, service.dbUrl);
    const stored = (await again.client.list()).map(({ title }) => title);
    assert.deepEqual(stored.sort(), answered.sort());
  });

  test('rule 27: requests completed after SIGTERM are answered and told that the connection closes', async (context) => {
    const service = await start(context, await store.freshUrl());
    const { token } = service.client;
    const { id } = await service.client.create({ title: 'before' });
    const login = '{"username":"librarian","password":"correct horse"}';
    const asked: [text: string, status: number][] = [
      [head('GET', `/book/${id}`, token), 200],
      [head('GET', '/books', token), 200],
      [head('HEAD', '/books', token), 200],
      [head('POST', '/token', '', login.length) + login, 200],
      [`${head('POST', '/book', token, 2)}{}`, 201],
      [`${head('PUT', `/book/${id}`, token, 2)}{}`, 200],
      [`${head('PUT', `/book/${id}`, token, 2)}[]`, 400],
      [head('DELETE', `/book/${id + 1000}`, token), 404],
      [head('GET', '/books', 'no token'), 401],
      [head('GET', '/nowhere', token), 404],
      [head('PATCH', '/books', token), 405],
      [head('GET', '/book/%zz', token), 400],
    ];
    const clients = await Promise.all(asked.map(() => dial(context, service)));
    asked.forEach(([text], position) => {
      clients[position]?.socket.write(text.slice(0, -1));
    });
    await service.client.request('GET', '/nowhere'); // by now all of them have arrived
    const end = endsWell(service, 'SIGTERM');
    await waitUntil(async () => !(await accepts('127.0.0.1', service.port))); // every worker has heard of it
    asked.forEach(([text], position) => {
      clients[position]?.socket.write(text.slice(-1));
    });
    await end;
    await waitUntil(() => clients.every(({ socket }) => socket.closed));
    asked.forEach(([text, status], position) => {
      const [answer] = clients[position]?.answers() ?? [];
      assert.equal(answer?.status, status, text);
      assert.equal(answer?.headers.connection, 'close', text);
    });
  });

  test('rule 27: a long answer is not cut off by SIGTERM while its reader is slow', async (context) => {
    const service = await start(context, await store.freshUrl(), { BODY_LIMIT: String(20_000_000) });
    const title = 'x'.repeat(16_000_000);
    const book = await service.client.create({ title });
    const socket = connect(service.port, '127.0.0.1');
    context.after(() => socket.destroy());
    socket.write(head('GET', `/book/${book.id}`, service.client.token));
    await once(socket, 'readable'); // the answer has begun, and nobody reads it yet
    const end = endsWell(service, 'SIGTERM');
    await waitUntil(() => isStopping(service));
    await waitUntil(async () => !(await accepts('127.0.0.1', service.port)));
    const chunks: Buffer[] = [];
    for await (const chunk of socket) chunks.push(chunk);
    const [answer] = parseAnswers(Buffer.concat(chunks).toString('latin1'));
    assert.equal(answer?.status, 200);
    assert.equal(JSON.parse(answer.body).data.title.length, title.length);
    await end;
  });

  test('rule 12: a restart keeps every book and gives no id out again, the newest one’s included', async (context) => {
    const first = await start(context, await store.freshUrl());
    const books = await Promise.all(
      Array.from({ length: 20 }, (_, year) => first.client.create({ title: `book ${year}`, year })),
    );
    const newest = books.toSorted((one, other) => other.id - one.id).slice(0, 5);
    for (const { id } of newest) await first.client.request('DELETE', `/book/${id}`);
    const [oldest] = await first.client.list();
    await first.client.request('PUT', `/book/${oldest?.id}`, { body: { author: 'known by now' } });
    const kept = await first.client.list();
    assert.equal(kept.length, 15);
    await endsWell(first, 'SIGTERM');

    const second = await start(context, first.dbUrl);
    assert.deepEqual(await second.client.list(), kept);
    const { id } = await second.client.create({});
    assert.ok(id > Number(newest[0]?.id), `${id} after ${newest[0]?.id}`);
  });

  const lives = isSqlite ? 4 : 3;
  test(`rules 9, 12 and 23: ${2 * lives} sudden deaths, of starts and under 8 writers, lose nothing`, async (context) => {
    const dbUrl = await store.freshUrl();
    const ledger = new Ledger();
    for (let life = 0; life < lives; life += 1) {
      const ready = await liveAndDie(() => start(context, dbUrl), ledger);
      await dieYoung({ ...ENVIRONMENT, DB_URL: dbUrl, WORKERS: workers }, ready);
      if (!isSqlite) await waitUntil(async () => (await othersOn(dbUrl)) === 0); // its last statements are done
    }
    await examine(await start(context, dbUrl), ledger);
    assert.ok(ledger.acknowledged > 0);
  });

  test('rule 27: two that start at once on an empty store share it, five times over', async (context) => {
    for (let round = 0; round < 5; round += 1) {
      const dbUrl = await store.freshUrl();
      const starts = await Promise.allSettled([start(context, dbUrl), start(context, dbUrl)]);
      const services = starts.map((outcome) => {
        if (outcome.status === 'rejected') throw outcome.reason;
        return outcome.value;
      });
      const created = await Promise.all(
        Array.from({ length: 20 }, (_, year) => services[year % 2]?.client.create({ year })),
      );
      const ids = new Set(created.map((book) => book?.id));
      assert.equal(ids.size, 20);
      for (const { client } of services) {
        const listed = await client.list();
        assert.deepEqual(
          listed,
          created.toSorted((one, other) => Number(one?.id) - Number(other?.id)),
        );
      }
      for (const { process } of services) process.kill('SIGKILL');
    }
  });

  if (!isSqlite) {
    test('rule 27: one that comes second with the structure finds it there', async (context) => {
      const dbUrl = await store.freshUrl();
      const first = new pg.Client({ connectionString: dbUrl });
      await first.connect();
      context.after(() => first.end());
      await first.query(`
        begin;
        create sequence books_id_seq;
        create table books (
          id bigint primary key default nextval('books_id_seq'),
          title text not null, author text not null, year bigint not null
        )`);
      const second = start(context, dbUrl);
      await waitUntil(async () => {
        const { rowCount } = await first.query(
          'select from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))',
        );
        return rowCount === 1; // it waits for what becomes of the first
      });
      await first.query('commit');
      const { client } = await second;
      assert.deepEqual(await client.list(), []);
      await client.create({});
    });
  }

  test('rules 9 and 11: two on one store see each other’s writes at once and lose none', async (context) => {
    const dbUrl = await store.freshUrl();
    const one = await start(context, dbUrl);
    const other = await start(context, dbUrl);
    const kept = await Promise.all(
      Array.from({ length: 16 }, async (_, writer) => {
        const [here, there] = writer % 2 === 0 ? [one.client, other.client] : [other.client, one.client];
        for (let round = 0; ; round += 1) {
          const { id } = await here.create({ title: `${writer}/${round}` });
          assert.equal((await there.request('GET', `/book/${id}`)).data.title, `${writer}/${round}`);
          // Different fields of one book, from both sides at once: both survive.
          await Promise.all([
            here.request('PUT', `/book/${id}`, { body: { author: 'here' } }),
            there.request('PUT', `/book/${id}`, { body: { year: round } }),
          ]);
          const book = { id, title: `${writer}/${round}`, author: 'here', year: round };
          assert.deepEqual((await here.request('GET', `/book/${id}`)).data, book);
          if (round === 5) return book;
          const removals = await Promise.all(
            [here, there].map((client) => client.request('DELETE', `/book/${id}`)),
          );
          assert.deepEqual(removals.map(({ status }) => status).sort(), [200, 404]);
          assert.equal((await there.request('GET', `/book/${id}`)).status, 404);
        }
      }),
    );
    kept.sort((a, b) => a.id - b.id);
    assert.deepEqual(await one.client.list(), kept);
    assert.deepEqual(await other.client.list(), kept);
  });

  test('rule 27: a second one on the same port is refused by name, and the first goes on', async (context) => {
    const first = await start(context, await store.freshUrl());
    const env = { ...ENVIRONMENT, PORT: String(first.port), DB_URL: first.dbUrl };
    const second = spawnService(env);
    context.after(() => kill(second));
    let stderr = '';
    second.stderr?.on('data', (chunk) => {
      stderr += chunk;
    });
    const [code] = await once(second, 'close');
    assert.notEqual(code, 0);
    assert.match(stderr, new RegExp(`^[^\\n]*\\bPORT ${first.port}\\b[^\\n]*\\n$`));
    const book = await first.client.create({ title: 'still here' });
    assert.deepEqual(await first.client.list(), [book]);
  });
}

function kill(child: ChildProcess): void {
  child.kill('SIGKILL');
}

/** Sends the signal; the process must end with 0 within 10 s. */
async function endsWell({ process }: ServiceProcess, signal: NodeJS.Signals): Promise<void> {
  process.kill(signal);
  const [code] = await once(process, 'exit', { signal: AbortSignal.timeout(10_000) });
  assert.equal(code, 0);
}

function isStopping({ log }: ServiceProcess): boolean {
  return log.some((line) => JSON.parse(line).msg === 'stopping');
}

interface Dialogue {
  readonly socket: Socket;
  answers(): RawAnswer[];
}

/**
 * A connection to speak on, piece by piece. The service has let it in: an answer has come already, since
 * a service that stops lets go of those that still wait at its door.
 */
async function dial(context: TestContext, { port }: Target): Promise<Dialogue> {
  const socket = connect(port, '127.0.0.1');
  context.after(() => socket.destroy());
  let received = '';
  socket.setEncoding('latin1');
  socket.on('data', (text) => {
    received += text;
  });
  socket.on('error', () => {});
  socket.write(head('GET', '/nowhere', ''));
  const answers = () => parseAnswers(received);
  await waitUntil(() => answers().length === 1);
  return { socket, answers: () => answers().slice(1) };
}

function head(method: string, path: string, token: string, length?: number): string {
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: x', `Authorization: ${token}`];
  if (length !== undefined) lines.push(`Content-Length: ${length}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}

/** Books enough that no buffer on the way of a list takes them all. */
async function addBigBooks(dbUrl: string): Promise<void> {
  if (dbUrl.startsWith('sqlite:')) {
    const db = new DatabaseSync(pathOf(dbUrl));
    db.exec(`
      with recursive number (n) as (select 1 union all select n + 1 from number where n < 10000)
      insert into books (title) select printf('%.2000c', 'x') from number`);
    db.close();
  } else {
    await execute(dbUrl, "insert into books (title) select repeat('x', 2000) from generate_series(1, 10000)");
  }
}

/** Keeps the store from writing, as another program would, until the returned function is called. */
async function holdWrites(dbUrl: string): Promise<() => Promise<void>> {
  if (dbUrl.startsWith('sqlite:')) {
    const db = new DatabaseSync(pathOf(dbUrl));
    db.exec('begin immediate');
    return async () => db.close();
  }
  const client = new pg.Client({ connectionString: dbUrl });
  await client.connect();
  await client.query('begin; lock table books in exclusive mode');
  return () => client.end();
}

/** Connections to a database, other than the one that asks. */
async function othersOn(dbUrl: string): Promise<number> {
  const [row] = await execute<{ count: number }>(
    dbUrl,
    `select count(*)::int from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`,
  );
  return Number(row?.count);
}

function pathOf(dbUrl: string): string {
  return fileOf(dbUrl);
}
