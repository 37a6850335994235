// Owns: the load. Sends given requests over a number of connections for some seconds and reports the result, with `wrk`
// if it is installed, otherwise with our own client. Either runs in other processes.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathTo } from '../test/support/repository.ts';
import { pinned } from './processes.ts';

export const CONNECTIONS = 64;

/** Seconds that an answer may take; the service refuses what takes 5 (rule 23). */
const TIMEOUT = 10;

export interface Load {
  readonly port: number;
  /** Whole requests as they go over the wire; sent in order, then from the first one again. */
  readonly requests: readonly string[];
  readonly seconds: number;
  /** Whether the server has its own core, which the load does not use. */
  readonly isPinned?: boolean;
  /** Requests in progress at once; CONNECTIONS when absent. */
  readonly connections?: number;
}

export interface LoadResult {
  readonly requests: number;
  readonly seconds: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly slowest: number;
  /** Answers of status 400 and above. */
  readonly refused: number;
  /** Connections that broke. */
  readonly failed: number;
}

/** What generates the load on this machine. */
export const GENERATOR = spawnSync('wrk', ['--version']).error === undefined ? 'wrk' : 'built-in client';

/** @param isOwn whether our own client generates it in any case: it connects again where an answer ends the connection. */
export async function applyLoad(load: Load, isOwn = GENERATOR !== 'wrk'): Promise<LoadResult> {
  const result = isOwn ? await withOwnClient(load) : await withWrk(load);
  if (result.failed > 0) throw new Error(`${result.failed} connections broke under load`);
  return result;
}

async function withWrk({
  port,
  requests,
  seconds,
  connections = CONNECTIONS,
  isPinned = false,
}: Load): Promise<LoadResult> {
  const folder = await mkdtemp(join(tmpdir(), 'book-catalogue-bench-'));
  try {
    const file = join(folder, 'requests');
    await writeFile(file, `${requests.join('\0')}\0`);
    const options = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', `${TIMEOUT}s`];
    const args = [...options, '-s', pathTo('bench/wrk.lua'), `http://127.0.0.1:${port}`, '--', file];
    const wrk = spawn(...commandOf('wrk', args, isPinned));
    let output = '';
    wrk.stdout.on('data', (text) => {
      output += text;
    });
    await once(wrk, 'close');
    return JSON.parse(output.trim().split('\n').at(-1) ?? '') as LoadResult;
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Idle processes of the built-in client. A new one needs half a second until V8 has made it fast. */
const idle: { readonly client: ChildProcess; readonly isPinned: boolean }[] = [];

async function withOwnClient(load: Load): Promise<LoadResult> {
  const { isPinned = false } = load;
  const place = idle.findIndex((other) => other.isPinned === isPinned);
  const client = place === -1 ? startClient(isPinned) : (idle.splice(place, 1)[0]?.client as ChildProcess);
  client.channel?.ref();
  client.send(load);
  const [result] = (await once(client, 'message')) as [LoadResult];
  client.channel?.unref(); // it ends with this process
  idle.push({ client, isPinned });
  return result;
}

function startClient(isPinned: boolean): ChildProcess {
  const command = commandOf(process.execPath, [pathTo('bench/load-client.ts')], isPinned);
  const client = spawn(...command, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  client.unref();
  return client;
}

function commandOf(program: string, args: readonly string[], isPinned: boolean): [string, string[]] {
  return isPinned ? pinned('load', program, args) : [program, [...args]];
}
