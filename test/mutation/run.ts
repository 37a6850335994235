// Owns: the proof that the tests notice faults. Each mutant is applied to a copy of the repository, and the part of the
// suite that it names runs there. A mutant that no test notices is a failure.
// Refuses: a mutant that no longer fits the code, or whose part of the suite fails or runs no test without the mutant.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { PostgresServer, SHARED_SERVER } from '../support/postgres.ts';
import { pathTo } from '../support/repository.ts';
import { temporaryFolder } from '../support/service.ts';
import { applied, type Mutant } from './mutant.ts';
import { MUTANTS } from './mutants.ts';

/** Copies of the repository, each with one mutant at a time. */
const COPIES = 4;

/** Minutes that a test may take; milliseconds after which a part of the suite is killed. A hanging mutant is noticed. */
const TIME_LIMIT = 2;
const KILL_AFTER = TIME_LIMIT * 60_000 + 10_000;

/** Left out of a copy: dependencies, and the developer's own files. */
const NOT_COPIED = ['.git', 'node_modules', 'data', 'secrets'];

const HELP = `Usage: node test/mutation/run.ts [--only TEXT]

Applies ${MUTANTS.length} mutants, one at a time, to a copy of this repository, and runs the part of the suite that must
notice each. Exits with code 1 if one survives.

  --only TEXT   only mutants whose name or file contains this text
  --help        this text
`;

/** The result of a part of the suite. */
interface Outcome {
  readonly passed: boolean;
  /** Whether tests failed or hung, rather than the runner or a lack of tests. */
  readonly failed: boolean;
  readonly output: string;
  readonly seconds: number;
}

/** Tests of one file. */
interface Part {
  readonly file: string;
  /** The names of the tests match one of these. */
  readonly names: readonly string[];
  readonly store: string | undefined;
}

/** A copy of the repository. */
class Copy {
  readonly #folder = join(temporaryFolder(), 'repository');

  constructor() {
    const filter = (path: string) => !NOT_COPIED.includes(basename(path));
    cpSync(pathTo(''), this.#folder, { recursive: true, filter });
    symlinkSync(pathTo('node_modules'), join(this.#folder, 'node_modules'));
  }

  /** Runs the part of the suite that must notice, with the mutant applied. */
  async runWith(mutant: Mutant): Promise<Outcome> {
    const path = join(this.#folder, mutant.file);
    const original = readFileSync(path, 'utf8');
    writeFileSync(path, applied(mutant, original));
    try {
      const { file, name, store } = mutant.test;
      return await this.run({ file, names: [name], store });
    } finally {
      writeFileSync(path, original);
    }
  }

  async run({ file, names, store }: Part): Promise<Outcome> {
    const began = performance.now();
    const options = [
      ...names.flatMap((name) => ['--name', name]),
      ...(store === undefined ? [] : ['--store', store]),
    ];
    const child = spawn(
      process.execPath,
      ['test/run.ts', file, '--minutes', String(TIME_LIMIT), ...options],
      // A process group of its own, so that processes that a failing test leaves behind end with it.
      {
        cwd: this.#folder,
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true,
        timeout: KILL_AFTER,
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
    return {
      passed: child.exitCode === 0,
      failed: child.signalCode !== null || /^\d+ passed, [1-9]\d* failed, \d+ skipped$/m.test(output),
      output,
      seconds: (performance.now() - began) / 1000,
    };
  }
}

async function main(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: { only: { type: 'string', default: '' }, help: { type: 'boolean', default: false } },
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

  const server = process.env[SHARED_SERVER] === undefined ? await PostgresServer.start() : undefined;
  if (server !== undefined) process.env[SHARED_SERVER] = server.url();
  try {
    const copies = Array.from({ length: COPIES }, () => new Copy());
    const parts = partsOf(mutants);
    process.stdout.write(`${parts.length} parts of the suite must pass without any mutant:\n`);
    const failing = await eachOn(copies, parts, async (copy, part) => {
      const outcome = await copy.run(part);
      return show(outcome, outcome.passed, 'passed', 'FAILED', part.file);
    });
    if (failing > 0) return 1;

    process.stdout.write(`\n${mutants.length} mutants must be noticed:\n`);
    const survivors = await eachOn(copies, mutants, async (copy, mutant) => {
      const outcome = await copy.runWith(mutant);
      return show(outcome, outcome.failed, 'noticed', 'SURVIVED', `${mutant.file}: ${mutant.name}`);
    });
    process.stdout.write(`\n${mutants.length - survivors} noticed, ${survivors} survived\n`);
    return survivors === 0 ? 0 : 1;
  } finally {
    await server?.remove();
  }
}

/** The tests that mutants name, one part for each file and store. */
function partsOf(mutants: readonly Mutant[]): Part[] {
  const groups = Map.groupBy(mutants, ({ test: { file, store } }) => `${file} ${store}`);
  return [...groups.values()].map((group) => {
    const { file, store } = (group[0] as Mutant).test;
    return { file, store, names: [...new Set(group.map(({ test }) => test.name))] };
  });
}

/**
 * Does the work on each item, one at a time on each copy.
 * @returns for how many items the work failed.
 */
async function eachOn<Item>(
  copies: readonly Copy[],
  items: readonly Item[],
  work: (copy: Copy, item: Item) => Promise<boolean>,
): Promise<number> {
  const waiting = [...items];
  let failed = 0;
  await Promise.all(
    copies.map(async (copy) => {
      for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) {
        if (!(await work(copy, item))) failed += 1;
      }
    }),
  );
  return failed;
}

/** Prints a line, and the whole output if the result is wrong; returns whether it is right. */
function show(
  { output, seconds }: Outcome,
  isRight: boolean,
  right: string,
  wrong: string,
  what: string,
): boolean {
  process.stdout.write(`  ${isRight ? right : wrong}  ${seconds.toFixed(1).padStart(5)} s  ${what}\n`);
  if (!isRight) process.stdout.write(output.replaceAll(/^/gm, '    | '));
  return isRight;
}

function endGroupOf({ pid }: ChildProcess): void {
  try {
    process.kill(-(pid as number), 'SIGKILL');
  } catch {
    // no process of the group was left
  }
}

process.exitCode = await main(process.argv.slice(2));
