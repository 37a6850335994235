// TLS between the service and a separate PostgreSQL server.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { before, describe, test } from 'node:test';
import { execute, freshDatabase, PostgresServer } from '../support/postgres.ts';
import { pathTo } from '../support/repository.ts';
import { startTestService } from '../support/service.ts';

const certificate = (name: string) => pathTo(`test/fixtures/tls/${name}`);
const AUTHORITY = `sslrootcert=${encodeURIComponent(certificate('authority.crt'))}`;
const STRANGER = `sslrootcert=${encodeURIComponent(certificate('stranger.crt'))}`;

/** The databases of the server by what they accept, one by the name in its certificate, and one of a server without TLS. */
type Database = 'both' | 'TLS alone' | 'plain text alone' | 'both, by name' | 'no TLS';

/** What becomes of a start by the parameters of its URL. */
const STARTS: readonly (readonly [
  parameters: string,
  to: Database,
  becomes: 'encrypted' | 'plain' | 'refused',
])[] = [
  ['sslmode=disable', 'both', 'plain'],
  ['sslmode=disable', 'TLS alone', 'refused'],
  ['sslmode=allow', 'both', 'refused'],
  ['', 'both', 'encrypted'],
  ['', 'no TLS', 'plain'],
  ['sslmode=prefer', 'both', 'encrypted'],
  ['sslmode=prefer', 'plain text alone', 'plain'],
  ['sslmode=require', 'both', 'encrypted'],
  ['sslmode=require', 'no TLS', 'refused'],
  ['sslmode=require', 'plain text alone', 'refused'],
  [`sslmode=require&${AUTHORITY}`, 'both', 'encrypted'],
  [`sslmode=require&${STRANGER}`, 'both', 'refused'],
  [`sslmode=verify-ca&${AUTHORITY}`, 'both', 'encrypted'],
  [`sslmode=verify-ca&${STRANGER}`, 'both', 'refused'],
  ['sslmode=verify-ca', 'both', 'refused'],
  [`sslmode=verify-full&${AUTHORITY}`, 'both, by name', 'encrypted'],
  [`sslmode=verify-full&${AUTHORITY}`, 'both', 'refused'],
  [`sslmode=verify-full&${STRANGER}`, 'both, by name', 'refused'],
  ['sslmode=verify-full&sslrootcert=nowhere.crt', 'both, by name', 'refused'],
  ['sslrootcert=system', 'both, by name', 'refused'],
  ['sslmode=require&sslrootcert=system', 'both', 'refused'],
  ['sslmode=require&ssl=0', 'both', 'refused'],
  ['SSLMODE=require', 'both', 'refused'],
];

describe('TLS by sslmode', { concurrency: 2 }, () => {
  let server: PostgresServer;
  let urls: Readonly<Record<Database, string>>;

  before(async () => {
    const files = {
      'server.crt': await readFile(certificate('server.crt'), 'utf8'),
      'server.key': await readFile(certificate('server.key'), 'utf8'),
      'pg_hba.conf': `
        hostssl   tls_only   all all password
        host      tls_only   all all reject
        hostnossl plain_only all all password
        host      plain_only all all reject
        host      all        all all password`,
    };
    const settings = ['ssl=on', 'ssl_cert_file=server.crt', 'ssl_key_file=server.key'];
    server = await PostgresServer.start(settings, files);
    await execute(server.url(), 'create database tls_only');
    await execute(server.url(), 'create database plain_only');
    urls = {
      both: server.url(),
      'TLS alone': server.url('tls_only'),
      'plain text alone': server.url('plain_only'),
      'both, by name': server.url().replace('127.0.0.1', 'localhost'),
      'no TLS': await freshDatabase(),
    };
  });

  for (const [number, [parameters, to, becomes]] of STARTS.entries()) {
    const shown = parameters.replace(/sslrootcert=.*%2F/, 'sslrootcert=');
    test(`rule 26: ${shown || 'no parameter'}, to a server with ${to}: ${becomes}`, async () => {
      const name = `tls_${number}`; // distinguishes its sessions from those of the other tests
      const starting = startTestService(`${urls[to]}?application_name=${name}&${parameters}`);
      if (becomes === 'refused') {
        await assert.rejects(starting, /^Error: DB_URL: postgres:\/\/[^@]* cannot be opened: /);
        return;
      }
      const { client } = await starting;
      await client.create({});
      assert.notEqual((await client.list()).length, 0);
      const sessions = await execute<{ ssl: boolean }>(
        to === 'no TLS' ? urls[to] : server.url(),
        `select ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = '${name}'`,
      );
      assert.deepEqual(new Set(sessions.map(({ ssl }) => ssl)), new Set([becomes === 'encrypted']));
    });
  }

  test('rule 27: if TLS is optional, a refusal does not mention that the server has none', async () => {
    const { href } = new URL('/nowhere', urls['no TLS']);
    const reason = 'database "nowhere" does not exist: create it first';
    await assert.rejects(
      startTestService(href),
      new RegExp(`^Error: DB_URL: \\S+ cannot be opened: ${reason}\\.$`),
    );
  });
});
