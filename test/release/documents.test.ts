// The commands and programs of the documents, run as they are written there. Only the address of the service, the database
// and the folders are replaced. Needs curl, jq and npm. test/project/blocks.test.ts says which blocks are run elsewhere.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Book } from '../../conformance/service.ts';
import { booksOf } from '../support/books.ts';
import { Client } from '../support/client.ts';
import { type Block, blockOf, blocksOf } from '../support/documents.ts';
import { execute } from '../support/postgres.ts';
import { pathTo } from '../support/repository.ts';
import {
  type CommandProcess,
  endOf,
  POSTGRES,
  SQLITE,
  startCommand,
  temporaryFolder,
} from '../support/service.ts';
import { executeOn } from '../support/sql.ts';

/** The service chooses free ones. */
const PORTS = { PORT: '0', ADMIN_PORT: '0' };

/** Fails unless a service with these variables serves this account. */
async function assertServes(env: Record<string, string>, username = 'admin', password = 'password') {
  const service = await startCommand({ ...PORTS, ...env });
  try {
    const client = await Client.logIn(service, { username, password });
    assert.equal((await client.create({})).id, 1);
    const init = { method: 'POST', headers: { authorization: client.token }, body: 'title\nEmma\n' };
    assert.equal((await fetch(`${service.url}/import`, init)).status, 200);
  } finally {
    await service.stop();
  }
}

/** A folder in which commands are run: on the store data/books.db, and, once it is started, against a service on that store. */
class Place {
  readonly folder = temporaryFolder();
  readonly #library: string;
  #service: CommandProcess | undefined;

  /** @param library the URL of what the documents call `db.example.org/library`. */
  constructor(library = '') {
    this.#library = library;
    mkdirSync(join(this.folder, 'data'));
    symlinkSync(pathTo('src'), join(this.folder, 'src'));
  }

  /** Starts the service, and stops it at the end of the test. */
  async start(): Promise<this> {
    const service = await startCommand({ ...PORTS, DB_URL: `sqlite:${this.folder}/data/books.db` });
    this.#service = service;
    return this;
  }

  /** A text with the addresses and paths of here. */
  here(text: string): string {
    return text
      .replaceAll(/(localhost|127\.0\.0\.1):8080/g, `localhost:${this.#service?.port}`)
      .replaceAll('localhost:8082', new URL(this.#service?.pageUrl || 'http://none').host)
      .replaceAll('./book-catalogue', pathTo('book-catalogue'))
      .replaceAll('postgres://librarian@db.example.org/library', `'${this.#library}'`);
  }

  /** @returns what commands print on the standard output; they must succeed. */
  async run(...commands: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.#run(commands.join('\n'));
    assert.equal(code, 0, stderr);
    return stdout;
  }

  /** @returns what commands print on both outputs, in its order, and the exit code. */
  async outcome(commands: string): Promise<string> {
    const { code, stdout } = await this.#run(`exec 2>&1\n${commands}`);
    const { host = '', pathname = '' } = URL.parse(this.#library) ?? {};
    const printed = host === '' ? stdout : stdout.replaceAll(`${host}${pathname}`, 'db.example.org/library');
    return `${printed}exit code ${code}`;
  }

  /** Runs the lines of a block that begin with `$ `: each prints the lines that follow it; `…` stands for any text. */
  async assertShown(block: string): Promise<void> {
    for (const part of block.split(/^\$ /m).slice(1)) {
      const [command = '', ...lines] = part.split('\n');
      const expected = lines.join('\n').split('…').map(RegExp.escape).join('.*');
      assert.match(await this.outcome(command), new RegExp(`^${expected}exit code 0$`, 's'), command);
    }
  }

  #run(script: string) {
    const env = { PATH: process.env.PATH, HOME: this.folder };
    const stdio: ['ignore', 'pipe', 'pipe'] = ['ignore', 'pipe', 'pipe'];
    return endOf(spawn('bash', ['-ec', this.here(script)], { cwd: this.folder, env, stdio }));
  }
}

/** The commands of a page, and what it shows of their output. */
function partsOf(blocks: readonly Block[]): { commands: readonly string[]; shown: readonly string[] } {
  const of = (isCommand: boolean) =>
    blocks.flatMap(({ language, text }) => ((language === 'sh') === isCommand ? [text] : []));
  return { commands: of(true), shown: of(false).flatMap((text) => text.trim().split('\n')) };
}

/** Fails unless an output has every one of these lines. */
function assertShown(shown: readonly string[], output: string): void {
  // A catalogue that has books gives other ids, and so other tags.
  const anyId = (line: string) =>
    line
      .replaceAll(/("id":|\/book\/)\d+/g, '$1N')
      .replace(/"data":\[\d[\d,]*\]/, '"data":[N]')
      .replace(/^etag: "[\w-]{22}"$/, 'etag: T');
  const printed = output.split(/\r?\n/).map(anyId);
  for (const line of shown) assert.ok(printed.includes(anyId(line)), `${line}\n${output}`);
}

test('README.md: npm start serves, with the configured account, on SQLite and on PostgreSQL', async () => {
  assert.equal(blockOf('README.md', 'npm ci'), 'npm ci && ./book-catalogue demo\n'); // test/process/demo.test.ts runs it
  const { scripts } = JSON.parse(readFileSync(pathTo('package.json'), 'utf8'));
  assert.equal(scripts.start, 'exec node src/main.js serve'); // which the tests of processes start
  const settings = (text: string) => text.replace(/ npm start\n$/, '');
  const account = await new Place().run(`${settings(blockOf('README.md', 'AUTH_USERNAME='))} env`);
  const { AUTH_USERNAME, AUTH_PASSWORD, SECRET_TOKEN } = Object.fromEntries(
    account.split('\n').map((line) => line.split(/=(.*)/s)),
  );
  const [, url = ''] = /^DB_URL='([^']+)'$/.exec(settings(blockOf('README.md', 'DB_URL='))) ?? [];
  assert.match(url, /^postgres:\/\/user:password@db\.example\.org\/library\?sslmode=verify-full$/);
  for (const { freshUrl } of [SQLITE, POSTGRES]) {
    const env = { AUTH_USERNAME, AUTH_PASSWORD, SECRET_TOKEN, DB_URL: await freshUrl() };
    await assertServes(env, AUTH_USERNAME, AUTH_PASSWORD);
  }
});

test('README.md: the first commands store a book and read it back; the client is packed, installed, and runs the program', async () => {
  const place = await new Place().start();
  const printed = await place.run(blockOf('README.md', 'curl -w'));
  assert.equal(printed.split('\n')[1], blockOf('README.md', '"status":200').trim());
  const install = blockOf('README.md', 'npm pack')
    .replace('./client', pathTo('client'))
    .replace('../your-project', 'project');
  await place.run('mkdir project', '(cd project && npm init -y >/dev/null)', install);
  const program = place.here(blockOf('README.md', 'new BookCatalogue'));
  writeFileSync(join(place.folder, 'project/call.mjs'), program);
  assert.match(await place.run('cd project', 'node call.mjs'), /title: 'Don Quijote'/);
});

test('README.md: the commands import, export, copy and back up', async () => {
  const place = new Place();
  const [own, target] = [`sqlite:${join(place.folder, 'own.db')}`, await POSTGRES.freshUrl()];
  writeFileSync(join(place.folder, 'books.csv'), 'title,author,year\nEmma,Jane Austen,1815\n');
  const commands = blockOf('README.md', 'book-catalogue import')
    .replace('sqlite:data/books.db', own)
    .replace(/postgres:\S+/, `'${target}'`);
  await place.run(`export DB_URL=${own}`, commands);
  assert.equal((await booksOf(target)).length, 1);
  assert.match(
    await place.run(`DB_URL=${own} ./book-catalogue import books.xlsx`),
    /^1 row read: 0 imported, 1 already there/,
  );
  await place.run('DB_URL=sqlite:books-backup.db ./book-catalogue export');
});

test('docs/search.md: the commands print what the page shows, and each search finds the books beside it', async () => {
  const place = await new Place().start();
  const { commands, shown } = partsOf(blocksOf('docs/search.md'));
  const [first = '', ...others] = commands;
  await place.run(first);
  const login = first.replace(/^while .*?^END$/ms, ''); // does not store the books again
  const page = readFileSync(pathTo('docs/search.md'), 'utf8');
  const rows = [...page.matchAll(/^\| `(books [^`]+)` \| (.+) \|$/gm)];
  assert.equal(rows.length, 2);
  for (const [, command = '', found = ''] of rows) {
    const { data } = JSON.parse(await place.run(login, command));
    const titles = data.map(({ title }: Book) => `*${title}*`);
    assert.deepEqual(titles, found.match(/\*[^*]+\*/g));
  }
  assertShown(shown, await place.run(login, ...others));
});

test('docs/changing.md: the commands print what the page shows, also of a catalogue that has books', async () => {
  const place = await new Place().start();
  const { commands, shown } = partsOf(blocksOf('docs/changing.md'));
  for (let time = 0; time < 2; time += 1) assertShown(shown, await place.run(...commands));
});

test('docs/changes.md: the commands print what the page shows, and the loop follows the changes', async () => {
  const place = await new Place().start();
  const { commands, shown } = partsOf(blocksOf('docs/changes.md'));
  const [first = '', list = '', loop = '', ...others] = commands;
  const opaque = (text: string) =>
    text
      .replaceAll(/"at":"[^"]*"/g, '"at":"…"')
      .replaceAll(/"change":\d+/g, '"change":N')
      .replaceAll(/cursor=[^>]+/g, 'cursor=…');
  assertShown(shown.map(opaque), opaque(await place.run(first, list, ...others)));
  const rounds = loop.replace('while true;', 'for round in 1 2;').replace('wait=30', 'wait=1');
  const login = first.split('\n', 1).join('');
  assert.match(await place.run(login, rounds), /^\{"id":1,.*"title":"Emma".*\}\n$/);
  assert.equal(readFileSync(join(place.folder, 'page.out'), 'utf8').replace(/.*"data":/, ''), '[]}');
  const noWait = rounds.replace('Prefer: wait=1', 'Prefer: nothing').replace('sleep 5', 'echo pause');
  assert.match(await place.run(login, noWait), /^\{"id":1,.*\}\npause\n$/);
  assert.match(await place.run('TOKEN=expired', noWait), /^pause\n\{"id":1,.*\}\n$/);
});

test('docs/undo.md: the commands print what the page shows', async () => {
  const [half = '', others = '', forget = ''] = blocksOf('docs/undo.md')
    .map(({ text }) => text.replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\d{13}-\d{13}/g, '…'))
    .filter((text) => text.startsWith('$ '));
  const place = new Place();
  const dbUrl = `sqlite:${place.folder}/data/books.db`;
  await place.run('./book-catalogue import src/demo/books.csv');
  for (const table of ['book_log', 'book_events'])
    await executeOn(dbUrl, `update ${table} set at = at - 3600000`);
  await executeOn(dbUrl, 'delete from books where id % 2 = 0');
  const before = new Date(Date.now() - 300_000).toISOString();
  await place.assertShown(half.replaceAll('10:40', before));
  assert.equal((await booksOf(dbUrl)).length, 2467);
  await executeOn(dbUrl, 'update book_log set at = at - 600000'); // no run with what follows
  await executeOn(dbUrl, 'update books set year = 1 where id in (8, 9)');
  await place.assertShown(others);
  await place.assertShown(forget);
  assert.deepEqual(await executeOn(dbUrl, 'select id from books where id = 8'), []);
});

test('docs/data.md: the commands print what the page shows', async () => {
  const place = new Place(await POSTGRES.freshUrl());
  await place.assertShown(blockOf('docs/data.md', '$ ./book-catalogue import'));
  const exported = await place.run('./book-catalogue export');
  assert.ok(
    exported.startsWith(blockOf('docs/data.md', 'id,title,author,year,etag\n')),
    exported.slice(0, 200),
  );
  const copy = blockOf('docs/data.md', '$ ./book-catalogue copy');
  await place.assertShown(copy);
  await place.assertShown(copy.replace('/library\n', '/library --overwrite\n'));

  const rows = ['Werk;Von;Druck', 'Größe;Émile;1815', 'Annales;Tacitus;MMVIII', ''];
  writeFileSync(join(place.folder, 'alt.csv'), rows.join('\n'), 'latin1');
  const said = await place.outcome(blockOf('docs/data.md', 'import alt.csv'));
  assert.ok(said.endsWith(`${blockOf('docs/data.md', 'MMVIII')}exit code 1`), said);
  assert.match(await place.run('./book-catalogue export'), /"Größe","Émile",1815,/);
});

test('docs/data.md: a file is checked, corrected and stored by request', async () => {
  const place = await new Place().start();
  writeFileSync(join(place.folder, 'books.csv'), blockOf('docs/data.md', 'Foundation'));
  const [check, store] = [blockOf('docs/data.md', 'dry-run&'), blockOf('docs/data.md', 'corrections=')];
  const shown = blockOf('docs/data.md', '"proposal"') + blockOf('docs/data.md', 'imported successfully');
  assert.equal(await place.run(check, store), shown);
});

test('docs/data.md: curl exports some of the books', async () => {
  const place = await new Place().start();
  const rows = 'title,author,year\nEmma,Jane Austen,1815\nPersuasion,"Austen, Jane",1817\nIlias,,-750\n';
  writeFileSync(join(place.folder, 'books.csv'), rows);
  const [login = ''] = /^TOKEN=.*$/m.exec(blockOf('docs/search.md', 'TOKEN=')) ?? [];
  const load = blockOf('docs/data.md', 'jane+austen').trim();
  const untilIndexed = `until ${load}; do sleep 0.1; done`;
  await place.run('./book-catalogue import books.csv', login, untilIndexed);
  const exported = readFileSync(join(place.folder, 'austen.csv'), 'utf8');
  assert.deepEqual(exported.match(/(?<=^\d,")\w+/gm), ['Emma', 'Persuasion']);
});

test('docs/data.md: the commands succeed on a store that has books', async () => {
  const place = new Place(await POSTGRES.freshUrl());
  await place.run('./book-catalogue import src/demo/books.csv');
  writeFileSync(join(place.folder, 'books.csv'), 'title\nEmma\n');
  await place.run('./book-catalogue import books.csv');
  await place.run(blockOf('docs/data.md', '%F'));
  assert.match(await place.run('./book-catalogue export'), /"Emma","",0,/);
});

test('docs/postgresql.md: its URLs are valid, and a role with few rights serves what its statements have made', async (context) => {
  const [start] = blockOf('docs/postgresql.md', 'DB_READ_URL=').split(' npm start');
  assert.match(await new Place().run(`${start} ./book-catalogue config`), /^DB_READ_URL=/m);
  const superuser = await POSTGRES.freshUrl();
  const executeAll = async (url: string, statements: string) => {
    for (const statement of statements.split(/;\s*/).filter(Boolean)) await execute(url, statement);
  };
  const drop =
    'drop database if exists catalogue; drop role if exists catalogue_service; drop role if exists catalogue';
  await executeAll(superuser, drop);
  context.after(() => executeAll(superuser, drop));
  const urlOf = (role: string) =>
    superuser.replace(/\/\/[^@]*@/, `//${role}:secret@`).replace(/\w+$/, 'catalogue');
  await executeAll(superuser, blockOf('docs/postgresql.md', 'create role catalogue'));
  await executeAll(superuser, blockOf('docs/postgresql.md', 'pg_read_all_stats'));
  await (await startCommand({ ...PORTS, DB_URL: urlOf('catalogue') })).stop();
  await execute(superuser, "create role catalogue_service login password 'secret'");
  await executeAll(urlOf('catalogue'), blockOf('docs/postgresql.md', 'grant select'));
  await assertServes({ DB_URL: urlOf('catalogue_service') });
});

test('docs/verify.md: the command prints its report', async () => {
  const place = await new Place().start();
  assert.match(await place.run(blockOf('docs/verify.md', 'verify http://127.0.0.1:8080\n')), /^ {2}passed /m);
});
