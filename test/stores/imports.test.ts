// Imports by request: on every store, from several processes, and however they are interrupted. Titles name the rules of
// docs/contract.md.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { Answer } from '../../conformance/answers.ts';
import { Client } from '../support/client.ts';
import { command, folderWith, importing, manyRows } from '../support/importing.ts';
import { connectTo } from '../support/postgres.ts';
import {
  ENVIRONMENT,
  fileOf,
  POSTGRES,
  SQLITE,
  STORES,
  startCommand,
  startServiceProcess,
  startTestService,
  testOnPostgres,
} from '../support/service.ts';
import { executeOn } from '../support/sql.ts';
import { timesWith } from '../support/times.ts';
import { waitUntil } from '../support/wait.ts';

const FILE = `Name,Writer,When
Emma,Jane Austen,1815
Kim,Rudyard Kipling,1901-1902
Rob Roy,Walter Scott,MDCCCXVII
Emma,Jane Austen,1815
Ivanhoe,Walter Scott,19
Beowulf,,1000
`;

type Report = Answer['data'];

async function send(
  client: Client,
  path: string,
  file?: string,
  headers = {},
): Promise<[number, string, Report]> {
  const { status, message, data } = await client.request('POST', path, {
    headers,
    ...(file === undefined ? {} : { body: Buffer.from(file) }),
  });
  return [status, message, data];
}

const reportOf = async (client: Client, number: number): Promise<Report> =>
  (await client.request('GET', `/import/${number}`)).data;

const untilStored = (client: Client, number: number) =>
  waitUntil(
    async () => (await reportOf(client, number)).state === 'stored',
    undefined,
    () => reportOf(client, number),
  );

const SELECT = 'name=old.csv&title=Name&author=Writer&year=When';

const NO_ROWS = { new: [], here: [], doubtful: [], changed: [] };

for (const store of STORES) {
  describe(`imports on ${store.name}`, () => {
    test('rules M2, M3 and M6: a check stores nothing, and then its file is stored by its number, corrected', async () => {
      const { client } = await startTestService(await store.freshUrl());
      await client.create({ title: 'Beowulf', author: '', year: 1000 });
      const [status, message, { figures, ...report }] = await send(client, `/import?dry-run&${SELECT}`, FILE);
      assert.deepEqual([status, message, report.state, report.books], [200, 'File checked', 'checked', 0]);
      const { lacking, ...counts } = figures;
      const none = { short: 0, newYears: 0, changed: 0, changedSince: 0, conflicts: 0, absent: null };
      assert.deepEqual(counts, { rows: 6, new: 1, here: 1, repeated: 1, doubtful: 1, refused: 2, ...none });
      assert.deepEqual(lacking, { title: 0, author: 0, year: 0 });
      const emma = { title: 'Emma', author: 'Jane Austen', year: 1815, doubt: null };
      assert.deepEqual(report.rows, {
        new: [{ line: 2, ...emma }],
        here: [
          { line: 5, ...emma },
          { line: 7, title: 'Beowulf', author: '', year: 1000, doubt: null },
        ],
        doubtful: [{ line: 6, title: 'Ivanhoe', author: 'Walter Scott', year: 19, doubt: 'year-unlikely' }],
        changed: [],
      });
      const kim = { line: 3, title: 'Kim', column: 'When', text: '1901-1902', proposal: '1901' };
      const reason = { code: 'year-unclear', values: [] };
      const record = 'Kim,Rudyard Kipling,1901-1902,"When: cannot be read as a year"';
      assert.deepEqual(report.refused[0], { ...kim, reason, record });
      assert.equal(report.refused[1].proposal, '1817');
      const { names, columns, header, delimiter, encoding, ids } = report.file;
      assert.deepEqual(
        [names, header, delimiter, encoding, ids],
        [['Name', 'Writer', 'When'], true, ',', 'utf-8', 'new'],
      );
      assert.deepEqual(columns, { title: 'Name', author: 'Writer', year: 'When' });
      assert.equal((await client.list()).length, 1);

      const number = report.import;
      const again = await send(client, `/import/${number}?dry-run&year=`);
      assert.deepEqual([again[0], again[2].figures.refused, again[2].file.columns.year], [200, 0, null]);
      const corrections = encodeURIComponent('{"3":"1901","4":"in 1817"}');
      const stored = await send(
        client,
        `/import/${number}?year=When&doubtful=skip&corrections=${corrections}`,
      );
      assert.deepEqual(stored.slice(0, 2), [200, 'Books imported successfully']);
      assert.deepEqual([stored[2].state, stored[2].books, stored[2].figures.refused], ['stored', 2, 1]);
      const titles = (await client.list()).map(({ title, year }) => `${title} ${year}`);
      assert.deepEqual(titles, ['Beowulf 1000', 'Emma 1815', 'Kim 1901']);
      assert.deepEqual((await send(client, `/import/${number}`))[2], await reportOf(client, number));
      const undone = await client.request('POST', '/undo', { body: { event: number } });
      assert.equal(undone.data.undone, 2);
      assert.equal((await reportOf(client, number)).state, 'undone');
    });

    test('rule M3: without a column for the title, the columns and the first rows are named, and the line of a table', async () => {
      const { client } = await startTestService(await store.freshUrl());
      for (const [file, line] of [
        ['\nWerk,Von\nKim,x\n', 2],
        ['[{"Werk":"Kim","Von":"x"}]', undefined],
      ] as const) {
        const [status, message, { fault }] = await send(client, '/import?dry-run', file);
        assert.deepEqual([status, message, fault.code], [400, 'Invalid file', 'no-title']);
        assert.deepEqual([fault.names, fault.first, fault.line], [['Werk', 'Von'], [['Kim', 'x']], line]);
      }
    });

    test('rule M5: an import by the command is in the list, until a book is forgotten', async () => {
      const url = await store.freshUrl();
      await importing(url, folderWith({ 'a.csv': 'title\nEmma\n' }), 'a.csv');
      const { client } = await startTestService(url);
      const [{ import: number, state, books, name }] = (await client.request('GET', '/import')).data;
      assert.deepEqual([state, books, name], ['stored', 1, 'a.csv']);
      const report = await reportOf(client, number);
      assert.equal(report.rows.new[0].title, 'Emma');
      assert.deepEqual((await send(client, `/import/${number}`))[2], report);
      await command('forget 1 --yes', url);
      assert.deepEqual((await reportOf(client, number)).rows, NO_ROWS);
    });

    test('rules M5 and M6: any process answers for an import, and has its file stored where it is', async () => {
      const one = await startTestService(await store.freshUrl());
      const other = await startTestService(one.dbUrl);
      const [, , { import: number }] = await send(one.client, `/import?dry-run&${SELECT}`, FILE);
      assert.deepEqual(await reportOf(other.client, number), await reportOf(one.client, number));
      assert.equal((await send(other.client, `/import/${number}`))[2].import, number);
      assert.notEqual((await reportOf(other.client, number)).state, 'checked', 'it is still to be done');
      await untilStored(other.client, number);
      assert.equal((await one.client.list()).length, 3);
      const { data } = await other.client.request('GET', '/import');
      assert.deepEqual([data.length, data[0].import, data[0].books, data[0].rows], [1, number, 3, undefined]);
      const [, , { import: second }] = await send(one.client, '/import?dry-run', 'title\nA\n');
      await one.stop();
      await executeOn(one.dbUrl, AGO);
      const gone = await send(other.client, `/import/${second}`);
      assert.deepEqual(
        [...gone.slice(0, 2), (await reportOf(other.client, second)).state],
        [410, 'File no longer here', 'stopped'],
      );
      assert.deepEqual((await send(other.client, '/import/999'))[0], 404);
    });

    test('rules M7 and I1 to I4: a key stores a file once, from any process', async () => {
      const one = await startTestService(await store.freshUrl());
      const other = await startTestService(one.dbUrl);
      const headers = { 'idempotency-key': 'once' };
      const path = `/import?on-duplicate=add&${SELECT}`;
      const both = await Promise.all([one, other].map(({ client }) => send(client, path, FILE, headers)));
      const [number] = both.map(([, , data]) => data.import);
      assert.deepEqual(
        both.map(([, , data]) => data.import),
        [number, number],
      );
      await untilStored(other.client, Number(number));
      const again = await one.client.request('POST', path, { headers, body: Buffer.from(FILE) });
      assert.deepEqual(
        [again.status, again.headers.get('idempotent-replayed'), again.data.books],
        [200, 'true', 4],
      );
      assert.equal((await send(one.client, path, `${FILE}\n`, headers))[0], 422);
      assert.equal((await one.client.list()).length, 4);
    });

    test('rules M5 and M7: an import whose store has failed is completed by any process, and all answer the same', async () => {
      const times = timesWith({ imports: { look: 10, seen: 10, answer: 60_000 } });
      const limit = { IMPORT_LIMIT: '100' };
      const one = await startTestService(await store.freshUrl(), limit, process.stderr, times);
      const other = await startTestService(one.dbUrl);
      await executeOn(one.dbUrl, FULL[store.name]);
      const file = 'title\nlarge\n';
      for (let time = 0; time < 10; time += 1)
        assert.equal((await send(one.client, '/import', file))[0], 503);
      assert.equal(filesOf('self').length, 1);
      await executeOn(one.dbUrl, `drop trigger is_full${store === POSTGRES ? ' on books' : ''}`);
      const [status, , report] = await send(other.client, '/import', file);
      assert.deepEqual([status, report.books], [200, 1]);
      await waitUntil(async () => filesOf('self').length === 0);
      assert.deepEqual(await reportOf(one.client, report.import), report);
      assert.equal((await one.client.request('GET', '/import')).data[0].state, 'stored');
      assert.deepEqual((await send(one.client, `/import/${report.import}`))[2], report);
      assert.equal((await one.client.list()).length, 1);
      assert.equal(
        (await send(one.client, '/import?dry-run', `title\n${'a'.repeat(90)}`))[0],
        200,
        'there is room',
      );
    });

    test('rules I2 and M5: a key whose import is no longer kept stores nothing again', async () => {
      const { client, dbUrl } = await startTestService(await store.freshUrl());
      const headers = { 'idempotency-key': 'once' };
      const path = '/import?on-duplicate=add';
      await send(client, path, 'title\nEmma\n', headers);
      await executeOn(dbUrl, 'delete from book_imports');
      const again = await send(client, path, 'title\nEmma\n', headers);
      assert.deepEqual(again.slice(0, 2), [404, 'Import not found']);
      assert.equal((await client.list()).length, 1);
    });

    test('rule M7: the key of a check does not check a file again that is stored in part', async () => {
      const { client, dbUrl } = await startTestService(await store.freshUrl());
      const check = () => send(client, '/import?dry-run', 'title\nEmma\n', { 'idempotency-key': 'once' });
      const [, , { import: number }] = await check();
      await executeOn(dbUrl, "update book_imports set state = 'stopped', books = 5, fingerprint = 'other'");
      assert.equal((await check())[0], 503);
      const { state, books } = await reportOf(client, number);
      assert.deepEqual([state, books], ['stopped', 5]);
    });

    test('the rows of a book that is forgotten are not kept again with a file that is checked', async () => {
      const times = timesWith({ imports: { look: 1, seen: 1 } });
      const { client, dbUrl } = await startTestService(await store.freshUrl(), {}, process.stderr, times);
      await client.create({ title: 'Emma', author: '', year: 1815 });
      const file = 'title,year\nEmma,1815\n';
      const [, , { import: number, rows }] = await send(client, '/import?dry-run', file);
      assert.equal(rows.here[0].title, 'Emma');
      await command('forget 1 --yes', dbUrl);
      const seen = async () => String((await executeOn(dbUrl, 'select seen from book_imports'))[0]?.seen);
      for (let note = 0, before = await seen(); note < 2; note += 1, before = await seen())
        await waitUntil(async () => (await seen()) !== before);
      assert.deepEqual((await reportOf(client, number)).rows, NO_ROWS);
      const [, , again] = await send(client, `/import/${number}?dry-run`);
      assert.equal(again.rows.new[0].title, 'Emma', 'it is read again');
      assert.deepEqual(await reportOf(client, number), again);
    });

    test('rule M7: an import that is cut off by kill -9 is completed by its file, under one number', async (context) => {
      const dbUrl = await store.freshUrl();
      const file = manyRows(200_000);
      let service = await startServiceProcess(dbUrl);
      const sent = send(service.client, '/import?on-duplicate=add', file).catch(() => {});
      const release = await INTERRUPT[store.name](context, dbUrl);
      service.process.kill('SIGKILL');
      await once(service.process, 'exit');
      await sent;
      await release();
      service = await startServiceProcess(dbUrl);
      const [{ import: number, state, books }] = (await service.client.request('GET', '/import')).data;
      assert.ok(state === 'open' && books < 200_000, `${state} ${books}`);
      await executeOn(dbUrl, AGO);
      assert.equal((await reportOf(service.client, number)).state, 'stopped');
      await send(service.client, '/import?on-duplicate=add', file, { 'idempotency-key': 'another' });
      await untilStored(service.client, number);
      assert.equal((await reportOf(service.client, number)).books, 200_000);
      assert.equal((await service.client.request('GET', `/event/${number}`)).data.books, 200_000);
      assert.equal((await service.client.list()).length, 200_000);
      await service.stop();
    });

    test('rule M7: a stop ends an import between two steps, and the next start completes it', async (context) => {
      const dbUrl = await store.freshUrl();
      const file = manyRows(200_000);
      let service = await startServiceProcess(dbUrl);
      const sent = send(service.client, '/import', file).catch(() => undefined);
      const release = await INTERRUPT[store.name](context, dbUrl);
      service.process.kill('SIGTERM');
      await release();
      const answer = await sent;
      assert.ok(answer === undefined || [202, 503].includes(answer[0]), `${answer}`); // 202 on a slow machine
      if (service.process.exitCode === null) await once(service.process, 'exit');
      service = await startServiceProcess(dbUrl);
      const [{ import: number, state, fault }] = (await service.client.request('GET', '/import')).data;
      assert.deepEqual([state, fault?.code], ['stopped', 'stopped']);
      await send(service.client, '/import', file);
      await untilStored(service.client, number);
      assert.equal((await service.client.list()).length, 200_000);
      await service.stop();
    });

    test('rule M2: an import continues without its client, but not with half of its file', async () => {
      const { client, port } = await startTestService(await store.freshUrl());
      const file = manyRows(20_000);
      const head = headOf(client, file.length);
      for (const part of [file.slice(0, -10), file]) {
        const socket = connect(port, '127.0.0.1');
        await new Promise((resolve) => socket.write(head + part, resolve));
        socket.destroy();
      }
      await waitUntil(async () => (await client.list()).length === 20_000);
      assert.equal((await client.request('GET', '/import')).data.length, 1);
    });

    test('rules M4 and H6: without a log, imports are kept all the same', async () => {
      const { client } = await startTestService(await store.freshUrl(), { HISTORY: 'off', FIND: 'off' });
      const [status, , { import: number }] = await send(client, `/import?${SELECT}`, FILE);
      assert.deepEqual([status, (await reportOf(client, number)).books], [200, 3]);
      assert.equal((await client.request('GET', `/event/${number}`)).status, 404);
    });
  });
}

/** The descriptors of the files of imports that a process has open. */
function filesOf(pid: number | string | undefined): string[] {
  const all = readdirSync(`/proc/${pid}/fd`).map((name) => `/proc/${pid}/fd/${name}`);
  return all.filter((path) => {
    try {
      return readlinkSync(path).includes('.import-');
    } catch {
      return false; // it was closed meanwhile
    }
  });
}

/** As if the processes of all imports had died long ago. */
const AGO = 'update book_imports set seen = 0';

/** A store that fails for a book. */
const FULL = {
  SQLite:
    "create trigger is_full before insert on books when new.title = 'large' begin select raise(abort, ''); end",
  PostgreSQL: `
    create function fail() returns trigger language plpgsql as 'begin raise exception ''''; end';
    create trigger is_full before insert on books for each row when (new.title = 'large') execute function fail()`,
};

/** Waits until an import stores, and holds it up there. @returns lets it continue. */
const INTERRUPT = {
  async SQLite(_: unknown, url: string) {
    const db = new DatabaseSync(fileOf(url), { timeout: 0 });
    const isBetweenSteps = () => {
      try {
        db.exec('begin immediate');
      } catch {
        return false;
      }
      if (Number(db.prepare('select count(*) as count from books').get()?.count) > 0) return true;
      db.exec('rollback');
      return false;
    };
    while (!isBetweenSteps()) await setImmediate();
    return async () => {
      db.exec('rollback');
      db.close();
    };
  },
  async PostgreSQL(context: Parameters<typeof connectTo>[0], url: string) {
    const client = await connectTo(context, url);
    await client.query('begin; lock table books in share row exclusive mode');
    const waits = "select from pg_locks where relation = 'books'::regclass and not granted";
    await waitUntil(async () => (await client.query(waits)).rowCount !== 0);
    return async () => void (await client.query('rollback'));
  },
};

testOnPostgres('rule M7: of equal requests at the same time, one stores its file', async (context) => {
  const times = timesWith({ imports: { answer: 1 } });
  const { client, dbUrl } = await startTestService(await POSTGRES.freshUrl(), {}, process.stderr, times);
  const locker = await connectTo(context, dbUrl);
  await locker.query('begin; lock table books in share row exclusive mode');
  const other = await connectTo(context, dbUrl);
  await other.query('begin; lock table book_imports in share mode');
  const sent = [1, 2].map(() => send(client, '/import?on-duplicate=add', 'title\nEmma\n'));
  const waits =
    'select from pg_locks join pg_database on oid = database where datname = current_database() and not granted';
  await waitUntil(async () => (await other.query(waits)).rowCount === 2);
  await other.query('rollback');
  const numbers = new Set((await Promise.all(sent)).map(([, , data]) => data.import));
  assert.equal(numbers.size, 1);
  await locker.query('rollback');
  await untilStored(client, Number([...numbers][0]));
  assert.equal((await client.list()).length, 1);
});

test('rule M4: an import into SQLite that is taken back half way is not continued', async () => {
  const { client, dbUrl } = await startTestService(await SQLITE.freshUrl());
  await client.request('GET', '/import'); // the first look at the log of changes writes to it
  const sent = send(client, '/import', manyRows(200_000));
  const release = await INTERRUPT.SQLite(undefined, dbUrl);
  const [{ import: number }] = (await client.request('GET', '/import')).data;
  const undo = client.request('POST', '/undo', { body: { event: number } });
  await release();
  await Promise.all([undo, sent]);
  await waitUntil(async () => (await client.list()).length === 0);
  const { state, figures } = await reportOf(client, number);
  assert.deepEqual([state, figures.rows], ['undone', figures.new + figures.repeated]);
});

test('rule M7: an import that has stored books is completed with its own options, whichever are sent', async () => {
  const { client, dbUrl } = await startTestService(await SQLITE.freshUrl());
  await executeOn(
    dbUrl,
    `create trigger full before insert on books when new.title = 'A book of number 150000'
       begin select raise(abort, 'no room'); end`,
  );
  assert.equal((await send(client, '/import?on-duplicate=add', manyRows(200_000)))[0], 503);
  const [{ import: number, state, books }] = (await client.request('GET', '/import')).data;
  assert.ok(state === 'stopped' && books > 0 && books < 150_000, `${state} ${books}`);
  await executeOn(dbUrl, 'drop trigger full');
  await send(client, `/import/${number}?from-line=100000&header=no&title=column+1`);
  await untilStored(client, number);
  const { options, books: all } = await reportOf(client, number);
  assert.deepEqual([options, all], [{ 'on-duplicate': 'add' }, 200_000]);
  assert.equal((await client.list()).length, 200_000);
});

test('rule M1: an invalid parameter is refused before the file is read', async () => {
  const { client } = await startTestService(await SQLITE.freshUrl());
  const delimiters = ['ab', '\r', '\n', '"', '😀'].map((text) => `delimiter=${encodeURIComponent(text)}`);
  const others = [
    'encoding=klingon',
    'ids=all',
    'header=maybe',
    'from-line=0',
    'dry-run=no',
    'corrections=[]',
    'corrections={"02":"1"}',
    'q=a',
    'ids=new&ids=new',
  ];
  for (const query of [...delimiters, ...others]) {
    const [status, message] = await send(client, `/import?${query}`, 'title\nA\n');
    const [name] = query.split('=');
    assert.deepEqual([status, message], [400, `Invalid query parameter: ${name}`], query);
  }
});

test('rules M2 and M6: a file without a book that can be read is invalid, and may be read in another way', async () => {
  const { client } = await startTestService(await SQLITE.freshUrl());
  const file = Buffer.from('title,author\nDu\xf1e,H\nOk,Ok\n', 'latin1');
  const { status, message, data } = await client.request('POST', '/import', { body: file });
  assert.deepEqual(
    [status, message, data.state, data.fault.code],
    [400, 'Invalid file', 'checked', 'not-utf8'],
  );
  const again = await send(client, `/import/${data.import}?encoding=windows-1252`);
  assert.deepEqual([again[0], again[2].books], [200, 2]);
});

test('rule M1: a correction gives another id to a row whose id is taken', async () => {
  const { client } = await startTestService(await SQLITE.freshUrl());
  const header = 'id,title,author,year\n';
  await send(client, '/import', `${header}7,Here,x,1900\n`);
  const [, , { import: number, refused }] = await send(
    client,
    '/import?dry-run',
    `${header}7,Other,x,1900\n`,
  );
  assert.deepEqual(
    [refused[0].column, refused[0].text, refused[0].reason.values],
    ['id', '7', ['title', 'Here', 'Other']],
  );
  const corrections = encodeURIComponent('{"2":"9"}');
  const [, , { books }] = await send(client, `/import/${number}?corrections=${corrections}`);
  assert.deepEqual([books, (await client.list()).map(({ id }) => id)], [1, [7, 9]]);
});

test('rule M3: a report is small, whatever the file', async () => {
  const { client } = await startTestService(await SQLITE.freshUrl());
  for (const file of [
    `${'n'.repeat(2_000_000)},title\na,b\n`,
    `title,year\nok,1\na${','.repeat(2_000_000)}b\n`,
  ]) {
    const [status, , report] = await send(client, '/import?dry-run', file);
    assert.equal(status, 200);
    assert.ok(JSON.stringify(report).length < 100_000);
  }
});

testOnPostgres('an import by request logs in to PostgreSQL as the service does', async () => {
  const url = new URL(await POSTGRES.freshUrl());
  const PGPASSWORD = url.password;
  url.password = '';
  const service = await startServiceProcess(url.href, { PGPASSWORD });
  assert.equal((await send(service.client, '/import', 'title\nA\n'))[0], 200);
  await service.stop();
});

describe('the files of imports', () => {
  test('rule M6: are private, without a name, and given up after a while', async () => {
    const store = STORES[0] as (typeof STORES)[number];
    const service = await startServiceProcess(await store.freshUrl());
    await send(service.client, '/import?dry-run', 'title\nA\n');
    const [found = ''] = filesOf(service.process.pid);
    assert.match(readlinkSync(found), / \(deleted\)$/);
    assert.equal(statSync(found).mode & 0o777, 0o600);
    assert.equal(readFileSync(found, 'utf8'), 'title\nA\n');
    await service.stop();
    const times = timesWith({ imports: { held: 300, look: 10 } });
    const { client } = await startTestService(await store.freshUrl(), {}, process.stderr, times);
    const [, , { import: number }] = await send(client, '/import?dry-run', 'title\nA\n');
    await waitUntil(async () => (await reportOf(client, number)).state === 'stopped');
    assert.equal((await send(client, `/import/${number}`))[0], 410);
  });

  test('rule M8: are as large as IMPORT_LIMIT together', async () => {
    const [store] = STORES as [(typeof STORES)[number]];
    const { client, port } = await startTestService(await store.freshUrl(), { IMPORT_LIMIT: '1000000' });
    const fileOf = (letter: string, rows: number) => `title\n${`${letter}\n`.repeat(rows)}`;
    assert.equal((await send(client, '/import', fileOf('a', 500_000)))[0], 413);
    const other = connect(port, '127.0.0.1');
    other.write(headOf(client, 900_000).replace('\r\n\r\n', '\r\nexpect: 100-continue\r\n\r\n'));
    await once(other, 'data'); // its file is expected
    assert.equal((await send(client, '/import?dry-run', fileOf('b', 100_000)))[0], 503);
    other.destroy();
    await waitUntil(async () => (await send(client, '/import?dry-run', fileOf('b', 100_000)))[0] === 200);
    assert.equal((await send(client, `/import?dry-run`, fileOf('c', 450_000)))[0], 200); // instead of those before
  });

  testOnPostgres('rule M8: that are given up twice make room once', async (context) => {
    const service = await startTestService(await POSTGRES.freshUrl(), { IMPORT_LIMIT: '1000000' });
    const { client, port, dbUrl } = service;
    // What the service notes after an import is stored waits for a lock of this test.
    await executeOn(
      dbUrl,
      `create function wait() returns trigger language plpgsql as
         'begin perform pg_advisory_xact_lock(1); return new; end';
       create trigger wait before update on book_imports for each row when (old.state = 'stored') execute function wait()`,
    );
    const locker = await connectTo(context, dbUrl);
    await locker.query('select pg_advisory_lock(1)');
    const stored = send(client, '/import', `title\n${`${'a'.repeat(999)}\n`.repeat(600)}`);
    const waits = "select from pg_locks where locktype = 'advisory' and not granted";
    await waitUntil(async () => (await locker.query(waits)).rowCount !== 0);
    const other = connect(port, '127.0.0.1');
    other.write(headOf(client, 600_000).replace('\r\n\r\n', '\r\nexpect: 100-continue\r\n\r\n'));
    await once(other, 'data'); // the stored file was given up for this one
    await locker.query('select pg_advisory_unlock(1)');
    assert.equal((await stored)[0], 200);
    const [status] = await send(client, '/import?dry-run', `title\n${`${'b'.repeat(999)}\n`.repeat(600)}`);
    other.destroy();
    assert.equal(status, 503);
  });

  test('rule M8: for which the disk has no room get 503, and the next one is imported', async () => {
    const env = { ...ENVIRONMENT, DB_URL: await SQLITE.freshUrl(), LOG_LEVEL: 'info' };
    // A limit of 10 MB on the size of files simulates a full disk.
    const service = await startCommand(env, { setting: 'ulimit -f 20000' });
    const client = await Client.logIn(service);
    assert.equal((await send(client, '/import', `title\n${'a\n'.repeat(6_000_000)}`))[0], 503);
    assert.equal((await send(client, '/import', 'title\nA\n'))[0], 200);
    await service.stop();
  });

  test('rule 22: come at a pace', async () => {
    const [store] = STORES as [(typeof STORES)[number]];
    const times = timesWith({ http: { wholeRequest: 1, check: 1 } });
    const { client, port } = await startTestService(await store.freshUrl(), {}, process.stderr, times);
    const slow = connect(port, '127.0.0.1');
    slow.write(`${headOf(client, 1_000_000)}title\n`);
    const [answer] = await once(slow, 'data');
    assert.match(`${answer}`, /^HTTP\/1\.1 408 /);
    slow.destroy();
  });
});

function headOf(client: Client, length: number): string {
  return `POST /import HTTP/1.1\r\nhost: x\r\nauthorization: ${client.token}\r\ncontent-length: ${length}\r\n\r\n`;
}
