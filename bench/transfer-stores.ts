// Owns: the stores whose imports and exports are measured, and the programs that come with them as the limits to
// compare with. Each program writes into its own file or table.

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { execute, PostgresServer } from '../test/support/postgres.ts';
import { has } from './stores.ts';

/** What is measured on every store. */
const TRANSFERS = ['import', 'import again', 'export csv', 'export json', 'export jsonl'] as const;
export type Transfer = (typeof TRANSFERS)[number] | 'backup';

/** A program that comes with the store, and how it is called. */
export interface Program {
  readonly name: string;
  readonly args: readonly [command: string, ...string[]];
}

export interface TransferStore {
  readonly name: 'SQLite' | 'PostgreSQL';
  /** What is measured, in this order. */
  readonly transfers: readonly Transfer[];
  /** Makes an empty store of this name, in place of an existing one. Returns its DB_URL. */
  makeEmpty(name: string): Promise<string>;
  /**
   * The program that does the same as our command, or nearly the same; undefined without one.
   * @param name of the store that our command used; it has the books by then.
   * @param input the file that is imported.
   * @param output a file that does not exist yet.
   */
  program(transfer: Transfer, name: string, input: string, output: string): Program | undefined;
  remove(): Promise<void>;
}

const ALL_BOOKS = 'select id, title, author, year from books order by id';

export function openSqliteTransfers(folder: string): TransferStore {
  const isThere = has('sqlite3');
  const fileOf = (name: string) => join(folder, `${name}.db`);
  return {
    name: 'SQLite',
    transfers: [...TRANSFERS, 'backup'],
    async makeEmpty(name) {
      for (const ending of ['', '-wal', '-shm']) await rm(fileOf(name) + ending, { force: true });
      return `sqlite:${fileOf(name)}`;
    },
    program(transfer, name, input, output) {
      if (!isThere) return undefined;
      const write = (option: string): Program => ({
        name: `sqlite3 ${option}`,
        args: ['sqlite3', option, fileOf(name), `.output ${output}`, ALL_BOOKS],
      });
      switch (transfer) {
        case 'import': {
          const create =
            'create table books (title text not null, author text not null, year integer not null)';
          return {
            name: 'sqlite3 .import',
            args: ['sqlite3', output, create, `.import --csv --skip 1 ${input} books`],
          };
        }
        case 'export csv':
          return write('-csv');
        case 'export json':
        case 'export jsonl':
          return write('-json');
        case 'backup':
          return { name: 'sqlite3 .backup', args: ['sqlite3', fileOf(name), `.backup ${output}`] };
        case 'import again':
          return undefined;
      }
    },
    async remove() {},
  };
}

export async function openPostgresTransfers(): Promise<TransferStore> {
  const server = await PostgresServer.start(['fsync=on', 'shared_buffers=512MB']);
  const isThere = has('psql');
  return {
    name: 'PostgreSQL',
    transfers: TRANSFERS,
    async makeEmpty(name) {
      await execute(server.url(), `drop database if exists ${name}`);
      await execute(server.url(), `create database ${name}`);
      return server.url(name);
    },
    program(transfer, name, input, output) {
      if (!isThere) return undefined;
      const psql = (...commands: string[]): Program => ({
        name: 'psql \\copy',
        args: ['psql', '-qX', server.url(name), ...commands.flatMap((command) => ['-c', command])],
      });
      switch (transfer) {
        case 'import':
          return psql(
            'create table copied (like books including all)',
            `\\copy copied (title, author, year) from '${input}' with (format csv, header)`,
          );
        case 'export csv':
          return psql(`\\copy (${ALL_BOOKS}) to '${output}' with (format csv, header)`);
        case 'export json':
        case 'export jsonl':
          return psql(`\\copy (select row_to_json(book) from (${ALL_BOOKS}) as book) to '${output}'`);
        case 'backup':
        case 'import again':
          return undefined;
      }
    },
    remove: () => server.remove(),
  };
}
