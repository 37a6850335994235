// The client on every runtime that its README names, except browsers: each runs one scenario against the service, with
// the client installed as a package. Installs the runtimes from the npm registry into a temporary folder.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { promisify } from 'node:util';
import { fill } from '../support/books.ts';
import { answer, passOn, startFront } from '../support/front.ts';
import { pathTo } from '../support/repository.ts';
import { SQLITE, startTestService, temporaryFolder } from '../support/service.ts';

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
  /** Its npm package; absent for the runtime of this test. */
  readonly package?: string;
  readonly command: (folder: string) => readonly string[];
}

const RUNTIMES: readonly Runtime[] = [
  { name: 'this Node.js', command: () => [process.execPath] },
  ...NODE_VERSIONS.map((version) => ({
    name: `Node.js ${version}`,
    package: `node-${version}@npm:${NODE}@${version}`,
    command: (folder: string) => [join(folder, `node_modules/node-${version}/bin/node`)],
  })),
  {
    name: 'Deno',
    package: `deno@npm:${DENO}@${DENO_VERSION}`,
    command: (folder) => [join(folder, 'node_modules/deno/deno'), 'run', '--allow-net'],
  },
  {
    name: 'Bun',
    package: `bun@npm:${BUN}@${BUN_VERSION}`,
    command: (folder) => [join(folder, 'node_modules/bun/bin/bun')],
  },
];

const run = promisify(execFile);
const folder = temporaryFolder();

before(async () => {
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}');
  copyFileSync(pathTo('test/fixtures/client-scenario.js'), join(folder, 'scenario.js'));
  const { engines, version } = JSON.parse(readFileSync(pathTo('client/package.json'), 'utf8'));
  assert.equal(engines.node, `>=${Number.parseInt(NODE_VERSIONS[0] as string, 10)}`);
  await run('npm', ['pack', pathTo('client'), '--silent', '--pack-destination', folder]);
  // None of them needs install scripts: those of `node` and others only choose among these packages.
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--silent'];
  const packages = RUNTIMES.flatMap((runtime) => runtime.package ?? []);
  const client = join(folder, `book-catalogue-client-${version}.tgz`);
  await run('npm', ['install', ...options, client, ...packages], { cwd: folder });
});

for (const { name, command } of RUNTIMES) {
  test(`the client on ${name}`, async (context) => {
    const dbUrl = await SQLITE.freshUrl();
    await fill(
      dbUrl,
      Array.from({ length: 3000 }, (_, index) => {
        return { id: index + 1, title: `${index + 1} `.padEnd(1000, 'x'), author: '', year: 0 };
      }),
    );
    const service = await startTestService(dbUrl);
    context.after(() => service.stop());
    const given: string[] = [];
    let breaking: ServerResponse | undefined;
    const front = await startFront(context, (incoming, outgoing) => {
      const url = incoming.url as string;
      const line = `${incoming.method} ${url}`;
      const times = front.seen.filter((seen) => seen === line).length;
      const [, behaviour, path] = /^\/(\w+)(\/.*)$/.exec(url) ?? [];
      if (url === '/break') {
        breaking?.destroy();
        return outgoing.end();
      }
      if (url === '/seen') return outgoing.end(JSON.stringify({ requests: front.seen, given }));
      outgoing.once('close', () => outgoing.writableFinished || given.push(url));
      incoming.url = path;
      const isList = path === '/books';
      if (path === '/token' || behaviour === 'plain' || behaviour === 'counted') {
        return passOn(service, incoming, outgoing);
      }
      if (behaviour === 'busy' && times === 1) {
        outgoing.setHeader('retry-after', 1);
        return answer(outgoing, 503, null, 'Service unavailable');
      }
      if (behaviour === 'refusing' && times === 1) incoming.headers.authorization = 'none';
      if (behaviour === 'losing' && times === 1) {
        return passOn(service, incoming, outgoing, () => incoming.socket.destroy());
      }
      if (behaviour === 'breaking' && isList) {
        outgoing.write('{"status":200,"message":"","data":[{"id":1},{"id":2},{');
        breaking = outgoing;
        return;
      }
      if (behaviour === 'endless' && isList) {
        outgoing.write('{"status":200,"message":"","data":[{"id":1}');
        const more = () => {
          while (outgoing.write(',{"id":1}'));
        };
        outgoing.on('drain', more);
        return more();
      }
      if (behaviour === 'silent') return;
      passOn(service, incoming, outgoing);
    });

    const [program = '', ...args] = command(folder);
    assert.ok(existsSync(program), `${program} is missing`);
    const versionOf = await run(program, ['--version']);
    const runtime = name.split(' ')[0] as string;
    const { stdout } = await run(program, [...args, 'scenario.js', front.url, runtime], { cwd: folder });
    context.diagnostic(`${versionOf.stdout.split('\n')[0]}: ${stdout.trim()}`);
    assert.match(stdout, /^\d+ checks passed\n$/);
  });
}
