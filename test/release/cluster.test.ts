// A cluster as deploy/cluster/README.md describes it, whose machines and programs fail one after the other while clients write
// and read through two services. All that they are answered must be linearizable.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Client } from '../support/client.ts';
import { Load } from '../support/load.ts';
import { type ServiceProcess, startServiceProcess } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';
import { Cluster, type Machine } from './cluster.ts';

/** Milliseconds, of rule 23. */
const AFTER_PROMOTION = 5000;

/** Milliseconds between two looks for a new leader. */
const LOOK_PAUSE = 100;

/** Milliseconds, more than the `ttl` of deploy/cluster/patroni.yml. */
const LONGER_THAN_TTL = 25_000;

describe('a cluster', { concurrency: 1 }, () => {
  let cluster: Cluster;
  let services: readonly [ServiceProcess, ServiceProcess];

  before(async () => {
    cluster = await Cluster.start();
    services = [await startServiceProcess(cluster.url), await startServiceProcess(cluster.url)];
  });
  after(() => cluster?.remove());

  /** What happens to the leader, or to others; whether another server must become the primary; or no write may be acknowledged. */
  const faults: readonly (readonly [
    what: string,
    follows: 'promotion' | 'refusals' | 'nothing',
    inflict: (leader: Machine, others: readonly Machine[]) => Promise<unknown>,
  ])[] = [
    // Patroni starts it again.
    ['the leader is killed', 'refusals', (leader) => leader.signal('SIGKILL', 'postgres')],
    ["the leader's machine dies", 'promotion', (leader) => leader.signal('SIGKILL')],
    ["the leader's machine loses its network", 'promotion', (leader) => leader.unplug()],
    [
      'the leader is cut off from the other machines, but not from the services',
      'promotion',
      (leader, others) => Promise.all(others.map((other) => leader.cutFrom(other))),
    ],
    ['a switchover', 'promotion', () => cluster.switchOver()],
    [
      "the leader's machine freezes, and thaws after its successor has taken over",
      'promotion',
      (leader) => leader.signal('SIGSTOP'),
    ],
    ["the leader's Patroni is killed", 'promotion', (leader) => leader.signal('SIGKILL', 'patroni')],
    ["the leader's Patroni hangs", 'promotion', (leader) => leader.signal('SIGSTOP', 'patroni')],
    [
      'the synchronous standby dies',
      'nothing',
      async () => (await cluster.the('sync_standby')).signal('SIGKILL'),
    ],
    [
      'etcd has no majority',
      'nothing',
      async (_leader, others) => {
        for (const other of others) await other.signal('SIGKILL', 'etcd');
        await pause(LONGER_THAN_TTL); // the leader would have lost its place by then
      },
    ],
  ];
  for (const [what, follows, inflict] of faults) {
    test(`rule 23: ${what}`, async (context) => {
      await cluster.heal();
      const leader = await cluster.the('leader');
      const others = cluster.machines.filter((machine) => machine !== leader);
      const [one, other] = await Promise.all([Client.logIn(services[0]), Client.logIn(services[1])]);
      for (const { id } of await one.list()) await one.request('DELETE', `/book/${id}`); // a load begins without any
      const load = await Load.start(context, one, other);
      await inflict(leader, others);
      if (follows === 'refusals') await load.allRefused();
      if (follows === 'promotion') await assertResumed(load, others);
      await load.moreWrites(500);
      await cluster.heal();
      await load.moreWrites(200);
      await load.stop();
    });
  }

  /** Waits until another server is promoted and acknowledges writes: then the service must also acknowledge them. */
  async function assertResumed(load: Load, others: readonly Machine[]): Promise<void> {
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
    assert.ok(milliseconds < AFTER_PROMOTION, `${milliseconds} ms`);
  }
});
