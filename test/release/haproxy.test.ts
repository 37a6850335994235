// Two services on one PostgreSQL behind HAProxy, with the configuration of deploy/: one is replaced, killed, or guessed at.
// Needs the package haproxy.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, type TestContext, test } from 'node:test';
import { accepts, type Target } from '../support/client.ts';
import { startLoad } from '../support/load.ts';
import { unusedPort } from '../support/ports.ts';
import { pathTo } from '../support/repository.ts';
import { POSTGRES, type ServiceProcess, startServiceProcess, temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const CLIENTS = 24;
/** A 503 of a service is also an answer. */
const ANSWERS = ['acknowledged', 'unavailable'] as const;
const REPLACEMENTS = 4;
/** Requests that are answered before a service is replaced or killed. */
const SOME = 500;

const CONFIGURATION = readFileSync(pathTo('deploy/haproxy.cfg'), 'utf8');

/** A service and the ports that it has in deploy/haproxy.cfg. */
interface Place {
  readonly name: 'one' | 'two';
  readonly address: string;
  readonly port: number;
  readonly operations: number;
  readonly page: number;
}

describe('two services behind HAProxy', () => {
  test('HAProxy accepts the configuration as it is', () => {
    const folder = temporaryFolder();
    const certificate = join(folder, 'books.pem');
    const parts = ['server.crt', 'server.key'].map((name) =>
      readFileSync(pathTo(`test/fixtures/tls/${name}`), 'utf8'),
    );
    writeFileSync(certificate, parts.join(''));
    const file = join(folder, 'haproxy.cfg');
    writeFileSync(file, CONFIGURATION.replaceAll('/etc/haproxy/books.pem', certificate));
    const { status, stderr } = spawnSync('haproxy', ['-c', '-q', '-f', file], { encoding: 'utf8' });
    assert.deepEqual([status, stderr], [0, '']);
  });

  test('rule 27: no request is lost while one service after the other is drained and replaced', async (context) => {
    const { places, services, dbUrl, proxy } = await startBoth(context);
    const load = startLoad(proxy, services[0].client.token, CLIENTS, ANSWERS);
    for (let count = 0; count < REPLACEMENTS; count += 1) {
      await load.more(SOME);
      const position = (count % 2) as 0 | 1;
      const place = places[position];
      await proxy.tell(place, 'drain');
      await waitUntil(async () => (await proxy.sessions(place)) === 0);
      services[position].process.kill('SIGTERM');
      const [code] = await once(services[position].process, 'exit');
      assert.equal(code, 0);
      services[position] = await start(context, dbUrl, place);
      await proxy.tell(place, 'ready');
      await waitUntil(() => proxy.isUp(place));
    }
    await load.more(SOME);
    assert.deepEqual(await load.stop(services[0].client), []);
  });

  test('rule 27: a service that stops without being drained loses at most the requests that it had', async (context) => {
    const { services, proxy } = await startBoth(context);
    const load = startLoad(proxy, services[0].client.token, CLIENTS, ANSWERS);
    await load.more(SOME);
    services[1].process.kill('SIGTERM');
    await once(services[1].process, 'exit');
    await load.more(SOME);
    const lost = await load.stop(services[0].client);
    context.diagnostic(`${lost.length} lost`);
    assert.ok(lost.length <= CLIENTS, lost.join(', '));
  });

  test('rule 23: no acknowledged write is lost with a service that is killed, and the other one goes on', async (context) => {
    const { places, services, proxy } = await startBoth(context);
    const load = startLoad(proxy, services[0].client.token, CLIENTS, ANSWERS);
    await load.more(SOME);
    services[1].process.kill('SIGKILL');
    await waitUntil(async () => !(await proxy.isUp(places[1])));
    const before = load.lost.length;
    await load.more(SOME);
    assert.equal(load.lost.length, before, 'requests were lost after the service had been found to be dead');
    const lost = await load.stop(services[0].client);
    context.diagnostic(`${lost.length} lost`);
    assert.ok(lost.length <= CLIENTS, lost.join(', '));
  });

  test('rule 29: failed logins of one address are counted as by one service', async (context) => {
    const { proxy } = await startBoth(context);
    const statuses = await Promise.all(
      Array.from({ length: 60 }, async (_, guess) => {
        const url = guess % 2 === 0 ? proxy.url : proxy.pageUrl;
        const headers = { 'x-forwarded-for': `203.0.113.${guess}` }; // another address each time, as it claims
        const body = `{"username":"librarian","password":"guess ${guess}"}`;
        const path = guess % 3 === 0 ? '/%74oken' : '/token'; // the same one, spelled otherwise
        return (await fetch(`${url}${path}`, { method: 'POST', headers, body })).status;
      }),
    );
    assert.equal(statuses.filter((status) => status === 401).length, 15); // ten at once, five delayed
    assert.equal(statuses.filter((status) => status === 429).length, 45);
  });

  test('the page for librarians is there, and the operations port is not', async (context) => {
    const { proxy } = await startBoth(context);
    const page = await fetch(proxy.pageUrl);
    assert.equal(page.status, 200);
    assert.match(await page.text(), /^<!doctype html>/i);
    assert.equal((await fetch(`${proxy.url}/readyz`)).status, 404);
    assert.equal((await fetch(`${proxy.pageUrl}/metrics`)).status, 404);
  });
});

async function startBoth(context: TestContext) {
  const dbUrl = await POSTGRES.freshUrl();
  const places = [await place('one', '10.0.0.11'), await place('two', '10.0.0.12')] as const;
  const services: [ServiceProcess, ServiceProcess] = [
    await start(context, dbUrl, places[0]),
    await start(context, dbUrl, places[1]),
  ];
  const proxy = await startProxy(context, places);
  for (const each of places) await waitUntil(() => proxy.isUp(each));
  return { dbUrl, places, services, proxy };
}

async function place(name: Place['name'], address: string): Promise<Place> {
  const [port, operations, page] = [await unusedPort(), await unusedPort(), await unusedPort()];
  return { name, address, port, operations, page };
}

async function start(context: TestContext, dbUrl: string, place: Place): Promise<ServiceProcess> {
  const service = await startServiceProcess(dbUrl, {
    PORT: String(place.port),
    ADMIN_PORT: String(place.operations),
    PAGE_PORT: String(place.page),
    TRUST_PROXY: '127.0.0.1',
  });
  context.after(() => service.process.kill('SIGKILL'));
  return service;
}

interface Proxy extends Target {
  readonly pageUrl: string;
  /** Sets the state of a service in all backends. */
  tell(place: Place, state: 'drain' | 'ready'): Promise<void>;
  isUp(place: Place): Promise<boolean>;
  /** Requests that a service has at this moment. */
  sessions(place: Place): Promise<number>;
}

/** Starts HAProxy with deploy/haproxy.cfg, changed in its addresses only: without TLS, on this machine. */
async function startProxy(context: TestContext, places: readonly Place[]): Promise<Proxy> {
  assert.ok(
    spawnSync('haproxy', ['-v']).error === undefined,
    'haproxy must be installed (Debian: apt-get install haproxy)',
  );
  const folder = temporaryFolder();
  const [port, pagePort] = [await unusedPort(), await unusedPort()];
  const socket = join(folder, 'admin.sock');
  let configuration = CONFIGURATION;
  const replace = (from: string, to: string) => {
    assert.ok(configuration.includes(from), from);
    configuration = configuration.replaceAll(from, to);
  };
  replace('bind :443 ssl crt /etc/haproxy/books.pem', `bind 127.0.0.1:${port}`);
  replace('bind :8443 ssl crt /etc/haproxy/books.pem', `bind 127.0.0.1:${pagePort}`);
  replace('/run/haproxy/admin.sock', socket);
  replace('log /dev/log local0', '');
  replace('check port 8081', 'check');
  for (const { address, port, operations, page } of places) {
    replace(`${address}:8080`, `127.0.0.1:${port} port ${operations}`);
    replace(`${address}:8082`, `127.0.0.1:${page} port ${operations}`);
  }
  const file = join(folder, 'haproxy.cfg');
  writeFileSync(file, configuration);
  const haproxy: ChildProcess = spawn('haproxy', ['-db', '-q', '-f', file], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  context.after(async () => {
    haproxy.kill('SIGTERM');
    if (haproxy.exitCode === null && haproxy.signalCode === null) await once(haproxy, 'exit');
  });
  await waitUntil(async () => {
    if (haproxy.exitCode !== null) throw new Error(`haproxy exited with code ${haproxy.exitCode}`);
    return existsSync(socket) && (await accepts('127.0.0.1', port));
  });

  const ask = async (command: string) => {
    const connection = connect(socket);
    connection.end(`${command}\n`);
    return text(connection);
  };
  /** The columns of the statistics of a service's places in the backends. */
  const statistics = async ({ name }: Place) => {
    const [header = '', ...lines] = (await ask('show stat')).slice('# '.length).trim().split('\n');
    const columns = header.split(',');
    const column = (line: string, wanted: string) => line.split(',')[columns.indexOf(wanted)];
    return lines
      .filter((line) => column(line, 'svname') === name)
      .map((line) => ({ status: column(line, 'status'), sessions: Number(column(line, 'scur')) }));
  };
  return {
    url: `http://127.0.0.1:${port}`,
    pageUrl: `http://127.0.0.1:${pagePort}`,
    port,
    async tell({ name }, state) {
      for (const backend of ['services', 'pages', 'logins']) {
        assert.equal((await ask(`set server ${backend}/${name} state ${state}`)).trim(), '');
      }
    },
    isUp: async (place) => (await statistics(place)).every(({ status }) => status === 'UP'),
    sessions: async (place) => (await statistics(place)).reduce((sum, { sessions }) => sum + sessions, 0),
  };
}
