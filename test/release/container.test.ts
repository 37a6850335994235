// The image of the Dockerfile: built by buildah, on a base made from this machine's own files instead of the official
// one, and run as containers are run: as another user, without privileges, on a read-only file system. Needs root, and
// the packages buildah and docker-compose.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  globSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { before, describe, type TestContext, test } from 'node:test';
import { accepts, Client } from '../support/client.ts';
import { adjacentPorts } from '../support/ports.ts';
import { pathTo } from '../support/repository.ts';
import { ENVIRONMENT, POSTGRES, temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const USER = 1000;

/** What /app has in the image, and no more. */
const CONTENTS = [
  ...['LICENSE', 'client', 'conformance', 'data', 'deploy', 'docs', 'node_modules'],
  ...['package-lock.json', 'package.json', 'page', 'site', 'src'],
];

/** The configuration that Docker would read from the image. */
interface ImageConfig extends Readonly<Record<'User' | 'WorkingDir', string>> {
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly Healthcheck: { readonly Test: readonly string[] };
  readonly Labels: Readonly<Record<string, string>>;
}

describe('the image', () => {
  let root: string;
  let config: ImageConfig;

  before(() => {
    run('npm', 'run', 'build:site'); // downloads what the image's own build needs
    ({ root, config } = build());
  });

  test('contains what is needed to run this version, and nothing else', () => {
    const { version } = JSON.parse(readFileSync(pathTo('package.json'), 'utf8'));
    assert.equal(config.Labels['org.opencontainers.image.version'], version);
    const app = join(root, 'app');
    assert.deepEqual(readdirSync(app).sort(), CONTENTS);
    assert.equal(run('find', `${app}/docs`, '-type', 'f'), `${app}/docs/openapi/openapi.json`);
    assert.equal(run('find', `${app}/deploy`, '-type', 'f'), `${app}/deploy/book-catalogue.1`);
    assert.deepEqual(readdirSync(`${app}/site`), ['dist']);
    assert.equal(run('find', app, '-not', '-user', '0'), `${app}/data`);
    for (const tool of ['typescript', 'esbuild', '@esbuild'])
      assert.ok(!existsSync(`${app}/node_modules/${tool}`), tool);
  });

  test('rule 27: serves from a volume, is healthy, translates nothing, exits with code 0 at SIGTERM, and starts again', async (context) => {
    const volume = volumeFor();
    const env = { ...ENVIRONMENT, LOG_LEVEL: 'info', ...(await ports()) };
    const container = start(context, { ...env, NODE_DEBUG_NATIVE: 'COMPILE_CACHE' }, { volume });
    const client = await container.healthy();
    const found = /retrieving transpile cache for StrippedTypeScript \S+cli\.ts\.\.\.success/;
    await waitUntil(() => found.test(container.said()) && container.said().includes('"msg":"listening"'));
    assert.equal((await fetch(`http://127.0.0.1:${env.PAGE_PORT}/`)).status, 200);
    assert.equal((await fetch(`http://127.0.0.1:${env.ADMIN_PORT}/manual/`)).status, 200);
    assert.doesNotMatch(container.said(), /no transpile cache/);
    const book = await client.create({ title: 'kept' });
    await container.stop();

    const again = start(context, env, { volume });
    assert.deepEqual(await (await again.healthy()).list(), [book]);
    await again.stop();
    const [, ...check] = config.Healthcheck.Test;
    assert.match((await start(context, env, { volume }, check).ended).said, /^No answer at ADMIN_HOST/);
  });

  test('has no privileges, and can write only its data', async (context) => {
    const paths = ['data/a', 'a', 'src/a', 'node_modules/.cache/a', '/a'];
    const script = `set -x; ${paths.map((path) => `touch ${path}`).join('; ')}
      grep -E "^(Uid|CapBnd|CapEff|NoNewPrivs)" /proc/self/status`;
    const { said } = await start(context, {}, { volume: volumeFor() }, ['sh', '-c', script]).ended;
    assert.equal(said.match(/Read-only file system/g)?.length, paths.length - 1, said);
    assert.doesNotMatch(said, /data\/a'/);
    assert.match(said, /Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0+\nCapBnd:\t0+\nNoNewPrivs:\t1\n/);
  });

  test('rule 25: reads its secrets as compose.yaml provides them, on PostgreSQL, for every address', async (context) => {
    const secrets = temporaryFolder();
    chmodSync(secrets, 0o755); // Docker shows only the files
    const { AUTH_PASSWORD: auth_password, SECRET_TOKEN: secret_token } = ENVIRONMENT;
    const db_url = await POSTGRES.freshUrl();
    for (const [name, value] of Object.entries({ auth_password, secret_token, db_url }))
      writeFileSync(join(secrets, name), `${value}\n`, { mode: 0o644 });
    const env = { ...composeEnvironment(), ...(await ports()), LOG_LEVEL: 'info' };
    const container = start(context, env, { secrets });
    const client = await container.healthy();
    await waitUntil(() => /"url":"http:\/\/localhost:.*"store":"postgres:/.test(container.said()));
    await client.create({ title: 'in PostgreSQL' });
    await container.stop();
  });

  /** A command as the image's user, without privileges, with only the image's and the given variables. */
  function program(env: Variables, command: readonly string[]): string[] {
    const [user, group] = config.User.split(':');
    const rights = ['--clear-groups', '--bounding-set=-all', '--inh-caps=-all', '--no-new-privs'];
    const variables = [...config.Env, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)];
    return [
      ...['setpriv', `--reuid=${user}`, `--regid=${group}`, ...rights, '--pdeathsig=KILL'],
      ...['env', '--ignore-environment', `--chdir=${config.WorkingDir}`, ...variables, ...command],
    ];
  }

  /** Runs the image, or another command in it. */
  function start(
    context: TestContext,
    env: Variables,
    { volume = '', secrets = '' }: { readonly volume?: string; readonly secrets?: string },
    command: readonly string[] = [...config.Entrypoint, ...config.Cmd],
  ) {
    const child = spawn('setpriv', [
      ...['--pdeathsig=KILL', 'unshare', '--mount', '--pid', '--ipc', '--fork', '--kill-child'],
      ...['sh', '-ec', MOUNT, root, volume, secrets, ...program(env, command)],
    ]);
    context.after(() => child.kill('SIGKILL')); // and so everything in it
    let said = '';
    const note = (text: Buffer) => {
      said += text;
    };
    child.stdout.on('data', note);
    child.stderr.on('data', note);
    const ended = once(child, 'close').then(([code]) => ({ code, said }));
    /** The pid of its first process, as seen from here. */
    const first = () => Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8'));
    return {
      ended,
      said: () => said,
      /** Resolves once the health check succeeds in it, as Docker runs it, and it listens; to a client. */
      async healthy(): Promise<Client> {
        const [kind, ...check] = config.Healthcheck.Test;
        assert.equal(kind, 'CMD');
        const enter = () => [`--target=${first()}`, '--mount', '--pid', '--ipc', '--root'];
        const isHealthy = () => spawnSync('nsenter', [...enter(), ...program(env, check)]).status === 0;
        await waitUntil(isHealthy, ended);
        const port = Number(env.PORT);
        await waitUntil(() => accepts('127.0.0.1', port), ended);
        return Client.logIn({ url: `http://127.0.0.1:${port}`, port });
      },
      /** Sends SIGTERM to its first process, as Docker does. */
      async stop(): Promise<void> {
        process.kill(first(), 'SIGTERM');
        assert.equal((await ended).code, 0);
      },
    };
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

type Variables = Readonly<Record<string, string>>;

async function ports() {
  const first = await adjacentPorts(3);
  return { PORT: `${first}`, ADMIN_PORT: `${first + 1}`, PAGE_PORT: `${first + 2}` };
}

/** A folder that belongs to the image's user, as a new volume does. */
function volumeFor(): string {
  const folder = temporaryFolder();
  chownSync(folder, USER, USER);
  return folder;
}

/** The variables that compose.yaml gives the service, as docker-compose reads them. */
function composeEnvironment(): Record<string, string> {
  const text = run('docker-compose', '--file', pathTo('compose.yaml'), 'config');
  const [, variables = ''] = / {2}catalogue:\n[\s\S]*?\n {4}environment:\n((?: {6}.*\n)+)/.exec(text) ?? [];
  const lines = variables.trim().split(/\n +/);
  assert.equal(lines.length, 4);
  return Object.fromEntries(lines.map((line) => line.split(': ')));
}

/** Builds the image. */
function build(): { root: string; config: ImageConfig } {
  const folder = temporaryFolder();
  const storage = ['--storage-driver=vfs', `--root=${folder}/storage`, `--runroot=${folder}/run`];
  const buildah = (...args: string[]) => run('buildah', ...storage, ...args);
  const [, name = ''] = /^FROM (\S+) AS/m.exec(readFileSync(pathTo('Dockerfile'), 'utf8')) ?? [];
  const version = `node:${process.versions.node}`;
  assert.equal(name.split('-')[0], version, 'the base must have the Node.js version of package.json');
  const base = join(folder, 'base');
  const [generator = ''] = globSync(pathTo('site/node_modules/@rollup/*/*.node'));
  run('sh', '-ec', BASE, base, process.execPath, generator);
  const container = buildah('from', 'scratch');
  buildah('copy', '--quiet', container, base, '/');
  buildah('config', '--env', 'PATH=/usr/local/bin:/usr/bin:/bin', container);
  buildah('commit', '--quiet', '--rm', container, `docker.io/library/${name}`);

  const cache = run('npm', 'config', 'get', 'cache'); // packages that an earlier `npm ci` downloaded
  const home = '/root'; // of the user that builds, inside the container
  const options = ['--pull=never', '--isolation=chroot', '--format=docker', `--volume=${cache}:${home}/.npm`];
  buildah('bud', ...options, '--tag=book-catalogue', pathTo(''));
  const config = JSON.parse(buildah('inspect', '--type=image', 'book-catalogue')).Docker.config;
  return { root: buildah('mount', buildah('from', 'book-catalogue')), config };
}

/**
 * A shell script that makes, in the folder $0, the minimum that the Dockerfile's commands need: the Node.js $1, npm, a shell, the
 * user `node`. $2 is the library of the generator of the site, which needs more of libc than Node.js does.
 */
const BASE = `
mkdir -p "$0"
cd "$0"
mkdir -p dev etc home/node proc root run tmp usr/local/bin usr/local/lib/node_modules
chmod 1777 tmp
programs="/bin/sh $(printf '/usr/bin/%s ' chmod chown env grep install mkdir rm setpriv touch)"
libraries=$(ldd $programs "$1" "$2" | grep -o '/[^ ]*[.]so[^ ]*' | sort -u)
cp --dereference --parents $programs $libraries .
cp "$1" usr/local/bin/node
cp -r "$(dirname "$(realpath "$(command -v npm)")")/.." usr/local/lib/node_modules/npm
ln -s ../lib/node_modules/npm/bin/npm-cli.js usr/local/bin/npm
printf 'offline=true\\nregistry=%s\\n' "$(npm config get registry)" >root/.npmrc
printf 'root:x:0:0::/root:/bin/sh\\nnode:x:${USER}:${USER}::/home/node:/bin/sh\\n' >etc/passwd
printf 'root:x:0:\\nnode:x:${USER}:\\n' >etc/group`;

/** Runs a program of this system, which must succeed, and returns what it printed. */
function run(program: string, ...args: string[]): string {
  return execFileSync(program, args, {
    cwd: pathTo(''),
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trim();
}
