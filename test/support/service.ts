// Owns: services under test, in this process on a real socket or as the real command in a process of its own, and the
// stores they run on, new and empty for each.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { readConfig } from '../../src/config.ts';
import { createLog } from '../../src/log/log.ts';
import { startService } from '../../src/service.ts';
import { Client, type Target } from './client.ts';
import { freshDatabase } from './postgres.ts';
import { COMMAND } from './repository.ts';
import { STORES_FOLDER } from './stores-folder.ts';

interface TestedStore {
  readonly name: 'SQLite' | 'PostgreSQL';
  /** The URL of an empty store that nothing else uses. */
  freshUrl(): Promise<string>;
}

export const SQLITE: TestedStore = {
  name: 'SQLite',
  freshUrl: async () => `sqlite:${join(temporaryFolder(STORES_FOLDER), 'books.db')}`,
};
export const POSTGRES: TestedStore = { name: 'PostgreSQL', freshUrl: freshDatabase };

/** The environment variable that names the only store to test; without it, all stores are tested. */
export const ONLY_STORE = 'TEST_STORE';

/** The stores that the contract is tested on. */
export const STORES = [SQLITE, POSTGRES].filter(({ name }) => name === (process.env[ONLY_STORE] ?? name));

/** The secret that services under test sign with. */
export const SECRET = 'a secret for tests that is long enough';

export const ENVIRONMENT = {
  PORT: '0',
  HOST: '127.0.0.1',
  SECRET_TOKEN: SECRET,
  AUTH_USERNAME: 'librarian',
  AUTH_PASSWORD: 'correct horse',
  LOG_LEVEL: 'silent',
};

export interface RunningService extends Target {
  readonly dbUrl: string;
  readonly client: Client;
  stop(): Promise<void>;
}

/**
 * Starts a service in this process.
 * @param log receives its lines; it gets none unless LOG_LEVEL is set.
 */
export async function startTestService(
  dbUrl: string,
  env: Record<string, string> = {},
  log: { write(line: string): void } = process.stderr,
): Promise<RunningService> {
  const config = readConfig({ ...ENVIRONMENT, DB_URL: dbUrl, ...env }, () => new Uint8Array());
  const service = await startInTime(() => startService(config, createLog(config.logLevel, log)));
  const { port } = new URL(service.url);
  const target = { url: service.url, port: Number(port) };
  const client = await Client.logIn(target);
  await openConnections(client, dbUrl);
  return { ...target, dbUrl, client, stop: () => service.close() };
}

/**
 * Starts a service, and retries if the machine stalled for so long that the timeout for PostgreSQL's answer to a start
 * expired. That timeout is tested in test/limits.
 */
async function startInTime<Service>(start: () => Promise<Service>): Promise<Service> {
  for (;;) {
    try {
      return await start();
    } catch (error) {
      if (!/ cannot be opened: timeout expired\.\s*$/.test((error as Error).message)) throw error;
      console.error(`retrying: ${(error as Error).message}`);
    }
  }
}

/**
 * Makes the service open its first connections to PostgreSQL. Opening one may take 1.5 s; a machine that stalls exceeds
 * that, and the first requests of a test would be 503.
 */
async function openConnections(client: Client, dbUrl: string): Promise<void> {
  if (dbUrl.startsWith('sqlite:')) return;
  const absent = (method: string) => client.request(method, '/book/9007199254740991', { body: {} });
  await Promise.all(
    ['GET', 'PUT', 'DELETE'].map(async (method) => {
      while ((await absent(method)).status === 503);
    }),
  );
}

export interface CommandProcess extends Target {
  readonly process: ChildProcess;
  /** The lines that it has logged so far. */
  readonly log: string[];
  stop(): Promise<void>;
}

/**
 * Starts the real command with only the given variables in its environment, and waits until it listens.
 * @param limit a limit of the system for its process, as arguments of the shell's `ulimit`.
 */
export async function startCommand(
  env: Record<string, string>,
  folder?: string,
  limit?: string,
): Promise<CommandProcess> {
  const child = spawnService(env, [], folder, 'ignore', limit);
  const log: string[] = [];
  const url = await new Promise<string>((resolve, reject) => {
    let refusal = '';
    child.stderr?.on('data', (text) => {
      refusal += text;
    });
    child.once('close', (code) => reject(new Error(`the service exited with code ${code}: ${refusal}`)));
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      log.push(line);
      const entry = JSON.parse(line) as { msg: string; url: string };
      if (entry.msg === 'listening') resolve(entry.url);
    });
  });
  return {
    url,
    port: Number(new URL(url).port),
    process: child,
    log,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}

export interface ServiceProcess extends RunningService, CommandProcess {}

/** Starts the real command in a process of its own and logs in. */
export async function startServiceProcess(
  dbUrl: string,
  env: Record<string, string> = {},
): Promise<ServiceProcess> {
  const environment = { ...ENVIRONMENT, DB_URL: dbUrl, LOG_LEVEL: 'info', ...env };
  const command = await startInTime(() => startCommand(environment));
  const client = await Client.logIn(command);
  await openConnections(client, dbUrl);
  return { ...command, dbUrl, client };
}

/**
 * Runs the real command with only the given variables in its environment.
 * @param folder where it runs; this process's own when absent.
 * @param limit a limit of the system for its process, as arguments of the shell's `ulimit`.
 */
export function spawnService(
  env: Record<string, string>,
  args: readonly string[] = [],
  folder?: string,
  stdin: 'ignore' | 'pipe' = 'ignore',
  limit?: string,
): ChildProcess {
  const command = [process.execPath, COMMAND, ...args];
  const limited = ['/bin/sh', '-c', `ulimit ${limit}; exec "$@"`, 'sh', ...command];
  const [program = '', ...rest] = limit === undefined ? command : limited;
  return spawn(program, rest, {
    env,
    cwd: folder,
    stdio: [stdin, 'pipe', 'pipe'],
  });
}

/** Resolves at the end of a process, with its exit code and what it printed. */
export async function endOf(
  child: ChildProcess,
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  let stdout = '';
  let stderr = '';
  child.stdout?.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr?.on('data', (chunk) => {
    stderr += chunk;
  });
  try {
    const [code] = await once(child, 'close');
    return { code, stdout, stderr };
  } finally {
    child.kill('SIGKILL');
  }
}

/** The file of a SQLite store. */
export function fileOf(dbUrl: string): string {
  return dbUrl.slice('sqlite:'.length);
}

const folders: string[] = [];

/**
 * A new folder that is removed when the test process ends.
 * @param within the folder in which it is made.
 */
export function temporaryFolder(within = tmpdir()): string {
  const folder = mkdtempSync(join(within, 'book-catalogue-test-'));
  if (folders.length === 0) process.once('exit', removeFolders);
  folders.push(folder);
  return folder;
}

function removeFolders(): void {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}
