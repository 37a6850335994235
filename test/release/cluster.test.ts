// A cluster as deploy/cluster/README.md describes it, whose machines and programs fail one after the other while clients write
// and read through two services. All that they are answered must be linearizable.

import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Client } from '../support/client.ts';
import { Cluster } from '../support/cluster.ts';
import { Load } from '../support/load.ts';
import { type ServiceProcess, startServiceProcess } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

/** Milliseconds, of rule 23. */
const AFTER_PROMOTION = 5000;

/** Milliseconds between two looks for a new leader. */
const LOOK_PAUSE = 100;

/** Milliseconds, more than the `ttl` of deploy/cluster/patroni.yml. */
const LONGER_THAN_TTL = 25_000;

describe('a cluster', { concurrency: 1 }, () => {
  let cluster: Cluster;
  let services: readonly ServiceProcess[];

  before(async () => {
    cluster = await Cluster.start();
    services = [await startServiceProcess(cluster.url), await startServiceProcess(cluster.url)];
  });
  after(async () => {
    await Promise.all((services ?? []).map((service) => service.stop()));
    await cluster?.remove();
  });

  test('rule 23: the leader is killed', async (context) => {
    const { load, leader, end } = await begin(context);
    await leader.signal('SIGKILL', 'postgres');
    await load.allRefused();
    await end();
  });

  test("rule 23: the leader's machine dies", async (context) => {
    const { leader, promoted, end } = await begin(context);
    await leader.signal('SIGKILL');
    await promoted();
    await end();
  });

  test("rule 23: the leader's machine loses its network", async (context) => {
    const { leader, promoted, end } = await begin(context);
    await leader.unplug();
    await promoted();
    await end();
  });

  test('rule 23: the leader is cut off from the other machines, but not from the services', async (context) => {
    const { leader, others, promoted, end } = await begin(context);
    for (const other of others) await leader.cutFrom(other);
    await promoted();
    await end();
  });

  test('rule 23: a switchover', async (context) => {
    const { promoted, end } = await begin(context);
    await cluster.switchOver();
    await promoted();
    await end();
  });

  test("rule 23: the leader's machine freezes, and thaws after its successor has taken over", async (context) => {
    const { load, leader, promoted, end } = await begin(context);
    await leader.signal('SIGSTOP');
    await promoted();
    await load.moreWrites(500);
    await end();
  });

  for (const [what, signal] of [
    ['is killed', 'SIGKILL'],
    ['hangs', 'SIGSTOP'],
  ] as const) {
    test(`rule 23: the leader's Patroni ${what}, its PostgreSQL lives on`, async (context) => {
      const { load, leader, promoted, end } = await begin(context);
      await leader.signal(signal, 'patroni');
      await promoted();
      await load.moreWrites(500);
      await end();
    });
  }

  test('rule 23: the synchronous standby dies', async (context) => {
    const { load, end } = await begin(context);
    await (await cluster.synchronousStandby()).signal('SIGKILL');
    await load.moreWrites(500);
    await end();
  });

  test('rule 23: etcd has no majority', async (context) => {
    const { load, others, end } = await begin(context);
    for (const other of others) await other.signal('SIGKILL', 'etcd');
    await pause(LONGER_THAN_TTL);
    await load.moreWrites(500);
    await end();
  });

  async function begin(context: TestContext) {
    await cluster.heal();
    const leader = await cluster.leader();
    const clients = await Promise.all(services.map((service) => Client.logIn(service)));
    const [one, other] = clients as [Client, Client];
    await empty(one);
    const load = await Load.start(context, one, other);
    const others = cluster.machines.filter((machine) => machine !== leader);
    return {
      load,
      leader,
      others,
      /** Waits until another server is promoted and acknowledges writes: then the service must also acknowledge them. */
      async promoted() {
        const acknowledge = async () => {
          await pause(LOOK_PAUSE);
          return (await Promise.all(others.map((machine) => machine.acknowledges()))).includes(true);
        };
        await waitUntil(acknowledge);
        let began = performance.now();
        let resumed = false;
        const write = load.moreWrites(1).finally(() => {
          resumed = true;
        });
        // Its only standby may turn out to need a rewind, and then no write is acknowledged for some more seconds.
        const watch = async () => {
          while (!resumed) if (!(await acknowledge())) began = performance.now();
        };
        await Promise.all([write, watch()]);
        const milliseconds = Math.round(performance.now() - began);
        context.diagnostic(`writes resumed ${milliseconds} ms after the promotion`);
        assert.ok(milliseconds < AFTER_PROMOTION, `${milliseconds} ms`);
      },
      /** Restores the cluster, under load, and compares the books with the answers. */
      async end() {
        await load.moreWrites(200);
        await cluster.heal();
        await load.moreWrites(200);
        await load.stop();
        context.diagnostic(
          `${load.acknowledged} writes acknowledged, ${load.unavailable} × 503; longest pause ${load.longestPause} ms, slowest answer ${load.slowest} ms`,
        );
      },
    };
  }
});

/** Removes all books, since a load begins without any. */
async function empty(client: Client): Promise<void> {
  for (const { id } of await client.list()) await client.request('DELETE', `/book/${id}`);
}
