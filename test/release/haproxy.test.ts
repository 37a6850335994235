// Two services on one PostgreSQL behind HAProxy, with the configuration of deploy/: they are replaced, and guessed at.
// Needs the package haproxy.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { before, describe, test } from 'node:test';
import { Client } from '../support/client.ts';
import { Load } from '../support/load.ts';
import { adjacentPorts } from '../support/ports.ts';
import { pathTo } from '../support/repository.ts';
import { POSTGRES, type ServiceProcess, startServiceProcess, temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';
import { untilRefused } from './programs.ts';
import { startHaproxy } from './proxies.ts';

/** Writes that are acknowledged before a service is replaced. */
const SOME = 200;

const CONFIGURATION = readFileSync(pathTo('deploy/haproxy.cfg'), 'utf8');

/** A service, its address in deploy/haproxy.cfg, and the first of its three ports here. */
interface Place {
  readonly name: 'one' | 'two';
  readonly address: string;
  readonly port: number;
}

test('HAProxy accepts the configuration as it is', () => {
  const certificate = join(temporaryFolder(), 'books.pem');
  const parts = ['crt', 'key'].map((end) => readFileSync(pathTo(`test/fixtures/tls/server.${end}`), 'utf8'));
  writeFileSync(certificate, parts.join(''));
  const file = join(temporaryFolder(), 'haproxy.cfg');
  writeFileSync(file, CONFIGURATION.replaceAll('/etc/haproxy/books.pem', certificate));
  const { status, stderr } = spawnSync('haproxy', ['-c', '-q', '-f', file], { encoding: 'utf8' });
  assert.deepEqual([status, stderr], [0, '']);
});

describe('two services behind HAProxy', () => {
  let places: readonly [Place, Place];
  let services: [ServiceProcess, ServiceProcess];
  let proxy: Proxy;

  before(async () => {
    const dbUrl = await POSTGRES.freshUrl();
    places = [
      { name: 'one', address: '10.0.0.11', port: await adjacentPorts(3) },
      { name: 'two', address: '10.0.0.12', port: await adjacentPorts(3) },
    ];
    services = [await start(dbUrl, places[0]), await start(dbUrl, places[1])];
    proxy = await startProxy(places);
    for (const each of places) await waitUntil(() => proxy.isUp(each));
  });

  test('rule 29: all failed logins of one address are counted by one service, on the port of the page too, and however the path is spelled; the operations port is hidden', async () => {
    assert.match(await (await fetch(proxy.pageUrl)).text(), /^<!doctype html>/i);
    for (const url of [`${proxy.url}/readyz`, `${proxy.pageUrl}/metrics`])
      assert.equal((await fetch(url)).status, 404);
    const refused = ({ log }: ServiceProcess) => log.some((line) => line.includes('"status":401'));
    await untilRefused(async (headers, body, guess) => {
      const url = guess % 2 === 0 ? proxy.url : proxy.pageUrl;
      const path = guess % 3 === 0 ? '/%74oken' : '/token';
      return (await fetch(`${url}${path}`, { method: 'POST', headers, body })).status;
    });
    await waitUntil(() => services.some(refused));
    assert.ok(!services.every(refused));
  });

  test('rule 27: no request is lost while services are drained and replaced', async (context) => {
    const load = await Load.start(context, await Client.logIn(proxy));
    for (const position of [0, 1, 0, 1] as const) {
      await load.moreWrites(SOME);
      const [place, service] = [places[position], services[position]];
      await proxy.tell(place, 'drain');
      await waitUntil(async () => (await proxy.sessions(place)) === 0);
      await service.stop();
      assert.equal(service.process.exitCode, 0);
      services[position] = await start(service.dbUrl, place);
      await proxy.tell(place, 'ready');
      await waitUntil(() => proxy.isUp(place));
    }
    await load.moreWrites(SOME);
    await load.stop();
    assert.equal(load.unavailable, 0);
  });
});

function start(dbUrl: string, { port }: Place): Promise<ServiceProcess> {
  const ports = { PORT: `${port}`, ADMIN_PORT: `${port + 1}`, PAGE_PORT: `${port + 2}` };
  return startServiceProcess(dbUrl, { ...ports, TRUST_PROXY: '127.0.0.1' });
}

type Proxy = Awaited<ReturnType<typeof startProxy>>;

/** HAProxy in front of the services, and what it says about them. */
async function startProxy(places: readonly Place[]) {
  const proxy = await startHaproxy([
    ['check port 8081', 'check'],
    ...places.flatMap(({ address, port }): [string, string][] => [
      [`${address}:8080`, `127.0.0.1:${port} port ${port + 1}`],
      [`${address}:8082`, `127.0.0.1:${port + 2} port ${port + 1}`],
    ]),
  ]);
  const ask = async (command: string) => {
    const connection = connect(proxy.socket);
    connection.end(`${command}\n`);
    return (await text(connection)).trim();
  };
  /** A column of the statistics of a service's places in the backends. */
  const statistics = async ({ name }: Place, wanted: string) => {
    const [header = '', ...lines] = (await ask('show stat')).slice('# '.length).split('\n');
    const [service, column] = ['svname', wanted].map((title) => header.split(',').indexOf(title));
    const rows = lines.map((line) => line.split(','));
    return rows.filter((cells) => cells[Number(service)] === name).map((cells) => cells[Number(column)]);
  };
  return {
    ...proxy,
    /** Sets the state of a service in all backends. */
    async tell({ name }: Place, state: 'drain' | 'ready') {
      for (const backend of ['services', 'pages', 'logins'])
        assert.equal(await ask(`set server ${backend}/${name} state ${state}`), '');
    },
    isUp: async (place: Place) => (await statistics(place, 'status')).every((status) => status === 'UP'),
    /** Requests that a service has at this moment. */
    sessions: async (place: Place) =>
      (await statistics(place, 'scur')).reduce((sum, sessions) => sum + Number(sessions), 0),
  };
}
