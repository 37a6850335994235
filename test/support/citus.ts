// Owns: a cluster of Citus for tests, which exists already: new and empty catalogues that it distributes, and its servers, which
// die, freeze or lose their network one by one if they run on this machine.
// Does not: install Citus or make a cluster.

import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { execute } from './postgres.ts';
import { pathTo } from './repository.ts';
import { waitUntil } from './wait.ts';

/** The environment variable with the URL of an empty database on the coordinator, as a superuser. */
export const COORDINATOR = 'TEST_CITUS_URL';

/** Where the tests keep their catalogues, which end with the run. */
const SCHEMAS = 'test_';

let schemas = 0;

/** @throws Error with the reason if the database is not an empty one of a coordinator with workers. */
export async function assertUsable(url: string): Promise<void> {
  const [found] = await execute<{ workers: number; books: string | null; isSuperuser: boolean }>(
    url,
    `select (select count(*)::integer from citus_get_active_worker_nodes()) as workers,
      to_regclass('books') as books, current_setting('is_superuser') = 'on' as "isSuperuser"`,
  );
  if (!found?.workers) throw new Error('it has no workers');
  if (found.books !== null) throw new Error('it has a table "books"');
  if (!found.isSuperuser) throw new Error('its role is no superuser');
}

/** A catalogue without books, in a new schema, that deploy/distribute-books.sql has distributed. */
export async function distributedCatalogue(): Promise<string> {
  const coordinator = process.env[COORDINATOR] as string;
  schemas += 1;
  const schema = `${SCHEMAS}${process.pid}_${schemas}`;
  await execute(coordinator, `create schema ${schema}`);
  const url = new URL(coordinator);
  url.searchParams.set('options', `-c search_path=${schema}`);
  await execute(url.href, readFileSync(pathTo('deploy/distribute-books.sql'), 'utf8'));
  return url.href;
}

/** Removes the catalogues of a run. */
export async function removeCatalogues(): Promise<void> {
  const coordinator = process.env[COORDINATOR] as string;
  const left = `select nspname as name from pg_namespace where nspname like '${SCHEMAS.replace('_', '\\_')}%'`;
  for (const { name } of await execute<{ name: string }>(coordinator, left)) {
    await execute(coordinator, `drop schema ${name} cascade`);
  }
}

/** A server of the cluster, on this machine. */
export class CitusServer {
  readonly url: string;
  /** Of its postmaster. */
  #pid: number;
  #killed: readonly number[] = [];
  readonly #args: readonly string[];
  readonly #env: NodeJS.ProcessEnv;

  private constructor(pid: number, url: string) {
    this.#pid = pid;
    this.url = url;
    const [, user, group] =
      /^Uid:\s+(\d+)[\s\S]*^Gid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    const [command, environment] = ['cmdline', 'environ'].map((file) =>
      readFileSync(`/proc/${pid}/${file}`, 'utf8').split('\0').slice(0, -1),
    ) as [string[], string[]];
    this.#env = Object.fromEntries(environment.map((variable) => variable.split(/=(.*)/s, 2)));
    this.#args = [`--userspec=${user}:${group}`, readlinkSync(`/proc/${pid}/root`), ...command];
  }

  /** @param url of a database on it, as a superuser. */
  static async at(url: string): Promise<CitusServer> {
    const pid = "select split_part(pg_read_file('postmaster.pid'), e'\\n', 1)::integer as pid";
    const [row] = await execute<{ pid: number }>(url, pid);
    return new CitusServer(row?.pid as number, url);
  }

  /** The servers that keep the shards. */
  static async workers(): Promise<CitusServer[]> {
    const coordinator = process.env[COORDINATOR] as string;
    const nodes =
      'select node_name as name, node_port as port from citus_get_active_worker_nodes() order by port';
    const found = await execute<{ name: string; port: number }>(coordinator, nodes);
    return Promise.all(
      found.map(({ name, port }) => {
        const url = new URL(coordinator);
        url.host = `${name}:${port}`;
        return CitusServer.at(url.href);
      }),
    );
  }

  kill(): void {
    this.#killed = this.#family();
    this.#signal('SIGKILL');
  }

  freeze(): void {
    this.#signal('SIGSTOP');
  }

  thaw(): void {
    this.#signal('SIGCONT');
  }

  /** As it was started before, once the system has forgotten its processes. */
  async startAgain(): Promise<void> {
    await waitUntil(() => this.#killed.every((pid) => !existsSync(`/proc/${pid}`)));
    const child = spawn('/usr/sbin/chroot', this.#args, { stdio: 'ignore', detached: true, env: this.#env });
    child.unref();
    this.#pid = child.pid as number;
    await waitUntil(
      () =>
        execute(this.url, 'select').then(
          () => true,
          () => false,
        ),
      () => child.exitCode ?? undefined,
    );
  }

  #signal(signal: NodeJS.Signals): void {
    for (const pid of this.#family()) {
      try {
        process.kill(pid, signal);
      } catch {
        // it has just ended
      }
    }
  }

  /** The postmaster and its children. */
  #family(): number[] {
    const all = readdirSync('/proc').map(Number).filter(Number.isInteger);
    return all.filter((pid) => pid === this.#pid || parentOf(pid) === this.#pid);
  }
}

/** @returns undefined if there is no such process, or only what is left of it. */
function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' ? undefined : Number(parent);
  } catch {
    return undefined;
  }
}
