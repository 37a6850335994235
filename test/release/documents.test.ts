// The commands and programs of the documents, run as they are written there. Only the address of the service, the database
// and the folders are replaced. Needs curl and npm. test/project/blocks.test.ts says which blocks are run elsewhere.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Book } from '../../conformance/service.ts';
import { booksOf } from '../support/books.ts';
import { Client } from '../support/client.ts';
import { blockOf, blocksOf } from '../support/documents.ts';
import { execute } from '../support/postgres.ts';
import { pathTo } from '../support/repository.ts';
import {
  type CommandProcess,
  endOf,
  POSTGRES,
  SQLITE,
  spawnService,
  startCommand,
  temporaryFolder,
} from '../support/service.ts';

describe('the README', () => {
  const folder = temporaryFolder();
  let service: CommandProcess;

  before(async () => {
    service = await startCommand({ PORT: '0', ADMIN_PORT: '0', DB_URL: `sqlite:${folder}/books.db` });
  });
  after(() => service.stop());

  const here = (text: string) => text.replaceAll(/(http:\/\/)?(localhost|127\.0\.0\.1):8080/g, service.url);

  async function run(command: string, args: readonly string[], env: Record<string, string> = {}) {
    const child = spawn(command, args, {
      cwd: folder,
      env: { PATH: process.env.PATH, HOME: folder, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const ended = await endOf(child);
    assert.equal(ended.code, 0, `${args}: ${ended.stderr}`);
    return ended.stdout;
  }

  test('npm start serves, with the built-in account and with a configured one, on SQLite and on PostgreSQL', async () => {
    assert.equal(blockOf('README.md', 'npm ci'), 'npm ci && ./book-catalogue demo\n'); // test/process/demo.test.ts runs it
    const { scripts } = JSON.parse(readFileSync(pathTo('package.json'), 'utf8'));
    assert.equal(scripts.start, 'exec node src/main.js serve'); // which the tests of processes start
    const settings = (text: string) => text.replace(/ npm start\n$/, '');
    const account = await run('bash', ['-c', `${settings(blockOf('README.md', 'AUTH_USERNAME='))} env`]);
    const { AUTH_USERNAME, AUTH_PASSWORD, SECRET_TOKEN } = Object.fromEntries(
      account.split('\n').map((line) => line.split(/=(.*)/s)),
    );
    const guarded = { AUTH_USERNAME, AUTH_PASSWORD, SECRET_TOKEN, PORT: '0', ADMIN_PORT: '0' };
    const [, url = ''] = /^DB_URL='([^']+)'$/.exec(settings(blockOf('README.md', 'DB_URL='))) ?? [];
    assert.match(url, /^postgres:\/\/user:password@db\.example\.org\/library\?sslmode=verify-full$/);
    for (const { freshUrl } of [SQLITE, POSTGRES]) {
      const started = await startCommand({ ...guarded, DB_URL: await freshUrl() });
      try {
        const target = { url: `http://127.0.0.1:${started.port}`, port: started.port };
        const client = await Client.logIn(target, { username: AUTH_USERNAME, password: AUTH_PASSWORD });
        assert.equal((await client.create({})).id, 1);
      } finally {
        await started.stop();
      }
    }
  });

  test('the first commands log in, store a book and read it back', async () => {
    const printed = await run('bash', ['-ec', here(blockOf('README.md', 'curl -w'))]);
    assert.equal(printed.split('\n')[1], blockOf('README.md', '"status":200').trim());
  });

  test('the client is packed, installed, and runs the program in TypeScript', async () => {
    const install = blockOf('README.md', 'npm pack')
      .replace('./client', pathTo('client'))
      .replace('../your-project', 'project');
    await run('bash', ['-ec', `mkdir project && (cd project && npm init -y >/dev/null) && ${install}`]);
    const file = join(folder, 'project/call.mjs');
    writeFileSync(file, here(blockOf('README.md', 'new BookCatalogue')));
    assert.match(await run(process.execPath, [file]), /title: 'Don Quijote'/);
  });

  test('the commands import, export, copy and back up', async () => {
    const DB_URL = `sqlite:${join(folder, 'own.db')}`;
    const target = await POSTGRES.freshUrl();
    writeFileSync(join(folder, 'books.csv'), 'title,author,year\nEmma,Jane Austen,1815\n');
    const commands = blockOf('README.md', 'book-catalogue import')
      .replaceAll('./book-catalogue', pathTo('book-catalogue'))
      .replace('sqlite:data/books.db', DB_URL)
      .replace(/postgres:\S+/, `'${target}'`);
    await run('bash', ['-ec', commands], { DB_URL });
    assert.equal((await booksOf(target)).length, 1);
    assert.match(readFileSync(join(folder, 'books.jsonl'), 'utf8'), /^\{"id":1,"title":"Emma",.*\}\n$/);
    const { code } = await endOf(
      spawnService({ DB_URL: `sqlite:${folder}/books-backup.db` }, ['export'], folder),
    );
    assert.equal(code, 0);
  });
});

/** A page whose commands are run against a separate service, in their order. */
class Page {
  readonly text: string;
  /** The commands, and what the page shows of their output. */
  readonly commands: readonly string[];
  readonly shown: readonly string[];
  readonly #folder = temporaryFolder();
  #service: CommandProcess | undefined;

  constructor(path: string) {
    this.text = readFileSync(pathTo(path), 'utf8');
    const blocks = blocksOf(path);
    const of = (isCommand: boolean) => {
      return blocks.flatMap(({ language, text }) => ((language === 'sh') === isCommand ? [text] : []));
    };
    this.commands = of(true);
    this.shown = of(false).flatMap((text) => text.trim().split('\n'));
  }

  async start(): Promise<void> {
    const DB_URL = `sqlite:${this.#folder}/books.db`;
    this.#service = await startCommand({ PORT: '0', ADMIN_PORT: '0', DB_URL });
  }

  async stop(): Promise<void> {
    await this.#service?.stop();
  }

  async run(...scripts: string[]): Promise<string> {
    const script = scripts
      .join('\n')
      .replaceAll('localhost:8080', `localhost:${this.#service?.port}`)
      .replaceAll('./book-catalogue', pathTo('book-catalogue'));
    const env = { PATH: process.env.PATH, HOME: this.#folder, DB_URL: `sqlite:${this.#folder}/books.db` };
    const ended = await endOf(
      spawn('bash', ['-ec', script], { cwd: this.#folder, env, stdio: ['ignore', 'pipe', 'pipe'] }),
    );
    assert.equal(ended.code, 0, ended.stderr);
    return ended.stdout;
  }

  /** Fails unless the output has every line that the page shows. */
  assertShown(output: string): void {
    // A catalogue that has books gives other ids, and so other tags.
    const anyId = (line: string) =>
      line
        .replaceAll(/("id":|\/book\/)\d+/g, '$1N')
        .replace(/"data":\[\d[\d,]*\]/, '"data":[N]')
        .replace(/^etag: "[\w-]{22}"$/, 'etag: T');
    const printed = output.split(/\r?\n/).map(anyId);
    for (const line of this.shown) assert.ok(printed.includes(anyId(line)), `${line}\n${output}`);
  }
}

describe('docs/search.md', () => {
  const page = new Page('docs/search.md');
  before(() => page.start());
  after(() => page.stop());

  test('the commands print what the page shows, and each search finds the books beside it', async () => {
    const [first = '', ...others] = page.commands;
    await page.run(first);
    const login = first.replace(/^while .*?^END$/ms, ''); // does not store the books again
    const rows = [...page.text.matchAll(/^\| `(books [^`]+)` \| (.+) \|$/gm)];
    assert.equal(rows.length, 5);
    for (const [, command = '', found = ''] of rows) {
      const { data } = JSON.parse(await page.run(login, command));
      assert.deepEqual(
        data.map(({ title }: Book) => `*${title}*`),
        found.match(/\*[^*]+\*/g),
      );
    }
    page.assertShown(await page.run(login, ...others));
  });
});

describe('docs/changing.md', () => {
  const page = new Page('docs/changing.md');
  before(() => page.start());
  after(() => page.stop());

  test('the commands print what the page shows, also of a catalogue that has books', async () => {
    await page.run(page.commands[0] as string, `call localhost:8080/books -d '[{},{},{}]'`);
    page.assertShown(await page.run(...page.commands));
  });
});

/** Runs commands in a separate folder, on the store data/books.db there. */
class Folder {
  readonly path = temporaryFolder();
  /** Of PostgreSQL, for what the documents call `db.example.org/library`. */
  #library = '';

  static async make(): Promise<Folder> {
    const folder = new Folder();
    folder.#library = await POSTGRES.freshUrl();
    mkdirSync(join(folder.path, 'data'));
    symlinkSync(pathTo('src'), join(folder.path, 'src'));
    return folder;
  }

  /** @returns what is printed on both outputs, in its order. */
  async run(script: string): Promise<string> {
    const here = script
      .replaceAll('./book-catalogue', pathTo('book-catalogue'))
      .replaceAll('postgres://librarian@db.example.org/library', `'${this.#library}'`);
    const env = { PATH: process.env.PATH, HOME: this.path };
    const ended = await endOf(spawn('bash', ['-ec', `exec 2>&1\n${here}`], { cwd: this.path, env }));
    const { host, pathname } = new URL(this.#library);
    return `${ended.stdout.replaceAll(`${host}${pathname}`, 'db.example.org/library')}exit code ${ended.code}`;
  }

  /** Runs the lines of a block that begin with `$ `: each prints the lines that follow it; `…` stands for any text. */
  async assertShown(block: string): Promise<void> {
    for (const part of block.split(/^\$ /m).slice(1)) {
      const [command = '', ...lines] = part.split('\n');
      const expected = lines.join('\n').split('…').map(RegExp.escape).join('.*');
      assert.match(await this.run(command), new RegExp(`^${expected}exit code 0$`, 's'), command);
    }
  }
}

describe('docs/data.md', () => {
  test('the commands print what the page shows', async () => {
    const folder = await Folder.make();
    await folder.assertShown(blockOf('docs/data.md', '$ ./book-catalogue import'));
    const exported = await folder.run('./book-catalogue export');
    assert.ok(exported.startsWith(blockOf('docs/data.md', 'id,title,author,year\n')), exported.slice(0, 200));
    await folder.assertShown(blockOf('docs/data.md', '$ ./book-catalogue export'));
    const copy = blockOf('docs/data.md', '$ ./book-catalogue copy');
    await folder.assertShown(copy);
    await folder.assertShown(copy.replace('/library\n', '/library --overwrite\n'));

    const rows = ['Titel;Autor;Jahr', 'Größe;Émile;1815', 'Annales;Tacitus;MMVIII', ''];
    writeFileSync(join(folder.path, 'alt.csv'), rows.join('\n'), 'latin1');
    const said = await folder.run(blockOf('docs/data.md', 'import alt.csv'));
    assert.ok(said.endsWith(`${blockOf('docs/data.md', 'MMVIII')}exit code 1`), said);
    assert.match(await folder.run('./book-catalogue export'), /"Größe","Émile",1815\n/);
  });

  test('the commands succeed on a store that has books', async () => {
    const folder = await Folder.make();
    await folder.run('./book-catalogue import src/demo/books.csv');
    writeFileSync(join(folder.path, 'books.csv'), 'title\nEmma\n');
    assert.match(await folder.run(blockOf('docs/data.md', 'books-backup.db')), /exit code 0$/);
    assert.match(await folder.run(blockOf('docs/data.md', '%F')), /exit code 0$/);
    assert.match(await folder.run('./book-catalogue export --title Emma --author='), /"Emma","",0\n/);
  });
});

describe('docs/postgresql.md', () => {
  test('a role with few rights serves what its statements have made', async (context) => {
    const superuser = await POSTGRES.freshUrl();
    const drop =
      'drop database if exists catalogue; drop role if exists catalogue_service; drop role if exists catalogue';
    const executeAll = async (url: string, statements: string) => {
      for (const statement of statements.split(/;\s*/).filter(Boolean)) await execute(url, statement);
    };
    await executeAll(superuser, drop);
    context.after(() => executeAll(superuser, drop));
    const urlOf = (role: string) => {
      const url = new URL(superuser);
      [url.username, url.password, url.pathname] = [role, 'secret', '/catalogue'];
      return url.href;
    };

    await executeAll(superuser, blockOf('docs/postgresql.md', 'create role catalogue'));
    await executeAll(superuser, blockOf('docs/postgresql.md', 'pg_read_all_stats'));
    await (await startCommand({ PORT: '0', ADMIN_PORT: '0', DB_URL: urlOf('catalogue') })).stop();
    await execute(superuser, "create role catalogue_service login password 'secret'");
    await executeAll(urlOf('catalogue'), blockOf('docs/postgresql.md', 'grant select'));
    const service = await startCommand({ PORT: '0', ADMIN_PORT: '0', DB_URL: urlOf('catalogue_service') });
    try {
      const client = await Client.logIn(
        { url: service.url, port: service.port },
        { username: 'admin', password: 'password' },
      );
      assert.equal((await client.create({})).id, 1);
    } finally {
      await service.stop();
    }
  });

  test('its URLs are valid', async () => {
    const folder = await Folder.make();
    const [start] = blockOf('docs/postgresql.md', 'DB_READ_URL=').split(' npm start');
    assert.match(await folder.run(`${start} ./book-catalogue config`), /^DB_READ_URL=.*exit code 0$/ms);
  });
});

describe('docs/verify.md', () => {
  test('two services of one version have the same report', async () => {
    const service = await startCommand({ PORT: '0', ADMIN_PORT: '0', DB_URL: await SQLITE.freshUrl() });
    const other = await startCommand({ PORT: '0', ADMIN_PORT: '0', DB_URL: await SQLITE.freshUrl() });
    try {
      const folder = await Folder.make();
      const here = (text: string) =>
        folder.run(
          text.replace('http://127.0.0.1:8080', service.url).replace('http://127.0.0.1:9080', other.url),
        );
      const [old = '', now = '', difference = ''] = blockOf('docs/verify.md', 'diff old.txt')
        .trim()
        .split('\n');
      const alone = blockOf('docs/verify.md', 'verify http://127.0.0.1:8080\n');
      const said = await Promise.all([alone, old, now].map(here));
      assert.match(said[0] as string, /^ok .*exit code 0$/ms);
      assert.deepEqual(said.slice(1), ['exit code 0', 'exit code 0']);
      assert.equal(await here(difference), 'exit code 0');
      assert.match(await here('cat new.txt'), /^ {2}passed /);
    } finally {
      await Promise.all([service.stop(), other.stop()]);
    }
  });
});
