// What `npm run release` makes: twice the same bytes, and a Debian package that keeps the books. dpkg runs in a root that
// is a copy of this system for as long as the test lasts, with its own systemd or without one. Needs root, on Debian,
// and bash-completion, fish, zsh and zstd.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { before, describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { blockOf } from '../support/documents.ts';
import { pathTo } from '../support/repository.ts';
import { temporaryFolder } from '../support/service.ts';
import { startSystemd } from '../support/systemd.ts';
import { waitUntil } from '../support/wait.ts';

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
    assert.deepEqual(readdirSync(filesOf(tree)).sort(), [
      'CHANGES.md',
      'LICENSES.txt',
      'SHA256SUMS',
      `book-catalogue-${VERSION}-image.tar.gz`,
      `book-catalogue-${VERSION}-linux-${process.arch}.zst`,
      `book-catalogue-client-${VERSION}.tgz`,
      PACKAGE,
      'sbom.cdx.json',
    ]);
    execFileSync('sha256sum', ['--check', '--quiet', '--strict', 'SHA256SUMS'], { cwd: filesOf(tree) });
    const folder = temporaryFolder();
    const packed = `book-catalogue-${VERSION}-linux-${process.arch}.zst`;
    cpSync(join(filesOf(tree), packed), join(folder, packed));
    const { size } = statSync(join(folder, packed));
    assert.ok(size <= 45e6, `${size} bytes`);
    execFileSync('sh', ['-ec', blockOf('docs/install.md', 'zstd -d')], { cwd: folder });
    assert.equal(
      execFileSync(join(folder, 'book-catalogue'), ['--version'], { encoding: 'utf8' }),
      `${VERSION}\n`,
    );
    const changes = readFileSync(join(filesOf(tree), 'CHANGES.md'), 'utf8');
    assert.match(changes, new RegExp(`^## ${VERSION} `));
    assert.equal(changes.match(/^## /gm)?.length, 1);
    assert.equal(git(tree, 'rev-parse', `v${VERSION}^{commit}`), git(tree, 'rev-parse', 'HEAD'));
    const licences = readFileSync(join(filesOf(tree), 'LICENSES.txt'), 'utf8');
    for (const part of [
      'Copyright Node.js contributors. All rights reserved.',
      '- OpenSSL, located at deps/openssl,',
      '- V8, located at',
      '# The books of the demo',
      'pg 8',
      'Copyright 2020-2021 SmartBear Software Inc.',
      '@vue/runtime-core 3',
      'minisearch 7',
      'vitepress 1',
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
    for (const path of ['Dockerfile', ...copied]) {
      const name = `book-catalogue-${VERSION}/${path}`;
      assert.ok(image.includes(name) || image.includes(`${name}/`), name);
    }
    const client = archive(
      `book-catalogue-client-${VERSION}.tgz`,
      '--extract',
      '--to-stdout',
      'package/package.json',
    );
    assert.equal(JSON.parse(client).version, VERSION);
    const [manual = ''] =
      execFileSync(
        'sh',
        [
          '-c',
          'dpkg-deb --fsys-tarfile "$0" | tar --extract --to-stdout ./usr/share/man/man1/book-catalogue.1.gz | gunzip',
          join(filesOf(tree), PACKAGE),
        ],
        { encoding: 'utf8' },
      ).match(/^\.TH .*$/m) ?? [];
    assert.equal(manual, `.TH BOOK-CATALOGUE 1 "2026-11-01" "book-catalogue ${VERSION}" "User Commands"`);
    const { components } = JSON.parse(readFileSync(join(filesOf(tree), 'sbom.cdx.json'), 'utf8'));
    const found = new Map(
      components.map((part: { name: string; version: string }) => [part.name, part.version]),
    );
    const dependenciesOf = (path: string) => JSON.parse(readFileSync(pathTo(path), 'utf8')).dependencies;
    const { vitepress } = dependenciesOf('site/package.json');
    const expected = { ...dependenciesOf('package.json'), vitepress, node: process.versions.node };
    assert.ok(found.has('minisearch') && !found.has('vite'));
    for (const [name, version] of Object.entries(expected)) assert.equal(found.get(name), version, name);
  });

  test('made again in another folder, every byte is the same', () => {
    const sums = (folder: string) => readFileSync(join(filesOf(folder), 'SHA256SUMS'), 'utf8');
    assert.equal(sums(again), sums(tree));
  });

  test('--help says what is made, and a release without a version is refused', () => {
    const outcome = (...args: string[]) =>
      spawnSync(process.execPath, [pathTo('release/main.ts'), ...args], { encoding: 'utf8' });
    const help = outcome('--help');
    assert.equal(help.status, 0);
    assert.match(help.stdout, /^Usage: npm run release -- VERSION\n/);
    const { status, stderr } = outcome();
    assert.deepEqual([status, stderr], [1, 'Usage: npm run release -- VERSION\n']);
  });

  test('a tree with changes, another version, and a tag of another commit are refused, and nothing is made', () => {
    const refused = cloneOf(tree);
    const outcome = (version: string) => {
      const { status, stderr } = spawnSync(process.execPath, ['release/main.ts', version], {
        cwd: refused,
        encoding: 'utf8',
      });
      assert.equal(status, 1);
      return stderr;
    };
    assert.equal(outcome('9.9.9'), `package.json has version ${VERSION}, not 9.9.9.\n`);
    for (const name of ['Unreleased', VERSION, `${VERSION} (today)`, '9.9.9 (2026-11-01)']) {
      nameChanges(refused, name);
      assert.equal(
        outcome(VERSION),
        `The newest part of CHANGELOG.md must begin with "## ${VERSION} (YYYY-MM-DD)", not with "## ${name}".\n`,
      );
    }
    git(refused, 'checkout', '--quiet', 'CHANGELOG.md');
    writeFileSync(join(refused, 'LICENSE'), 'changed');
    assert.equal(outcome(VERSION), 'The tree has changes: commit them first.\n');
    git(refused, 'commit', '--all', '--message=changed');
    const tagged = `The tag v${VERSION} is another commit: choose another version.\n`;
    assert.equal(outcome(VERSION), tagged);
    assert.ok(!readdirSync(refused).includes('dist'));
  });

  test('the package without systemd: installed, upgraded, removed, purged; no book is lost', async (context) => {
    const root = await Root.withoutSystemd(context);
    giveBoth(root);
    const books = () => root.run('book-catalogue', 'export');
    const secrets = () => root.run('cat', ...SECRETS.map((name) => `${ETC}/${name}`));

    root.run('dpkg', '--install', '/earlier.deb');
    assert.match(
      root.run('cat', '/usr/share/doc/book-catalogue/copyright'),
      /^Copyright Node\.js contributors\./m,
    );
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
    const exposure = root.run('systemd-analyze', 'security', '--offline=true', UNIT);
    assert.ok(Number(/level for \S+: ([\d.]+)/.exec(exposure)?.[1]) <= 1.5, exposure);

    root.run(
      'sh',
      '-c',
      "mkdir -m 700 /private && cd /private && printf 'title\\nEmma\\n' | book-catalogue import - --rejects /tmp/rejects.csv",
    );
    assert.equal(root.run('find', DATA, '!', '-user', 'book-catalogue'), '');
    const [kept, signed] = [books(), secrets()];
    assert.match(kept, /Emma/);
    root.run('sh', '-c', `echo PORT=9090 >>${ETC}/environment`);

    root.run('dpkg', '--install', '/this.deb');
    assert.equal(root.run('book-catalogue', '--version'), VERSION);
    assert.match(root.run('cat', `${ETC}/environment`), /^PORT=9090$/m);
    assert.deepEqual([books(), secrets()], [kept, signed]);

    root.run('dpkg', '--remove', 'book-catalogue');
    assert.match(root.run('dpkg', '--status', 'book-catalogue'), /^Status: deinstall ok config-files$/m);
    assert.ok(!root.has('/usr/bin/book-catalogue'));
    assert.equal(secrets(), signed);
    root.run('dpkg', '--install', '/this.deb');
    assert.match(root.run('cat', `${ETC}/environment`), /^PORT=9090$/m);
    assert.deepEqual([books(), secrets()], [kept, signed]);

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

  test("the package's completions: a shell completes a command with them, as it is after the installation", async (context) => {
    const root = await Root.withoutSystemd(context);
    giveBoth(root);
    root.run('dpkg', '--install', '/this.deb');
    for (const [shell, start] of Object.entries(SHELLS)) {
      const shown = await root.type(start, 'book-catalogue conf\t\nexit\n');
      assert.match(shown, /^PORT +8080/m, shell);
    }
  });

  test("the package's commands: root has the settings and the user of the service, others have their own", async (context) => {
    const root = await Root.withoutSystemd(context);
    giveBoth(root);
    root.run('dpkg', '--install', '/this.deb');
    const settings = (...command: string[]) => {
      const lines = root.run(...command, 'book-catalogue', 'config').split('\n');
      return Object.fromEntries(lines.map((line) => line.split(/=(.*)/s)));
    };
    root.run(
      'sh',
      '-c',
      `printf '# PORT=1\nPORT=9090\nCORS_ORIGINS=http://a.test,http://b.test' >>${ETC}/environment`,
    );
    const url = 'postgres://u:p%20w@db.test/books?sslmode=require&options=$HOME';
    root.run('sh', '-c', `echo '${url}' >${ETC}/db_url`);

    const service = settings('env');
    assert.equal(service.PORT, '9090');
    assert.equal(service.CORS_ORIGINS, 'http://a.test,http://b.test');
    assert.match(service.DB_URL, /^postgres:.*db\.test\/books/);
    assert.equal(service.AUTH_USERNAME, 'librarian');
    assert.deepEqual([service.AUTH_PASSWORD, service.SECRET_TOKEN], ['(set)', '(set)']);
    const own = settings('env', 'PORT=7070', 'DB_URL=sqlite:/tmp/own.db');
    assert.deepEqual([own.PORT, own.DB_URL], ['7070', 'sqlite:/tmp/own.db']);
    root.run('sh', '-c', 'echo sqlite:/tmp/named.db >/tmp/url');
    assert.equal(settings('env', 'DB_URL_FILE=/tmp/url').DB_URL, 'sqlite:/tmp/named.db');
    const other = settings('runuser', '-u', 'nobody', '--');
    assert.deepEqual([other.PORT, other.DB_URL], ['8080', 'sqlite:data/books.db']);
  });

  test('the package under systemd: served, restarted, upgraded, removed, purged; no book is lost', async (context) => {
    const root = await Root.withSystemd(context);
    giveBoth(root);
    const property = (name: string) => root.run('systemctl', 'show', '--property', name, '--value', UNIT);
    const isReady = () => root.outcome('book-catalogue', 'ready').status === 0;
    const run = (commands: string) => root.run('sh', '-ec', `cd /srv\n${commands}`);
    let token = '';
    const call = (method: string, path: string, body?: object) => {
      const curl = [
        'curl',
        '--silent',
        '--show-error',
        '--request',
        method,
        '--header',
        `Authorization: ${token}`,
      ];
      const data = body === undefined ? [] : ['--data', JSON.stringify(body)];
      return JSON.parse(root.run(...curl, ...data, `http://127.0.0.1:8080${path}`));
    };
    const stopped = () => {
      assert.equal(property('ActiveState'), 'inactive');
      assert.equal(root.outcome('curl', '--silent', 'http://127.0.0.1:8080/books').status, 7); // refused
      assert.ok(root.has(`${DATA}/data/books.db`));
    };

    root.run('apt-get', 'install', '--yes', '/earlier.deb');
    await waitUntil(isReady);
    const password = root.run('cat', `${ETC}/auth_password`);
    token = call('POST', '/token', { username: 'librarian', password }).data.token;
    const { data: book } = call('POST', '/book', { title: 'Emma', author: 'Jane Austen', year: 1815 });
    const kept = { status: 200, message: 'Books retrieved successfully', data: [book] };
    assert.deepEqual(call('GET', '/books'), kept);
    const process = root.run('cat', `/proc/${property('MainPID')}/status`);
    assert.match(process, /^CapEff:\t0+\nCapBnd:\t0+$/m);
    assert.match(process, /^NoNewPrivs:\t1\nSeccomp:\t2$/m);
    assert.match(process, new RegExp(`^Uid:\\t(${root.run('id', '-u', 'book-catalogue')}\\t?){4}$`, 'm'));

    root.run('systemctl', 'restart', UNIT);
    await waitUntil(isReady);
    assert.deepEqual(call('GET', '/books'), kept); // with the earlier token

    root.run('sh', '-c', `echo WORKERS=2 >>${ETC}/environment`);
    const before = property('MainPID');
    root.give(join(filesOf(tree), PACKAGE), `/srv/${PACKAGE}`);
    assert.ok(run(blockOf('docs/install.md', 'apt-get install')).endsWith(password));
    assert.notEqual(property('MainPID'), before);
    await waitUntil(isReady);
    const metrics = root.run('curl', '--silent', 'http://127.0.0.1:8081/metrics');
    assert.ok(metrics.includes(`build_info{worker="2",version="${VERSION}",`));
    assert.match(root.run('curl', '--silent', 'http://127.0.0.1:8081/manual/'), /^<!DOCTYPE html>/);
    assert.deepEqual(call('GET', '/books'), kept);
    root.run('book-catalogue', 'verify', 'http://127.0.0.1:8080');

    assert.equal(root.outcome('systemctl', 'is-enabled', TIMER).stdout, 'disabled\n');
    run("printf 'title\\nPersuasion\\n' >books.csv");
    run(blockOf('docs/install.md', 'enable --now book-catalogue-backup.timer'));
    root.run('systemctl', 'start', 'book-catalogue-backup.service');
    const backup = /^books-.*\.db$/m.exec(root.run('ls', BACKUPS))?.[0];
    assert.ok(backup !== undefined);
    const both = call('GET', '/books');
    assert.equal(both.data.length, 2);

    root.run('apt-get', 'remove', '--yes', 'book-catalogue');
    stopped();
    assert.equal(root.outcome('systemctl', 'is-active', TIMER).stdout, 'inactive\n');
    root.run('dpkg', '--install', '/this.deb');
    await waitUntil(isReady);
    assert.deepEqual(call('GET', '/books'), both);
    assert.equal(root.run('systemctl', 'is-active', TIMER), 'active');

    call('DELETE', `/book/${book.id}`);
    run(blockOf('docs/install.md', 'systemctl stop book-catalogue'));
    await waitUntil(isReady);
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

/** A shell script, in separate namespaces: this system as a root in which everything can be changed, in memory. */
const COPY = `
mount -t tmpfs tmpfs "$0"
mkdir "$0/upper" "$0/work" "$0/system"
mount -t overlay -o lowerdir=/,upperdir="$0/upper",workdir="$0/work" overlay "$0/system"
cd "$0/system"
mount --rbind /dev dev
mount -t proc proc proc
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mkdir run/old
become_root() { pivot_root . run/old && umount -l /run/old; }
`;

const WITHOUT_SYSTEMD = `${COPY}become_root
echo ready
exec sleep infinity`;

/** systemd has no units but those that the package brings, and no policy-rc.d forbids to start them. */
const WITH_SYSTEMD = `${COPY}mount -o bind,ro proc/sys proc/sys
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs usr/lib/systemd/system
rm -rf etc/init.d etc/systemd/system usr/sbin/policy-rc.d
mkdir etc/systemd/system
for target in sysinit basic shutdown network-online timers multi-user; do
  echo '[Unit]' >etc/systemd/system/$target.target
done
become_root
mount --make-rshared /
exec env -i container=test PATH="$PATH" /lib/systemd/systemd --system --unit=multi-user.target --log-target=null \\
  --show-status=no --crash-reboot=no`;

const ENVIRONMENT = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', DEBIAN_FRONTEND: 'noninteractive' };

class Root {
  readonly #enter: readonly string[];

  private constructor(enter: readonly string[]) {
    this.#enter = enter;
  }

  static async withoutSystemd(context: TestContext): Promise<Root> {
    const holder = spawn('unshare', ['--mount', 'sh', '-ec', WITHOUT_SYSTEMD, temporaryFolder()], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(holder, 'exit');
    context.after(async () => {
      holder.kill('SIGKILL');
      await ended;
    });
    await Promise.race([
      once(holder.stdout, 'data'),
      ended.then(([code]) => assert.fail(`exit code ${code}: this test needs root and overlayfs`)),
    ]);
    return new Root(['nsenter', `--target=${holder.pid}`, '--mount', '--root', '--wd']);
  }

  /** It also has a separate network, in which every port is free. */
  static async withSystemd(context: TestContext): Promise<Root> {
    const root = new Root(await startSystemd(context, ['--net'], WITH_SYSTEMD, temporaryFolder()));
    await waitUntil(() => root.outcome('systemctl', 'is-system-running').stdout === 'running\n');
    return root;
  }

  /** Copies a file of this system into the root. */
  give(file: string, path: string): void {
    const { status, stderr } = this.#start(['tee', path], readFileSync(file));
    assert.equal(status, 0, stderr);
  }

  /** Runs a command there, which must succeed, and returns what it printed. */
  run(...command: string[]): string {
    const { status, stdout, stderr } = this.outcome(...command);
    assert.equal(status, 0, `${command.join(' ')}: ${stdout}${stderr}`);
    return stdout.trim();
  }

  /** Types into a terminal there, once the shell in it is ready, and returns what it has shown when the shell has ended. */
  async type(shell: string, keys: string): Promise<string> {
    const [program = '', ...args] = [...this.#enter, 'script', '-qc', shell, '/dev/null'];
    const env = { ...ENVIRONMENT, HOME: '/tmp', SHELL: '/bin/sh', TERM: 'xterm' };
    const terminal = spawn(program, args, { env, stdio: ['pipe', 'pipe', 'inherit'] });
    let shown = '';
    terminal.stdout.on('data', (text) => {
      shown += text;
    });
    await waitUntil(() => shown.includes('ready> '));
    terminal.stdin.write(keys);
    await once(terminal, 'close');
    return shown;
  }

  has(path: string): boolean {
    return this.outcome('test', '-e', path).status === 0;
  }

  outcome(...command: string[]) {
    return this.#start(command);
  }

  #start(command: readonly string[], input?: Uint8Array) {
    const [program = '', ...args] = [...this.#enter, ...command];
    return spawnSync(program, args, {
      encoding: 'utf8',
      env: ENVIRONMENT,
      input,
      stdio: ['pipe', input === undefined ? 'pipe' : 'ignore', 'pipe'],
    });
  }
}
