// Owns: running the command in this process, with real arguments, environment, sockets and log, but without the half
// second that a process takes to start. Tests of signals, pipes, memory and sudden death start a process instead
// (`spawnService`).

import { openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { run } from '../../src/cli.ts';
import { atEnd } from './at-end.ts';
import { type Served, servedAt, temporaryFolder } from './service.ts';
import { waitUntil } from './wait.ts';

/** The exit code of a command and what it printed, as into a pipe. */
export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandHere extends Served {
  /** The lines that it has logged so far. */
  readonly log: readonly string[];
  /** Ends it as a signal would. */
  stop(): Promise<Outcome>;
}

/** Commands in a folder run one after the other, since a process has one working directory. */
let previous: Promise<unknown> = Promise.resolve();

/** What a command finds around it. */
interface Surroundings {
  /** Where it runs; without one, its paths must be absolute. */
  readonly folder?: string | undefined;
  /** Resolves when it is asked to stop, as by a signal. */
  readonly stop?: Promise<unknown> | undefined;
  /** Its standard input; empty if absent. */
  readonly stdin?: Readable;
}

/** Runs a command to its end, with only the given variables in its environment. */
export async function runCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  { folder, ...around }: Surroundings = {},
): Promise<Outcome> {
  if (folder === undefined) return begin(args, env, around).ended;
  const ended = previous.then(async () => {
    const home = process.cwd();
    process.chdir(folder);
    try {
      return await begin(args, env, around).ended;
    } finally {
      process.chdir(home);
    }
  });
  previous = ended.catch(() => {});
  return ended;
}

/** Starts `serve` until the end of the test, and waits until it listens; LOG_LEVEL must be one at which that is logged. */
export async function startHere(env: Readonly<Record<string, string>>): Promise<CommandHere> {
  const { promise: stopped, resolve: stop } = Promise.withResolvers<string>();
  const { stdout, ended } = begin([], env, { stop: stopped });
  let outcome: Outcome | undefined;
  void ended.then((reached) => {
    outcome = reached;
  });
  const log = () => stdout.text.split('\n').slice(0, -1);
  const listening = () => log().find((line) => line.includes('"msg":"listening"'));
  await waitUntil(() => outcome !== undefined || listening() !== undefined);
  const line = listening();
  if (line === undefined)
    throw new Error(`the service exited with code ${outcome?.code}: ${outcome?.stderr}`);
  const { url, page } = JSON.parse(line) as { url: string; page?: string };
  const end = () => {
    stop('SIGTERM');
    return ended;
  };
  atEnd(end);
  return {
    ...servedAt(url, page),
    get log() {
      return log();
    },
    stop: end,
  };
}

function begin(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  { stop = new Promise(() => {}), stdin = Readable.from([]) }: Surroundings,
) {
  const stdout = new Output();
  const stderr = new Output();
  const streams = { stdin, stdout, stderr } as unknown as Parameters<typeof run>[2];
  const ended = run(args, env, streams, stop).then((code): Outcome => {
    return { code, stdout: stdout.text, stderr: stderr.text };
  });
  return { stdout, ended };
}

/** Standard output or error that is not a terminal, with the text written to it. */
class Output extends Writable {
  readonly isTTY = false;
  readonly #chunks: Buffer[] = [];
  #file: string | undefined;

  /** Used by `serve`, which writes its log there and closes it. */
  get fd(): number {
    this.#file = join(temporaryFolder(), 'output');
    return openSync(this.#file, 'a');
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#chunks.push(chunk);
    done();
  }

  get text(): string {
    return this.#file === undefined
      ? Buffer.concat(this.#chunks).toString()
      : readFileSync(this.#file, 'utf8');
  }
}

/** How a command ends that is refused in one sentence. */
export function refusedWith(sentence: string, code = 1) {
  return { code, stdout: '', stderr: `${sentence}\n` };
}
