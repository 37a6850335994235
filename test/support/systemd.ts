// Owns: systemd as the first process of separate namespaces, which end with the test. Needs root, the package systemd,
// and cgroup2.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import type { TestContext } from 'node:test';
import { waitUntil } from './wait.ts';

let started = 0;

/**
 * Starts systemd, and resolves while it starts its units.
 * @param namespaces options of `unshare`, beside those that every such systemd has.
 * @param script a shell script that prepares the namespaces and then becomes systemd (`exec`).
 * @param args its $0, $1 and so on.
 * @returns the beginning of a command line that runs the rest of it there.
 */
export async function startSystemd(
  context: TestContext,
  namespaces: readonly string[],
  script: string,
  ...args: readonly string[]
): Promise<readonly string[]> {
  const hierarchy = ['/sys/fs/cgroup/unified', '/sys/fs/cgroup'].find((path) =>
    existsSync(`${path}/cgroup.procs`),
  );
  const group = `${hierarchy}/book-catalogue-test-${process.pid}-${started++}`;
  const options = [
    ...['--mount', '--pid', '--cgroup', '--ipc', '--uts', '--fork', '--kill-child'],
    ...namespaces,
  ];
  const begin = `mkdir -p "$0" && echo $$ >"$0/cgroup.procs" && exec setpriv --pdeathsig=KILL unshare ${options.join(' ')} sh -ec "$@"`;
  const child = spawn('sh', ['-ec', begin, group, script, ...args], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const ended = once(child, 'exit');
  context.after(async () => {
    child.kill('SIGKILL'); // and so everything in it
    await ended;
    await waitUntil(
      () =>
        spawnSync('find', [group, '-depth', '-type', 'd', '-exec', 'rmdir', '{}', ';']).status === 0 &&
        !existsSync(group),
    );
  });
  const { pid } = child;
  const firstProcess = () => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  await waitUntil(() => {
    assert.equal(child.exitCode, null, 'systemd has exited: these tests need root, on Linux with cgroup2');
    const first = firstProcess();
    return first !== '' && readFileSync(`/proc/${first}/comm`, 'utf8') === 'systemd\n';
  });
  return [
    ...['nsenter', `--target=${firstProcess()}`, '--mount', '--pid', '--cgroup', '--ipc', '--net'],
    ...['--root', '--wd'],
  ];
}
