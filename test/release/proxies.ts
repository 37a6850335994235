// Owns: nginx, HAProxy and Caddy in front of a service, with the configurations of deploy/. Needs their packages.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { accepts, type Target } from '../support/client.ts';
import { adjacentPorts, unusedPort } from '../support/ports.ts';
import { pathTo } from '../support/repository.ts';
import { temporaryFolder } from '../support/service.ts';
import { type Program, startProgram } from './programs.ts';

export type ReverseProxy = Target & Program;

/**
 * Starts nginx in a separate folder, on a free port.
 * @param configure returns what its http section has, for this port.
 */
export async function startNginx(configure: (port: number) => string): Promise<ReverseProxy> {
  const folder = temporaryFolder();
  const port = await unusedPort();
  const file = join(folder, 'nginx.conf');
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => {
    mkdirSync(join(folder, name));
    return `${name}_temp_path ${folder}/${name};`;
  });
  const whole = `daemon off;
user root; # it keeps large bodies in the folder
pid ${folder}/nginx.pid;
events { worker_connections 1024; }
http {
  access_log off;
  ${temporary.join(' ')}
  ${configure(port)}
}`;
  writeFileSync(file, whole);
  const command = ['nginx', '-p', folder, '-c', file, '-e', join(folder, 'error.log')];
  const program = await startProgram(command, () => accepts('127.0.0.1', port));
  return { ...program, url: `http://127.0.0.1:${port}`, port };
}

/**
 * Starts HAProxy with deploy/haproxy.cfg on free ports, without TLS.
 * @param changes what else is replaced in it, each from and to.
 */
export async function startHaproxy(changes: readonly (readonly [from: string, to: string])[]) {
  const folder = temporaryFolder();
  const port = await adjacentPorts(2);
  const [socket, file] = [join(folder, 'admin.sock'), join(folder, 'haproxy.cfg')];
  let configuration = readFileSync(pathTo('deploy/haproxy.cfg'), 'utf8');
  for (const [from, to] of [
    ['bind :443 ssl crt /etc/haproxy/books.pem', `bind 127.0.0.1:${port}`],
    ['bind :8443 ssl crt /etc/haproxy/books.pem', `bind 127.0.0.1:${port + 1}`],
    ['/run/haproxy/admin.sock', socket],
    ['log /dev/log local0', ''],
    ...changes,
  ] as const) {
    assert.ok(configuration.includes(from), from);
    configuration = configuration.replaceAll(from, to);
  }
  writeFileSync(file, configuration);
  const isUp = async () => existsSync(socket) && (await accepts('127.0.0.1', port));
  const program = await startProgram(['haproxy', '-db', '-q', '-f', file], isUp);
  return {
    ...program,
    url: `http://127.0.0.1:${port}`,
    pageUrl: `http://127.0.0.1:${port + 1}`,
    port,
    socket,
  };
}

/**
 * deploy/nginx.conf on a port, with these processes behind it.
 * @param ports of their API.
 * @param pages ports of the pages of two processes.
 */
export function documented(port: number, ports: readonly number[], pages = [1, 1]): string {
  return readFileSync(pathTo('deploy/nginx.conf'), 'utf8')
    .replace(
      /^ *server 127\.0\.0\.1:8080 (.*)\n.*:8090 .*$/m,
      ports.map((port) => `  server 127.0.0.1:${port} $1`).join('\n'),
    )
    .replace('127.0.0.1:8082', `127.0.0.1:${pages[0]}`)
    .replace('127.0.0.1:8092', `127.0.0.1:${pages[1]}`)
    .replace('server {\n', `server {\n  listen 127.0.0.1:${port};\n`);
}

/** Starts Caddy. @param sites the part of a Caddyfile behind the global options, with a site on this port. */
export async function startCaddy(port: number, sites: string): Promise<Program> {
  const home = temporaryFolder();
  const file = join(home, 'Caddyfile');
  writeFileSync(file, `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${sites}`);
  const command = ['caddy', 'run', '--config', file, '--adapter', 'caddyfile'];
  const env = { ...process.env, HOME: home, XDG_DATA_HOME: home, XDG_CONFIG_HOME: home };
  return startProgram(command, () => accepts('127.0.0.1', port), env);
}
