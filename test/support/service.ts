// Owns: services under test, in this process on a real socket or as the real command in a separate process, and the
// stores they run on, new and empty for each.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { readConfig } from '../../src/config.ts';
import { createLog } from '../../src/log/log.ts';
import { type Service, startService } from '../../src/service.ts';
import { TIMES, type Times } from '../../src/times.ts';
import { atEnd } from './at-end.ts';
import { COORDINATOR, distributedCatalogue } from './citus.ts';
import { Client, type Target } from './client.ts';
import { IS_PATIENT, PATIENCE } from './patience.js';
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
export const POSTGRES: TestedStore = {
  name: 'PostgreSQL',
  freshUrl: () => (process.env[COORDINATOR] === undefined ? freshDatabase() : distributedCatalogue()),
};

/** The environment variable that names the only store to test; without it, all stores are tested. */
export const ONLY_STORE = 'TEST_STORE';

/** The stores that the contract is tested on. */
export const STORES = [SQLITE, POSTGRES].filter(({ name }) => name === (process.env[ONLY_STORE] ?? name));

/** A test of what only PostgreSQL can do. */
export function testOnPostgres(title: string, work: (context: TestContext) => Promise<void>): void {
  if (STORES.includes(POSTGRES)) test(title, work);
}

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

/** What listens. */
export interface Served extends Target {
  /** The URL of the librarians' page; '' without a page. */
  readonly pageUrl: string;
}

export interface RunningService extends Served {
  readonly dbUrl: string;
  readonly client: Client;
  /** Resolves when it has ended and its log is complete; may be called again. */
  stop(): Promise<void>;
}

/**
 * Starts a service in this process, until the end of the test.
 * @param log receives its lines; it gets none unless LOG_LEVEL is set.
 * @param times as `timesWith` of times.ts returns them.
 */
export async function startTestService(
  dbUrl: string,
  env: Record<string, string> = {},
  log: { write(line: string): void } = process.stderr,
  times = TIMES as Times,
): Promise<RunningService> {
  const service = await startWithoutLogin(dbUrl, env, log, times);
  const served = servedAt(service.url, service.pageUrl);
  const client = await Client.logIn(served);
  let closing: Promise<void> | undefined;
  const stop = () => {
    closing ??= service.close();
    return closing;
  };
  atEnd(stop);
  return { ...served, dbUrl, client, stop };
}

/** The same without a login, which is a request as well. */
export function startWithoutLogin(
  dbUrl: string,
  env: Record<string, string>,
  log: { write(line: string): void },
  times: Times,
): Promise<Service> {
  const config = readConfig({ ...ENVIRONMENT, DB_URL: dbUrl, ...env });
  return startService(config, createLog(config.logLevel, log, times.log), undefined, times);
}

/** The port of the librarians' page. */
export function pageOf({ pageUrl }: Pick<Served, 'pageUrl'>): Target {
  return servedAt(pageUrl);
}

export function servedAt(url: string, pageUrl = ''): Served {
  return { url, pageUrl, port: Number(new URL(url).port) };
}

export interface CommandProcess extends Served {
  readonly process: ChildProcess;
  /** The lines that it has logged so far. */
  readonly log: string[];
  stop(): Promise<void>;
}

/** How the real command runs. */
interface Launch {
  /** Where it runs; this process's own folder when absent. */
  readonly folder?: string;
  /** A command of the shell for its process, such as `umask 077` or `ulimit -n 64`. */
  readonly setting?: string | undefined;
  /** Another one than this clone's. */
  readonly command?: readonly string[];
  readonly stdin?: 'ignore' | 'pipe';
}

/**
 * Starts the real command with only the given variables in its environment, and waits until it listens, which its log must
 * say. It is killed at the end of the test if it still runs.
 */
export async function startCommand(
  env: Record<string, string>,
  launch: Launch = {},
): Promise<CommandProcess> {
  const child = spawnService(env, [], launch);
  atEnd(() => child.kill('SIGKILL'));
  const ended = once(child, 'close'); // when all that it printed has been read
  const log: string[] = [];
  const { url, page } = await new Promise<{ url: string; page?: string }>((resolve, reject) => {
    let refusal = '';
    child.stderr?.on('data', (text) => {
      refusal += text;
    });
    child.once('close', (code) =>
      reject(new Error(`the service exited with code ${code}: ${refusal}`, { cause: refusal.trim() })),
    );
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      log.push(line);
      try {
        const entry = JSON.parse(line) as { msg: string; url: string; page?: string };
        if (entry.msg === 'listening') resolve(entry);
      } catch (error) {
        child.once('close', (_, signal) => {
          if (signal !== 'SIGKILL') throw error; // that may cut its last line off
        });
      }
    });
  });
  return {
    ...servedAt(url, page),
    process: child,
    log,
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

export interface ServiceProcess extends RunningService, CommandProcess {}

/** Starts the real command in a separate process and logs in. */
export async function startServiceProcess(
  dbUrl: string,
  env: Record<string, string> = {},
): Promise<ServiceProcess> {
  const environment = { ...ENVIRONMENT, DB_URL: dbUrl, LOG_LEVEL: 'info', ...env };
  const command = await startCommand(environment);
  const client = await Client.logIn(command);
  return { ...command, dbUrl, client };
}

/** Runs the real command with only the given variables in its environment. */
export function spawnService(
  env: Record<string, string>,
  args: readonly string[] = [],
  { folder, setting, command = COMMAND, stdin = 'ignore' }: Launch = {},
): ChildProcess {
  const words = [...command, ...args];
  const set = ['/bin/sh', '-c', `${setting}; exec "$@"`, 'sh', ...words];
  const [program = '', ...rest] = setting === undefined ? words : set;
  const isPatient = IS_PATIENT && command === COMMAND;
  const options = isPatient && { NODE_OPTIONS: `${PATIENCE} ${env.NODE_OPTIONS ?? ''}` };
  return spawn(program, rest, { env: { ...env, ...options }, cwd: folder, stdio: [stdin, 'pipe', 'pipe'] });
}

/** NODE_OPTIONS that run a script before the service. */
export function preloaded(script: string): string {
  const file = join(temporaryFolder(), 'preloaded.cjs');
  writeFileSync(file, script);
  return preloading(file);
}

/** NODE_OPTIONS that run this file before the service. */
export function preloading(file: string): string {
  return `--require=${JSON.stringify(file)}`;
}

/** Resolves at the end of a process, with its exit code and what it printed. */
export async function endOf(child: ChildProcess) {
  const printed = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const)
    child[stream]?.on('data', (chunk) => {
      printed[stream] += chunk;
    });
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    return { code, ...printed };
  } finally {
    child.kill('SIGKILL');
  }
}

/** The file of a SQLite store. */
export function fileOf(dbUrl: string): string {
  return dbUrl.slice('sqlite:'.length);
}

/**
 * A new folder that is removed when the test process ends.
 * @param within the folder in which it is made.
 */
export function temporaryFolder(within = tmpdir()): string {
  const folder = mkdtempSync(join(within, 'book-catalogue-test-'));
  folders.push(folder);
  return folder;
}

const folders: string[] = [];
process.once('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});
