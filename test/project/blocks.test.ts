// Every code block of the documents is run by a test, as it is written, or a table says why not.

import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { blocksOf } from '../support/documents.ts';
import { pathTo } from '../support/repository.ts';

/** A document, how a block of it begins that no test runs, and why. A reason that names a test does so if that does the same. */
const NOT_RUN = `
CONTRIBUTING.md | apt-get install | needs root; the commands behind it run each night
README.md | npm start | test/release/documents.test.ts starts the same command on a free port
bench/README.md | npm run bench | takes hours
conformance/README.md | cd conformance | test/verify/verify.test.ts runs the folder elsewhere
deploy/cluster/README.md | mkdir | test/release/cluster.ts installs the same on three machines
deploy/cluster/README.md | install | test/release/cluster.ts does the same on three machines
deploy/cluster/README.md | runuser | test/release/cluster.ts does the same on three machines
deploy/cluster/README.md | DB_URL= | test/release/cluster.test.ts starts services with such a URL
deploy/cluster/README.md | set -a | test/release/cluster.test.ts moves the leader in this way
docs/data.md | docker exec | needs Docker; test/release/container.test.ts runs commands in the image
docs/engines.md | psql | needs a cluster; test/support/citus.ts executes the file
docs/install.md | docker build | needs Docker; test/release/container.test.ts builds and runs the image
docs/install.md | mkdir -m 700 secrets | needs Docker; test/release/container.test.ts gives the image such secrets
docs/maintenance.md | pg_dump | needs the programs of the version of the server
docs/proxy.md | echo | needs socat; test/release/haproxy.test.ts sends the same to the socket
docs/proxy.md | kubectl | needs Kubernetes; test/project/kubernetes.test.ts checks the manifest
site/README.md | npm run build:site | test/operations/manual.test.ts and others need it and run it first`;

test('every code block of the documents is run by a test, or the table says why not', () => {
  const cwd = pathTo('');
  const read = (path: string) => readFileSync(pathTo(path), 'utf8');
  const tests = globSync('test/**/*.ts', { cwd }).map(read);
  const named = (pattern: RegExp) => tests.flatMap((text) => [...text.matchAll(pattern)]);
  const wholes = new Set(named(/\b(?:blocksOf|Page)\('([^']+)'\)/g).map(([, path]) => path));
  const parts = named(/\bblockOf\(\s*'([^']+)',\s*'([^']+)',?\s*\)/g);
  const reasons = NOT_RUN.trim()
    .split('\n')
    .map((row) => row.split(/ \| /) as [string, string, string]);
  const unused = new Set(reasons);
  const folders = '{bench,client,conformance,deploy,docs,endurance,page,site,test}';
  const exclude = (path: string) => /node_modules|fixtures/.test(path);
  const blocks = globSync(['*.md', `${folders}/**/*.md`], { cwd, exclude }).flatMap((path) =>
    blocksOf(path).map(({ text }) => ({ path, text })),
  );
  assert.ok(blocks.length > 30);
  for (const { path, text } of blocks) {
    const isMap = read(path).includes(`<!-- generated: map -->\n\n\`\`\`\n${text}`);
    const has = (part = '') => text.includes(part.replaceAll('\\n', '\n'));
    const isRun = wholes.has(path) || parts.some(([, of, part]) => of === path && has(part));
    const reason = reasons.find(([of, start]) => of === path && text.startsWith(start));
    if (reason !== undefined) unused.delete(reason);
    assert.equal([isMap, isRun, reason].filter(Boolean).length, 1, `${path}:\n${text}`);
  }
  assert.deepEqual([...unused], []);
  for (const [, path = ''] of NOT_RUN.matchAll(/(test\/\S+\.ts)/g)) assert.ok(existsSync(pathTo(path)), path);
});
