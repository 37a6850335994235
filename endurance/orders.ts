// Owns: the orders of events as a command: many more of them than a run of the tests tries.

import { parseArgs } from 'node:util';
import fc from 'fast-check';
import { SEAMS } from '../test/orders/seams.ts';

const HELP = `Usage: npm run orders -- [options]

Tries random orders of events in each place where the order matters and is not ours. An order that fails is shortened
and printed, with the options that repeat it; the exit code is then 1.

  --runs <n>      orders of each place (100000)
  --only <text>   only places whose names contain this text: ${Object.keys(SEAMS).join('; ')}
  --seed <n>      of the random choices; the same seed gives the same orders (random)
  --path <path>   repeats the one order that was printed with this path
  --help          print this
`;

/** Orders between two lines of progress. */
const PART = 10_000;

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '100000' },
    only: { type: 'string', default: '' },
    seed: { type: 'string' },
    path: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
process.exitCode = values.help ? help() : await run();

function help(): number {
  process.stdout.write(HELP);
  return 0;
}

async function run(): Promise<number> {
  const chosen = Object.entries(SEAMS).filter(([name]) => name.includes(values.only));
  const runs = Number(values.runs);
  if (chosen.length === 0 || !(runs > 0)) {
    process.stderr.write(`There is nothing to run with these options. --help explains them.\n`);
    return 2;
  }
  const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
  for (const [name, property] of chosen) {
    const began = performance.now();
    const parts = values.path === undefined ? Math.ceil(runs / PART) : 1;
    for (let part = 0; part < parts; part += 1) {
      const numRuns = Math.min(PART, runs - part * PART);
      const replay = values.path !== undefined && { path: values.path };
      const details = await fc.check(property, { seed: seed + part, numRuns, ...replay });
      if (details.failed) {
        const again = `npm run orders -- --only '${name}' --seed ${details.seed} --path ${details.counterexamplePath}`;
        const reason = details.errorInstance instanceof Error ? details.errorInstance.message : '';
        process.stderr.write(`${fc.defaultReportMessage(details)}\n\n${reason}\nTo repeat it: ${again}\n`);
        return 1;
      }
      if (process.stderr.isTTY) process.stderr.write(`\r${name}: ${part * PART + numRuns} orders `);
    }
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
    const seconds = ((performance.now() - began) / 1000).toFixed(0);
    process.stdout.write(`${name}: ${runs} orders, ${seconds} s, seed ${seed}\n`);
  }
  return 0;
}
