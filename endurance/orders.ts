// Owns: the orders of events, and the states after a power failure, as a command: many more of them than a run of the tests
// tries.

import { parseArgs } from 'node:util';
import fc from 'fast-check';
import { SEAMS } from '../test/orders/seams.ts';
import { PowerCuts } from '../test/release/power/power-cuts.ts';
import { WORKS } from '../test/release/power/works.ts';

/** The beginning of the names of places where the power fails. */
const POWER = 'the power fails during ';

const PLACES = [...Object.keys(SEAMS), ...Object.keys(WORKS).map((work) => `${POWER}${work}`)];

const HELP = `Usage: npm run orders -- [options]

Tries random orders of events in each place where the order matters and is not ours; and random states of the disk after
the power has failed, by a recording of each kind of work, which needs strace. One that fails is shortened and printed,
with the options that repeat it; the exit code is then 1.

  --runs <n>            orders of each place, or states (100000)
  --only <text>         only places whose names contain this text: ${PLACES.join('; ')}
  --seed <n>            of the random choices; the same seed gives the same orders, and the same states of one recording
                        (random)
  --path <path>         repeats the one that was printed with this path
  --recording <folder>  of the work during which the power fails, as it was printed (a new one for every 10000 states)
  --help                print this
`;

/** Orders between two lines of progress; states of one recording. */
const PART = 10_000;

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '100000' },
    only: { type: 'string', default: '' },
    seed: { type: 'string' },
    path: { type: 'string' },
    recording: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
process.exitCode = values.help ? help() : await run();

function help(): number {
  process.stdout.write(HELP);
  return 0;
}

async function run(): Promise<number> {
  const chosen = PLACES.includes(values.only)
    ? [values.only]
    : PLACES.filter((name) => name.includes(values.only));
  const runs = Number(values.runs);
  const isAmbiguous = values.recording !== undefined && chosen.length !== 1;
  if (chosen.length === 0 || !(runs > 0) || isAmbiguous) {
    process.stderr.write(`There is nothing to run with these options. --help explains them.\n`);
    return 2;
  }
  const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
  for (const name of chosen) {
    const began = performance.now();
    const parts = values.path === undefined ? Math.ceil(runs / PART) : 1;
    for (let part = 0; part < parts; part += 1) {
      const numRuns = Math.min(PART, runs - part * PART);
      const replay = values.path !== undefined && { path: values.path };
      const cuts = await powerCuts(name, part);
      const property = cuts?.property ?? (SEAMS[name] as fc.IAsyncProperty<unknown>);
      const details = await fc.check(property, { seed: seed + part, numRuns, ...replay });
      if (!details.failed && values.recording === undefined) cuts?.end();
      if (details.failed) {
        const recording = cuts === undefined ? '' : ` --recording ${cuts.folder}`;
        const again = `npm run orders -- --only '${name}' --seed ${details.seed} --path ${details.counterexamplePath}`;
        const reason = details.errorInstance instanceof Error ? details.errorInstance.message : '';
        process.stderr.write(
          `${fc.defaultReportMessage(details)}\n\n${reason}\nTo repeat it: ${again}${recording}\n`,
        );
        return 1;
      }
      if (process.stderr.isTTY) process.stderr.write(`\r${name}: ${part * PART + numRuns} orders `);
    }
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
    const seconds = ((performance.now() - began) / 1000).toFixed(0);
    const tried = name.startsWith(POWER) ? 'states' : 'orders';
    process.stdout.write(`${name}: ${runs} ${tried}, ${seconds} s, seed ${seed}\n`);
  }
  return 0;
}

/** @returns undefined in a place where only the order matters. */
async function powerCuts(name: string, part: number): Promise<PowerCuts | undefined> {
  if (!name.startsWith(POWER)) return undefined;
  const work = name.slice(POWER.length);
  return values.recording === undefined
    ? PowerCuts.during(work, part)
    : new PowerCuts(work, values.recording);
}
