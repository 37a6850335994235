// Servers of a cluster of Citus die, freeze and lose their network, and shards move, while 64 clients write, read and list.
// Nothing that was acknowledged may be lost or carried out twice. All servers must run on this machine.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import pg from 'pg';
import { CitusServer, COORDINATOR, removeCatalogues } from '../support/citus.ts';
import type { Requester } from '../support/client.ts';
import { Load } from '../support/load.ts';
import { execute } from '../support/postgres.ts';
import { TcpProxy } from '../support/proxy.ts';
import { POSTGRES, startTestService } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const CLIENTS = 64;

/** Milliseconds for each answer, and from the return of a server to the next write (rule 23). */
const LONGEST = 5000;

const coordinator = process.env[COORDINATOR] as string;

/** What happens to a server, and how it comes back. */
const FAULTS: Readonly<Record<string, (server: Faulty) => Promise<() => Promise<void>>>> = {
  'is killed': async ({ server }) => {
    server.kill();
    return () => server.startAgain();
  },
  freezes: async ({ server }) => {
    server.freeze();
    return async () => server.thaw();
  },
  'loses its network': async ({ proxy }) => {
    proxy.cut();
    return async () => {
      proxy.restore();
      proxy.reset();
    };
  },
};

/** A server, and the network in front of it. */
interface Faulty {
  readonly server: CitusServer;
  readonly proxy: TcpProxy;
}

describe('Citus', () => {
  for (const [fault, begin] of Object.entries(FAULTS)) {
    for (const victim of ['a worker', 'the coordinator'] as const) {
      test(`rule 23: ${victim} ${fault}: nothing is lost, and books on others can be changed meanwhile`, async (context) => {
        const dbUrl = await POSTGRES.freshUrl();
        const behind = victim === 'a worker' ? undefined : await TcpProxy.to(dbUrl);
        const { load, slowest } = await start(context, behind?.proxiedUrl ?? dbUrl);
        const [worker] = await CitusServer.workers();
        const server = behind === undefined ? worker : await CitusServer.at(coordinator);
        assert.ok(server !== undefined);
        const proxy = behind?.proxy ?? (await proxyTo(context, server));
        if (behind === undefined) await load.moreWrites(200);
        const end = await begin({ server, proxy });
        if (behind === undefined) await load.moreWrites(CLIENTS + 1); // more than were in progress
        await load.allRefused();
        await end();
        await success(load);
        await settle(load);
        assert.ok(slowest() < LONGEST, `the slowest answer took ${Math.round(slowest())} ms`);
      });
    }
  }

  for (const victim of ['a worker', 'the coordinator']) {
    test(`rule 23: ${victim} is killed between the two phases of a commit`, async () => {
      const dbUrl = await POSTGRES.freshUrl();
      const service = await startTestService(dbUrl);
      const workers = await CitusServer.workers();
      const [worker] = workers;
      assert.ok(worker !== undefined);
      const server = victim === 'a worker' ? worker : await CitusServer.at(coordinator);
      const created = new Set<number>();
      let isStopped = false;
      const writers = Array.from({ length: CLIENTS }, async () => {
        while (!isStopped) {
          const { status, data } = await service.client.request('POST', '/book', { body: { title: 'T' } });
          assert.ok(status === 201 || status === 503);
          if (status !== 201) continue;
          assert.ok(!created.has(data.id), 'an id is given twice');
          created.add(data.id);
        }
      });
      let inDoubt = 0;
      while (inDoubt === 0) {
        const before = created.size;
        await waitUntil(() => created.size > before + CLIENTS);
        await waitUntil(async () => (await preparedOn(worker)) > 0);
        server.kill();
        await server.startAgain();
        inDoubt = await preparedOn(worker);
      }
      isStopped = true;
      await Promise.all(writers);
      for (const { url } of workers) await waitUntil(async () => (await preparedOn({ url })) === 0);
      const listed = new Set((await service.client.list()).map(({ id }) => id));
      assert.deepEqual(
        [...created].filter((id) => !listed.has(id)),
        [],
      );
    });
  }

  for (const victim of ['a worker', 'the coordinator'])
    test(`rules 23 and H5: ${victim} is killed between the two phases of an undo: it is whole or not at all`, async () => {
      const dbUrl = await POSTGRES.freshUrl();
      const { client } = await startTestService(dbUrl);
      const [worker, other] = await CitusServer.workers();
      assert.ok(worker !== undefined && other !== undefined);
      const server = victim === 'a worker' ? worker : await CitusServer.at(coordinator);
      const titles = async () => {
        const count = 'select title, count(*)::integer from books group by title';
        const rows = await execute<{ title: string; count: number }>(dbUrl, count);
        return rows.map((row) => `${row.count} ${row.title}`).join();
      };
      await execute(dbUrl, "insert into books (title) select 'right' from generate_series(1, 500)");
      const [now] = await execute<{ now: Date }>(dbUrl, 'select clock_timestamp() as now');
      await execute(dbUrl, "update books set title = 'mistake'");
      const body = { since: now?.now.toISOString() };
      const open = await holdCommits(
        other,
        new URL(dbUrl).searchParams.get('options')?.split('=')[1] as string,
      );
      const undo = client.request('POST', '/undo', { body });
      await waitUntil(async () => (await preparedOn(worker)) > 0, undo);
      server.kill();
      await server.startAgain();
      assert.ok((await preparedOn(worker)) > 0);
      await open();
      const { status, data } = await undo;
      for (const one of [worker, other]) await waitUntil(async () => (await preparedOn(one)) === 0);
      const found = await titles();
      if (status === 200) assert.deepEqual([found, data.undone], ['500 right', 500]);
      else assert.ok(status === 503 && ['500 right', '500 mistake'].includes(found), `${status}: ${found}`);
      await waitUntil(async () => (await client.request('POST', '/undo', { body })).status === 200);
      assert.equal(await titles(), '500 right');
    });

  test('rule 23: a worker leaves and comes back, and its shards move, while the service is used', async (context) => {
    await removeCatalogues(); // their shards would move as well
    const { load } = await start(context, await POSTGRES.freshUrl());
    const [worker] = await CitusServer.workers();
    const { hostname, port } = new URL(worker?.url as string);
    const node = `'${hostname}', ${port}`;
    context.after(() => execute(coordinator, `select citus_add_node(${node})`));
    await execute(coordinator, `select citus_drain_node(${node}, 'block_writes')`);
    const remains = `select from pg_dist_cleanup join pg_dist_node on node_group_id = groupid where nodeport = ${port}`;
    await waitUntil(async () => {
      await execute(coordinator, 'call citus_cleanup_orphaned_resources()');
      return (await execute(coordinator, remains)).length === 0; // else no shard could come back
    });
    await execute(coordinator, `select citus_remove_node(${node})`);
    await load.moreWrites(200);
    await execute(coordinator, `select citus_add_node(${node})`);
    await execute(coordinator, "select rebalance_table_shards(shard_transfer_mode := 'block_writes')");
    await load.moreWrites(200);
    await settle(load);
  });
});

/** Lets each transaction that changes books wait on a server before the first phase of its commit. @returns ends that. */
async function holdCommits({ url }: CitusServer, schema: string): Promise<() => Promise<void>> {
  const gate = new pg.Client({ connectionString: url });
  await gate.connect();
  await gate.query('select pg_advisory_lock(1)');
  await gate.query(`
    set citus.enable_ddl_propagation = off; set citus.override_table_visibility = off;
    create or replace function ${schema}.wait() returns trigger language plpgsql
      as 'begin perform pg_advisory_xact_lock_shared(1); return null; end';
    do $$ declare shard regclass; begin
      for shard in select oid::regclass from pg_class where relnamespace = '${schema}'::regnamespace and relname ~ '^books_[0-9]+$' loop
        execute 'create constraint trigger waiting after update on ' || shard ||
          ' initially deferred for each row execute function ${schema}.wait()';
      end loop;
    end $$`);
  return () => gate.end();
}

/** A service with its load. */
async function start(context: TestContext, dbUrl: string) {
  const service = await startTestService(dbUrl);
  let slowest = 0;
  const timed: Requester = {
    async request(...call) {
      const began = performance.now();
      const answer = await service.client.request(...call);
      const isList = call[0] === 'GET' && call[1] === '/books'; // which takes as long as its last book
      if (!isList) slowest = Math.max(slowest, performance.now() - began);
      return answer;
    },
    list: () => service.client.list(),
  };
  const load = await Load.startMany(context, CLIENTS, timed);
  return { load, slowest: () => slowest };
}

/** Puts a network between the coordinator and a worker, until the end of the test. */
async function proxyTo(context: TestContext, { url }: CitusServer): Promise<TcpProxy> {
  const { hostname, port } = new URL(url);
  const { proxy } = await TcpProxy.to(url);
  const [node] = await execute<{ id: number }>(
    coordinator,
    `select nodeid as id from pg_dist_node where nodename = '${hostname}' and nodeport = ${port}`,
  );
  const lead = async (to: number | string) => {
    await execute(coordinator, `select citus_update_node(${node?.id}, '${hostname}', ${to})`);
    await execute(coordinator, 'select start_metadata_sync_to_all_nodes()'); // else it would take a minute
  };
  await lead(proxy.port);
  context.after(async () => {
    await lead(port);
    await proxy.stop();
  });
  return proxy;
}

async function success(load: Load): Promise<void> {
  const returned = performance.now();
  await load.moreWrites(1);
  const passed = performance.now() - returned;
  assert.ok(passed < LONGEST, `the first write after the return took ${Math.round(passed)} ms`);
}

/** Ends the load and compares, once no commit is in doubt. */
async function settle(load: Load): Promise<void> {
  await load.moreWrites(200);
  for (const worker of await CitusServer.workers())
    await waitUntil(async () => (await preparedOn(worker)) === 0);
  await load.stop();
}

/** How many transactions wait for the second phase of their commit. */
async function preparedOn({ url }: { readonly url: string }): Promise<number> {
  const count = 'select count(*)::integer as prepared from pg_prepared_xacts';
  const [row] = await execute<{ prepared: number }>(url, count);
  return row?.prepared ?? 0;
}
