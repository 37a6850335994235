// What `npm run release` makes: twice the same bytes, and a Debian package that keeps the books. dpkg runs in a root that
// is a copy of this system for as long as the test lasts, with its own systemd or without one. Needs root, on Debian,
// and bash-completion, fish, zsh and zstd.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { blockOf } from '../support/documents.ts';
import { pathTo } from '../support/repository.ts';
import { temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';
import { Root } from './root.ts';

/** The version before this one, as far as dpkg is concerned. */
const BEFORE = '0.0.1';

const { version: VERSION } = JSON.parse(readFileSync(pathTo('package.json'), 'utf8'));
const PACKAGE = `book-catalogue_${VERSION}_${process.arch === 'x64' ? 'amd64' : process.arch}.deb`;

const ETC = '/etc/book-catalogue';
const DATA = '/var/lib/book-catalogue';
const BACKUPS = '/var/backups/book-catalogue';
const SECRETS = ['secret_token', 'auth_password', 'db_url'];
const UNIT = 'book-catalogue.service';
const TIMER = 'book-catalogue-backup.timer';
const LINK = `/etc/systemd/system/multi-user.target.wants/${UNIT}`;

/** What begins a shell that has a home without settings, but for its prompt. bash and zsh complete only on request. */
const SHELLS = {
  bash: `echo '. /usr/share/bash-completion/bash_completion; PS1="ready> "' >~/.bashrc; exec bash`,
  zsh: `echo 'autoload -U compinit; compinit -u; PS1="ready> "' >~/.zshrc; exec zsh`,
  fish: `exec fish --init-command 'function fish_prompt; echo "ready> "; end'`,
};

/** With commands, options and a file completed, and one book to show for it. */
const KEYS = `book-catalogue impo\t/tmp/nov\t
book-catalogue expo\t--year-g\t1800
exit
`;

describe('a release', () => {
  let tree: string;
  /** The same commit, released in another folder. */
  let again: string;
  /** The version before, released. */
  let earlier: string;

  before(async () => {
    execFileSync('npm', ['run', 'build:site'], { cwd: pathTo('') }); // installs its generator
    tree = committedTree();
    nameChanges(tree, `${VERSION} (2026-11-01)`);
    git(tree, 'commit', '--all', '--allow-empty', '--message=nothing is unreleased');
    again = cloneOf(tree);
    earlier = cloneOf(tree);
    for (const name of ['package.json', 'client/package.json'])
      edit(join(earlier, name), `"version": "${VERSION}"`, `"version": "${BEFORE}"`);
    nameChanges(earlier, `${BEFORE} (2026-11-01)`);
    git(earlier, 'commit', '--all', '--message=the version before');
    await Promise.all([release(tree, VERSION), release(again, VERSION), release(earlier, BEFORE)]);
  });

  test('it has an executable, a package, the client, what an image is built of, and sums of them all', () => {
    const packed = `book-catalogue-${VERSION}-linux-${process.arch}.zst`;
    const archives = [
      `book-catalogue-${VERSION}-image.tar.gz`,
      packed,
      `book-catalogue-client-${VERSION}.tgz`,
    ];
    const lists = ['CHANGES.md', 'LICENSES.txt', 'SHA256SUMS', 'sbom.cdx.json'];
    assert.deepEqual(readdirSync(filesOf(tree)).sort(), [...archives, PACKAGE, ...lists].sort());
    execFileSync('sha256sum', ['--check', '--quiet', '--strict', 'SHA256SUMS'], { cwd: filesOf(tree) });
    const folder = temporaryFolder();
    cpSync(join(filesOf(tree), packed), join(folder, packed));
    const { size } = statSync(join(folder, packed));
    assert.ok(size <= 45e6, `${size} bytes`);
    execFileSync('sh', ['-ec', blockOf('docs/install.md', 'zstd -d')], { cwd: folder });
    assert.equal(`${execFileSync(join(folder, 'book-catalogue'), ['--version'])}`, `${VERSION}\n`);
    const changes = readFileSync(join(filesOf(tree), 'CHANGES.md'), 'utf8');
    assert.match(changes, new RegExp(`^## ${VERSION} `));
    assert.equal(changes.match(/^## /gm)?.length, 1);
    assert.equal(git(tree, 'rev-parse', `v${VERSION}^{commit}`), git(tree, 'rev-parse', 'HEAD'));
    const licences = readFileSync(join(filesOf(tree), 'LICENSES.txt'), 'utf8');
    for (const part of [
      ...['Copyright Node.js contributors. All rights reserved.', '- OpenSSL, located at deps/openssl,'],
      ...['- V8, located at', '# The books of the demo', 'Copyright 2020-2021 SmartBear Software Inc.'],
      ...['pg 8', '@vue/runtime-core 3', 'minisearch 7', 'vitepress 1'],
    ])
      assert.ok(licences.includes(`\n${part}`), part);
  });

  test('the archives have what is built of them, and the bill of materials every library and Node.js', () => {
    const archive = (name: string, ...args: string[]) =>
      execFileSync('tar', ['--gzip', '--file', join(filesOf(tree), name), ...args], { encoding: 'utf8' });
    const image = archive(`book-catalogue-${VERSION}-image.tar.gz`, '--list').split('\n');
    const dockerfile = readFileSync(pathTo('Dockerfile'), 'utf8');
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(([, paths = '']) =>
      paths.split(' '),
    );
    assert.ok(copied.length > 0);
    for (const path of ['Dockerfile', ...copied])
      assert.ok(
        image.some((name) => name.replace(/\/$/, '') === `book-catalogue-${VERSION}/${path}`),
        path,
      );
    const extract = ['--extract', '--to-stdout', 'package/package.json'];
    assert.equal(JSON.parse(archive(`book-catalogue-client-${VERSION}.tgz`, ...extract)).version, VERSION);
    const { components } = JSON.parse(readFileSync(join(filesOf(tree), 'sbom.cdx.json'), 'utf8'));
    const found = components.map(({ name, version }: Record<string, string>) => `${name} ${version}`);
    const dependenciesOf = (path: string) => JSON.parse(readFileSync(pathTo(path), 'utf8')).dependencies;
    const { vitepress } = dependenciesOf('site/package.json');
    const { esbuild, ...libraries } = dependenciesOf('package.json'); // whose code is in nothing that is released
    const expected = { ...libraries, vitepress, node: process.versions.node };
    for (const [name, version] of Object.entries(expected))
      assert.ok(found.includes(`${name} ${version}`), name);
    assert.ok(esbuild && /^minisearch /m.test(found.join('\n')));
    assert.doesNotMatch(found.join('\n'), /^(vite|@?esbuild\S*) /m);
  });

  test('made again in another folder, every byte is the same', () => {
    const sums = (folder: string) => readFileSync(join(filesOf(folder), 'SHA256SUMS'), 'utf8');
    assert.equal(sums(again), sums(tree));
  });

  test('no version, a tree with changes, another version, and a tag of another commit are refused, and nothing is made', () => {
    const refused = cloneOf(tree);
    const outcome = (...args: string[]) => {
      const { status, stdout, stderr } = spawnSync(process.execPath, ['release/main.ts', ...args], {
        cwd: refused,
        encoding: 'utf8',
      });
      return [status, stdout, stderr];
    };
    const usage = 'Usage: npm run release -- VERSION\n';
    assert.deepEqual(outcome(), [1, '', usage]);
    assert.deepEqual(outcome('9.9.9'), [1, '', `package.json has version ${VERSION}, not 9.9.9.\n`]);
    for (const name of ['Unreleased', VERSION, `${VERSION} (today)`, '9.9.9 (2026-11-01)']) {
      nameChanges(refused, name);
      const sentence = `The newest part of CHANGELOG.md must begin with "## ${VERSION} (YYYY-MM-DD)", not with "## ${name}".\n`;
      assert.deepEqual(outcome(VERSION), [1, '', sentence]);
    }
    git(refused, 'checkout', '--quiet', 'CHANGELOG.md');
    writeFileSync(join(refused, 'LICENSE'), 'changed');
    assert.deepEqual(outcome(VERSION), [1, '', 'The tree has changes: commit them first.\n']);
    git(refused, 'commit', '--all', '--message=changed');
    const tagged = `The tag v${VERSION} is another commit: choose another version.\n`;
    assert.deepEqual(outcome(VERSION), [1, '', tagged]);
    assert.ok(!readdirSync(refused).includes('dist'));
  });

  test('the package without systemd: installed, upgraded, removed, purged; no book, setting or secret is lost', async (context) => {
    const root = await Root.withoutSystemd(context);
    giveBoth(root);
    const books = () => root.run('book-catalogue', 'export');
    const secrets = () => root.run('cat', ...SECRETS.map((name) => `${ETC}/${name}`));

    root.run('dpkg', '--install', '/earlier.deb');
    const copyright = root.run('cat', '/usr/share/doc/book-catalogue/copyright');
    assert.match(copyright, /^Copyright Node\.js contributors\./m);
    const page = readFileSync(pathTo('deploy/book-catalogue.1'), 'utf8');
    assert.equal(root.sh('gunzip </usr/share/man/man1/book-catalogue.1.gz').trimEnd(), page.trimEnd());
    assert.equal(root.run('book-catalogue', 'man').trimEnd(), page.trimEnd());
    assert.equal(root.run('book-catalogue', '--version'), BEFORE);
    for (const folder of [DATA, BACKUPS])
      assert.equal(root.run('stat', '-c', '%U %G %a', folder), 'book-catalogue book-catalogue 700');
    for (const name of SECRETS) {
      assert.equal(root.run('stat', '-c', '%U %a', `${ETC}/${name}`), 'root 600');
      assert.equal(root.run('wc', '--lines', `${ETC}/${name}`), `1 ${ETC}/${name}`);
    }
    assert.ok(root.has(LINK));
    const units = ['', '-backup'].map((name) => `/usr/lib/systemd/system/book-catalogue${name}.service`);
    assert.equal(root.run('systemd-analyze', 'verify', ...units), '');

    root.sh(`mkdir -m 700 /private; cd /private
      printf 'title\\nEmma\\n' | book-catalogue import - --rejects /tmp/rejects.csv`);
    assert.equal(root.run('find', DATA, '!', '-user', 'book-catalogue'), '');
    const [kept, signed] = [books(), secrets()];
    assert.match(kept, /Emma/);
    root.sh(`echo PORT=9090 >>${ETC}/environment`);
    const upgrade = () => {
      root.run('dpkg', '--install', '/this.deb');
      assert.equal(root.run('book-catalogue', '--version'), VERSION);
      assert.match(root.run('cat', `${ETC}/environment`), /^PORT=9090$/m);
      assert.deepEqual([books(), secrets()], [kept, signed]);
    };
    upgrade();
    root.run('dpkg', '--remove', 'book-catalogue');
    assert.match(root.run('dpkg', '--status', 'book-catalogue'), /^Status: deinstall ok config-files$/m);
    assert.ok(!root.has('/usr/bin/book-catalogue'));
    upgrade();

    const said = root.run('dpkg', '--purge', 'book-catalogue');
    assert.match(said, /There are still books in \/var\/lib\/book-catalogue\./);
    for (const path of [ETC, LINK, BACKUPS, '/usr/bin/book-catalogue', ...units])
      assert.ok(!root.has(path), path);
    root.run('dpkg', '--install', '/this.deb');
    assert.equal(books(), kept);
    assert.notEqual(secrets(), signed);
    root.run('rm', '-r', `${DATA}/data`);
    root.run('dpkg', '--purge', 'book-catalogue');
    assert.ok(!root.has(DATA));
  });

  test("the package's commands: each shell completes them, their options and files; root has the settings and the user of the service, others have their own", async (context) => {
    const root = await Root.withoutSystemd(context);
    giveBoth(root);
    root.run('dpkg', '--install', '/this.deb');
    root.sh("printf 'title,year\\nEmma,1815\\n' >/tmp/novels.csv");
    for (const [shell, start] of Object.entries(SHELLS)) {
      root.sh(`rm -rf ${DATA}/data`);
      const shown = await root.type(start, KEYS);
      assert.match(shown, /^1,"Emma","",1815\r$/m, `${shell}: ${shown}`);
    }

    const url = 'postgres://u:p%20w@db.test/books?sslmode=require&options=$HOME';
    root.sh(`printf '# PORT=1\\nPORT=9090\\nCORS_ORIGINS=http://a.test,http://b.test' >>${ETC}/environment
      echo '${url}' >${ETC}/db_url; echo sqlite:/tmp/named.db >/tmp/url`);
    for (const [command, ...expected] of [
      ['env', 'PORT=9090', 'CORS_ORIGINS=http://a.test,http://b.test', 'DB_URL=postgres://db.test/books'],
      ['env', 'AUTH_USERNAME=librarian', 'AUTH_PASSWORD=(set)', 'SECRET_TOKEN=(set)'],
      ['env PORT=7070 DB_URL=sqlite:/tmp/own.db', 'PORT=7070', 'DB_URL=sqlite:/tmp/own.db'],
      ['env DB_URL_FILE=/tmp/url', 'DB_URL=sqlite:/tmp/named.db'],
      ['runuser -u nobody --', 'PORT=8080', 'DB_URL=sqlite:data/books.db'],
    ] as const) {
      const lines = root.run(...command.split(' '), 'book-catalogue', 'config').split('\n');
      for (const line of expected) assert.ok(lines.includes(line), `${command}: ${line}: ${lines}`);
    }
  });

  test('the package under systemd: served, upgraded, removed, restored, purged, with the commands of docs/install.md', async (context) => {
    const root = await Root.withSystemd(context, ['--net']);
    giveBoth(root);
    const untilReady = () => waitUntil(() => root.outcome('book-catalogue', 'ready').status === 0);
    const run = (commands: string) => root.sh(`cd /srv\n${commands}`);
    const curl = (url: string, ...args: string[]) =>
      root.run('curl', '--silent', ...args, `http://127.0.0.1:${url}`);
    let token = '';
    const call = (method: string, path: string, body?: object) => {
      const data = body === undefined ? [] : ['--data', JSON.stringify(body)];
      return JSON.parse(
        curl(`8080${path}`, '--request', method, '--header', `Authorization: ${token}`, ...data),
      ).data;
    };
    const stopped = () => {
      assert.equal(root.property(UNIT, 'ActiveState'), 'inactive');
      assert.ok(root.has(`${DATA}/data/books.db`));
    };

    root.run('apt-get', 'install', '--yes', '/earlier.deb');
    await untilReady();
    const password = root.run('cat', `${ETC}/auth_password`);
    token = call('POST', '/token', { username: 'librarian', password }).token;
    const book = call('POST', '/book', { title: 'Emma', author: 'Jane Austen', year: 1815 });
    const before = root.property(UNIT, 'MainPID');
    const process = root.run('cat', `/proc/${before}/status`);
    assert.match(process, /^CapEff:\t0+\nCapBnd:\t0+$/m);
    assert.match(process, /^NoNewPrivs:\t1\nSeccomp:\t2$/m);
    assert.match(process, new RegExp(`^Uid:\\t(${root.run('id', '-u', 'book-catalogue')}\\t?){4}$`, 'm'));

    root.sh(`echo WORKERS=2 >>${ETC}/environment`);
    root.give(join(filesOf(tree), PACKAGE), `/srv/${PACKAGE}`);
    assert.ok(run(blockOf('docs/install.md', 'apt-get install')).endsWith(password));
    assert.notEqual(root.property(UNIT, 'MainPID'), before);
    await untilReady();
    assert.ok(curl('8081/metrics').includes(`build_info{worker="2",version="${VERSION}",`));
    assert.match(curl('8081/manual/'), /^<!DOCTYPE html>/);
    assert.deepEqual(call('GET', '/books'), [book]); // with the earlier token
    root.run('book-catalogue', 'verify', 'http://127.0.0.1:8080');

    assert.equal(root.outcome('systemctl', 'is-enabled', TIMER).stdout, 'disabled\n');
    run("printf 'title\\nPersuasion\\n' >books.csv");
    run(blockOf('docs/install.md', 'enable --now book-catalogue-backup.timer'));
    root.run('systemctl', 'start', 'book-catalogue-backup.service');
    const backup = /^books-.*\.db$/m.exec(root.run('ls', BACKUPS))?.[0];
    assert.ok(backup !== undefined);
    const both = call('GET', '/books');
    assert.equal(both.length, 2);

    root.run('apt-get', 'remove', '--yes', 'book-catalogue');
    stopped();
    assert.equal(root.outcome('systemctl', 'is-active', TIMER).stdout, 'inactive\n');
    root.run('dpkg', '--install', '/this.deb');
    await untilReady();
    assert.deepEqual(call('GET', '/books'), both);
    assert.equal(root.run('systemctl', 'is-active', TIMER), 'active');

    call('DELETE', `/book/${book.id}`);
    run(blockOf('docs/install.md', 'systemctl stop book-catalogue'));
    await untilReady();
    assert.deepEqual(call('GET', '/books'), both);

    root.run('apt-get', 'purge', '--yes', 'book-catalogue');
    stopped();
    assert.ok(root.has(`${BACKUPS}/${backup}`));
    assert.equal(root.run('find', '/etc', '/var/lib/systemd', '-name', '*book-catalogue*'), '');
  });

  function giveBoth(root: Root): void {
    root.give(join(filesOf(earlier), PACKAGE.replace(VERSION, BEFORE)), '/earlier.deb');
    root.give(join(filesOf(tree), PACKAGE), '/this.deb');
  }
});

/** The files of this tree, as they are now, as the only commit of a repository. */
function committedTree(): string {
  const tree = temporaryFolder();
  const listed = git(pathTo(''), 'ls-files', '-z', '--cached', '--others', '--exclude-standard');
  for (const path of listed.split('\0').filter(Boolean)) {
    mkdirSync(join(tree, dirname(path)), { recursive: true });
    cpSync(pathTo(path), join(tree, path));
  }
  git(tree, 'init', '--quiet');
  useModules(tree);
  git(tree, 'add', '--all');
  git(tree, 'commit', '--quiet', '--message=this tree');
  return tree;
}

function edit(file: string, from: string | RegExp, to: string): void {
  writeFileSync(file, readFileSync(file, 'utf8').replace(from, to));
}

/** Gives the newest part of the changelog another heading. */
function nameChanges(tree: string, heading: string): void {
  edit(join(tree, 'CHANGELOG.md'), /^## (?!Versions$).*$/m, `## ${heading}`);
}

/** Gives a tree the libraries, with its own cache: the trees are compiled at the same time. */
function useModules(tree: string): void {
  mkdirSync(join(tree, 'node_modules'));
  for (const name of readdirSync(pathTo('node_modules')))
    if (name !== '.cache') symlinkSync(pathTo(`node_modules/${name}`), join(tree, 'node_modules', name));
  // The generator of the site finds its own files by their real paths, which decide names in the site.
  cpSync(pathTo('site/node_modules'), join(tree, 'site/node_modules'), { recursive: true });
  writeFileSync(join(tree, '.git/info/exclude'), 'node_modules\n');
}

async function release(tree: string, version: string): Promise<void> {
  const env = { ...process.env, ...IDENTITY };
  await promisify(execFile)('npm', ['run', 'release', '--', version], { cwd: tree, env });
}

/** A clone of a tree, at its latest commit. */
function cloneOf(tree: string): string {
  const clone = temporaryFolder();
  git(clone, 'clone', '--quiet', tree, '.');
  useModules(clone);
  return clone;
}

const IDENTITY = {
  GIT_AUTHOR_NAME: 'Test',
  GIT_AUTHOR_EMAIL: 'test@example.org',
  GIT_COMMITTER_NAME: 'Test',
  GIT_COMMITTER_EMAIL: 'test@example.org',
  GIT_COMMITTER_DATE: '2026-11-01T12:00:00Z',
};

function git(tree: string, ...args: string[]): string {
  const env = { ...process.env, ...IDENTITY };
  return execFileSync('git', args, { cwd: tree, env, encoding: 'utf8' }).trim();
}

function filesOf(tree: string): string {
  return join(tree, 'dist/release');
}
