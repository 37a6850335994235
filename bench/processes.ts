// Owns: the measured processes: starting them, reading their CPU time and memory, stopping them, or running them to
// their end.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { unusedPort } from '../test/support/ports.ts';
import { COMMAND, pathTo } from '../test/support/repository.ts';

export const SECRET = 'a secret for benchmarks, long enough';

const CORES = availableParallelism();

/** Whether a server can have its own core, the last one, so that its threads take no time from the load. */
export const IS_PINNED = CORES > 1 && spawnSync('taskset', ['--version']).error === undefined;

/** A command that runs on the core of the server, or, for the load, on all others. */
export function pinned(who: 'server' | 'load', command: string, args: readonly string[]): [string, string[]] {
  if (!IS_PINNED) return [command, [...args]];
  const cores = who === 'server' ? `${CORES - 1}` : `0-${CORES - 2}`;
  return ['taskset', ['--cpu-list', cores, command, ...args]];
}

/** Clock ticks a second in /proc; the same on every Linux that Node runs on. */
const TICKS = 100;

/** Milliseconds between two readings of the figures of a process that may end at any moment. */
const WATCH_INTERVAL = 10;

/** A program and its arguments. */
export type Command = readonly [string, ...string[]];

/** A server that takes at most this much CPU time, in seconds, in so many milliseconds does nothing. */
const SETTLED = 1.5 / TICKS;
const SETTLE_INTERVAL = 100;

export interface Measured {
  readonly port: number;
  /** Milliseconds from the start of the process to its first answer. */
  readonly startup: number;
  /** It, and the processes that it has started. */
  pids(): readonly number[];
  /** CPU seconds so far, user and system, children included; NaN where there is no /proc. */
  cpuSeconds(): number;
  /** Bytes in memory, children included; NaN where there is no /proc. */
  residentBytes(): number;
  stop(): Promise<void>;
}

/**
 * Starts the service on a store.
 * @param isPinned whether it has its own core, if that is possible: not if its store needs the same cores.
 * @param command that of another build, or one that starts ours.
 */
export function startService(
  dbUrl: string,
  env: Record<string, string> = {},
  isPinned = dbUrl.startsWith('sqlite:'),
  command: Command = COMMAND,
): Promise<Measured> {
  return start(command, isPinned, {
    AUTH_USERNAME: 'bench',
    AUTH_PASSWORD: 'bench',
    SECRET_TOKEN: SECRET,
    LOG_LEVEL: 'warn',
    DB_URL: dbUrl,
    ...env,
  });
}

/** The figures of a process that ended by itself. */
export interface Ended {
  readonly seconds: number;
  /** User and system; NaN where there is no /proc. */
  readonly cpuSeconds: number;
  /** Peak memory in bytes; NaN where there is no /proc. */
  readonly peakBytes: number;
}

/**
 * Runs a program to its end.
 * @throws Error with its error output if it fails.
 */
export async function runToEnd(
  [command, ...args]: Command,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Ended> {
  const began = performance.now();
  const child = spawn(command, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (text) => {
    said += text;
  });
  let peakBytes = Number.NaN;
  let cpu = Number.NaN;
  const watch = setInterval(() => {
    // The kernel keeps the peak, so the latest reading is the highest; a process that has ended has none.
    peakBytes = memoryBytes(child.pid as number, 'VmHWM') || peakBytes;
    cpu = cpuSeconds(child.pid as number) || cpu;
  }, WATCH_INTERVAL);
  const [code] = await once(child, 'close');
  clearInterval(watch);
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} exited with code ${code}: ${said}`);
  return { seconds: (performance.now() - began) / 1000, cpuSeconds: cpu, peakBytes };
}

/** Waits until a server has finished the work that it does after its answers, such as indexing. */
export async function settle(server: Measured): Promise<void> {
  for (;;) {
    const before = server.cpuSeconds();
    await pause(SETTLE_INTERVAL);
    if (!(server.cpuSeconds() - before > SETTLED)) return;
  }
}

/** Records the peak memory of a server. */
export function watchMemory(server: Measured): { stop(): number } {
  let most = server.residentBytes();
  const timer = setInterval(() => {
    most = Math.max(most, server.residentBytes());
  }, WATCH_INTERVAL);
  return {
    stop() {
      clearInterval(timer);
      return most;
    },
  };
}

export function startBareServer(isPinned: boolean): Promise<Measured> {
  return start([process.execPath, pathTo('bench/bare-server.ts')], isPinned, {});
}

async function start(
  [program, ...args]: Command,
  isPinned: boolean,
  env: Record<string, string>,
): Promise<Measured> {
  const port = await unusedPort();
  const began = performance.now();
  const command: [string, string[]] = [program, args];
  const child = spawn(...(isPinned ? pinned('server', ...command) : command), {
    env: { ...env, PORT: `${port}`, HOST: '127.0.0.1' },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  while (!(await answers(port))) {
    if (child.exitCode !== null) throw new Error(`${[program, ...args].join(' ')} exited before it answered`);
  }
  const startup = performance.now() - began;
  const pid = child.pid as number;
  return {
    port,
    startup,
    pids: () => family(pid),
    cpuSeconds: () => sum(family(pid), cpuSeconds),
    residentBytes: () => sum(family(pid), (member) => memoryBytes(member, 'VmRSS')),
    async stop() {
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}

async function answers(port: number): Promise<boolean> {
  try {
    await (await fetch(`http://127.0.0.1:${port}/`)).text();
    return true;
  } catch {
    return false;
  }
}

/** A process and the processes it has started. */
function family(pid: number): number[] {
  const children = readProc(`/proc/${pid}/task/${pid}/children`).trim();
  return [pid, ...(children === '' ? [] : children.split(' ').flatMap((child) => family(Number(child))))];
}

function cpuSeconds(pid: number): number {
  const fields = readProc(`/proc/${pid}/stat`).split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}

/** CPU seconds so far of a process and the processes it has started, those that have ended included. */
export function cpuSecondsOfFamily(pid: number): number {
  return sum(family(pid), (member) => {
    const fields = readProc(`/proc/${member}/stat`).split(') ')[1]?.split(' ') ?? [];
    return fields.slice(11, 15).reduce((ticks, field) => ticks + Number(field), 0) / TICKS;
  });
}

/** @param name VmRSS for the memory in use, VmHWM for its peak. */
function memoryBytes(pid: number, name: 'VmRSS' | 'VmHWM'): number {
  const [, kilobytes] = new RegExp(`${name}:\\s+(\\d+) kB`).exec(readProc(`/proc/${pid}/status`)) ?? [];
  return Number(kilobytes) * 1024;
}

function readProc(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function sum(pids: readonly number[], of: (pid: number) => number): number {
  return pids.reduce((total, pid) => total + of(pid), 0);
}
