// What a SQLite store shows and answers while its log is being synced, and what happens if a sync fails.

import assert from 'node:assert/strict';
import fs, { closeSync, openSync, readSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Client } from '../support/client.ts';
import {
  ENVIRONMENT,
  endOf,
  fileOf,
  preloaded,
  SQLITE,
  startCommand,
  startTestService,
  temporaryFolder,
} from '../support/service.ts';
import { timesWith } from '../support/times.ts';
import { waitUntil } from '../support/wait.ts';

/** More bytes than the log has if it ever starts over. */
const ENDLESS = 512 * 1024 * 1024;

test('rules 13, 16 and 23: nothing shows a write before it is durable, and single reads do not wait for that', async (context) => {
  const times = timesWith({ sqlite: { idlePause: 5, catchUp: 5 } }); // the index tries to follow often, and searches do not wait for it
  const { client } = await startTestService(await SQLITE.freshUrl(), {}, undefined, times);
  const old = await client.create({ title: 'old' });
  await waitUntil(async () => (await client.request('GET', '/books?q=old')).status === 200);
  const syncs = holdSyncs(context);
  const answered: string[] = [];
  const send = async (name: string, ...request: Parameters<Client['request']>) => {
    const answer = await client.request(...request);
    answered.push(name);
    return answer;
  };

  const update = send('update', 'PUT', `/book/${old.id}`, { body: { title: 'new' } });
  const create = send('create', 'POST', '/book', { body: { title: 'new' } });
  await waitUntil(() => syncs.length === 1);
  const list = send('list', 'GET', '/books');
  const search = send('search', 'GET', '/books?year=0');
  for (let time = 0; time < 50; time += 1) {
    assert.deepEqual((await client.request('GET', `/book/${old.id}`)).data, old);
    assert.equal((await client.request('GET', `/book/${old.id + 1}`)).status, 404);
  }
  assert.deepEqual(answered, []);

  await waitUntil(() => {
    syncs.release();
    return answered.length === 4;
  });
  const [renamed, { data: created }] = [(await update).data, await create];
  assert.deepEqual(renamed, { ...old, title: 'new' });
  for (const answer of [list, search]) assert.deepEqual((await answer).data[0], renamed);
  assert.deepEqual((await client.request('GET', `/book/${created.id}`)).data, created);

  const removal = send('removal', 'DELETE', `/book/${created.id}`);
  await waitUntil(() => syncs.length === 1);
  assert.deepEqual((await client.request('GET', `/book/${created.id}`)).data, created);
  syncs.release();
  assert.equal((await removal).status, 200);
  assert.equal((await client.request('GET', `/book/${created.id}`)).status, 404);
});

test('rule 22: the log of writes starts over beside writers, reads, lists and searches', async () => {
  const url = await SQLITE.freshUrl();
  const { client } = await startTestService(url);
  const log = `${fileOf(url)}-wal`;
  const [one, other] = [await client.create({}), await client.create({})];
  const end = startsOf(log) + 2;
  let year = 0;
  const newTitle = () => `${++year % 10}`.repeat(900_000); // pages that stay the same are not written again
  const requests = [
    () => client.request('PUT', `/book/${one.id}`, { body: { title: newTitle() } }),
    () => client.request('PUT', `/book/${other.id}`, { body: { year: ++year } }),
    ...[`/book/${other.id}`, '/books', '/books?q=o'].map((path) => () => client.request('GET', path)),
  ];
  await Promise.all(
    requests.map(async (send) => {
      while (startsOf(log) < end) {
        await send();
        assert.ok(statSync(log).size < ENDLESS, 'the log grows on');
      }
    }),
  );
});

test('rule 28: a process whose sync is in progress shows what another one has acknowledged meanwhile', async (context) => {
  const dbUrl = await SQLITE.freshUrl();
  const [one, other] = [await startTestService(dbUrl), await startTestService(dbUrl)];
  const book = await one.client.create({ title: 'old' });
  const syncs = holdSyncs(context);
  const waiting = other.client.create({ title: 'waiting' });
  await waitUntil(() => syncs.length === 1);
  assert.deepEqual((await other.client.request('GET', `/book/${book.id}`)).data, book);
  syncs.letPass();
  for (const title of ['new', 'newer']) {
    const { status } = await one.client.request('PUT', `/book/${book.id}`, { body: { title } });
    assert.equal(status, 200);
    assert.equal((await other.client.request('GET', `/book/${book.id}`)).data.title, title);
  }
  const { id } = await one.client.create({});
  assert.equal((await other.client.request('GET', `/book/${id}`)).status, 200);
  syncs.release();
  await waiting;
});

test('rule 23: a failed sync ends the process with code 74 and one sentence, and no write of it is answered', async () => {
  const { env, fail } = breakableSyncs();
  const DB_URL = await SQLITE.freshUrl();
  const start = async () => {
    const command = await startCommand({ ...ENVIRONMENT, ...env, DB_URL, LOG_LEVEL: 'info' });
    return { command, client: await Client.logIn(command) };
  };
  const { command, client } = await start();
  const book = await client.create({ title: 'acknowledged' });
  const ended = endOf(command.process);
  const repair = fail();
  await assert.rejects(client.request('POST', '/book', { body: { title: 'unknown' } }));
  const { code, stderr } = await ended;
  assert.equal(code, 74);
  assert.match(stderr, /^A disk did not write the store \(EIO\): the process ends,[^\n]*\n$/);
  repair();
  const again = await start();
  assert.deepEqual((await again.client.list())[0], book);
});

test('rule 28: of several processes, one whose sync has failed is replaced', async () => {
  const { env, fail } = breakableSyncs();
  const DB_URL = await SQLITE.freshUrl();
  const command = await startCommand({ ...ENVIRONMENT, ...env, DB_URL, LOG_LEVEL: 'info', WORKERS: '2' });
  const client = await Client.logIn(command);
  const repair = fail();
  await assert.rejects(client.request('POST', '/book', { body: {} }));
  repair();
  const exits = () => command.log.map((line) => JSON.parse(line)).filter(({ code }) => code !== undefined);
  await waitUntil(() => exits().length > 0);
  const codes = exits().map(({ code }) => code);
  assert.deepEqual(codes, [74]);
  await waitUntil(async () => (await client.request('POST', '/book', { body: {} })).status === 201);
});

/** How often a log has started over, which is in its header (https://sqlite.org/fileformat2.html#walformat). */
function startsOf(log: string): number {
  const header = Buffer.alloc(16);
  const file = openSync(log, 'r');
  readSync(file, header, 0, header.length, 0);
  closeSync(file);
  return header.readUInt32BE(12);
}

/** Holds back the ends of the syncs of this process until `release`, and at the end of the test lets go of them. */
function holdSyncs(context: TestContext) {
  const { fdatasync } = fs;
  const held: (() => void)[] = [];
  const release = () => {
    for (const end of held.splice(0)) end();
  };
  const replaceBy = (replacement: typeof fdatasync) => {
    fs.fdatasync = replacement;
    syncBuiltinESMExports();
  };
  let isPassing = false;
  const holding = (descriptor: number, callback: fs.NoParamCallback) =>
    fdatasync(descriptor, (error) => (isPassing ? callback(error) : held.push(() => callback(error))));
  replaceBy(Object.assign(holding, { __promisify__: fdatasync.__promisify__ }));
  context.after(() => {
    replaceBy(fdatasync);
    release();
  });
  return {
    get length() {
      return held.length;
    },
    release,
    /** From now on, those that begin are not held back. */
    letPass: () => {
      isPassing = true;
    },
  };
}

/** The environment of a process whose syncs of the log fail from `fail` on, until the function that it returns is called. */
function breakableSyncs() {
  const broken = join(temporaryFolder(), 'broken');
  const NODE_OPTIONS = preloaded(`
    const fs = require('node:fs');
    const { existsSync, fdatasync } = fs;
    fs.fdatasync = (descriptor, callback) =>
      existsSync(${JSON.stringify(broken)}) ? setImmediate(callback, new Error('EIO')) : fdatasync(descriptor, callback);
    require('node:module').syncBuiltinESMExports();`);
  const fail = () => {
    writeFileSync(broken, '');
    return () => rmSync(broken);
  };
  return { env: { NODE_OPTIONS }, fail };
}
