// Owns: a real cluster for tests: three members of etcd and three PostgreSQL servers kept by Patroni, with the
// configuration of deploy/cluster, on Debian 13. Each of its three machines is a network namespace of this one. They die,
// freeze or lose their network one by one.
// Does not: run without root and `debootstrap`.

import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { execute } from '../support/postgres.ts';
import { pathTo } from '../support/repository.ts';
import { STORES_FOLDER } from '../support/stores-folder.ts';
import { waitUntil } from '../support/wait.ts';

/** The programs of a machine, by the names that the system shows. */
export type Program = 'etcd' | 'patroni' | 'postgres';

/** What Patroni says of a server. */
interface Member {
  readonly name: string;
  readonly role: string;
  readonly state: string;
}

const BRIDGE = 'books';
const SUPERUSER_PASSWORD = 'change-me-2';
const PASSWORD = 'secret';

/** Milliseconds for Patroni or a server to answer a question of a test; a cluster has members that never do. */
const ANSWER_TIMEOUT = 1000;

/** The Debian whose programs the machines run, so that their versions are the same wherever the tests run. */
const RELEASE = 'trixie';
const PACKAGES = ['etcd-server', 'patroni', 'postgresql'];

/** Its folder, which is kept for the next run: it takes some minutes to install. */
const SYSTEM = '/var/cache/book-catalogue-tests/cluster';

/** Where Debian's packages keep what belongs to one machine, and who owns it. */
const OWN_FOLDERS: readonly (readonly [path: string, owner: string])[] = [
  ['/var/lib/postgresql', 'postgres'],
  ['/run/postgresql', 'postgres'],
  ['/var/lib/etcd', 'etcd'],
];

const run = async (program: string, ...args: string[]) =>
  (await promisify(execFile)(program, args)).stdout.trim();

/** One of the three machines. */
export class Machine {
  readonly name: string;
  readonly address: string;
  /** Also the end of its network cable at the bridge. */
  readonly #namespace: string;
  readonly #folder: string;

  /** @param folder for the files of each machine. */
  constructor(number: number, folder: string) {
    this.name = `n${number}`;
    this.address = `10.77.0.1${number}`;
    this.#namespace = `${BRIDGE}-${this.name}`;
    this.#folder = join(folder, this.name);
  }

  /** Makes the namespace, and the folders that only it has. */
  async create(): Promise<void> {
    await this.remove(); // of an earlier run that was killed
    await run('ip', 'netns', 'add', this.#namespace);
    const inside = ['name', 'eth0', 'netns', this.#namespace];
    await run('ip', 'link', 'add', this.#namespace, 'type', 'veth', 'peer', ...inside);
    await run('ip', 'link', 'set', this.#namespace, 'master', BRIDGE, 'up');
    await this.#ip('addr', 'add', `${this.address}/24`, 'dev', 'eth0');
    await this.#ip('link', 'set', 'eth0', 'up');
    await this.#ip('link', 'set', 'lo', 'up');
    for (const [path] of OWN_FOLDERS) mkdirSync(join(this.#folder, path), { recursive: true });
  }

  /** Ends its programs and removes it, if it is there. */
  async remove(): Promise<void> {
    await removeLink(this.#namespace);
    if (!(await run('ip', 'netns', 'list')).split(/\s/).includes(this.#namespace)) return;
    await this.signal('SIGKILL');
    await run('ip', 'netns', 'delete', this.#namespace);
  }

  /** Sends a signal to one of its programs, or to all of them. */
  async signal(signal: NodeJS.Signals, ...programs: readonly Program[]): Promise<void> {
    for (const pid of await this.pids(...programs)) {
      try {
        process.kill(pid, signal);
      } catch {} // it has just ended
    }
  }

  async pids(...programs: readonly Program[]): Promise<number[]> {
    const pids = (await run('ip', 'netns', 'pids', this.#namespace)).split('\n').map(Number).filter(Boolean);
    return pids.filter((pid) => programs.length === 0 || programs.includes(nameOf(pid) as Program));
  }

  /** Pulls out its network cable. */
  async unplug(): Promise<void> {
    await run('ip', 'link', 'set', this.#namespace, 'down');
  }

  /** Loses packets to another machine. */
  async cutFrom(other: Machine): Promise<void> {
    await this.#ip('route', 'add', 'blackhole', other.address);
  }

  /** Thaws it, restores its network, and starts what does not run. */
  async heal(): Promise<void> {
    await this.signal('SIGCONT');
    await run('ip', 'link', 'set', this.#namespace, 'up');
    await this.#ip('route', 'flush', 'type', 'blackhole');
    if ((await this.pids('etcd')).length === 0) this.#start('etcd', ['etcd'], this.#settings('etcd.env'));
    if ((await this.pids('patroni')).length > 0) return;
    this.#start('postgres', ['patroni', '/mnt/patroni.yml'], this.#settings('patroni.env'));
  }

  /** Whether its PostgreSQL acknowledges a write: it is the primary, and has a synchronous standby. */
  async acknowledges(): Promise<boolean> {
    const client = new pg.Client({
      connectionString: `postgres://postgres:${SUPERUSER_PASSWORD}@${this.address}/postgres`,
      connectionTimeoutMillis: ANSWER_TIMEOUT,
      query_timeout: ANSWER_TIMEOUT,
    });
    client.on('error', () => {});
    try {
      await client.connect();
      await client.query('insert into probes values (1)');
      return true;
    } catch {
      return false;
    } finally {
      client.end().catch(() => {});
    }
  }

  /** The cluster as its Patroni sees it; none when that does not answer. */
  async members(): Promise<readonly Member[]> {
    try {
      const answer = await fetch(`http://${this.address}:8008/cluster`, {
        signal: AbortSignal.timeout(ANSWER_TIMEOUT),
      });
      return ((await answer.json()) as { members: Member[] }).members;
    } catch {
      return [];
    }
  }

  #ip(...args: string[]): Promise<string> {
    return run('ip', '-n', this.#namespace, ...args);
  }

  /** Starts a program with the folders of this machine. Its output goes to a file beside them. */
  #start(user: string, command: readonly string[], env: Record<string, string>): void {
    const mounts = [
      `mount --bind ${pathTo('deploy/cluster')} mnt`,
      'mount -t proc proc proc',
      'mount -t tmpfs -o mode=1777 tmpfs dev/shm',
      ...OWN_FOLDERS.flatMap(([path, owner]) => [
        `mount --bind ${join(this.#folder, path)} .${path}`,
        `chroot . chown ${owner}: ${path}`,
      ]),
    ];
    // The mounts are seen by this program only, and end with it.
    const change = `exec chroot . setpriv --reuid ${user} --regid ${user} --init-groups "$@"`;
    const script = ['set -e', ...mounts, change].join('\n');
    const output = openSync(join(this.#folder, `${command[0]}.log`), 'a');
    const child = spawn('ip', ['netns', 'exec', this.#namespace, 'sh', '-c', script, 'sh', ...command], {
      cwd: SYSTEM,
      env: { ...env, PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
      stdio: ['ignore', output, output],
      detached: true, // an interrupt at the terminal is the test's
    });
    child.unref();
  }

  /** The settings of a file in deploy/cluster, with the name and the address of this machine. */
  #settings(file: string): Record<string, string> {
    const lines = readFileSync(pathTo(`deploy/cluster/${file}`), 'utf8').matchAll(/^([A-Z_]+)=(.*)$/gm);
    return Object.fromEntries(
      [...lines].map(([, name = '', value = '']) => {
        const own = value.replace(/^n1$/, this.name).replace('10.77.0.11', this.address);
        return [name, name === 'ETCD_INITIAL_CLUSTER' ? value : own];
      }),
    );
  }
}

export class Cluster {
  readonly machines: readonly Machine[];
  /** DB_URL of a service. */
  readonly url: string;
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.machines = [1, 2, 3].map((number) => new Machine(number, folder));
    const hosts = this.machines.map(({ address }) => address);
    this.url = `postgres://catalogue:${PASSWORD}@${hosts}/catalogue?target_session_attrs=read-write`;
  }

  /** Starts the cluster, with an empty database for the service. */
  static async start(): Promise<Cluster> {
    await installSystem();
    const folder = mkdtempSync(join(STORES_FOLDER, 'book-catalogue-cluster-'));
    await run('chmod', '755', folder); // its programs run as other users
    const cluster = new Cluster(folder);
    // The runner ends its files so when it is interrupted.
    process.once('SIGTERM', () => void cluster.remove().finally(() => process.exit(1)));
    await removeLink(BRIDGE); // of an earlier run that was killed
    await run('ip', 'link', 'add', BRIDGE, 'type', 'bridge');
    await run('ip', 'addr', 'add', '10.77.0.1/24', 'dev', BRIDGE);
    await run('ip', 'link', 'set', BRIDGE, 'up');
    for (const machine of cluster.machines) await machine.create();
    await cluster.heal();
    const { address } = await cluster.the('leader');
    const admin = `postgres://postgres:${SUPERUSER_PASSWORD}@${address}/postgres`;
    await execute(admin, `create role catalogue login password '${PASSWORD}'`);
    await execute(admin, 'create table probes (probe integer)');
    await execute(admin, "create database catalogue owner catalogue encoding 'UTF8' template template0");
    return cluster;
  }

  /** Heals its machines, and waits until there are a leader and two standbys that follow it, one of them synchronous. */
  async heal(): Promise<void> {
    await Promise.all(this.machines.map((machine) => machine.heal()));
    await waitUntil(async () => {
      const views = await Promise.all(this.machines.map((machine) => machine.members()));
      return views.every((members) => {
        const states = members.map(({ role, state }) => `${role} ${state}`);
        return states.toSorted().join() === 'leader running,replica streaming,sync_standby streaming';
      });
    });
  }

  /** The machine with a role: `leader` takes writes. */
  async the(role: 'leader' | 'sync_standby'): Promise<Machine> {
    let found: Machine | undefined;
    await waitUntil(async () => {
      const members = (await Promise.all(this.machines.map((machine) => machine.members()))).flat();
      const name = members.find((member) => member.role === role)?.name;
      found = this.machines.find((machine) => machine.name === name);
      return found !== undefined;
    });
    return found as Machine;
  }

  /** Asks the cluster to make its synchronous standby the leader. */
  async switchOver(): Promise<void> {
    const [leader, candidate] = [await this.the('leader'), await this.the('sync_standby')];
    const answer = await fetch(`http://${leader.address}:8008/switchover`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa('patroni:change-me-1')}` },
      body: JSON.stringify({ leader: leader.name, candidate: candidate.name }),
    });
    if (!answer.ok) throw new Error(`Patroni refused: ${await answer.text()}`);
  }

  /** Ends it and removes its files. */
  async remove(): Promise<void> {
    for (const machine of this.machines) await machine.remove();
    await removeLink(BRIDGE);
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Installs the programs of the machines, unless an earlier run has. */
async function installSystem(): Promise<void> {
  if (existsSync(SYSTEM)) return;
  const unfinished = `${SYSTEM}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true }); // of an earlier run that was killed
  mkdirSync(dirname(SYSTEM), { recursive: true });
  await run('debootstrap', '--variant=minbase', `--include=${PACKAGES}`, RELEASE, unfinished);
  renameSync(unfinished, SYSTEM);
}

async function removeLink(name: string): Promise<void> {
  if ((await run('ip', '-o', 'link')).match(new RegExp(` ${name}[@:]`)))
    await run('ip', 'link', 'delete', name);
}

/** A process by the name that the system shows; empty when it has ended. */
function nameOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return '';
  }
}
