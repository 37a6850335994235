// Owns: the measured stores, filled with books, and what each of them can do without the service: the limits to compare
// with.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { execute, PostgresServer } from '../test/support/postgres.ts';
import type { Operation } from './operations.ts';

/** A program that uses a store without the service. */
export interface Limit {
  readonly name: string;
  /** @returns operations a second. */
  measure(seconds: number): Promise<number>;
}

/** Seconds that the whole list takes, and the program that takes them. */
export interface ListLimit {
  readonly name: string;
  readonly seconds: number;
}

export interface BenchStore {
  readonly name: 'SQLite' | 'PostgreSQL';
  readonly dbUrl: string;
  /** Adds books by the store's own means; returns the id of the last one. */
  addBooks(count: number): Promise<number>;
  /** What counts how often a second the store does an operation without the service; undefined if nothing can. */
  limitOf(operation: Operation): Limit | undefined;
  /** The time that the store takes to write every row as JSON. */
  listLimit(): Promise<ListLimit>;
  remove(): Promise<void>;
}

const TITLE = 'The Hunger Games (The Hunger Games, #1)';
const AUTHOR = 'Suzanne Collins';
/** Whether a program is installed. */
export const has = (command: string) => spawnSync(command, ['--version']).error === undefined;

export async function openSqliteBench(within = tmpdir()): Promise<BenchStore> {
  const folder = await mkdtemp(join(within, 'book-catalogue-bench-'));
  const file = join(folder, 'books.db');
  return {
    name: 'SQLite',
    dbUrl: `sqlite:${file}`,
    async addBooks(count) {
      const db = new DatabaseSync(file, { timeout: 5000 });
      const insert = db.prepare('insert into books (title, author, year) values (?, ?, ?)');
      db.exec('begin immediate');
      for (let book = 0; book < count; book += 1) insert.run(TITLE, AUTHOR, 2008);
      db.exec('commit');
      const last = db.prepare('select max(id) as id from books').get()?.id;
      db.close();
      return Number(last);
    },
    limitOf: () => undefined,
    async listLimit() {
      const query = 'select id, title, author, year from books order by id';
      if (has('sqlite3')) return await timeOutput('sqlite3 -json', 'sqlite3', ['-json', file, query]);
      const db = new DatabaseSync(file, { readOnly: true });
      const began = performance.now();
      for (const row of db.prepare(query).iterate()) JSON.stringify(row);
      db.close();
      return { name: 'node:sqlite, row by row', seconds: (performance.now() - began) / 1000 };
    },
    async remove() {
      await rm(folder, { recursive: true });
    },
  };
}

export async function openPostgresBench(): Promise<BenchStore> {
  const server = await PostgresServer.start(['fsync=on', 'shared_buffers=512MB']);
  const dbUrl = server.url();
  return {
    name: 'PostgreSQL',
    dbUrl,
    async addBooks(count) {
      await execute(
        dbUrl,
        `insert into books (title, author, year) select '${TITLE}', '${AUTHOR}', 2008 from generate_series(1, ${count})`,
      );
      await execute(dbUrl, 'vacuum analyze books');
      const [row] = await execute<{ id: string }>(dbUrl, 'select max(id) as id from books');
      return Number(row?.id);
    },
    limitOf(operation) {
      const script = SCRIPTS[operation];
      if (script === undefined || !has('pgbench')) return undefined;
      return { name: 'pgbench', measure: (seconds) => pgbench(dbUrl, script, seconds) };
    },
    async listLimit() {
      const json = `select json_build_object('id', id, 'title', title, 'author', author, 'year', year) from books order by id`;
      const copy = `copy (${json}) to stdout`;
      if (has('psql')) return await timeOutput('psql copy', 'psql', [dbUrl, '-c', copy]);
      const client = new pg.Client({ connectionString: dbUrl });
      await client.connect();
      const began = performance.now();
      await client.query(copyTo(copy)).forEach(() => {});
      await client.end();
      return { name: 'COPY by the driver', seconds: (performance.now() - began) / 1000 };
    },
    remove: () => server.remove(),
  };
}

/** One book, one statement, one round trip. */
const SCRIPTS: Partial<Record<Operation, string>> = {
  read: '\\set id random(1, 10000)\nselect id, title, author, year from books where id = :id;\n',
  create: `insert into books (title, author, year) values ('${TITLE}', '${AUTHOR}', 2008) returning id;\n`,
};

async function pgbench(dbUrl: string, script: string, seconds: number): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'book-catalogue-bench-'));
  try {
    const file = join(folder, 'script.sql');
    await writeFile(file, script);
    const options = ['-n', '-M', 'prepared', '-c', '20', '-j', '1', '-T', `${seconds}`, '-f', file, dbUrl];
    const child = spawn('pgbench', options, { stdio: ['ignore', 'pipe', 'ignore'] });
    let output = '';
    child.stdout.on('data', (text) => {
      output += text;
    });
    await once(child, 'close');
    return Number(/tps = ([\d.]+)/.exec(output)?.[1]);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** How long a command takes to write all of its output. */
async function timeOutput(name: string, command: string, args: readonly string[]): Promise<ListLimit> {
  const began = performance.now();
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  child.stdout.resume();
  await once(child, 'close');
  return { name, seconds: (performance.now() - began) / 1000 };
}
