// Owns: the torture as a command. Kills the service at random moments of its starts and of its writes, again and
// again on one file, checks after each death whether anything is lost, and prints the result.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Ledger } from '../test/support/ledger.ts';
import { SEED, seed } from '../test/support/random.ts';
import { ENVIRONMENT, type ServiceProcess, startServiceProcess } from '../test/support/service.ts';
import { dieYoung, examine, liveAndDie } from '../test/support/sudden-death.ts';

const HELP = `Usage: npm run torture -- [options]

Kills the service with SIGKILL while it starts and while eight writers create, update and delete,
and checks after each restart whether every acknowledged write is there. Exits with code 1 if one is lost.

  --kills <n>       sudden deaths (1000)
  --workers <n>     processes of the service (1)
  --folder <path>   a folder on the disk to be tested; the file is in a new folder below it
                    (${tmpdir()})
  --help            print this
`;

/** Of so many deaths, one hits a start, the others hit writes. */
const YOUNG = 4;

/** Deaths between two lines of progress if there is no terminal. */
const PLAIN_PROGRESS = 50;

const { values: options } = parseArgs({
  options: {
    kills: { type: 'string', default: '1000' },
    workers: { type: 'string', default: '1' },
    folder: { type: 'string', default: tmpdir() },
    help: { type: 'boolean', default: false },
  },
});

async function torture(): Promise<number> {
  const kills = Number(options.kills);
  mkdirSync(options.folder, { recursive: true });
  const folder = mkdtempSync(join(resolve(options.folder), 'book-catalogue-torture-'));
  const dbUrl = `sqlite:${join(folder, 'books.db')}`;
  const env = { WORKERS: options.workers };
  const ledger = new Ledger();
  const began = performance.now();
  console.log(`Seed ${seed}: ${SEED}=${seed} in the environment repeats its random choices.`);
  /** Milliseconds from start to first answer. */
  const starts: number[] = [];
  let current: ServiceProcess | undefined;
  const start = async () => {
    current = await startServiceProcess(dbUrl, env);
    return current;
  };
  let deaths = 0;
  try {
    for (; deaths < kills; deaths += 1) {
      const ready = starts.at(-1);
      if (ready !== undefined && deaths % YOUNG === 0) {
        await dieYoung({ ...ENVIRONMENT, DB_URL: dbUrl, ...env }, ready);
      } else {
        starts.push(await liveAndDie(start, ledger));
      }
      progress(deaths + 1, kills, ledger.acknowledged);
    }
    const last = await start();
    await examine(last, ledger);
    await last.stop();
  } catch (error) {
    current?.process.kill('SIGKILL');
    console.log(`FAILED after ${deaths} kills: ${(error as Error).message}. The file is kept: ${folder}`);
    return 1;
  }
  rmSync(folder, { recursive: true });
  report({
    kills: `${deaths}`,
    'acknowledged writes': `${ledger.acknowledged}`,
    'writes without an answer': `${ledger.begun - ledger.acknowledged}`,
    'acknowledged writes lost': '0',
    'start to first answer, median': milliseconds(starts.toSorted((a, b) => a - b)[starts.length >> 1]),
    'start to first answer, slowest': milliseconds(Math.max(...starts)),
    'seconds in total': ((performance.now() - began) / 1000).toFixed(0),
  });
  return 0;
}

function progress(deaths: number, kills: number, acknowledged: number): void {
  const text = `${deaths} of ${kills} kills, ${acknowledged} acknowledged writes, none lost`;
  if (process.stdout.isTTY) process.stdout.write(`\r${text}${deaths === kills ? '\n' : ''}`);
  else if (deaths % PLAIN_PROGRESS === 0) console.log(text);
}

function report(figures: Record<string, string>): void {
  const width = Math.max(...Object.keys(figures).map((name) => name.length));
  console.log();
  for (const [name, figure] of Object.entries(figures)) console.log(`${name.padEnd(width)}  ${figure}`);
}

function milliseconds(value = Number.NaN): string {
  return `${value.toFixed(0)} ms`;
}

if (options.help) process.stdout.write(HELP);
else process.exit(await torture());
