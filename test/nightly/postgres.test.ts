// Situations that only PostgreSQL can cause, and that take seconds or a separate server: locked books, TLS, other settings.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { get, type IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { after, before, describe, type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { exchange } from '../support/client.ts';
import { runCommand } from '../support/command.ts';
import { settle } from '../support/elsewhere.ts';
import { inTime } from '../support/in-time.ts';
import { connectTo, execute, freshDatabase, PostgresServer } from '../support/postgres.ts';
import { compose } from '../support/raw-requests.ts';
import { pathTo } from '../support/repository.ts';
import { type RunningService, startTestService } from '../support/service.ts';
import { holdBooks } from '../support/sql.ts';
import { waitUntil } from '../support/wait.ts';

/** Milliseconds between two rounds of requests that are repeated until something else ends. */
const REST = 50;

/** Milliseconds that a call may take, and that calls wait for a slow store before others are refused. */
const DEADLINE = 4500;
const PATIENCE = 2000;

/** What the log says of a start that waits. */
const WAITING = 'the start waits: other programs use the table of books, and it must be changed';

/** Connections that one process has for books that another program has locked, and connections of all kinds. */
const HELD_CONNECTIONS = 4;
const CONNECTIONS = 22;

describe('PostgreSQL', { concurrency: true }, () => {
  describe('a book that another program has locked', { concurrency: true }, () => {
    test('rules 9 and 23: delays only its own changes, which get 503 in the end', async (context) => {
      const { client, locker } = await startWithLocker(context);
      const held = await client.create({ title: 'held' });
      const free = await client.create({ title: 'free' });
      await locker.query('begin');
      await locker.query('select from books where id = $1 for update', [held.id]);

      let ended = 0;
      const stuck = Promise.all(
        [
          client.request('PUT', `/book/${held.id}`, { body: { author: 'x' } }),
          client.request('DELETE', `/book/${held.id}`),
        ].map((answer) =>
          answer.finally(() => {
            ended += 1;
          }),
        ),
      );
      // Neighbours in the same batches and in all that follow, until the held ones are given up.
      let answered = 0;
      for (let year = 1; ended < 2; year += 1) {
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
      assert.deepEqual((await client.request('GET', `/book/${held.id}`)).data, held);
    });

    test('rule 9: changes that wait for a lock are applied in order once it is released, or get 404', async (context) => {
      const { client, locker, dbUrl } = await startWithLocker(context);
      await inTime(DEADLINE, async (startClock) => {
        const { id } = await client.create({ title: 'held' });
        const doomed = await client.create({ title: 'doomed' });
        const gone = await client.create({});
        await locker.query('rollback; begin');
        startClock();
        await locker.query('update books set author = $1', ['the locker']);
        await locker.query('delete from books where id = $1', [gone.id]);

        const fields = [{ title: 'a' }, { year: 1 }, { title: 'b' }, { year: 2 }];
        const updates = fields.map((body) => client.request('PUT', `/book/${id}`, { body }));
        const removals = [1, 2, 3].map(() => client.request('DELETE', `/book/${doomed.id}`));
        const late = ['PUT', 'DELETE'].map((method) =>
          client.request(method, `/book/${gone.id}`, { body: {} }),
        );
        assert.ok(await areWaiting(dbUrl, 4));
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
    });

    test('E3: a change on a condition waits for the lock alone, and is tested in the state after it', async (context) => {
      const { client, locker, dbUrl } = await startWithLocker(context);
      const create = async () => {
        const { data, headers } = await client.request('POST', '/book', { body: { title: 'held' } });
        const known = { 'if-match': headers.get('etag') ?? '' };
        const path = `/book/${data.id}`;
        return {
          path,
          change: (year: number) => client.request('PUT', path, { body: { year }, headers: known }),
          remove: () => client.request('DELETE', path, { headers: known }),
        };
      };
      await inTime(DEADLINE, async (startClock) => {
        const [same, changed, removed, free] = [
          await create(),
          await create(),
          await create(),
          await create(),
        ];
        await locker.query('rollback; begin');
        startClock();
        await locker.query("update books set author = 'the locker' where id = $1", [idIn(changed.path)]);
        await locker.query('delete from books where id = $1', [idIn(removed.path)]);
        await locker.query('select from books where id = $1 for update', [idIn(same.path)]);

        const answers = [
          same.change(1),
          same.change(2),
          changed.change(1),
          changed.remove(),
          removed.change(1),
        ];
        assert.equal((await free.change(1)).status, 200);
        assert.equal((await free.remove()).status, 412);
        assert.ok(await areWaiting(dbUrl, 3));
        await locker.query('commit');

        const statuses = await Promise.all(answers.map(async (answer) => (await answer).status));
        assert.deepEqual(statuses, [200, 412, 412, 412, 404]);
        assert.equal((await client.request('GET', same.path)).data.year, 1);
        assert.equal((await client.request('GET', changed.path)).data.author, 'the locker');
      });
    });

    test('E3 and rule 23: a change on a condition whose book stays locked gets 503, and is not carried out later', async (context) => {
      const { client, locker } = await startWithLocker(context);
      const { data: book, headers } = await client.request('POST', '/book', { body: {} });
      const known = { 'if-match': headers.get('etag') ?? '' };
      await locker.query('begin');
      await locker.query('select from books where id = $1 for update', [book.id]);
      const answers = [
        client.request('PUT', `/book/${book.id}`, { body: { year: 1 }, headers: known }),
        client.request('DELETE', `/book/${book.id}`, { headers: known }),
      ];
      for (const answer of answers) assert.equal((await answer).status, 503);
      await locker.query('commit');
      // The last statement of the service for this book has ended, and nothing follows.
      assert.equal((await client.request('PUT', `/book/${book.id}`, { body: {} })).status, 200);
      assert.deepEqual((await client.request('GET', `/book/${book.id}`)).data, book);
    });

    test('rule 23: waiting for a lock does not count as a slow store: no change of the book is refused for it', async (context) => {
      const { client, locker, dbUrl } = await startWithLocker(context);
      const another = await connectTo(context, dbUrl);
      const { id } = await client.create({});
      const change = async () => (await client.request('PUT', `/book/${id}`, { body: { year: 1 } })).status;
      await inTime(DEADLINE, async (startClock) => {
        await another.query('rollback');
        await locker.query('rollback; begin; update books set year = 2');
        startClock();
        const began = performance.now();
        const first = change();
        await areWaiting(dbUrl, 1);
        const lockedAgain = another.query('begin; update books set year = 3');
        await areWaiting(dbUrl, 2);
        const second = change();
        await waitUntil(() => performance.now() - began > PATIENCE);
        await locker.query('commit');
        assert.equal(await first, 200);
        await lockedAgain;
        await areWaiting(dbUrl, 1); // the second one
        const others = [change(), change(), change()];
        await pause(REST); // a refusal would come at once
        await another.query('commit');
        assert.deepEqual(await Promise.all([second, ...others]), [200, 200, 200, 200]);
      });
    });

    test('rule 23: after its 503, a change that waited behind another one does not undo a newer one', async (context) => {
      const { client, locker, dbUrl } = await startWithLocker(context);
      const { id } = await client.create({ title: 'old' });
      const change = async (title: string) => {
        return (await client.request('PUT', `/book/${id}`, { body: { title } })).status;
      };
      let wasSent = false; // on a busy machine, the time of the second change is over before its turn
      while (!wasSent) {
        await locker.query('begin');
        await locker.query('select from books for update');
        const first = change('older');
        await areWaiting(dbUrl, 1);
        let isAnswered = false;
        const second = change('also old').finally(() => {
          isAnswered = true;
        });
        assert.equal(await first, 503);
        await waitUntil(async () => {
          wasSent = (await waitingStatements(dbUrl)).length === 1;
          return wasSent || isAnswered;
        });
        assert.equal(await second, 503);
        await locker.query("update books set title = 'newer'");
        await locker.query('commit');
      }
      // The service sends no more, and the table is free once every statement that was sent has ended.
      assert.equal((await client.request('PUT', `/book/${id}`, { body: {} })).status, 200);
      await locker.query('begin; lock table books; commit');
      assert.equal((await client.request('GET', `/book/${id}`)).data.title, 'newer');
    });

    test('a change that never got its lock costs no connection', async (context) => {
      const { client, locker, dbUrl } = await startWithLocker(context);
      const { id } = await client.create({});
      await locker.query('begin; update books set year = 2');
      const pids: number[] = [];
      while (pids.length < 2) {
        let isAnswered = false;
        const change = client.request('PUT', `/book/${id}`, { body: { year: 1 } }).finally(() => {
          isAnswered = true;
        });
        let pid: number | undefined;
        await waitUntil(async () => {
          pid = (await waitingStatements(dbUrl))[0]?.pid;
          return isAnswered || pid !== undefined;
        });
        if (pid !== undefined) {
          pids.push(pid);
          await execute(dbUrl, `select pg_cancel_backend(${pid})`);
        }
        assert.equal((await change).status, 503);
      }
      assert.equal(pids[0], pids[1]);
    });

    test('rule 23: changes of a hundred such books get 503 in the end, new books are stored meanwhile, no transaction stays open', async (context) => {
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
          const areHeld = (await waitingStatements(dbUrl)).length >= HELD_CONNECTIONS;
          await client.create({});
          if (areHeld && ended === 0) stored += 1;
          await pause(REST);
        }
        assert.deepEqual(new Set(await Promise.all(changes)), new Set([503]));
      }
      assert.ok(stored > 0, 'no new book was stored before the changes ended');
      await waitUntil(async () => {
        const sessions = await execute<{ state: string }>(
          dbUrl,
          `select state from pg_stat_activity
         where application_name = 'book-catalogue' and datname = current_database()`,
        );
        return sessions.length <= CONNECTIONS && sessions.every(({ state }) => state === 'idle');
      });
      await locker.query('commit');
      assert.equal(
        (await client.request('PUT', `/book/${books[0]?.id}`, { body: { year: 2 } })).data.year,
        2,
      );
    });

    test('rule 23: once a table that was locked as a whole is free, no request is refused', async (context) => {
      const service = await start(context);
      const { id } = await service.client.create({ year: 1 });
      const release = await holdBooks(service.dbUrl);
      assert.equal((await service.client.request('GET', `/book/${id}`)).status, 503); // alone, after seconds
      await release();
      const read = compose('GET', `/book/${id}`, service.client);
      const answers = await exchange(service, read.repeat(32), 32); // all of them at once
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
    });

    test('rule 23: requests to a table locked as a whole get 503 and change nothing; afterwards requests succeed', async (context) => {
      const { client, locker } = await startWithLocker(context);
      const { id } = await client.create({ title: 'here' });
      await locker.query('begin; lock table books in access exclusive mode');
      const answers = await Promise.all([
        client.request('POST', '/book', { body: {} }),
        client.request('GET', '/books'),
        client.request('GET', `/book/${id}`),
        client.request('PUT', `/book/${id}`, { body: { title: 'x' } }),
        client.request('DELETE', `/book/${id}`),
      ]);
      for (const { status, message } of answers) {
        assert.deepEqual([status, message], [503, 'Service unavailable']);
      }
      await locker.query('commit');
      assert.deepEqual(await client.list(), [{ id, title: 'here', author: '', year: 0 }]);
    });
  });

  describe('a transaction that the server aborts', { concurrency: 2 }, () => {
    test('rule 9: is retried if another one changed its book', async (context) => {
      const { client, locker, dbUrl } = await startWithLocker(context, 'serializable');
      await inTime(DEADLINE, async (startClock) => {
        const { id } = await client.create({ title: 'held' });
        const doomed = await client.create({ title: 'doomed' });
        await locker.query('rollback; begin');
        startClock();
        await locker.query('update books set author = $1', ['the locker']);
        const update = client.request('PUT', `/book/${id}`, { body: { year: 1 } });
        const removal = client.request('DELETE', `/book/${doomed.id}`);
        assert.ok(await areWaiting(dbUrl, 2));
        await locker.query('commit'); // from here on, both are serialization failures
        const changed = { id, title: 'held', author: 'the locker', year: 1 };
        assert.deepEqual((await update).data, changed);
        assert.equal((await removal).status, 200);
        assert.deepEqual((await client.request('GET', `/book/${id}`)).data, changed);
        assert.equal((await client.request('GET', `/book/${doomed.id}`)).status, 404);
      });
    });
  });

  test('rule 11: of removals of one book that meet in a batch exactly one gets 200', async (context) => {
    const dbUrl = await freshDatabase();
    const { client } = await start(context, dbUrl);
    await execute(
      dbUrl,
      `create function slow() returns trigger language plpgsql as
         $$ begin if old.title = 'slow' then perform pg_sleep(1); end if; return old; end $$;
       create trigger slow before delete on books for each row execute function slow()`,
    );
    const slow = await client.create({ title: 'slow' });
    const { id } = await client.create({});
    const remove = async (book: number) => (await client.request('DELETE', `/book/${book}`)).status;
    const first = remove(slow.id); // the others gather behind it
    const others = await Promise.all(Array.from({ length: 8 }, () => remove(id)));
    assert.equal(await first, 200);
    assert.deepEqual(others.toSorted(), [200, 404, 404, 404, 404, 404, 404, 404]);
  });

  test('rule 23: an acknowledged write is on disk even if the server has synchronous_commit off', async (context) => {
    const server = await PostgresServer.start(['synchronous_commit=off', 'wal_writer_delay=10s']);
    context.after(() => server.remove());
    const service = await startTestService(server.url());
    context.after(() => service.stop());
    const { client } = service;
    await execute(server.url(), 'checkpoint'); // the table itself is on disk
    const kept = await client.create({ title: 'kept' });
    const changed = await client.create({ title: 'changed' });
    const removed = await client.create({});
    await client.request('PUT', `/book/${changed.id}`, { body: { year: 1 } });
    const held = await client.create({});
    await client.request('DELETE', `/book/${removed.id}`);
    await server.kill('SIGQUIT'); // at once, as if the machine had lost its power
    await server.startAgain();
    const statusOf = async (id: number) => (await client.request('GET', `/book/${id}`)).status;
    await waitUntil(async () => (await statusOf(kept.id)) !== 503);
    assert.deepEqual(await Promise.all([kept.id, removed.id, held.id].map(statusOf)), [200, 404, 200]);
    assert.equal((await client.request('GET', `/book/${changed.id}`)).data.year, 1);
  });

  describe('the structure', { concurrency: 2 }, () => {
    test('rule 27: a start that must change the table waits for a list and a dump, and says so; others go on', async (context) => {
      const dbUrl = await freshDatabase();
      const { client, url } = await start(context, dbUrl);
      await makeOlder(dbUrl);
      await execute(
        dbUrl,
        "insert into books (title) select repeat('x', 1000000) from generate_series(1, 30)", // more than is buffered
      );
      const book = await client.create({ title: 'Emma' });
      const list = await fetch(`${url}/books`, { headers: { authorization: client.token } });
      const dump = await beginDump(context, dbUrl);
      const log: string[] = [];
      const starting = startTestService(dbUrl, { LOG_LEVEL: 'warn' }, { write: (line) => log.push(line) });
      const isWaiting = () => log.some((line) => JSON.parse(line).msg === WAITING);
      starting.then(
        ({ stop }) => context.after(stop),
        (error) => log.push(JSON.stringify({ msg: WAITING, error })),
      );
      while (!isWaiting()) {
        assert.deepEqual((await client.request('GET', `/book/${book.id}`)).data, book);
        assert.equal((await client.request('PUT', `/book/${book.id}`, { body: {} })).status, 200);
        await pause(REST);
      }
      await dump.end();
      await list.body?.cancel();
      const author = 'a'.repeat(100);
      assert.equal((await (await starting).client.create({ author })).author, author);
    });
  });

  test('settings of a database that suit other programs change no answer, and end no list', async (context) => {
    const dbUrl = await freshDatabase();
    await (await startTestService(dbUrl)).stop();
    await execute(
      dbUrl,
      "insert into books (title, author) select repeat('x', 1000000), 'somebody' from generate_series(1, 20)",
    );
    await settle(dbUrl);
    const service = await start(context, dbUrl);
    const { client } = service;
    const book = await client.create({ title: 'Emma', author: 'Jane Austen', year: 1 });
    const changed = { ...book, year: 1815 };
    assert.deepEqual(
      (await client.request('PUT', `/book/${book.id}`, { body: { year: 1815 } })).data,
      changed,
    );
    assert.deepEqual((await client.request('GET', `/book/${book.id}`)).data, changed);
    const keyed = { body: { title: 'keyed' }, headers: { 'idempotency-key': '"NULL"' } };
    const [one, again] = [
      await client.request('POST', '/book', keyed),
      await client.request('POST', '/book', keyed),
    ];
    assert.equal(again.data.id, one.data.id);
    assert.notEqual((await client.create({ title: 'keyed' })).id, one.data.id);

    const request = get(`${service.url}/books`, { headers: { authorization: client.token } });
    const [list] = (await once(request, 'response')) as [IncomingMessage];
    await waitUntil(async () => {
      const slow = await execute(
        dbUrl,
        `select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
           and state = 'active' and query like '%copy%' and clock_timestamp() - query_start > '1 s'`,
      );
      return slow.length === 1;
    });
    const { data } = (await json(list)) as { data: unknown[] };
    assert.equal(data.length, 23);
    assert.equal((await runCommand(['export'], { DB_URL: dbUrl })).stdout.split('\n').length, 25);
  });

  describe('rule 26: TLS by sslmode', { concurrency: 2 }, () => {
    const certificate = (name: string) => pathTo(`test/fixtures/tls/${name}`);
    const authority = `sslrootcert=${encodeURIComponent(certificate('authority.crt'))}`;
    const stranger = `sslrootcert=${encodeURIComponent(certificate('stranger.crt'))}`;
    let server: PostgresServer;
    /** A database of a server without TLS. */
    let plainUrl: string;

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
      const settings = ['ssl=on', 'ssl_cert_file=server.crt', 'ssl_key_file=server.key'];
      [server, plainUrl] = await Promise.all([PostgresServer.start(settings, files), freshDatabase()]);
      await execute(server.url(), 'create database tls_only');
      await execute(server.url(), 'create database plain_only');
    });
    after(() => server.remove());

    const works: [title: string, url: () => string, encrypted: boolean][] = [
      ['disable', () => server.url('postgres', 'sslmode=disable'), false],
      ['allow', () => server.url('postgres', 'sslmode=allow'), false],
      ['allow, where only TLS is accepted', () => server.url('tls_only', 'sslmode=allow'), true],
      ['no sslmode', () => server.url(), true],
      ['no sslmode, to a server without TLS', () => plainUrl, false],
      ['prefer', () => server.url('postgres', 'sslmode=prefer'), true],
      ['prefer, where only plain text is accepted', () => server.url('plain_only', 'sslmode=prefer'), false],
      ['require', () => server.url('postgres', 'sslmode=require'), true],
      [
        'require, with the right authority',
        () => server.url('postgres', `sslmode=require&${authority}`),
        true,
      ],
      ['verify-ca, under a wrong name', () => server.url('postgres', `sslmode=verify-ca&${authority}`), true],
      ['verify-full', () => byName(server.url('postgres', `sslmode=verify-full&${authority}`)), true],
    ];
    for (const [number, [title, urlOf, encrypted]] of works.entries()) {
      test(`${title}: works ${encrypted ? 'with' : 'without'} TLS`, async (context) => {
        const name = `tls_${number}`; // distinguishes its sessions from those of the other tests
        const url = urlOf();
        const { client } = await start(context, withParameters(url, `application_name=${name}`));
        const book = await client.create({ title });
        assert.ok((await client.list()).some(({ id }) => id === book.id));
        const sessions = await execute<{ ssl: boolean }>(
          url === plainUrl ? plainUrl : server.url(),
          `select ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = '${name}'`,
        );
        assert.ok(sessions.length > 0);
        assert.ok(sessions.every(({ ssl }) => ssl === encrypted));
      });
    }

    const refused: [title: string, url: () => string][] = [
      ['disable, where only TLS is accepted', () => server.url('tls_only', 'sslmode=disable')],
      ['require, to a server without TLS', () => withParameters(plainUrl, 'sslmode=require')],
      ['require, where only plain text is accepted', () => server.url('plain_only', 'sslmode=require')],
      ['require, with a wrong authority', () => server.url('postgres', `sslmode=require&${stranger}`)],
      ['verify-ca, with a wrong authority', () => server.url('postgres', `sslmode=verify-ca&${stranger}`)],
      ['verify-ca, without an authority', () => server.url('postgres', 'sslmode=verify-ca')],
      ['verify-full, under a wrong name', () => server.url('postgres', `sslmode=verify-full&${authority}`)],
      [
        'verify-full, with a wrong authority',
        () => byName(server.url('postgres', `sslmode=verify-full&${stranger}`)),
      ],
      ['the authorities of the system, without a mode', () => server.url('postgres', 'sslrootcert=system')],
      [
        'the authorities of the system, with a weaker mode',
        () => server.url('postgres', 'sslmode=require&sslrootcert=system'),
      ],
      ['a parameter that would disable it', () => server.url('postgres', 'sslmode=require&ssl=0')],
      ['a misspelt parameter', () => server.url('postgres', 'SSLMODE=require')],
      [
        'a file that does not exist',
        () => server.url('postgres', 'sslmode=verify-full&sslrootcert=nowhere.crt'),
      ],
    ];
    for (const [title, url] of refused) {
      test(`${title}: is refused`, async () => {
        await assert.rejects(
          startTestService(url()),
          /^Error: DB_URL: postgres:\/\/[^@]* cannot be opened: /,
        );
      });
    }

    test('rule 27: if TLS is optional, a refusal does not mention that the server has none', async () => {
      const url = new URL('/nowhere', plainUrl);
      const refusal =
        /^Error: DB_URL: postgres:[^ ]* cannot be opened: database "nowhere" does not exist: create it first\.$/;
      await assert.rejects(startTestService(url.href), refusal);
    });

    /** The certificate names localhost only. */
    function byName(url: string): string {
      return url.replace('127.0.0.1', 'localhost');
    }

    function withParameters(url: string, parameters: string): string {
      return `${url}${url.includes('?') ? '&' : '?'}${parameters}`;
    }
  });
});

/** Gives the table the structure of an older version, which services continue to use. */
async function makeOlder(dbUrl: string): Promise<void> {
  await execute(dbUrl, 'alter table books alter column author type varchar(40)');
}

/** Reads the table as pg_dump does, in a transaction that stays open. */
async function beginDump(context: TestContext, dbUrl: string): Promise<pg.Client> {
  const dump = await connectTo(context, dbUrl);
  await dump.query('begin isolation level repeatable read read only; lock table books in access share mode');
  await dump
    .query(copyTo('copy books to stdout'))
    .resume()
    .once('end', () => {});
  return dump;
}

/** The id in the path of a book. */
function idIn(path: string): number {
  return Number(path.slice('/book/'.length));
}

/** Starts a service that stops at the end of the test, on a new database unless one is given. */
async function start(context: TestContext, dbUrl?: string): Promise<RunningService> {
  const service = await startTestService(dbUrl ?? (await freshDatabase()));
  context.after(() => service.stop());
  return service;
}

/**
 * Starts a service, and connects another program that may lock its books; both end with the test.
 * @param isolation level of the transactions of both.
 */
async function startWithLocker(context: TestContext, isolation = 'read committed') {
  const dbUrl = await freshDatabase();
  const name = new URL(dbUrl).pathname.slice(1);
  await execute(dbUrl, `alter database ${name} set default_transaction_isolation = '${isolation}'`);
  const { client } = await start(context, dbUrl);
  const locker = await connectTo(context, dbUrl);
  return { client, dbUrl, locker };
}

/**
 * Waits until at least so many statements wait for a lock.
 * @returns whether they do: on a machine that is too slow, calls are given up before they are seen to wait.
 */
async function areWaiting(dbUrl: string, statements: number): Promise<boolean> {
  const began = performance.now();
  let are = false;
  await waitUntil(async () => {
    are = (await waitingStatements(dbUrl)).length >= statements;
    return are || performance.now() - began > DEADLINE;
  });
  return are;
}

/** Statements that wait for a lock. */
function waitingStatements(dbUrl: string): Promise<{ readonly pid: number }[]> {
  return execute(
    dbUrl,
    "select pid from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
  );
}
