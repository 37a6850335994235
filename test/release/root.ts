// Owns: a copy of this Debian in memory, with its own systemd or without one, that ends with its test: for what changes a
// system. Needs root and overlayfs, and for systemd its package and cgroup2.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import type { TestContext } from 'node:test';
import { temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

/** A shell script in separate namespaces, which makes a root in its folder $0; $1 is to be seen there at the path $2, if given. */
const COPY = `
mount -t tmpfs tmpfs "$0"
mkdir "$0/upper" "$0/work" "$0/system"
mount -t overlay -o lowerdir=/,upperdir="$0/upper",workdir="$0/work" overlay "$0/system"
cd "$0/system"
if [ -n "$1" ]; then mkdir -p ".$2" && mount --bind "$1" ".$2"; fi
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

/** systemd has no units but those that a test brings, and no policy-rc.d forbids to start them. */
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

const NAMESPACES = ['--mount', '--pid', '--cgroup', '--ipc', '--uts'];

const ENVIRONMENT = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', DEBIAN_FRONTEND: 'noninteractive' };

let started = 0;

export class Root {
  readonly #enter: readonly string[];

  private constructor(pid: number | string, namespaces: readonly string[]) {
    this.#enter = ['nsenter', `--target=${pid}`, ...namespaces, '--root', '--wd'];
  }

  static async withoutSystemd(context: TestContext): Promise<Root> {
    const holder = spawn('unshare', ['--mount', 'sh', '-ec', WITHOUT_SYSTEMD, temporaryFolder(), ''], {
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
    return new Root(holder.pid as number, ['--mount']);
  }

  /**
   * @param namespaces options of `unshare` beside the usual ones; with `--net`, every port is free.
   * @param folder of this system, which is to be seen there at the path that follows.
   */
  static async withSystemd(
    context: TestContext,
    namespaces: readonly string[],
    ...folder: readonly [folder: string, at: string] | []
  ): Promise<Root> {
    const hierarchy = ['/sys/fs/cgroup/unified', '/sys/fs/cgroup'].find((path) =>
      existsSync(`${path}/cgroup.procs`),
    );
    const group = `${hierarchy}/book-catalogue-test-${process.pid}-${started++}`;
    const options = [...NAMESPACES, ...namespaces, '--fork', '--kill-child'].join(' ');
    const begin = `mkdir -p "$0" && echo $$ >"$0/cgroup.procs" && exec setpriv --pdeathsig=KILL unshare ${options} sh -ec "$@"`;
    const args = [group, WITH_SYSTEMD, temporaryFolder(), ...(folder.length === 0 ? [''] : folder)];
    const child = spawn('sh', ['-ec', begin, ...args], { stdio: ['ignore', 'inherit', 'inherit'] });
    const ended = once(child, 'exit');
    context.after(async () => {
      child.kill('SIGKILL'); // and so everything in it
      await ended;
      await waitUntil(() => {
        spawnSync('find', [group, '-depth', '-type', 'd', '-exec', 'rmdir', '{}', ';']);
        return !existsSync(group);
      });
    });
    const { pid } = child;
    const firstProcess = () => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    await waitUntil(() => {
      const first = firstProcess();
      return first !== '' && readFileSync(`/proc/${first}/comm`, 'utf8') === 'systemd\n';
    }, ended);
    const root = new Root(firstProcess(), ['--mount', '--pid', '--cgroup', '--ipc', '--net']);
    await waitUntil(() => root.outcome('systemctl', 'is-system-running').stdout === 'running\n', ended);
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

  /** Runs a shell script there, whose commands must succeed. */
  sh(script: string): string {
    return this.run('sh', '-ec', script);
  }

  /** Of a unit of systemd. */
  property(unit: string, name: string): string {
    return this.run('systemctl', 'show', '--property', name, '--value', unit);
  }

  /** Types into a terminal there, once the shell in it is ready, and returns what it has shown when the shell has ended. */
  async type(shell: string, keys: string): Promise<string> {
    const [program = '', ...args] = [...this.#enter, 'script', '-qc', shell, '/dev/null'];
    const env = { ...ENVIRONMENT, HOME: '/tmp', SHELL: '/bin/sh', TERM: 'xterm' };
    const terminal = spawn(program, args, { env, stdio: ['pipe', 'pipe', 'inherit'] });
    const closed = once(terminal, 'close');
    let shown = '';
    terminal.stdout.on('data', (text) => {
      shown += text;
    });
    await waitUntil(() => shown.includes('ready> '), closed);
    terminal.stdin.write(keys);
    await closed;
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
