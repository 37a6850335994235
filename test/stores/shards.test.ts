// What the store does for a table that Citus distributes, as far as one PostgreSQL can show it: the map of its shards, and the
// snapshot of several servers. test/citus has the rest.

import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import type pg from 'pg';
import { hashOf, Shards } from '../../src/stores/postgres/shards.ts';
import { type Barrier, beginSnapshot, textParts } from '../../src/stores/postgres/snapshot.ts';
import { fill, manyBooks } from '../support/books.ts';
import { connectTo } from '../support/postgres.ts';
import { TcpProxy } from '../support/proxy.ts';
import { randomSequence } from '../support/random.ts';
import { POSTGRES, testOnPostgres } from '../support/service.ts';
import { timesWith } from '../support/times.ts';
import { waitUntil } from '../support/wait.ts';

const LOCK = 60_000;
const TIMES = timesWith({ postgres: { barrier: 20, barrierPause: 1 } }).postgres;

const ids = [1, 2, 3, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 32 + 1, 2 ** 53 - 1];

testOnPostgres('the hash of an id is that of PostgreSQL', async (context) => {
  const draw = randomSequence(1);
  const many = [...ids, ...Array.from({ length: 1000 }, () => 1 + Math.floor(draw() * (2 ** 53 - 1)))];
  const client = await connectTo(context, await POSTGRES.freshUrl());
  const hashes =
    'select array_agg(hashint8(id) order by place) as all from unnest($1::bigint[]) with ordinality as sent (id, place)';
  const { rows } = await client.query<{ all: number[] }>(hashes, [many]);
  assert.deepEqual(many.map(hashOf), rows[0]?.all);
});

test('books have the place of their shard, by the latest map that could be read', async () => {
  let map: { last: number; server: number }[] | Error = [
    { last: -1, server: 1 },
    { last: 2 ** 31 - 1, server: 2 },
  ];
  const shards = new Shards();
  const read = (async (statement: string) => {
    if (map instanceof Error) throw map;
    return statement.includes('to_regclass') && !statement.includes('groupid') ? [{ known: true }] : map;
  }) as never;
  assert.equal(shards.shardOf(1), undefined);
  assert.equal(shards.servers, 1);
  await shards.read(read);
  assert.equal(shards.servers, 2);
  for (const id of ids) assert.equal(shards.shardOf(id)?.server, hashOf(id) < 0 ? 1 : 2);
  const sameHalf = ids.filter((id) => hashOf(id) < 0);
  assert.equal(new Set(sameHalf.map((id) => shards.shardOf(id))).size, 1);
  map = new Error('away');
  await shards.renew(read);
  assert.equal(shards.shardOf(1)?.server, hashOf(1) < 0 ? 1 : 2);
  map = [{ last: 2 ** 31 - 1, server: 3 }];
  await shards.renew(read);
  for (const id of ids) assert.equal(shards.shardOf(id)?.server, 3);
});

testOnPostgres(
  'rule 13: the snapshot of several servers waits for writes in progress, and then holds up none',
  async (context) => {
    const { dbUrl, reader, writer } = await filled(context, 3);
    await writer.query("begin; update books set title = 'later' where id = 1");
    const begun = beginSnapshot(reader, LOCK, TIMES, barrierTo(dbUrl, context));
    const waits =
      "select from pg_locks where relation = 'books'::regclass and mode = 'ShareLock' and not granted";
    await waitUntil(async () => (await writer.query(waits)).rowCount === 1, begun);
    await writer.query('commit');
    await begun;
    await writer.query("update books set title = 'after' where id = 2");
    const { rows } = await reader.query<{ title: string }>('select title from books order by id limit 2');
    assert.equal(rows[0]?.title, 'later');
    assert.notEqual(rows[1]?.title, 'after');
  },
);

testOnPostgres('rule 23: the attempts to get the snapshot of several servers end', async (context) => {
  const { dbUrl, reader, writer } = await filled(context, 1);
  await writer.query("begin; update books set title = 'open'");
  const begun = beginSnapshot(reader, LOCK, TIMES, barrierTo(dbUrl, context, AbortSignal.abort()));
  await assert.rejects(begun, { code: '55P03' });
});

testOnPostgres(
  'rule 23: a snapshot that a silent server keeps waiting holds up no writer',
  async (context) => {
    const { dbUrl, writer } = await filled(context, 1);
    const { proxy, proxiedUrl } = await TcpProxy.to(dbUrl);
    const reader = await connectTo(context, proxiedUrl);
    proxy.cut();
    await assert.rejects(beginSnapshot(reader, LOCK, { ...TIMES, snapshots: 20 }, barrierTo(dbUrl, context)));
    await writer.query("set statement_timeout = 20000; update books set title = 'after'");
  },
);

testOnPostgres(
  'rule 13: the parts of a text are the whole text, wherever the ids have gaps',
  async (context) => {
    const { reader, writer } = await filled(context, 45_000);
    const statement = (range: string) => `copy (select id from books ${range} order by id) to stdout`;
    for (const { gap, expected } of [
      { gap: [0, 0], expected: 4 },
      { gap: [4000, 19_000], expected: 3 },
      { gap: [100, 44_000], expected: 1 },
    ] as const) {
      await writer.query(`delete from books where id between ${gap[0]} and ${gap[1]}`);
      const left = await writer.query<{ id: number }>('select id::integer as id from books order by id');
      let parts = '';
      let count = 0;
      for await (const part of textParts(reader, true, statement)) {
        parts += await text(part);
        count += 1;
      }
      assert.equal(parts, left.rows.map(({ id }) => `${id}\n`).join(''));
      assert.equal(count, expected);
    }
  },
);

async function filled(
  context: TestContext,
  count: number,
): Promise<{ readonly dbUrl: string; readonly reader: pg.Client; readonly writer: pg.Client }> {
  const dbUrl = await POSTGRES.freshUrl();
  await fill(dbUrl, manyBooks(count));
  return { dbUrl, reader: await connectTo(context, dbUrl), writer: await connectTo(context, dbUrl) };
}

function barrierTo(dbUrl: string, context: TestContext, signal = new AbortController().signal): Barrier {
  const connect = async () => ({ client: await connectTo(context, dbUrl), release: () => {} });
  return { connect, signal };
}
