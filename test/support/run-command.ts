// Owns: commands run within this process, by the command line that `main.js` gives them. A process of its own costs
// much more; it is for tests of signals, pipes, memory and sudden death (`spawnService`).

import { Writable } from 'node:stream';
import { run } from '../../src/command.ts';

/** How a command ended and all that it printed, as in a pipe. */
export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Commands run one after the other, since a process has one working directory. */
let previous: Promise<unknown> = Promise.resolve();

/**
 * Runs a command to its end, with nothing in its environment but what is given.
 * @param folder where it runs; this process's own when absent.
 * @param stop resolves when the command is asked to stop, as by a signal.
 */
export function runCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  folder = process.cwd(),
  stop: Promise<unknown> = new Promise(() => {}),
): Promise<Ended> {
  const ended = previous.then(() => runIn(folder, args, env, stop));
  previous = ended.catch(() => {});
  return ended;
}

async function runIn(
  folder: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  stop: Promise<unknown>,
): Promise<Ended> {
  const stdout = new Output();
  const stderr = new Output();
  const home = process.cwd();
  process.chdir(folder);
  try {
    const streams = { stdout, stderr } as unknown as Pick<NodeJS.Process, 'stdout' | 'stderr'>;
    const code = await run(args, env, streams, stop);
    return { code, stdout: stdout.text, stderr: stderr.text };
  } finally {
    process.chdir(home);
  }
}

class Output extends Writable {
  readonly #chunks: Buffer[] = [];

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#chunks.push(chunk);
    done();
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString();
  }
}
