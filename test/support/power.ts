// Owns: what is on a disk after a power failure. strace records each write and sync of a running service; they are
// carried out once more on an image of the disk. As on Linux, a page is on disk once a sync after its latest write has
// succeeded; a sync that fails marks its pages as written all the same, and no later sync writes them.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type ServiceProcess, temporaryFolder } from './service.ts';

const SYNCS = 'fsync,fdatasync';

/** Bytes that the system writes to a disk as a whole. */
const PAGE = 4096;

/** A line of strace: seconds, call, path, the rest. */
const CALL = /^(?<time>\d+\.\d+) (?<call>\w+)\(\d+<(?<path>[^>]*)>(?:, )?(?<rest>.*)$/;

interface Call {
  readonly time: number;
  readonly call: string;
  readonly path: string;
  readonly rest: string;
}

/** Attaches strace to all threads of a service. */
export async function attach(
  context: TestContext,
  { process: { pid } }: ServiceProcess,
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

/** A file as the processes see it, and as the disk has it. */
class Image {
  seen: Buffer;
  stored: Buffer;
  readonly #unwritten = new Set<number>();

  constructor(content: Buffer) {
    this.seen = Buffer.from(content);
    this.stored = Buffer.from(content);
  }

  write(bytes: Buffer, offset: number): void {
    const end = offset + bytes.length;
    if (end > this.seen.length) this.seen = Buffer.concat([this.seen, Buffer.alloc(end - this.seen.length)]);
    bytes.copy(this.seen, offset);
    for (let page = Math.floor(offset / PAGE); page * PAGE < end; page += 1) this.#unwritten.add(page);
  }

  cut(length: number): void {
    const grown = Buffer.alloc(length);
    this.seen.copy(grown);
    this.seen = grown;
  }

  sync(succeeded: boolean): void {
    if (succeeded) {
      const stored = Buffer.alloc(this.seen.length);
      this.stored.copy(stored);
      for (const page of this.#unwritten) this.seen.copy(stored, page * PAGE, page * PAGE, (page + 1) * PAGE);
      this.stored = stored;
    }
    this.#unwritten.clear();
  }
}

/** The disk under the SQLite file of a service. It begins with what the files hold when it is made. */
export class Disk {
  readonly #context: TestContext;
  readonly #service: ServiceProcess;
  readonly #paths: readonly string[];
  readonly #images: ReadonlyMap<string, Image>;

  /** @param file of the store, whose latest writes must have been synced. */
  constructor(context: TestContext, service: ServiceProcess, file: string) {
    this.#context = context;
    this.#service = service;
    this.#paths = [file, `${file}-wal`];
    this.#images = new Map(this.#paths.map((path) => [path, new Image(contentOf(path))]));
  }

  /**
   * Records what the service does during some work.
   * @param injection for strace, such as `error=EIO:when=1`, which then concerns each sync.
   */
  async during<Result>(work: () => Promise<Result>, injection?: string): Promise<Result> {
    const output = join(temporaryFolder(), 'calls');
    const strace = await attach(this.#context, this.#service, [
      ...['-ff', '-ttt', '-y', '-xx', '-s', '70000', '-o', output],
      ...this.#paths.flatMap((path) => ['-P', path]),
      ...['-e', `trace=pwrite64,ftruncate,${SYNCS}`],
      ...(injection === undefined ? [] : ['-e', `inject=${SYNCS}:${injection}`]),
    ]);
    const result = await work();
    await detach(strace);
    for (const call of callsIn(output)) this.#repeat(call);
    return result;
  }

  /** Writes what the disk has now to another file, and the log beside it. */
  afterPowerFailure(file: string): void {
    for (const [path, { stored }] of this.#images) {
      writeFileSync(
        path.replace(this.#paths[0] as string, () => file),
        stored,
      );
    }
  }

  #repeat({ call, path, rest }: Call): void {
    const image = this.#images.get(path);
    if (image === undefined) throw new Error(`${call} on ${path}`);
    const [, result] = /\) += (-?\d+)/.exec(rest) ?? [];
    const succeeded = Number(result) >= 0;
    if (call === 'pwrite64' && succeeded) {
      const [, bytes = '', offset] = /^"((?:\\x..)*)", \d+, (\d+)\)/.exec(rest) ?? [];
      image.write(decoded(bytes), Number(offset));
    } else if (call === 'ftruncate' && succeeded) {
      image.cut(Number.parseInt(rest, 10));
    } else if (SYNCS.includes(call)) {
      image.sync(succeeded);
    }
  }
}

/** The calls of all threads, in their order. */
function callsIn(output: string): Call[] {
  const lines = globSync(`${output}.*`).flatMap((path) => readFileSync(path, 'latin1').split('\n'));
  return lines
    .flatMap((line) => {
      const { groups } = CALL.exec(line) ?? {};
      if (groups === undefined) return [];
      const { time, call = '', path = '', rest = '' } = groups;
      return [{ time: Number(time), call, path: decoded(path).toString(), rest }];
    })
    .toSorted((one, other) => one.time - other.time);
}

/** @param bytes such as `\\x2f\\x64`. */
function decoded(bytes: string): Buffer {
  return Buffer.from(bytes.replaceAll('\\x', ''), 'hex');
}

function contentOf(path: string): Buffer {
  return existsSync(path) ? readFileSync(path) : Buffer.alloc(0);
}
