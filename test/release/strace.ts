// Owns: strace, which records the system calls of the real command, delays them or makes them fail; and its output as calls.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { TestContext } from 'node:test';

/** Calls that change the files of a folder, sync them, or answer. */
const RECORDED = [
  'openat,open,creat,write,writev,pwrite64,pwritev,ftruncate,truncate,fallocate,copy_file_range,sendfile,sendto,sendmsg',
  'rename,renameat,renameat2,unlink,unlinkat,link,linkat,symlink,symlinkat,mkdir,mkdirat,rmdir',
  'fsync,fdatasync,sync,syncfs,sync_file_range,msync',
].join(',');

/** Options that record calls in one file, in their exact order: all texts in hexadecimal, up to this many bytes. */
const RECORDING = ['-y', '-xx', '-s', String(64 * 1024 * 1024), '-e', `trace=${RECORDED}`];

const CALL = /^(?<thread>\d+) +(?<name>\w+)\((?<text>.*)$/;
const RESUMED = /^(?<thread>\d+) +<\.\.\. \w+ resumed>(?<text>.*)$/;
const UNFINISHED = ' <unfinished ...>';

/** A call, with the positions of its begin and its end among all of them. */
export interface Call {
  readonly name: string;
  /** Its arguments and its result, as strace prints them. */
  text: string;
  readonly begin: number;
  end: number;
  /** Below 0 if it failed; undefined if the process was killed meanwhile. */
  result: number | undefined;
}

/** A setting for a process of the service that records its calls in this file, from the first one. */
export function recordingFromStart(output: string, options: readonly string[] = []): string {
  return `exec strace -D -f --seccomp-bpf ${[...RECORDING, '-o', output, ...options].join(' ')} "$@"`;
}

/** Attaches strace to all threads of a service. */
export async function attach(
  context: TestContext,
  { process: { pid } }: { readonly process: ChildProcess },
  options: readonly string[],
): Promise<ChildProcess> {
  const strace = spawn('strace', ['-f', '-p', `${pid}`, ...options], { stdio: ['ignore', 'ignore', 'pipe'] });
  context.after(() => strace.kill('SIGKILL'));
  let said = '';
  await new Promise<void>((resolve, reject) => {
    strace.once('error', () =>
      reject(new Error('strace must be installed (Debian: apt-get install strace)')),
    );
    strace.once('exit', () => reject(new Error(`strace exited: ${said}`)));
    strace.stderr?.on('data', (text) => {
      said += text;
      if (/attached/.test(said)) resolve();
    });
  });
  return strace;
}

export async function detach(strace: ChildProcess): Promise<void> {
  const ended = once(strace, 'exit');
  strace.kill('SIGINT');
  await ended;
}

/** Whether a recording has everything that this process did. */
export function isComplete(output: string, pid: number): boolean {
  return new RegExp(`^${pid} +\\+\\+\\+ (exited|killed) `, 'm').test(readFileSync(output, 'latin1'));
}

/** The calls of recordings that were made one after the other, in the order in which they began. */
export function callsIn(outputs: readonly string[]): Call[] {
  const calls: Call[] = [];
  let position = 0;
  for (const output of outputs) {
    const unfinished = new Map<string, Call>();
    for (const line of readFileSync(output, 'latin1').split('\n')) {
      position += 1;
      const begun = CALL.exec(line)?.groups;
      if (begun !== undefined) {
        const { thread = '', name = '', text = '' } = begun;
        const call: Call = { name, text, begin: position, end: position, result: undefined };
        calls.push(call);
        if (text.endsWith(UNFINISHED)) {
          call.text = text.slice(0, -UNFINISHED.length);
          unfinished.set(thread, call);
        } else {
          finish(call);
        }
        continue;
      }
      const { thread = '', text = '' } = RESUMED.exec(line)?.groups ?? {};
      const call = unfinished.get(thread);
      if (call === undefined) continue;
      unfinished.delete(thread);
      call.text += text;
      call.end = position;
      finish(call);
    }
    for (const call of unfinished.values()) call.end = position;
  }
  return calls;
}

/** Notes the result, which is `?` if the process was killed during the call. */
function finish(call: Call): void {
  const [, result] = /\) += (-?\d+)[^"]*$/.exec(call.text) ?? [];
  if (result !== undefined) call.result = Number(result);
}

/** The texts among the arguments of a call. */
export function textsOf({ text }: Call): Buffer[] {
  return [...text.matchAll(/"((?:\\x..)*)"/g)].map(([, bytes = '']) => decoded(bytes));
}

/** The paths of the open files among the arguments and the result of a call; undefined for each that has been removed. */
export function filesOf({ text }: Call): (string | undefined)[] {
  const found = text.matchAll(/(?:\d+|AT_FDCWD)<((?:\\x..)*)>(\(deleted\))?/g);
  return [...found].map(([, path = '', deleted]) => (deleted ? undefined : decoded(path).toString()));
}

/** @param bytes such as `\\x2f\\x64`. */
function decoded(bytes: string): Buffer {
  return Buffer.from(bytes.replaceAll('\\x', ''), 'hex');
}
