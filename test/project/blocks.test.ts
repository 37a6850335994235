// Every code block of the documents is run by a test, as it is written, or a table says why not.

import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { blocksOf } from '../support/documents.ts';
import { pathTo } from '../support/repository.ts';

/** How a block begins that no test runs, and why. A reason that begins with a path names the test that does the same. */
const NOT_RUN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'CONTRIBUTING.md': { 'apt-get install': 'needs root; the commands behind it run each night' },
  'README.md': { 'npm start': 'test/release/documents.test.ts starts the same command on a free port' },
  'bench/README.md': {
    'npm run bench\n': 'takes hours',
    'npm run bench:page': 'takes hours',
  },
  'conformance/README.md': { 'cd conformance': 'test/verify/verify.test.ts runs the folder elsewhere' },
  'deploy/cluster/README.md': {
    mkdir: 'test/release/cluster.ts installs the same on three machines',
    install: 'test/release/cluster.ts does the same on three machines',
    runuser: 'test/release/cluster.ts does the same on three machines',
    'DB_URL=': 'test/release/cluster.test.ts starts services with such a URL',
    'set -a': 'test/release/cluster.test.ts moves the leader in this way',
  },
  'docs/data.md': {
    'docker exec': 'needs Docker; test/release/container.test.ts runs commands in the image',
  },
  'docs/engines.md': { psql: 'test/stores/partitions.test.ts executes the file' },
  'docs/install.md': {
    'docker build': 'needs Docker; test/release/container.test.ts builds and runs the image',
    'mkdir -m 700 secrets': 'needs Docker; test/release/container.test.ts gives the image such secrets',
  },
  'docs/maintenance.md': { pg_dump: 'needs the programs of the version of the server' },
  'docs/proxy.md': {
    echo: 'needs socat; test/release/haproxy.test.ts sends the same to the socket',
    kubectl: 'needs Kubernetes; test/project/kubernetes.test.ts checks the manifest',
  },
  'docs/verify.md': { '  passed': 'shows a service that breaks a rule' },
  'site/README.md': {
    'npm run build:site': 'test/operations/manual.test.ts and others need it and run it first',
  },
};

const DOCUMENTS = globSync(
  ['*.md', '{bench,client,conformance,deploy,docs,endurance,page,site,test}/**/*.md'],
  {
    cwd: pathTo(''),
    exclude: (path) => path.includes('node_modules') || path.includes('fixtures'),
  },
).filter((path) => blocksOf(path).length > 0);

test('every code block of the documents is run by a test, or the table says why not', () => {
  const tests = globSync('test/**/*.ts', { cwd: pathTo('') }).map((path) =>
    readFileSync(pathTo(path), 'utf8'),
  );
  const named = (pattern: RegExp) => tests.flatMap((text) => [...text.matchAll(pattern)]);
  const wholes = new Set(named(/\b(?:blocksOf|Page)\('([^']+)'\)/g).map(([, path]) => path));
  const parts = named(/\bblockOf\(\s*'([^']+)',\s*'([^']+)',?\s*\)/g);
  const unused = new Set(
    Object.entries(NOT_RUN).flatMap(([path, reasons]) =>
      Object.keys(reasons).map((start) => `${path}: ${start}`),
    ),
  );
  assert.ok(DOCUMENTS.length > 10);
  for (const path of DOCUMENTS) {
    for (const { text } of blocksOf(path)) {
      const isMap = readFileSync(pathTo(path), 'utf8').includes(`<!-- generated: map -->\n\n\`\`\`\n${text}`);
      const isRun =
        wholes.has(path) ||
        parts.some(([, of, part = '']) => of === path && text.includes(part.replaceAll('\\n', '\n')));
      const start = Object.keys(NOT_RUN[path] ?? {}).find((start) => text.startsWith(start));
      unused.delete(`${path}: ${start}`);
      assert.equal([isMap, isRun, start !== undefined].filter(Boolean).length, 1, `${path}:\n${text}`);
    }
  }
  assert.deepEqual([...unused], []);
  for (const reason of Object.values(NOT_RUN).flatMap((reasons) => Object.values(reasons))) {
    const [, path] = /(test\/\S+\.ts)/.exec(reason) ?? [];
    if (path !== undefined) assert.ok(existsSync(pathTo(path)), reason);
  }
});
