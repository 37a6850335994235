// Owns: the proof that the tests notice faults. Each mutant is applied to a copy of the repository, and the test that it
// names runs there. A mutant that no test notices is a failure.
// Does not: accept a mutant that no longer fits the code, or whose test fails or does not run without the mutant.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { PostgresServer, SHARED_SERVER } from '../support/postgres.ts';
import { pathTo } from '../support/repository.ts';
import { ONLY_STORE, temporaryFolder } from '../support/service.ts';
import { OWN_STORES_FOLDER, STORES_FOLDER } from '../support/stores-folder.ts';
import { applied, type Mutant, type StoreName } from './mutant.ts';
import { MUTANTS } from './mutants.ts';

/** Copies of the repository, each with one mutant at a time: on two cores, since many tests only wait. */
const COPIES = 6;

/** Milliseconds after which tests without a mutant are killed. */
const TIME_LIMIT = 5 * 60_000;

/** Milliseconds after which a mutant hangs, if its tests take this long without it; that is noticed. */
const limitAfter = (duration: number) => Math.round(2 * duration) + 15_000;

/** Left out of a copy: dependencies, and the developer's own files. */
const NOT_COPIED = ['.git', 'node_modules', 'data', 'secrets'];

/** Holds what was compiled or made from the code, which a mutant changes: each copy has its own. */
const CACHE = '.cache';

const HELP = `Usage: node test/mutation/run.ts [--only TEXT]

Applies ${MUTANTS.length} mutants, one at a time, to a copy of this repository, and runs the test that must notice each.
Exits with code 1 if one survives.

  --only TEXT   only mutants whose name or file contains this text
  --help        this text
`;

/** How a test process ended. Only failed tests, and tests that hang, notice a mutant. */
type Ending = 'passed' | 'failed' | 'hung' | 'ran no test' | 'broke off';

interface Outcome {
  readonly ending: Ending;
  readonly output: string;
  /** Milliseconds. */
  readonly duration: number;
}

/** Mutants whose tests are in one file, and run on one store. */
interface Part {
  readonly file: string;
  readonly store: StoreName;
  readonly mutants: readonly Mutant[];
}

/** A copy of the repository. */
class Copy {
  readonly #folder = join(temporaryFolder(), 'repository');
  /** Of its tests, which leave stores behind when they are killed. */
  readonly #stores = temporaryFolder(STORES_FOLDER);

  constructor() {
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
        '--import',
        './test/support/blocking-output.ts',
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
          NODE_COMPILE_CACHE: join(this.#folder, 'node_modules', CACHE, 'test'),
        },
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true,
        timeout: limit,
        killSignal: 'SIGKILL',
      },
    );
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (text) => {
        output += text;
      });
    }
    const closed = once(child, 'close'); // all of its output is there
    await once(child, 'exit');
    endGroupOf(child);
    await closed;
    return { ending: endingOf(child, output), output, duration: performance.now() - began };
  }
}

/** Copies, each used by one piece of work at a time. */
class Copies {
  readonly #free: Copy[];
  readonly #waiting: ((copy: Copy) => void)[] = [];

  constructor(number: number) {
    this.#free = Array.from({ length: number }, () => new Copy());
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

async function main(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      only: { type: 'string', default: '' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const mutants = MUTANTS.filter(({ name, file }) => `${name} ${file}`.includes(values.only));
  if (mutants.length === 0) {
    process.stderr.write(`No mutant has "${values.only}" in its name or file.\n`);
    return 2;
  }
  for (const mutant of mutants) applied(mutant, readFileSync(pathTo(mutant.file), 'utf8'));

  const needsServer = mutants.some(({ test }) => test.store === 'PostgreSQL');
  const server =
    needsServer && process.env[SHARED_SERVER] === undefined ? await PostgresServer.start() : undefined;
  if (server !== undefined) process.env[SHARED_SERVER] = server.url();
  try {
    const copies = new Copies(COPIES);
    const parts = partsOf(mutants);
    process.stdout.write(
      `Mutants to be noticed: ${mutants.length}. Parts of the suite that must pass without them: ${parts.length}.\n`,
    );
    const noticed = await Promise.all(parts.toReversed().map((part) => countNoticed(copies, part)));
    const survivors = mutants.length - noticed.reduce((sum, number) => sum + number, 0);
    process.stdout.write(`\n${mutants.length - survivors} noticed, ${survivors} survived\n`);
    return survivors === 0 ? 0 : 1;
  } finally {
    await server?.remove();
  }
}

function partsOf(mutants: readonly Mutant[]): Part[] {
  const groups = Map.groupBy(mutants, ({ test: { file, store } }) => `${store} ${file}`);
  return [...groups.values()].map((ofPart) => ({ ...(ofPart[0] as Mutant).test, mutants: ofPart }));
}

/** Runs the tests that the mutants of a part name: first all of them without a mutant. */
async function countNoticed(copies: Copies, { file, store, mutants }: Part): Promise<number> {
  const names = [...new Set(mutants.map(({ test }) => test.name))];
  const without = await copies.use((copy) => copy.run(file, store, names, TIME_LIMIT));
  if (!show(without, without.ending === 'passed', without.ending, `${store}, ${file}`)) return 0;

  const outcomes = mutants.map(async (mutant) => {
    const outcome = await copies.use((copy) => copy.runWith(mutant, limitAfter(without.duration)));
    const { ending } = outcome;
    const word = ending === 'failed' ? 'noticed' : ending === 'passed' ? 'survived' : ending;
    const isNoticed = ending === 'failed' || ending === 'hung';
    return show(outcome, isNoticed, word, `  ${mutant.file}: ${mutant.name}`);
  });
  return (await Promise.all(outcomes)).filter(Boolean).length;
}

/** Prints a line, and the whole output if the result is wrong; returns whether it is right. */
function show({ output, duration }: Outcome, isRight: boolean, word: string, what: string): boolean {
  const shown = (isRight ? word : word.toUpperCase()).padStart(11);
  process.stdout.write(`${shown}  ${(duration / 1000).toFixed(1).padStart(5)} s  ${what}\n`);
  if (!isRight) process.stdout.write(output.replaceAll(/^/gm, '    | '));
  return isRight;
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

process.exitCode = await main(process.argv.slice(2));
