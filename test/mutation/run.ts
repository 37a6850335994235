// Owns: the proof that the tests notice faults. Each mutant is applied to a copy of the repository, and the test that it
// names runs there. A mutant that no test notices is a failure. The next run continues one that was interrupted.
// Does not: accept a mutant that no longer fits the code, or whose test fails or does not run without the mutant.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { appendFileSync, lstatSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { PostgresServer, SHARED_SERVER } from '../support/postgres.ts';
import { pathTo } from '../support/repository.ts';
import { CACHE, Copies, type Outcome } from './copies.ts';
import { applied, MUTANTS, type Mutant, type StoreName } from './mutant.ts';

/** Copies of the repository, each with one mutant at a time: on two cores, since many tests only wait; a browser does not. */
const COPIES = { others: 6, browser: 3 };

/** Milliseconds after which tests without a mutant are killed. */
const TIME_LIMIT = 5 * 60_000;

/** Milliseconds more than four times the time of a test without its mutant, after which the mutant hangs; that is noticed. */
const PATIENCE = 30_000;

/** The names of tests and their milliseconds, in TAP. Suites are left out. */
const DURATIONS = /^ *ok \d+ - (.*)\n *---\n *duration_ms: ([\d.]+)\n *type: 'test'/gm;

/** Has a file for the repository as it is, without its mutants, that lists those that have been noticed. */
const RECORDS = pathTo(`node_modules/${CACHE}/mutants`);

const HELP = `Usage: node test/mutation/run.ts [options]

Applies ${MUTANTS.length} mutants, one at a time, to a copy of this repository, and runs the test that must notice each.
Exits with code 1 if one survives. A run that was interrupted is continued, without the mutants that it has noticed.

  --only TEXT           only mutants whose name or file contains this text
  --changed-since REF   only mutants whose file, or whose test, differs from this commit
  --browser             only mutants that a test in Chromium notices; all other runs leave them out
  --again               also those that were noticed before, in the same repository
  --help                this text
`;

/** Mutants whose tests are in one file, and run on one store. */
interface Part {
  readonly file: string;
  readonly store: StoreName;
  readonly mutants: readonly Mutant[];
}

interface Progress {
  /** Numbers of mutants. */
  done: number;
  readonly all: number;
  readonly record: NoticedMutants;
}

const interrupted = new AbortController();

async function main(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      only: { type: 'string', default: '' },
      'changed-since': { type: 'string' },
      browser: { type: 'boolean', default: false },
      again: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const ref = values['changed-since'];
  const changed = ref === undefined ? undefined : git('diff', '--name-only', '-z', ref);
  const chosen = MUTANTS.filter(
    ({ name, file, test }) =>
      test.file.startsWith('test/browser/') === values.browser &&
      `${name} ${file}`.includes(values.only) &&
      (changed === undefined || changed.includes(file) || changed.includes(test.file)),
  );
  for (const mutant of chosen) applied(mutant, readFileSync(pathTo(mutant.file), 'utf8'));
  const record = new NoticedMutants();
  const mutants = values.again ? chosen : chosen.filter((mutant) => !record.has(mutant));
  process.stdout.write(
    `Mutants: ${chosen.length}, of which ${chosen.length - mutants.length} were noticed before.\n`,
  );
  if (chosen.length === 0) return 2;

  const needsServer = mutants.some(({ test }) => test.store === 'PostgreSQL');
  const server =
    needsServer && process.env[SHARED_SERVER] === undefined ? await PostgresServer.start() : undefined;
  if (server !== undefined) process.env[SHARED_SERVER] = server.url();
  try {
    const copies = new Copies(values.browser ? COPIES.browser : COPIES.others, interrupted.signal);
    const progress = { done: 0, all: mutants.length, record };
    const parts = partsOf(mutants).toReversed();
    const noticed = await Promise.all(parts.map((part) => countNoticed(copies, part, progress)));
    const survivors = mutants.length - noticed.reduce((sum, number) => sum + number, 0);
    process.stdout.write(`\n${chosen.length - survivors} noticed, ${survivors} survived\n`);
    return survivors === 0 ? 0 : 1;
  } finally {
    await server?.remove();
  }
}

/** The mutants that have been noticed, a line each. It counts until anything but a mutant changes. */
class NoticedMutants {
  readonly #file: string;
  readonly #lines: ReadonlySet<string>;

  constructor() {
    const digest = createHash('sha256');
    for (const path of git('ls-files', '-z', '--cached', '--others', '--exclude-standard')) {
      if (isFile(pathTo(path)) && !path.startsWith('test/mutation/'))
        digest.update(`${path}\0`).update(readFileSync(pathTo(path)));
    }
    this.#file = join(RECORDS, digest.digest('hex'));
    this.#lines = new Set(isFile(this.#file) ? readFileSync(this.#file, 'utf8').split('\n') : []);
    if (this.#lines.size > 0) return;
    rmSync(RECORDS, { recursive: true, force: true }); // of other states of the repository
    mkdirSync(RECORDS, { recursive: true });
  }

  has(mutant: Mutant): boolean {
    return this.#lines.has(JSON.stringify(mutant));
  }

  add(mutant: Mutant): void {
    appendFileSync(this.#file, `${JSON.stringify(mutant)}\n`);
  }
}

function isFile(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

/** What a command of Git lists. */
function git(...args: string[]): string[] {
  return execFileSync('git', args, { cwd: pathTo(''), encoding: 'utf8' })
    .split('\0')
    .slice(0, -1);
}

function partsOf(mutants: readonly Mutant[]): Part[] {
  const groups = Map.groupBy(mutants, ({ test: { file, store } }) => `${store} ${file}`);
  return [...groups.values()].map((ofPart) => ({ ...(ofPart[0] as Mutant).test, mutants: ofPart }));
}

/** Runs the tests that the mutants of a part name: first all of them without a mutant. */
async function countNoticed(
  copies: Copies,
  { file, store, mutants }: Part,
  progress: Progress,
): Promise<number> {
  const names = [...new Set(mutants.map(({ test }) => test.name))];
  const without = await copies.use((copy) => copy.run(file, store, names, TIME_LIMIT));
  if (!show(without, without.ending === 'passed', without.ending, `${store}, ${file}`)) return 0;

  const outcomes = mutants.map(async (mutant) => {
    const limit = 4 * durationOf(mutant.test.name, without) + PATIENCE;
    const outcome = await copies.use((copy) => copy.runWith(mutant, limit));
    const { ending } = outcome;
    const word = ending === 'failed' ? 'noticed' : ending === 'passed' ? 'survived' : ending;
    const isNoticed = ending === 'failed' || ending === 'hung';
    if (isNoticed) progress.record.add(mutant);
    progress.done += 1;
    return show(outcome, isNoticed, word, `${progress.done}/${progress.all} ${mutant.file}: ${mutant.name}`);
  });
  return (await Promise.all(outcomes)).filter(Boolean).length;
}

/** Milliseconds of the tests whose names match; of all, if a pattern is about the suite. */
function durationOf(pattern: string, { output, duration }: Outcome): number {
  const tests = output.matchAll(DURATIONS).filter(([, name = '']) => new RegExp(pattern).test(name));
  return Math.round(tests.reduce((sum, [, , time]) => sum + Number(time), 0) || duration);
}

/** Prints a line, and the whole output if the result is wrong; returns whether it is right. */
function show({ output, duration }: Outcome, isRight: boolean, word: string, what: string): boolean {
  const shown = (isRight ? word : word.toUpperCase()).padStart(11);
  process.stdout.write(`${shown}  ${(duration / 1000).toFixed(1).padStart(5)} s  ${what}\n`);
  if (!isRight) process.stdout.write(`${output.trimEnd().replaceAll(/^/gm, '    | ')}\n`);
  return isRight;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort());
process.exitCode = await main(process.argv.slice(2)).catch((error) => {
  if (!interrupted.signal.aborted) throw error;
  process.stderr.write('Interrupted: the same command continues the run.\n');
  return 128 + constants.signals.SIGINT;
});
