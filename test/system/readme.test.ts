// The commands and programs of the README, of docs/search.md and of docs/changing.md, run as they are written there. Only the address of the
// service, the database and the folders are replaced. Needs curl and npm.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Book } from '../../conformance/service.ts';
import { booksOf } from '../support/books.ts';
import { Client } from '../support/client.ts';
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

interface Block {
  readonly language: string;
  readonly text: string;
}

const BLOCKS = [...readFileSync(pathTo('README.md'), 'utf8').matchAll(/^```(\w+)\n(.+?)^```$/gms)].map(
  ([, language = '', text = '']): Block => ({ language, text }),
);

/** The one block of a language that has this text. */
function block(language: string, part: string): string {
  const found = BLOCKS.filter((block) => block.language === language && block.text.includes(part));
  assert.equal(found.length, 1, part);
  return found[0]?.text as string;
}

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

  test('every block is run by one of these tests', () => {
    const tested = ['npm ci', 'npm start\n', 'TOKEN=', '"status":200', 'npm pack', 'new BookCatalogue'];
    const also = ['AUTH_USERNAME=', 'DB_URL=', 'book-catalogue import'];
    for (const { text } of BLOCKS) {
      assert.ok(
        [...tested, ...also].some((part) => text.includes(part)),
        text,
      );
    }
  });

  test('npm start serves, with and without an account of its own, on SQLite and on PostgreSQL', async () => {
    assert.equal(block('sh', 'npm ci'), 'npm ci && ./book-catalogue demo\n'); // test/process/demo.test.ts runs it
    assert.ok(BLOCKS.some(({ text }) => text === 'npm start\n'));
    const { scripts } = JSON.parse(readFileSync(pathTo('package.json'), 'utf8'));
    assert.equal(scripts.start, 'exec node src/main.js serve'); // which the tests of processes start
    const settings = (text: string) => text.replace(/ npm start\n$/, '');
    const account = await run('bash', ['-c', `${settings(block('sh', 'AUTH_USERNAME='))} env`]);
    const { AUTH_USERNAME, AUTH_PASSWORD, SECRET_TOKEN } = Object.fromEntries(
      account.split('\n').map((line) => line.split(/=(.*)/s)),
    );
    const guarded = { AUTH_USERNAME, AUTH_PASSWORD, SECRET_TOKEN, PORT: '0', ADMIN_PORT: '0' };
    const [, url = ''] = /^DB_URL='([^']+)'$/.exec(settings(block('sh', 'DB_URL='))) ?? [];
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
    const printed = await run('bash', ['-ec', here(block('sh', 'curl -w'))]);
    assert.equal(printed.split('\n')[1], block('json', '"status":200').trim());
  });

  test('the client is packed, installed, and runs the program in TypeScript', async () => {
    const install = block('sh', 'npm pack')
      .replace('./client', pathTo('client'))
      .replace('../your-project', 'project');
    await run('bash', ['-ec', `mkdir project && (cd project && npm init -y >/dev/null) && ${install}`]);
    const file = join(folder, 'project/call.mjs');
    writeFileSync(file, here(block('ts', 'new BookCatalogue')));
    assert.match(await run(process.execPath, [file]), /title: 'Don Quijote'/);
  });

  test('the commands import, export, copy and back up', async () => {
    const DB_URL = `sqlite:${join(folder, 'own.db')}`;
    const target = await POSTGRES.freshUrl();
    writeFileSync(join(folder, 'books.csv'), 'title,author,year\nEmma,Jane Austen,1815\n');
    const commands = block('sh', 'book-catalogue import')
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

/** A page whose commands are run against a service of its own, in their order. */
class Page {
  readonly text: string;
  /** The commands, and what the page shows of their output. */
  readonly commands: readonly string[];
  readonly shown: readonly string[];
  readonly #folder = temporaryFolder();
  #service: CommandProcess | undefined;

  constructor(path: string) {
    this.text = readFileSync(pathTo(path), 'utf8');
    const blocks = [...this.text.matchAll(/^```(\w+)\n(.+?)^```$/gms)];
    const of = (isCommand: boolean) => {
      return blocks.flatMap(([, language, text = '']) => ((language === 'sh') === isCommand ? [text] : []));
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
