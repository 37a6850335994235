// Owns: results.json, which `npm run bench -- --save` writes, and the figures in figures.md, which docs/generate.ts
// generates from it.

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { pathTo } from '../test/support/repository.ts';
import type { Conditions, Results } from './results.ts';
import { type Table, tablesOf } from './tables.ts';

const RESULTS = pathTo('bench/results.json');
const GENERATOR = pathTo('docs/generate.ts');

/** A run, and the tables whose latest figures are its own. */
interface Run extends Conditions {
  /** Such as 2026-11-22. */
  readonly date: string;
  readonly commit: string;
  readonly machine: string;
  readonly measured: readonly (keyof Results)[];
}

interface SavedResults extends Results {
  readonly runs: readonly Run[];
}

/** Saves the results of a run in the place of earlier ones of the same kinds, and generates the documents again. */
export function save(results: Results, conditions: Conditions): void {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: pathTo(''), encoding: 'utf8' }).trim();
  const isClean = git('status', '--porcelain', 'src', 'page', 'client/src') === '';
  const [processor] = cpus();
  const earlier = readResults();
  const measured = (Object.keys(results) as (keyof Results)[]).filter((of) => results[of].length > 0);
  const run: Run = {
    date: new Date().toISOString().slice(0, 10),
    commit: `${git('rev-parse', '--short=10', 'HEAD')}${isClean ? '' : ' with changes'}`,
    machine: `${cpus().length} × ${processor?.model.trim()}, ${Math.round(totalmem() / 1024 ** 3)} GiB, Linux ${release()}`,
    ...conditions,
    measured,
  };
  const others = earlier.runs.map((other) => ({
    ...other,
    measured: other.measured.filter((of) => !measured.includes(of)),
  }));
  const saved: SavedResults = {
    ...earlier,
    runs: [run, ...others.filter((other) => other.measured.length > 0)],
    ...Object.fromEntries(measured.map((of) => [of, results[of]])),
  };
  writeFileSync(RESULTS, `${JSON.stringify(saved, null, 2)}\n`);
  execFileSync(process.execPath, [GENERATOR], { stdio: 'inherit' });
}

function readResults(): SavedResults {
  return JSON.parse(readFileSync(RESULTS, 'utf8')) as SavedResults;
}

/** @returns the saved results as tables in Markdown, those of each run under its conditions. */
export function describeFigures(): string {
  const results = readResults();
  const tables = tablesOf(results);
  return results.runs
    .flatMap((run) => [
      `Measured on ${run.date} at commit ${run.commit}, on ${run.machine}. ${describe(run)}`,
      ...tables.filter(({ of }) => run.measured.includes(of)).map(markdown),
    ])
    .join('\n\n');
}

/** How results were measured, in sentences. */
export function describe({
  node,
  generator,
  connections,
  isPinned,
  shortRounds,
  rounds,
}: Conditions): string {
  const pinned = isPinned ? '; on SQLite, the server has its own core' : '';
  return `${node === undefined ? '' : `Node.js ${node}. `}Load: ${generator}, ${connections} connections${pinned}. Medians of ${shortRounds} rounds of each operation, and ${rounds} of everything else.`;
}

export function markdown({ head, rows }: Pick<Table, 'head' | 'rows'>): string {
  const lines = [head, head.map(() => '---'), ...rows];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
