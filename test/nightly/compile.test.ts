// What `npm ci` translates, and that nothing is translated again when the service starts; where the files of the page
// come from.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import {
  cpSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { before, beforeEach, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { Client } from '../support/client.ts';
import { pathTo } from '../support/repository.ts';
import { ENVIRONMENT, pageOf, SQLITE, startCommand, temporaryFolder } from '../support/service.ts';

/** A copy of this project, with a cache that no other test uses. */
const folder = temporaryFolder();
const cache = join(folder, 'node_modules/.cache');
const pageCache = join(cache, 'page.json');
const source = join(folder, 'page/main.ts');

const compile = () => promisify(execFile)(process.execPath, [join(folder, 'src/compile.js')], { env: {} });

describe('an installation', () => {
  /** The page as the installation makes it, and one of its sources. */
  let page: string;
  let main: string;

  before(async () => {
    for (const path of ['src', 'conformance', 'page', 'client/src', 'package.json'])
      cpSync(pathTo(path), join(folder, path), { recursive: true });
    mkdirSync(join(folder, 'node_modules'));
    for (const name of readdirSync(pathTo('node_modules')))
      if (name !== '.cache') symlinkSync(pathTo(`node_modules/${name}`), join(folder, 'node_modules', name));
    await compile();
    page = readFileSync(pageCache, 'utf8');
    main = readFileSync(source, 'utf8');
  });
  beforeEach(() => {
    writeFileSync(source, main);
    rmSync(pageCache, { recursive: true, force: true });
    writeFileSync(pageCache, page);
  });

  /** The copy's own code. */
  const pageFiles = (): Promise<typeof import('../../src/page/files.ts')> =>
    import(join(folder, 'src/page/files.ts'));
  const made = async () => (await pageFiles()).readPage();

  test('a start after it translates no file, and neither does a thread of it', async () => {
    const translated = translations();
    const programs = globSync('{src,conformance}/**/*.ts', {
      cwd: folder,
      exclude: ['conformance/main.ts'],
    });
    assert.equal(translated.size, programs.length);
    // A process, and each of its threads, adds what it had to translate to its cache when it ends. Only the thread loads
    // this file: if it is in the cache again, the thread has the same cache.
    const [, checkpoints] =
      [...translated].find(([head]) => head.includes('moving the write-ahead log')) ?? [];
    rmSync(String(checkpoints));
    const marked = JSON.parse(page);
    marked.files[0].text += '<!-- from the installation -->';
    writeFileSync(pageCache, JSON.stringify(marked));
    const env = { ...ENVIRONMENT, LOG_LEVEL: 'info', DB_URL: await SQLITE.freshUrl() };
    const command = [process.execPath, join(folder, 'src/main.js')];
    const service = await startCommand(env, { command });
    await (await Client.logIn(service)).create({});
    const index = await fetch(pageOf(service).url, { headers: { 'accept-encoding': 'identity' } });
    assert.match(await index.text(), /<!-- from the installation -->$/);
    await service.stop();
    assert.deepEqual([...translations().keys()].sort(), [...translated.keys()].sort());
  });

  for (const [what, change] of [
    ['missing', () => {}],
    ['half written', () => writeFileSync(pageCache, page.slice(0, 1000))],
    ['a folder, so that it cannot be written', () => mkdirSync(pageCache)],
  ] as const) {
    test(`rule 34: if the file with those of the page is ${what}, they are made when they are needed`, async () => {
      rmSync(pageCache);
      change();
      if (what.startsWith('a folder')) await compile(); // as at each start under systemd
      assert.deepEqual(await made(), JSON.parse(page));
    });
  }

  test('rule 34: if a source is newer, they are made again, under other URLs', async () => {
    const fileOf = ({ files }: Awaited<ReturnType<typeof made>>) =>
      files.find(({ path }) => path.endsWith('main.js'));
    const before = fileOf(await made());
    writeFileSync(source, `${main}\nconsole.log('added');\n`);
    const after = fileOf(await made());
    assert.notEqual(after?.path, before?.path);
    assert.match(`${after?.text}`, /console\.log\("added"\)/);
  });

  test('rule 34: while its files cannot be built, the page is an error; afterwards it is served', async () => {
    writeFileSync(source, `${main}\nlet let = 1;\n`);
    const { PageFiles } = await pageFiles();
    const served = new PageFiles(undefined);
    for (const path of ['/', '/v/x']) await assert.rejects(served.answer(path, {}));
    writeFileSync(source, main);
    assert.match(String((await served.answer('/', {}))?.body), /^<!doctype html>/);
  });
});

/** Files of the cache that contain text, which is how Node keeps translations, by the first line of the translation. */
function translations(): Map<string, string> {
  const files = globSync('*/*', { cwd: cache }).map((name) => join(cache, name));
  return new Map(
    files.flatMap((file) => {
      const [head] = /\/\/ Owns: .*$/m.exec(readFileSync(file, 'latin1')) ?? [];
      return head === undefined ? [] : [[head, file]];
    }),
  );
}
