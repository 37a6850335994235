// Replacing one process after the other behind a proxy, as an upgrade does: no request is lost. A real
// nginx from the system, in front of two real services on one store.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { accepts, Client, type Target } from '../support/client.ts';
import { Ledger } from '../support/ledger.ts';
import { freePort } from '../support/postgres.ts';
import { type ServiceProcess, STORES, startServiceProcess, temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const REQUESTS = 10_000;
const CLIENTS = 24;
/** Of both processes, one after the other. */
const REPLACEMENTS = 8;

describe('a rolling change behind nginx', { timeout: 180_000 }, () => {
  for (const store of STORES) {
    for (const connections of ['kept', 'new for each request'] as const) {
      test(`rule 27: on ${store.name}, no request is lost, connections to the services ${connections}`, async (context) => {
        const dbUrl = await store.freshUrl();
        const ports = [await freePort(), await freePort()] as const;
        const services = [await start(context, dbUrl, ports[0]), await start(context, dbUrl, ports[1])];
        const proxy = await startProxy(context, ports, connections === 'kept');
        const ledger = new Ledger();
        const lost: string[] = [];
        let answered = 0;
        let done = false;

        const clients = Array.from({ length: CLIENTS }, async (_, position) => {
          const client = new Client(proxy, (services[0] as ServiceProcess).client.token);
          const writer = ledger.writer(client);
          while (!done) {
            try {
              if (position % 3 === 0) {
                assert.equal((await client.request('GET', '/book/1')).data?.id ?? 1, 1);
              } else {
                assert.equal(await writer.write(), 'acknowledged');
              }
              answered += 1;
            } catch (error) {
              lost.push(String(error));
            }
          }
        });
        /** Enough requests that each connection that nginx keeps has had its turn. */
        const someRequests = async () => {
          const enough = answered + 300;
          await waitUntil(() => answered >= enough || lost.length > 0);
        };
        for (let count = 0; (count < REPLACEMENTS || answered < REQUESTS) && lost.length === 0; count += 1) {
          await someRequests();
          const leaving = services[count % 2] as ServiceProcess;
          leaving.process.kill('SIGTERM');
          const [code] = await once(leaving.process, 'exit', { signal: AbortSignal.timeout(10_000) });
          assert.equal(code, 0);
          services[count % 2] = await start(context, dbUrl, leaving.port);
        }
        await someRequests();
        done = true;
        await Promise.all(clients);

        assert.deepEqual(lost, [], `${lost.length} of ${answered} lost; nginx says: ${proxy.log()}`);
        ledger.reconcile(await (services[0] as ServiceProcess).client.list());
        context.diagnostic(`${answered} requests answered, none lost`);
      });
    }
  }
});

async function start(context: TestContext, dbUrl: string, port: number): Promise<ServiceProcess> {
  const service = await startServiceProcess(dbUrl, { PORT: String(port) });
  context.after(() => service.process.kill('SIGKILL'));
  return service;
}

interface Proxy extends Target {
  /** What nginx has complained of. */
  log(): string;
}

/** @param keep whether nginx keeps its connections to the services. */
async function startProxy(context: TestContext, services: readonly number[], keep: boolean): Promise<Proxy> {
  assert.ok(
    spawnSync('nginx', ['-v']).error === undefined,
    'nginx must be installed (Debian: apt-get install nginx)',
  );
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'logs'));
  const port = await freePort();
  const file = join(folder, 'nginx.conf');
  writeFileSync(
    file,
    `
    daemon off;
    master_process off;
    pid nginx.pid;
    error_log error.log warn;
    events { worker_connections 1024; }
    http {
      access_log off;
      client_body_temp_path body;
      proxy_temp_path proxy;
      fastcgi_temp_path fastcgi;
      uwsgi_temp_path uwsgi;
      scgi_temp_path scgi;
      upstream catalogue {
        ${services.map((service) => `server 127.0.0.1:${service} max_fails=0;`).join('\n')}
        ${keep ? 'keepalive 16;' : ''}
      }
      server {
        listen 127.0.0.1:${port};
        keepalive_requests 1000000;
        location / {
          proxy_pass http://catalogue;
          ${keep ? 'proxy_http_version 1.1; proxy_set_header Connection "";' : ''}
        }
      }
    }`,
  );
  const nginx: ChildProcess = spawn('nginx', ['-p', folder, '-c', file, '-e', 'error.log'], {
    stdio: 'ignore',
  });
  context.after(async () => {
    nginx.kill('SIGKILL');
    if (nginx.exitCode === null && nginx.signalCode === null) await once(nginx, 'exit');
  });
  await waitUntil(() => accepts('127.0.0.1', port));
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    log() {
      const lines = readFileSync(join(folder, 'error.log'), 'utf8').split('\n');
      return lines.filter((line) => !line.includes('Connection refused')).join('\n'); // asked of the other, then
    },
  };
}
