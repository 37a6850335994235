// Owns: results.json, which `npm run bench -- --save` writes, and the figures in figures.md, which docs/generate.ts
// generates from it.

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { pathTo } from '../test/support/repository.ts';
import { type Results, type Table, tablesOf } from './results.ts';

const RESULTS = pathTo('bench/results.json');
const GENERATOR = pathTo('docs/generate.ts');

interface SavedResults extends Results {
  /** Such as 2026-11-22. */
  readonly date: string;
  readonly commit: string;
  readonly machine: string;
}

/** Saves results with their date, commit and machine, and generates the documents again. */
export function save(results: Results): void {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: pathTo(''), encoding: 'utf8' }).trim();
  const isClean = git('status', '--porcelain', 'src', 'page', 'client/src') === '';
  const [processor] = cpus();
  const saved: SavedResults = {
    date: new Date().toISOString().slice(0, 10),
    commit: `${git('rev-parse', '--short=10', 'HEAD')}${isClean ? '' : ' with changes'}`,
    machine: `${cpus().length} × ${processor?.model.trim()}, ${Math.round(totalmem() / 1024 ** 3)} GiB, Linux ${release()}`,
    ...results,
  };
  writeFileSync(RESULTS, `${JSON.stringify(saved, null, 2)}\n`);
  execFileSync(process.execPath, [GENERATOR], { stdio: 'inherit' });
}

/** @returns the saved results as tables in Markdown. */
export function describeFigures(): string {
  const results = JSON.parse(readFileSync(RESULTS, 'utf8')) as SavedResults;
  const { date, commit, machine, generator, connections, isPinned } = results;
  const pinned = isPinned ? '; on SQLite, the server has its own core' : '';
  return [
    `Measured on ${date} at commit ${commit}, on ${machine}. Load: ${generator}, ${connections} connections${pinned}. Medians of ${results.rounds} rounds.`,
    ...tablesOf(results)
      .filter(({ rows }) => rows.length > 0)
      .map(markdown),
  ].join('\n\n');
}

export function markdown({ head, rows }: Table): string {
  const lines = [head, head.map(() => '---'), ...rows];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
