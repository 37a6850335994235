// The unit of deploy/, under a real systemd: the first process of separate namespaces, without any other unit and
// without write access to the folders of this system. Needs root, and the package systemd.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '../support/client.ts';
import { blockOf } from '../support/documents.ts';
import { unusedPort } from '../support/ports.ts';
import { ENVIRONMENT, POSTGRES, temporaryFolder } from '../support/service.ts';
import { startSystemd } from '../support/systemd.ts';
import { waitUntil } from '../support/wait.ts';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const UNIT = join(PROJECT, 'deploy/book-catalogue.service');

const LOG = '/run/book-catalogue.log';

/** A shell script that runs in those namespaces: $0 is the project, $1 has the units and the files for /etc. */
const PREPARE = `
mount -t proc proc /proc
mount -o bind,ro /proc/sys /proc/sys
mount -t tmpfs tmpfs /opt
mkdir /opt/book-catalogue
mount --bind "$0" /opt/book-catalogue
mount -t tmpfs tmpfs /run
mkdir /run/upper /run/work
cp -r "$1/units" /run/units
mount -t overlay -o lowerdir=/etc,upperdir=/run/upper,workdir=/run/work overlay /etc
mkdir /etc/book-catalogue
cp "$1"/etc/* /etc/book-catalogue
mount -t tmpfs tmpfs /var
mkdir -p /var/lib /var/cache /var/tmp
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /srv
mount --make-rshared /
umount -l /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
exec env -i container=test PATH="$PATH" SYSTEMD_UNIT_PATH=/run/units:/etc/systemd/system /lib/systemd/systemd --system \\
  --unit=test.target --log-target=null --show-status=no --crash-reboot=no`;

test('systemd accepts the units, and the exposure of the service is low', () => {
  const { error, stdout } = spawnSync('systemd-analyze', ['security', '--offline=true', UNIT]);
  assert.equal(error, undefined, 'systemd must be installed (Debian: apt-get install systemd)');
  const [, exposure] = /Overall exposure level for \S+: ([\d.]+)/.exec(String(stdout)) ?? [];
  assert.ok(Number(exposure) <= 1.3, `${exposure} of 10`);

  const folder = temporaryFolder();
  const units = ['book-catalogue.service', 'book-catalogue-backup.service', 'book-catalogue-backup.timer'];
  for (const unit of units) {
    const text = readFileSync(join(PROJECT, 'deploy', unit), 'utf8');
    writeFileSync(join(folder, unit), text.replaceAll('/opt/book-catalogue', PROJECT.replace(/\/$/, '')));
  }
  const installed = units.map((unit) => join(folder, unit));
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', ...installed], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  assert.doesNotMatch(stderr, /book-catalogue/);
});

test('rule 27: the unit serves, is restarted when killed, stops with exit code 0, and keeps its books', async (context) => {
  const system = await Systemd.start(context, { unit: readFileSync(UNIT, 'utf8') });
  const client = await system.client();
  const book = await client.create({ title: 'kept' });

  const first = system.property('MainPID');
  const status = system.run('cat', `/proc/${first}/status`);
  assert.match(status, /^CapEff:\t0+\nCapBnd:\t0+$/m);
  assert.match(status, /^NoNewPrivs:\t1\nSeccomp:\t2$/m);
  assert.doesNotMatch(status, /^Uid:\t0\t/m);

  system.run('kill', '-KILL', first);
  await waitUntil(() => system.property('NRestarts') === '1' && system.isReady());
  assert.deepEqual(await client.list(), [book]); // with the earlier token
  system.run('systemctl', 'stop', 'book-catalogue');
  assert.equal(system.property('Result'), 'success');
  assert.equal(system.property('ExecMainStatus'), '0');
});

test('the unit serves from PostgreSQL, with WORKERS and with its secrets as credentials', async (context) => {
  const unit = readFileSync(UNIT, 'utf8').replace(
    /^#(?=LoadCredential=db_url|Environment=DB_URL_FILE)/gm,
    '',
  );
  const url = (await POSTGRES.freshUrl()).replace('127.0.0.1', 'localhost'); // a name to look up
  const system = await Systemd.start(context, { unit, secrets: { db_url: url }, settings: 'WORKERS=2\n' });
  await (await system.client()).create({ title: 'in PostgreSQL' });
  assert.match(system.said(), /"store":"postgres:.*"workers":2/);
  assert.match(system.said(), /"url":"http:\/\/localhost:/);
  const [, page = ''] = /"page":"([^"]+)"/.exec(system.said()) ?? [];
  assert.equal((await fetch(page)).status, 200);
  system.run('systemctl', 'stop', 'book-catalogue');
  assert.equal(system.property('Result'), 'success');
});

test('the commands of docs/install.md and docs/data.md install the service, fill it, and back it up', async (context) => {
  const system = await Systemd.start(context, { secrets: { db_url: await POSTGRES.freshUrl() } });
  const run = (commands: string) => system.run('sh', '-ec', commands);
  run(blockOf('docs/install.md', 'cp /opt/book-catalogue/deploy/book-catalogue.service'));
  await waitUntil(() => system.isReady());
  run("printf 'title\\nEmma\\n' >/srv/books.csv");
  run(blockOf('docs/data.md', '/srv/books.csv'));
  assert.match(
    run('cd /var/lib/book-catalogue && /opt/book-catalogue/book-catalogue export'),
    /^1,"Emma","",0$/m,
  );

  run('mkdir -p /etc/cron.d; rm /etc/book-catalogue/db_url'); // with it, backups are PostgreSQL's
  run(blockOf('docs/data.md', 'book-catalogue-backup.timer'));
  assert.equal(run('systemctl is-active book-catalogue-backup.timer'), 'active');
  run('systemctl start book-catalogue-backup.service');
  assert.match(run('ls /var/backups/book-catalogue'), /^books-\S+\.db$/);
});

/** systemd as the first process of separate namespaces. */
class Systemd {
  readonly #enter: readonly string[];
  readonly #port: number;
  readonly #adminPort: number;

  private constructor(enter: readonly string[], port: number, adminPort: number) {
    this.#enter = enter;
    this.#port = port;
    this.#adminPort = adminPort;
  }

  /** Resolves once the service is ready, if there is a unit. */
  static async start(
    context: TestContext,
    {
      unit,
      secrets = {},
      settings = '',
    }: {
      readonly unit?: string;
      readonly secrets?: Readonly<Record<string, string>>;
      readonly settings?: string;
    },
  ): Promise<Systemd> {
    const folder = temporaryFolder();
    const [port, adminPort, pagePort] = [await unusedPort(), await unusedPort(), await unusedPort()];
    for (const name of ['units/book-catalogue.service.d', 'etc'])
      mkdirSync(join(folder, name), { recursive: true });
    const write = (path: string, text: string) => writeFileSync(join(folder, path), text);
    if (unit !== undefined) write('units/book-catalogue.service', unit);
    write(
      'units/book-catalogue.service.d/log.conf',
      `[Service]\nStandardOutput=append:${LOG}\nStandardError=inherit\n`,
    );
    for (const target of ['sysinit', 'basic', 'shutdown']) write(`units/${target}.target`, '[Unit]\n');
    write('units/test.target', '[Unit]\nDefaultDependencies=no\nWants=book-catalogue.service\n');
    const { SECRET_TOKEN, AUTH_PASSWORD } = ENVIRONMENT;
    for (const [name, value] of Object.entries({
      secret_token: SECRET_TOKEN,
      auth_password: AUTH_PASSWORD,
      ...secrets,
    })) {
      write(`etc/${name}`, `${value}\n`);
    }
    write('etc/environment', `PORT=${port}\nADMIN_PORT=${adminPort}\nPAGE_PORT=${pagePort}\n${settings}`);

    const enter = await startSystemd(context, [], PREPARE, PROJECT, folder);
    const system = new Systemd(enter, port, adminPort);
    await waitUntil(() => system.#outcome(['systemctl', 'is-active', 'test.target']).status === 0);
    if (unit !== undefined) await waitUntil(() => system.isReady());
    return system;
  }

  /** Runs a command in the namespaces of systemd; it must succeed. */
  run(...command: string[]): string {
    const { status, stdout, stderr } = this.#outcome(command);
    assert.equal(status, 0, `${command.join(' ')}: ${stderr}`);
    return stdout.trim();
  }

  property(name: string): string {
    return this.run('systemctl', 'show', '--property', name, '--value', 'book-catalogue');
  }

  isReady(): boolean {
    const settings = [`PORT=${this.#port}`, `ADMIN_PORT=${this.#adminPort}`];
    const [node, program] = ['/opt/book-catalogue/node_modules/.bin/node', '/opt/book-catalogue/src/main.js'];
    return this.#outcome(['env', ...settings, node, program, 'ready']).status === 0;
  }

  said(): string {
    return this.run('cat', LOG);
  }

  client(): Promise<Client> {
    return Client.logIn({ url: `http://127.0.0.1:${this.#port}`, port: this.#port });
  }

  #outcome(command: readonly string[]) {
    const [program = '', ...args] = [...this.#enter, ...command];
    return spawnSync(program, args, { encoding: 'utf8' });
  }
}
