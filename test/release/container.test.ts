// The image of the Dockerfile: built by buildah, on a base made from this machine's own files instead of the official
// one, and run as containers are run: as another user, without privileges, on a read-only file system. Needs root, and
// the packages buildah and docker-compose.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  cpSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { before, describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { accepts, Client } from '../support/client.ts';
import { unusedPort } from '../support/ports.ts';
import { ENVIRONMENT, POSTGRES, temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const USER = 1000;

/** The configuration that Docker would read from the image. */
interface ImageConfig {
  readonly User: string;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly Healthcheck: { readonly Test: readonly string[] };
  readonly WorkingDir: string;
  readonly Labels: Readonly<Record<string, string>>;
}

test('docker-compose accepts compose.yaml', () => {
  const { error, stderr } = spawnSync('docker-compose', ['--file', join(PROJECT, 'compose.yaml'), 'config']);
  assert.equal(error, undefined, 'docker-compose must be installed (Debian: apt-get install docker-compose)');
  assert.equal(String(stderr), '');
});

describe('the image', () => {
  let root: string;
  let config: ImageConfig;

  before(() => {
    execFileSync('npm', ['run', 'build:site'], { cwd: PROJECT }); // downloads what the image's own build needs
    ({ root, config } = build());
  });

  test('contains what is needed to run this version, and nothing else', () => {
    const { version } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8')) as {
      version: string;
    };
    assert.equal(config.Labels['org.opencontainers.image.version'], version);
    const app = execFileSync('ls', ['-A', join(root, 'app')], { encoding: 'utf8' });
    const expected = [
      'LICENSE',
      'client',
      'conformance',
      'data',
      'docs',
      'node_modules',
      'package-lock.json',
      'package.json',
      'page',
      'site',
      'src',
    ];
    assert.deepEqual(app.trim().split('\n').toSorted(), expected);
    const docs = execFileSync('find', [join(root, 'app/docs'), '-type', 'f'], { encoding: 'utf8' });
    assert.equal(docs, `${join(root, 'app/docs/openapi/openapi.json')}\n`);
    assert.deepEqual(readdirSync(join(root, 'app/site')), ['dist']);
    const own = execFileSync('find', [join(root, 'app'), '-not', '-user', '0'], { encoding: 'utf8' });
    assert.equal(own, `${join(root, 'app/data')}\n`);
    assert.throws(() => readFileSync(join(root, 'app/node_modules/typescript/package.json')), {
      code: 'ENOENT',
    });
  });

  test('rule 27: serves from a volume, is healthy, translates nothing, exits with code 0 at SIGTERM, and starts again', async (context) => {
    const volume = volumeFor();
    const env = { ...ENVIRONMENT, LOG_LEVEL: 'info', ...(await ports()) };
    const container = new Container(context, { ...env, NODE_DEBUG_NATIVE: 'COMPILE_CACHE' }, { volume });
    await container.healthy();
    const found = /retrieving transpile cache for StrippedTypeScript \S+cli\.ts\.\.\.success/;
    await waitUntil(() => found.test(container.said) && container.said.includes('"msg":"listening"'));
    assert.equal((await fetch(`http://127.0.0.1:${env.PAGE_PORT}/`)).status, 200);
    assert.equal((await fetch(`http://127.0.0.1:${env.ADMIN_PORT}/manual/`)).status, 200);
    assert.doesNotMatch(container.said, /no transpile cache/);
    const book = await (await container.client()).create({ title: 'kept' });
    assert.equal(await container.stop(), 0);

    const again = new Container(context, env, { volume });
    await again.healthy();
    assert.deepEqual(await (await again.client()).list(), [book]);
    assert.equal(await again.stop(), 0);
    const [, ...check] = config.Healthcheck.Test;
    const alone = new Container(context, env, { volume }, check);
    await alone.ended;
    assert.match(alone.said, /^No answer at ADMIN_HOST/);
  });

  test('has no privileges, and can write only its data', async (context) => {
    const container = new Container(context, {}, { volume: volumeFor() }, [
      'sh',
      '-c',
      'set -x; touch data/a; touch a; touch src/a; touch node_modules/.cache/a; touch /a; grep -E "^(Uid|CapBnd|CapEff|NoNewPrivs)" /proc/self/status',
    ]);
    await container.ended;
    assert.equal(container.said.match(/Read-only file system/g)?.length, 4, container.said);
    assert.doesNotMatch(container.said, /data\/a'/);
    assert.match(container.said, /Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0+\nCapBnd:\t0+\nNoNewPrivs:\t1\n/);
  });

  test('rule 25: reads its secrets as compose.yaml provides them, on PostgreSQL, for every address', async (context) => {
    const secrets = temporaryFolder();
    chmodSync(secrets, 0o755); // Docker shows only the files
    const values = {
      auth_password: ENVIRONMENT.AUTH_PASSWORD,
      secret_token: ENVIRONMENT.SECRET_TOKEN,
      db_url: await POSTGRES.freshUrl(),
    };
    for (const [name, value] of Object.entries(values)) {
      writeFileSync(join(secrets, name), `${value}\n`, { mode: 0o644 });
    }
    const env = { ...composeEnvironment(), ...(await ports()), LOG_LEVEL: 'info' };
    const container = new Container(context, env, { secrets });
    await container.healthy();
    await waitUntil(() => /"url":"http:\/\/localhost:.*"store":"postgres:/.test(container.said));
    await (await container.client()).create({ title: 'in PostgreSQL' });
    assert.equal(await container.stop(), 0);
  });

  /** One run of the image, or of another command in it. */
  class Container {
    said = '';
    readonly ended: Promise<unknown>;
    readonly #process: ChildProcess;
    readonly #env: Readonly<Record<string, string>>;

    constructor(
      context: TestContext,
      env: Readonly<Record<string, string>>,
      { volume = '', secrets = '' }: { readonly volume?: string; readonly secrets?: string },
      command: readonly string[] = [...config.Entrypoint, ...config.Cmd],
    ) {
      this.#env = env;
      const namespaces = ['--mount', '--pid', '--ipc', '--fork', '--kill-child'];
      const shell = ['sh', '-ec', MOUNT, root, volume, secrets];
      this.#process = spawn('setpriv', [
        '--pdeathsig=KILL',
        'unshare',
        ...namespaces,
        ...shell,
        ...this.#program(command),
      ]);
      this.ended = once(this.#process, 'close');
      context.after(() => this.#process.kill('SIGKILL')); // and so everything in it
      for (const stream of [this.#process.stdout, this.#process.stderr]) {
        stream?.on('data', (text) => {
          this.said += text;
        });
      }
    }

    /** A command as the image's user, without privileges, with only the image's and the given variables. */
    #program(command: readonly string[]): string[] {
      const [user, group] = config.User.split(':');
      const rights = ['--clear-groups', '--bounding-set=-all', '--inh-caps=-all', '--no-new-privs'];
      const env = [...config.Env, ...Object.entries(this.#env).map(([name, value]) => `${name}=${value}`)];
      return [
        ...['setpriv', `--reuid=${user}`, `--regid=${group}`, ...rights, '--pdeathsig=KILL'],
        ...['env', '--ignore-environment', `--chdir=${config.WorkingDir}`, ...env, ...command],
      ];
    }

    /** The pid of its first process, as seen from here. */
    get #first(): number {
      const { pid } = this.#process;
      return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'));
    }

    /** Runs the health check in it, as Docker does. */
    checkHealth(): boolean {
      const [kind, ...command] = config.Healthcheck.Test;
      assert.equal(kind, 'CMD');
      const inside = [`--target=${this.#first}`, '--mount', '--pid', '--ipc', '--root'];
      return spawnSync('nsenter', [...inside, ...this.#program(command)]).status === 0;
    }

    async healthy(): Promise<void> {
      await waitUntil(() => {
        assert.equal(this.#process.exitCode, null, this.said);
        return this.checkHealth();
      });
    }

    async client(): Promise<Client> {
      const port = Number(this.#env.PORT);
      await waitUntil(() => accepts('127.0.0.1', port));
      return Client.logIn({ url: `http://127.0.0.1:${port}`, port });
    }

    /** Sends SIGTERM to its first process, as Docker does. */
    async stop(): Promise<number | null> {
      process.kill(this.#first, 'SIGTERM');
      await this.ended;
      return this.#process.exitCode;
    }
  }
});

/**
 * A shell script that runs in separate namespaces: $0 is the image's root, $1 the volume, $2 the secrets, then the
 * command.
 */
const MOUNT = `
mount --bind "$0" "$0"
mount -t proc proc "$0/proc"
mount --rbind /dev "$0/dev"
mount -t tmpfs tmpfs "$0/run"
if [ -n "$1" ]; then mount --bind "$1" "$0/app/data"; fi
if [ -n "$2" ]; then mkdir "$0/run/secrets"; mount --bind "$2" "$0/run/secrets"; fi
mount -o remount,bind,ro "$0"
cd "$0"
shift 2
exec chroot . "$@"`;

async function ports(): Promise<{ PORT: string; ADMIN_PORT: string; PAGE_PORT: string }> {
  const [PORT, ADMIN_PORT, PAGE_PORT] = [await unusedPort(), await unusedPort(), await unusedPort()].map(
    String,
  );
  return { PORT, ADMIN_PORT, PAGE_PORT } as { PORT: string; ADMIN_PORT: string; PAGE_PORT: string };
}

/** A folder that belongs to the image's user, as a new volume does. */
function volumeFor(): string {
  const folder = temporaryFolder();
  chownSync(folder, USER, USER);
  return folder;
}

/** The variables that compose.yaml gives the service, as docker-compose reads them. */
function composeEnvironment(): Record<string, string> {
  const text = execFileSync('docker-compose', ['--file', join(PROJECT, 'compose.yaml'), 'config']);
  const [, variables = ''] =
    / {2}catalogue:\n[\s\S]*?\n {4}environment:\n((?: {6}.*\n)+)/.exec(String(text)) ?? [];
  const entries = variables
    .trim()
    .split('\n')
    .map((line) => line.trim().split(': ') as [string, string]);
  assert.equal(entries.length, 4);
  return Object.fromEntries(entries);
}

/** Builds the image. */
function build(): { root: string; config: ImageConfig } {
  const folder = temporaryFolder();
  const storage = [
    '--root',
    join(folder, 'storage'),
    '--runroot',
    join(folder, 'run'),
    '--storage-driver',
    'vfs',
  ];
  const buildah = (...args: string[]): string => {
    const { error, status, stdout, stderr } = spawnSync('buildah', [...storage, ...args], {
      encoding: 'utf8',
    });
    assert.equal(error, undefined, 'buildah must be installed (Debian: apt-get install buildah)');
    assert.equal(status, 0, `buildah ${args.join(' ')}:\n${stdout}${stderr}`);
    return stdout.trim();
  };
  const [, name = ''] = /^FROM (\S+) AS/m.exec(readFileSync(join(PROJECT, 'Dockerfile'), 'utf8')) ?? [];
  assert.equal(
    name.split('-')[0],
    `node:${process.versions.node}`,
    'the base must have the Node.js version of package.json',
  );
  const base = join(folder, 'base');
  makeBase(base);
  const container = buildah('from', 'scratch');
  buildah('copy', '--quiet', container, base, '/');
  buildah('config', '--env', 'PATH=/usr/local/bin:/usr/bin:/bin', container);
  buildah('commit', '--quiet', '--rm', container, `docker.io/library/${name}`);

  const cache = npmSetting('cache'); // packages that an earlier `npm ci` downloaded
  const home = '/root'; // of the user that builds, inside the container
  const options = ['--pull=never', '--isolation=chroot', '--format=docker', `--volume=${cache}:${home}/.npm`];
  buildah('bud', ...options, '--tag=book-catalogue', PROJECT);
  const config = JSON.parse(buildah('inspect', '--type=image', 'book-catalogue')).Docker.config;
  return { root: buildah('mount', buildah('from', 'book-catalogue')), config };
}

/** Makes the minimum that the Dockerfile's commands need: Node.js, npm, a shell, the user `node`. */
function makeBase(base: string): void {
  for (const folder of [
    'etc',
    'home/node',
    'proc',
    'dev',
    'run',
    'root',
    'tmp',
    'usr/local/lib/node_modules',
  ]) {
    mkdirSync(join(base, folder), { recursive: true });
  }
  chmodSync(join(base, 'tmp'), 0o1777);
  const copyLibraries = (of: string) => {
    const { stdout } = spawnSync('ldd', [of], { encoding: 'utf8' });
    for (const [library] of stdout.matchAll(/\/\S+\.so\S*/g)) {
      mkdirSync(dirname(join(base, library)), { recursive: true });
      copyFileSync(library, join(base, library));
    }
  };
  const copy = (from: string, to = from) => {
    mkdirSync(dirname(join(base, to)), { recursive: true });
    copyFileSync(from, join(base, to));
    copyLibraries(from);
  };
  copy(process.execPath, '/usr/local/bin/node');
  copy('/bin/sh');
  for (const tool of ['chmod', 'chown', 'env', 'grep', 'install', 'mkdir', 'setpriv', 'touch']) {
    copy(`/usr/bin/${tool}`);
  }
  // The generator of the site has its own library, which needs more of libc than Node.js does.
  for (const path of globSync('site/node_modules/@rollup/*/*.node', { cwd: PROJECT }))
    copyLibraries(join(PROJECT, path));
  const npm = realpathSync(execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim());
  cpSync(join(npm, '../..'), join(base, 'usr/local/lib/node_modules/npm'), { recursive: true });
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(base, 'usr/local/bin/npm'));
  writeFileSync(join(base, 'root/.npmrc'), `offline=true\nregistry=${npmSetting('registry')}\n`);
  writeFileSync(
    join(base, 'etc/passwd'),
    `root:x:0:0::/root:/bin/sh\nnode:x:${USER}:${USER}::/home/node:/bin/sh\n`,
  );
  writeFileSync(join(base, 'etc/group'), `root:x:0:\nnode:x:${USER}:\n`);
}

function npmSetting(name: string): string {
  return execFileSync('npm', ['config', 'get', name], { encoding: 'utf8' }).trim();
}
