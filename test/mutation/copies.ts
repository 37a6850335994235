// Owns: copies of the repository, and running the test of a mutant in one of them.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { pathTo } from '../support/repository.ts';
import { NIGHTLY, SHELF } from '../support/scale.ts';
import { ONLY_STORE, temporaryFolder } from '../support/service.ts';
import { OWN_STORES_FOLDER, STORES_FOLDER } from '../support/stores-folder.ts';
import { applied, type Mutant, type StoreName } from './mutant.ts';

/** Left out of a copy: dependencies, and the developer's own files. */
const NOT_COPIED = ['.git', 'node_modules', 'data', 'secrets'];

/** Holds what was compiled or made from the code, which a mutant changes: each copy has its own. */
export const CACHE = '.cache';

/** How a test process ended. Only failed tests, and tests that hang, notice a mutant. */
type Ending = 'passed' | 'failed' | 'hung' | 'ran no test' | 'broke off';

export interface Outcome {
  readonly ending: Ending;
  readonly output: string;
  /** Milliseconds. */
  readonly duration: number;
}

/** A copy of the repository. */
class Copy {
  readonly #folder = join(temporaryFolder(), 'repository');
  /** Of its tests, which leave stores behind when they are killed. */
  readonly #stores = temporaryFolder(STORES_FOLDER);
  readonly #end: AbortSignal;

  constructor(end: AbortSignal) {
    this.#end = end;
    const filter = (path: string) => !NOT_COPIED.includes(basename(path));
    cpSync(pathTo(''), this.#folder, { recursive: true, filter });
    chmodSync(this.#stores, 0o755); // for the user of PostgreSQL
    const modules = join(this.#folder, 'node_modules');
    mkdirSync(modules);
    for (const name of readdirSync(pathTo('node_modules'))) {
      if (name !== CACHE) symlinkSync(pathTo(`node_modules/${name}`), join(modules, name));
    }
  }

  /** Runs the test of a mutant, with the mutant applied. */
  async runWith(mutant: Mutant, limit: number): Promise<Outcome> {
    const path = join(this.#folder, mutant.file);
    const original = readFileSync(path, 'utf8');
    writeFileSync(path, applied(mutant, original));
    try {
      return await this.run(mutant.test.file, mutant.test.store, [mutant.test.name], limit);
    } finally {
      writeFileSync(path, original);
    }
  }

  /** @param limit in milliseconds. */
  async run(file: string, store: StoreName, names: readonly string[], limit: number): Promise<Outcome> {
    const began = performance.now();
    const patterns = names.map((name) => `--test-name-pattern=${name}`);
    // The file alone, without the runner: that would take half as much processor time again.
    const child = spawn(
      process.execPath,
      [
        '--test-force-exit',
        ...['blocking-output.ts', 'patience.js'].map((file) => `--import=./test/support/${file}`),
        '--test-reporter=tap',
        ...patterns,
        file,
      ],
      // A separate process group, so that processes that a failing test leaves behind end with it.
      {
        cwd: this.#folder,
        env: {
          ...process.env,
          [ONLY_STORE]: store,
          [OWN_STORES_FOLDER]: this.#stores,
          ...(file.startsWith('test/orders/') && { [SHELF]: NIGHTLY }), // so many orders that one of them shows the fault
          NODE_COMPILE_CACHE: join(this.#folder, 'node_modules', CACHE, 'test'),
        },
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true,
        timeout: limit,
        killSignal: 'SIGKILL',
        signal: this.#end,
      },
    );
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (text) => {
        output += text;
      });
    }
    const exited = once(child, 'exit').finally(() => endGroupOf(child));
    await Promise.all([exited, once(child, 'close')]); // all of its output is there
    return { ending: endingOf(child, output), output, duration: performance.now() - began };
  }
}

/** Copies, each used by one piece of work at a time; all work fails when the signal says that it must end. */
export class Copies {
  readonly #free: Copy[];
  readonly #waiting: ((copy: Copy) => void)[] = [];

  constructor(number: number, end: AbortSignal) {
    this.#free = Array.from({ length: number }, () => new Copy(end));
  }

  /** The latest work gets the next copy, so that the mutants of a slow part do not come last. */
  async use<Result>(work: (copy: Copy) => Promise<Result>): Promise<Result> {
    const copy = this.#free.pop() ?? (await new Promise<Copy>((resolve) => this.#waiting.push(resolve)));
    try {
      return await work(copy);
    } finally {
      const next = this.#waiting.pop();
      if (next === undefined) this.#free.push(copy);
      else next(copy);
    }
  }
}

/** @param output ends with totals, unless the process could not load its tests or ended before they did. */
function endingOf(child: ChildProcess, output: string): Ending {
  if (child.killed) return 'hung';
  const tests = /^# tests (\d+)$/m.exec(output)?.[1];
  if (tests === undefined) return 'broke off';
  if (tests === '0') return 'ran no test';
  return child.exitCode === 0 ? 'passed' : 'failed';
}

function endGroupOf({ pid }: ChildProcess): void {
  try {
    process.kill(-(pid as number), 'SIGKILL');
  } catch {
    // no process of the group was left
  }
}
