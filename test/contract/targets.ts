// Owns: the list of everything that must keep the contract: every rule of the conformance kit.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { settle, startElsewhere } from '../support/elsewhere.ts';
import { OLDER_VERSIONS, type OlderVersion, olderLibrary } from '../support/older-postgres.ts';
import { execute, makeTemplate, PostgresServer } from '../support/postgres.ts';
import { pathTo } from '../support/repository.ts';
import {
  ENVIRONMENT,
  POSTGRES,
  pageOf,
  SQLITE,
  STORES,
  startCommand,
  startTestService,
} from '../support/service.ts';

/** A service without books, until the end of the suite whose hook starts it. */
export interface Started {
  readonly url: string;
}

export interface Target {
  readonly name: string;
  readonly store: (typeof STORES)[number];
  start(): Promise<Started>;
}

/** Checked before each push. */
export const STORES_ALONE: readonly Target[] = STORES.map((store) => {
  return { name: store.name, store, start: () => service(store.freshUrl()) };
});

/** Its core is checked after each push. */
export const EXECUTABLE: Target = {
  name: 'the executable',
  store: SQLITE,
  start: executable,
};

/** Checked each night, beside those. */
export const VARIANTS: readonly Target[] = [
  {
    name: 'SQLite with settings of elsewhere',
    ...{ store: SQLITE, start: async () => startElsewhere(await SQLITE.freshUrl()) },
  },
  {
    name: 'PostgreSQL with settings of elsewhere',
    ...{ store: POSTGRES, start: async () => startElsewhere(await foreign()) },
  },
  { name: 'the port of the page', store: SQLITE, start: page },
  { name: 'a standby', store: POSTGRES, start: standby },
  EXECUTABLE,
  ...OLDER_VERSIONS.map((version): Target => {
    return { name: `PostgreSQL ${version}`, store: POSTGRES, start: () => older(version) };
  }),
];

async function service(dbUrl: Promise<string>): Promise<Started> {
  return await startTestService(await dbUrl);
}

/** A database with settings that suit other programs. */
async function foreign(): Promise<string> {
  const dbUrl = await POSTGRES.freshUrl();
  await settle(dbUrl);
  return dbUrl;
}

async function page(): Promise<Started> {
  return pageOf(await startTestService(await SQLITE.freshUrl()));
}

async function standby(): Promise<Started> {
  const { primary, standby } = await PostgresServer.startPair();
  return await startTestService(primary.url(), { DB_READ_URL: standby.url() });
}

async function older(version: OlderVersion): Promise<Started> {
  const server = await PostgresServer.start([], {}, await makeTemplate(await olderLibrary(version)));
  const [row] = await execute<{ server_version: string }>(server.url(), 'show server_version');
  assert.equal(Number.parseInt(row?.server_version ?? '', 10), version);
  return await startTestService(server.url());
}

/** The single executable, as it is built of this clone. */
async function executable(): Promise<Started> {
  await promisify(execFile)('npm', ['run', 'build:binary'], { cwd: pathTo('') });
  const env = { ...ENVIRONMENT, DB_URL: await SQLITE.freshUrl(), LOG_LEVEL: 'info' };
  return await startCommand(env, { command: [pathTo('dist/book-catalogue')] });
}
