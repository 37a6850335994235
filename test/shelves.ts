// Owns: what runs each night and before a version: the parts of these shelves, each of at most an hour, and which of them
// have passed on this commit, so that a run that was interrupted continues.
// Does not: run tests itself, or remember anything of a tree with changes.

import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { OLDER_VERSIONS } from './support/older-postgres.ts';
import { pathTo } from './support/repository.ts';

/** Runs of a push in random order, beside processes that keep more cores busy than there are. */
const NOISY_RUNS = 10;

/** @param commit in hexadecimal. */
type Shelf = (commit: string) => string[];

/** The arguments of `node` for each part. */
const SHELVES: Readonly<Record<string, Shelf>> = {
  nightly: (commit) => [
    'test/run.ts --nightly',
    'test/mutation/run.ts',
    ...OLDER_VERSIONS.map((version) => `test/run.ts --postgres ${version}`),
    ...Array.from({ length: NOISY_RUNS }, (_, run) => {
      const seed = Number.parseInt(commit.slice(0, 8), 16) + run; // others on each commit
      return `test/run.ts --random --noise 6 --seed ${seed}`;
    }),
  ],
  release: () =>
    globSync('test/release/*.test.ts')
      .sort()
      .map((file) => `test/run.ts --minutes 60 ${file}`),
};

const HELP = `Usage: node test/shelves.ts ${Object.keys(SHELVES).join('|')} [options]

Runs one part after the other, also after one that fails. On a commit without changes, a part that has passed is not run again.
To run one part, run the command in its line.

  --again  run every part
  --list   name the parts and what became of them
  --help   this text
`;

function main(args: string[]): number {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      again: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const [name = ''] = positionals;
  const parts = SHELVES[name]?.(git('rev-parse', 'HEAD'));
  if (values.help || parts === undefined) {
    (values.help ? process.stdout : process.stderr).write(HELP);
    return values.help ? 0 : 2;
  }
  const results = new Results(name, values.again);
  for (const [index, part] of parts.entries()) {
    const title = `${name} ${index + 1} of ${parts.length}: node ${part}`;
    if (values.list || results.hasPassed(part)) {
      process.stdout.write(`${title}: ${results.hasPassed(part) ? 'passed' : 'not passed'}\n`);
      continue;
    }
    process.stdout.write(`\n${title}\n`);
    const { status, signal } = spawnSync(process.execPath, part.split(' '), { stdio: 'inherit' });
    if (signal !== null) return 1;
    if (status === 0) results.add(part);
  }
  if (values.list) return 0;
  const failed = parts.filter((part) => !results.hasPassed(part));
  process.stdout.write(
    failed.length === 0
      ? `\nAll of ${name} passed.\n`
      : `\nFailed:\n${failed.map((part) => `  node ${part}\n`).join('')}`,
  );
  return failed.length === 0 ? 0 : 1;
}

/** Which parts have passed: on disk, if the tree is that of its commit. */
class Results {
  readonly #file: string | undefined;
  readonly #passed: Set<string>;

  constructor(shelf: string, isAnew: boolean) {
    const path = pathTo(`node_modules/.cache/shelves/${shelf}-${git('rev-parse', 'HEAD')}.json`);
    this.#file = git('status', '--porcelain') === '' ? path : undefined;
    const isKnown = !isAnew && this.#file !== undefined && existsSync(this.#file);
    this.#passed = new Set(isKnown ? JSON.parse(readFileSync(this.#file as string, 'utf8')) : []);
  }

  hasPassed(part: string): boolean {
    return this.#passed.has(part);
  }

  add(part: string): void {
    this.#passed.add(part);
    if (this.#file === undefined) return;
    mkdirSync(dirname(this.#file), { recursive: true });
    writeFileSync(this.#file, JSON.stringify([...this.#passed]));
  }
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: pathTo(''), encoding: 'utf8' }).trim();
}

process.exitCode = main(process.argv.slice(2));
