// Owns: nginx and Caddy in front of a service, and deploy/nginx.conf as they are told to use it. Needs the packages nginx and caddy.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { accepts, type Target } from '../support/client.ts';
import { unusedPort } from '../support/ports.ts';
import { pathTo } from '../support/repository.ts';
import { temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';
import { type Program, startProgram } from './programs.ts';

export interface Nginx extends Target {
  /** Resolves once no process of it has the earlier configuration. */
  reload(http: string): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts nginx in a separate folder, on a free port.
 * @param configure returns what its http section has, for this port.
 */
export async function startNginx(configure: (port: number) => string): Promise<Nginx> {
  const folder = temporaryFolder();
  const port = await unusedPort();
  const file = join(folder, 'nginx.conf');
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => {
    mkdirSync(join(folder, name));
    return `${name}_temp_path ${folder}/${name};`;
  });
  const write = (http: string) => {
    const whole = `daemon off;
user root; # it keeps large bodies in the folder
pid ${folder}/nginx.pid;
events { worker_connections 1024; }
http {
  access_log off;
  ${temporary.join(' ')}
  ${http}
}`;
    writeFileSync(file, whole);
  };
  write(configure(port));
  const { pid, signal, stop } = await startProgram(
    ['nginx', '-p', folder, '-c', file, '-e', join(folder, 'error.log')],
    () => accepts('127.0.0.1', port),
  );
  const workers = () => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    stop,
    async reload(http) {
      const old = workers();
      write(http);
      signal('SIGHUP');
      await waitUntil(() => {
        const now = workers();
        return now.length > 0 && !now.some((pid) => old.includes(pid));
      });
    },
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
