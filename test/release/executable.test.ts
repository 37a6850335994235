// The single executable in a root that has only what it is linked to: the loader, libc and the libraries of the compiler.
// Needs root, on Linux.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, readdirSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { before, test } from 'node:test';
import { Client } from '../support/client.ts';
import { adjacentPorts } from '../support/ports.ts';
import { pathTo } from '../support/repository.ts';
import { ENVIRONMENT, SQLITE, STORES, temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const BUILT = pathTo('dist/book-catalogue');

/** The libraries, by the names under which glibc and GCC have them; Debian's packages libc6, libstdc++6, libgcc-s1, libatomic1. */
const LIBRARIES = /^(ld-linux-\S+|lib(c|m|dl|pthread|stdc\+\+|gcc_s|atomic)\.so\.\d+)$/;

before(() => execFileSync('npm', ['run', 'build:binary'], { cwd: pathTo('') }));

/** Of an export of Goodreads. */
const GOODREADS = `Book Id,Title,Author,Author l-f,ISBN13,My Rating,Year Published,Original Publication Year,Exclusive Shelf
4671,The Great Gatsby,F. Scott Fitzgerald,"Fitzgerald, F. Scott","=""9780743273565""",4,2004,1925,read
24280,Les Misérables,Victor Hugo,"Hugo, Victor","=""9780451525260""",0,1987,1862,to-read
1381,The Odyssey,Homer,Homer,"=""""",5,1996,-700,read
`;

for (const store of STORES) {
  // The commands are called by a relative path: without /proc, Node.js knows no other path of the executable.
  test(`in an empty root, on ${store.name}: books are imported, searched and changed, the page, the documents and the manual are whole, and the service verifies itself`, async (context) => {
    const root = emptyRoot();
    const port = await adjacentPorts(3);
    const [adminPort, pagePort] = [port + 1, port + 2];
    const operations = `http://127.0.0.1:${adminPort}`;
    const ports = { PORT: `${port}`, ADMIN_PORT: `${adminPort}`, PAGE_PORT: `${pagePort}` };
    const url = store === SQLITE ? {} : { DB_URL: await store.freshUrl() };
    const env = { ...ENVIRONMENT, LOG_LEVEL: 'info', WORKERS: '2', ...ports, ...url };
    const inRoot = (...args: string[]) =>
      execFileSync('unshare', [`--root=${root}`, './book-catalogue', ...args], {
        env,
        encoding: 'utf8',
        stdio: 'pipe', // what it says on stderr is part of the error, if there is one
      });
    writeFileSync(join(root, 'goodreads.csv'), GOODREADS);
    inRoot('import', 'goodreads.csv');

    const service = spawn('unshare', [`--root=${root}`, './book-catalogue'], { env, stdio: 'ignore' });
    context.after(() => service.kill('SIGKILL'));
    const ended = once(service, 'exit');
    const readiness = () => fetch(`${operations}/readyz`).catch(() => undefined);
    await waitUntil(async () => (await readiness())?.status === 200, ended);
    inRoot('ready');

    for (const url of [`http://127.0.0.1:${pagePort}/`, `${operations}/docs`, `${operations}/manual/`])
      await assertWhole(url);
    const client = await Client.logIn({ url: `http://127.0.0.1:${port}`, port });
    const [found] = (await client.request('GET', '/books?q=miserables')).data;
    const change = { body: { author: 'Victor Marie Hugo' } };
    assert.equal((await client.request('PUT', `/book/${found.id}`, change)).status, 200);

    const level = store === SQLITE ? 'core' : 'full'; // test/contract/targets.ts has all rules on SQLite
    const args = ['--store-may-be-written', '--level', level, '--format', 'text'];
    const verdicts = inRoot('verify', `http://127.0.0.1:${port}`, ...args);
    assert.match(verdicts, /^\d+ passed, 0 failed, 0 not checked\.$/m);
    assert.equal(
      inRoot('export').replaceAll(/^\d+,|,"""[\w-]{22}"""$/gm, ''),
      'id,title,author,year,etag\n"The Great Gatsby","F. Scott Fitzgerald",1925\n"Les Misérables","Victor Marie Hugo",1862\n"The Odyssey","Homer",-700\n',
    );
    service.kill('SIGTERM');
    assert.deepEqual(await ended, [0, null]);
    const data = store === SQLITE ? ['data'] : [];
    assert.deepEqual(readdirSync(root).sort(), ['book-catalogue', ...data, 'goodreads.csv', 'lib', 'lib64']);
  });
}

/** Fails unless a page and the files that it begins with are there. */
async function assertWhole(url: string): Promise<void> {
  const textAt = async (path: string) => {
    const answer = await fetch(new URL(path, url));
    assert.equal(answer.status, 200, answer.url);
    return answer.text();
  };
  const files = [...(await textAt('')).matchAll(/ (?:href|src)="([^"#]+\.(?:css|js|ts))"/g)];
  assert.ok(files.length > 0, url);
  for (const [, file = ''] of files) await textAt(file);
}

/** A folder with the executable and the libraries that it names. */
function emptyRoot(): string {
  const root = temporaryFolder();
  const copy = (from: string, to: string) => {
    mkdirSync(join(root, dirname(to)), { recursive: true });
    copyFileSync(realpathSync(from), join(root, to));
  };
  copy(BUILT, 'book-catalogue');
  const linked = execFileSync('ldd', [BUILT], { encoding: 'utf8' });
  for (const [, path = ''] of linked.matchAll(/(\/\S+) \(0x/g)) {
    assert.match(path.split('/').at(-1) ?? '', LIBRARIES);
    copy(path, path);
  }
  return root;
}
