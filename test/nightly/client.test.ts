// The client as a package: its types are those of the description, its examples work, and it keeps its promises on every
// runtime that its README names, except browsers. Installs the runtimes from the npm registry into a temporary folder.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { BOOK } from '../support/catalogue.ts';
import { startHere } from '../support/command.ts';
import { API, type Document } from '../support/description.ts';
import { blocksOf } from '../support/documents.ts';
import { pathTo } from '../support/repository.ts';
import { startScenario } from '../support/runtimes.ts';
import { ENVIRONMENT, SQLITE, temporaryFolder } from '../support/service.ts';

/** Supported versions of Node.js older than the service's own; the client's package.json names the oldest. */
const NODE_VERSIONS = ['20.20.2', '22.23.3', '24.21.0'];
const DENO_VERSION = '2.9.6';
const BUN_VERSION = '1.4.5';

const { platform, arch } = process;
const NODE =
  platform === 'darwin' && arch === 'arm64' ? `node-bin-${platform}-${arch}` : `node-${platform}-${arch}`;
const DENO = `@deno/${platform}-${arch}${platform === 'linux' ? '-glibc' : ''}`;
const BUN = `@oven/bun-${platform}-${arch === 'arm64' ? 'aarch64' : arch}`;

interface Runtime {
  readonly name: string;
  /** Its npm package, under another name. */
  readonly package: string;
  readonly command: readonly string[];
}

const RUNTIMES: readonly Runtime[] = [
  ...NODE_VERSIONS.map((version) => ({
    name: `Node.js ${version}`,
    package: `node-${version}@npm:${NODE}@${version}`,
    command: [`node-${version}/bin/node`],
  })),
  { name: 'Deno', package: `deno@npm:${DENO}@${DENO_VERSION}`, command: ['deno/deno', 'run', '--allow-net'] },
  { name: 'Bun', package: `bun@npm:${BUN}@${BUN_VERSION}`, command: ['bun/bin/bun'] },
];

const folder = temporaryFolder();

/** Runs a program in the folder where the client is installed. */
const run = async (file: string, ...args: string[]) =>
  (await promisify(execFile)(file, args, { cwd: folder })).stdout;

before(async () => {
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}');
  copyFileSync(pathTo('test/fixtures/client-scenario.js'), join(folder, 'scenario.js'));
  await run('npm', 'pack', pathTo('client'), '--silent');
  const { version, engines } = JSON.parse(readFileSync(pathTo('client/package.json'), 'utf8'));
  assert.equal(engines.node, `>=${Number.parseInt(NODE_VERSIONS[0] as string, 10)}`);
  await run('npm', 'install', '--silent', '--no-audit', '--offline', `book-catalogue-client-${version}.tgz`);
});

test('the client installs and runs as JavaScript; the examples of its README work, with its types', async (context) => {
  const { AUTH_USERNAME: _, AUTH_PASSWORD: __, ...env } = ENVIRONMENT; // with the built-in password
  const service = await startHere({ ...env, LOG_LEVEL: 'info', DB_URL: await SQLITE.freshUrl() });
  context.after(() => service.stop());
  mkdirSync(join(folder, 'node_modules/@types'));
  for (const name of ['@types/node', 'undici-types']) {
    symlinkSync(pathTo(`node_modules/${name}`), join(folder, 'node_modules', name));
  }
  const examples = blocksOf('client/README.md').map(({ text }) => text);
  assert.equal(examples.length, 6);
  const code = examples.join('').replace('http://127.0.0.1:8080', service.url);
  assert.ok(code.includes(service.url));
  writeFileSync(join(folder, 'examples.ts'), code);
  writeFileSync(
    join(folder, 'types.ts'),
    typesOf(API.components.schemas, API.paths['/books'].get.parameters),
  );
  const compilerOptions = {
    ...{ strict: true, exactOptionalPropertyTypes: true, noEmit: true },
    ...{ target: 'es2022', module: 'nodenext', lib: ['es2022'], types: ['node'] },
  };
  const files = ['examples.ts', 'types.ts'];
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
  const said = await run(process.execPath, 'examples.ts');
  assert.match(
    said,
    /^\{\n {2}id: 1,\n {2}title: 'Don Quijote',.* year: 1604\n\}\n\[ 'Emma', 'Persuasion' \]\n1605: Don Quijote\n1\nBooks 1 to 1 of 1\n$/s,
  );
  const lines = readFileSync(join(folder, 'books.jsonl'), 'utf8').trimEnd().split('\n');
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)),
    [
      { id: 1, ...BOOK },
      { id: 2, title: 'Emma, a Novel', author: 'Jane Austen', year: 1815 },
      { id: 3, title: 'Persuasion', author: 'Jane Austen', year: 1817 },
    ],
  );
  await run(process.execPath, pathTo('node_modules/typescript/bin/tsc'));
});

test('the client keeps its promises on this Node.js', (context) =>
  keepsPromises(context, [process.execPath]));

describe('the client keeps its promises', () => {
  before(async () => {
    // None of them needs install scripts: those of `node` and others only choose among these packages.
    const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--silent'];
    await run('npm', 'install', ...options, ...RUNTIMES.map((runtime) => runtime.package));
  });

  for (const { name, command } of RUNTIMES) {
    const [program = '', ...args] = command;
    test(`on ${name}`, (context) => keepsPromises(context, [join(folder, 'node_modules', program), ...args]));
  }
});

/** Fails unless the scenario passes. The process must end by itself, though timeouts of ten minutes were set. */
async function keepsPromises(context: TestContext, [program = '', ...args]: string[]) {
  const { url } = await startScenario(context);
  const repeats = /deno$|bun$/.test(program);
  const main = `import { check } from './scenario.js'; console.log(await check('${url}', ${repeats}));`;
  writeFileSync(join(folder, 'main.js'), main);
  assert.equal(await run(program, ...args, 'main.js'), 'passed\n');
}

/** TypeScript that compiles if the client's types are those of the description. */
function typesOf(schemas: Document, parameters: readonly Document[]): string {
  const typeOf = (type: string) => (type === 'integer' ? 'number' : type);
  const ofBooks = ['Book', 'NewBook', 'BookChanges'].map((name) => {
    const { required = [], properties } = schemas[name];
    const fields = Object.entries<Document>(properties).map(
      ([field, { type }]) => `readonly ${field}${required.includes(field) ? '' : '?'}: ${typeOf(type)}`,
    );
    return `Same<${name}, { ${fields.join('; ')} }>`;
  });
  const query = parameters.filter((parameter) => parameter.in === 'query');
  const ofSearches = [query.filter(({ name }) => !/cursor|offset/.test(name)), query].map((all, index) => {
    const fields = all.map(({ name, schema }) => `readonly ${name}?: ${typeOf(schema.type)} | undefined`);
    return `Same<${['Search', 'PageSearch'][index]}, { ${fields.join('; ')} }>`;
  });
  return `import { BookCatalogue, BookChanged } from 'book-catalogue-client';
    import type { Book, BookChanges, NewBook, PageSearch, Search } from 'book-catalogue-client';
    type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
    export const same: [${[...ofBooks, ...ofSearches]}] = [true, true, true, true, true];
    export async function use(catalogue: BookCatalogue, book: Book, error: unknown): Promise<void> {
      // @ts-expect-error: there may be none
      const found: Book = await catalogue.find(1);
      // @ts-expect-error: a search finds any number of books
      const one: Book | undefined = await catalogue.find({ title: book.title });
      // @ts-expect-error: no such field
      await catalogue.create({ titel: '' });
      // @ts-expect-error: of another type
      await catalogue.update(found.id, { year: '1605' });
      // @ts-expect-error: no such option
      await catalogue.remove(1, { timeout: 1 });
      // @ts-expect-error: only what stores books has a key
      await catalogue.update(1, {}, { idempotencyKey: 'mine-7' });
      // @ts-expect-error: no such parameter
      catalogue.find({ yaer: 1605 });
      // @ts-expect-error: an offset is that of a page
      catalogue.find({ offset: 20 });
      const removed: boolean | undefined = await catalogue.remove(1, { expected: book });
      const current: Book | undefined = error instanceof BookChanged ? error.current : undefined;
      const options = { username: 'admin', password: 'password', fetch };
      new BookCatalogue('http://127.0.0.1', options);
    }`;
}
