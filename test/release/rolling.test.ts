// Replacing one process after the other behind a proxy, as an upgrade does: no request is lost. The system's nginx, in
// front of two real services on one store.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { accepts, type Target } from '../support/client.ts';
import { startLoad } from '../support/load.ts';
import { unusedPort } from '../support/ports.ts';
import { type ServiceProcess, STORES, startServiceProcess, temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const REQUESTS = 10_000;
const CLIENTS = 24;
/** Requests after which each connection that nginx keeps has been used. */
const SOME = 300;
/** Replacements of both processes, one after the other. */
const REPLACEMENTS = 8;
/**
 * A connection that arrives at the very moment a process stops listening is refused by the system, and nginx must not
 * retry a request that is not idempotent. A process that leaves its requests unfinished loses about twelve.
 */
const STRAY = 3;
describe('a rolling change behind nginx', () => {
  for (const store of STORES) {
    test(`rule 27: on ${store.name}, no request is lost if nginx is reconfigured first`, async (context) => {
      const { lost, answered } = await roll(context, await store.freshUrl(), 'reconfigured');
      assert.equal(lost, 0, `${lost} of ${answered} were lost`);
    });

    test(`rule 27: on ${store.name}, at most ${STRAY} requests a replacement are lost if nginx is not reconfigured`, async (context) => {
      const { lost, answered, replaced } = await roll(context, await store.freshUrl(), 'unchanged');
      assert.ok(lost <= STRAY * replaced, `${lost} of ${answered} were lost in ${replaced} replacements`);
    });
  }
});

/** Replaces two processes in turn under load. */
async function roll(
  context: TestContext,
  dbUrl: string,
  nginx: 'reconfigured' | 'unchanged',
): Promise<{ lost: number; answered: number; replaced: number }> {
  const ports = [await unusedPort(), await unusedPort()] as const;
  const services = [await start(context, dbUrl, ports[0]), await start(context, dbUrl, ports[1])];
  const proxy = await startProxy(context, ports, nginx === 'reconfigured');
  const { token } = (services[0] as ServiceProcess).client;
  const load = startLoad(proxy, token, CLIENTS, ['acknowledged']);
  let answered = 0;
  let replaced = 0;
  for (; replaced < REPLACEMENTS || answered < REQUESTS; replaced += 1) {
    answered = await load.more(SOME);
    const leaving = services[replaced % 2] as ServiceProcess;
    if (nginx === 'reconfigured') await proxy.sendTo([leaving.port === ports[0] ? ports[1] : ports[0]]);
    leaving.process.kill('SIGTERM');
    const [code] = await once(leaving.process, 'exit');
    assert.equal(code, 0);
    services[replaced % 2] = await start(context, dbUrl, leaving.port);
    if (nginx === 'reconfigured') await proxy.sendTo(ports);
  }
  answered = await load.more(SOME);
  const { length: lost } = await load.stop((services[0] as ServiceProcess).client);
  context.diagnostic(`${answered} requests answered, ${lost} lost in ${replaced} replacements`);
  return { lost, answered, replaced };
}

async function start(context: TestContext, dbUrl: string, port: number): Promise<ServiceProcess> {
  const service = await startServiceProcess(dbUrl, { PORT: String(port), ADMIN_PORT: '0', PAGE_PORT: '0' });
  context.after(() => service.process.kill('SIGKILL'));
  return service;
}

interface Proxy extends Target {
  /** Sends requests to these services only; resolves once no process of nginx sends any elsewhere. */
  sendTo(services: readonly number[]): Promise<void>;
}

/** @param reloads whether it will be reconfigured, which would break idle connections of its clients. */
async function startProxy(
  context: TestContext,
  services: readonly number[],
  reloads: boolean,
): Promise<Proxy> {
  assert.ok(
    spawnSync('nginx', ['-v']).error === undefined,
    'nginx must be installed (Debian: apt-get install nginx)',
  );
  const folder = temporaryFolder();
  const port = await unusedPort();
  const file = join(folder, 'nginx.conf');
  const configure = (chosen: readonly number[]) => {
    writeFileSync(
      file,
      `
      daemon off;
      ${process.getuid?.() === 0 ? 'user root;' : ''}
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
          ${chosen.map((service) => `server 127.0.0.1:${service} max_fails=0;`).join('\n')}
          keepalive 16;
        }
        server {
          listen 127.0.0.1:${port};
          keepalive_requests 1000000;
          keepalive_timeout ${reloads ? 0 : 60};
          location / {
            proxy_pass http://catalogue;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
          }
        }
      }`,
    );
  };
  configure(services);
  const nginx: ChildProcess = spawn('nginx', ['-p', folder, '-c', file, '-e', 'error.log'], {
    stdio: 'ignore',
  });
  context.after(async () => {
    nginx.kill('SIGTERM');
    if (nginx.exitCode === null && nginx.signalCode === null) await once(nginx, 'exit');
  });
  await waitUntil(() => accepts('127.0.0.1', port));
  const workers = () => {
    return readFileSync(`/proc/${nginx.pid}/task/${nginx.pid}/children`, 'utf8').split(' ').filter(Boolean);
  };
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    async sendTo(chosen) {
      const old = workers();
      configure(chosen);
      nginx.kill('SIGHUP');
      await waitUntil(() => {
        const now = workers();
        return now.length > 0 && !now.some((pid) => old.includes(pid));
      });
    },
  };
}
