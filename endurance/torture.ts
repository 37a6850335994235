// Owns: the torture as a command. Kills the service at random moments of its starts and of its writes, again and
// again on one file, checks after each death whether anything is lost, and prints the result. With --operations, clients
// lose answers as well and repeat their requests, on either store, and each change must take place exactly once.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Ledger } from '../test/support/ledger.ts';
import { SEED, seed } from '../test/support/random.ts';
import { type Faulty, retryThroughFaults, startFailingPostgres } from '../test/support/retrying.ts';
import { ENVIRONMENT, type ServiceProcess, startServiceProcess } from '../test/support/service.ts';
import { dieYoung, examine, liveAndDie } from '../test/support/sudden-death.ts';

const STORES: readonly string[] = ['sqlite', 'postgres'];

const HELP = `Usage: npm run torture -- [options]

Kills the service with SIGKILL while it starts and while eight writers create, update and delete,
and checks after each restart whether every acknowledged write is there. Exits with code 1 if one is lost.

  --kills <n>       sudden deaths (1000)
  --workers <n>     processes of the service (1)
  --folder <path>   a folder on the disk to be tested; the file is in a new folder below it
                    (${tmpdir()})
  --help            print this

With --operations, eight clients create books with a key, alone and in arrays, and change and delete
them, also with If-Match. Every seventh answer gets lost, and the client repeats its creation. The
service is killed about every 250 writes; on PostgreSQL the standby takes over and then crashes, in
turn with the service. Exits with code 1 unless each acknowledged write took place exactly once.

  --operations <n>  acknowledged writes, such as 100000
  --store <name>    ${STORES.join(' or ')} (sqlite); PostgreSQL is started by the command
`;

/** Operations between two faults, on average. */
const LIFE = 250;

/** Faults between two lines of progress if there is no terminal. */
const PLAIN_FAULTS = 10;

/** Of so many deaths, one hits a start, the others hit writes. */
const YOUNG = 4;

/** Deaths between two lines of progress if there is no terminal. */
const PLAIN_PROGRESS = 50;

const { values: options } = parseArgs({
  options: {
    kills: { type: 'string', default: '1000' },
    workers: { type: 'string', default: '1' },
    folder: { type: 'string', default: tmpdir() },
    operations: { type: 'string' },
    store: { type: 'string', default: 'sqlite' },
    help: { type: 'boolean', default: false },
  },
});

async function torture(): Promise<number> {
  const kills = Number(options.kills);
  const { dbUrl, folder, remove } = makeStore();
  const env = { WORKERS: options.workers };
  const ledger = new Ledger();
  const began = performance.now();
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
      const done = deaths + 1;
      const text = `${done} of ${kills} kills, ${ledger.acknowledged} acknowledged writes, none lost`;
      progress(text, done === kills, done % PLAIN_PROGRESS === 0);
    }
    const last = await start();
    await examine(last, ledger);
    await last.stop();
  } catch (error) {
    current?.process.kill('SIGKILL');
    console.log(`FAILED after ${deaths} kills: ${(error as Error).message}. The file is kept: ${folder}`);
    return 1;
  }
  remove();
  report({
    kills: `${deaths}`,
    'acknowledged writes': `${ledger.acknowledged}`,
    'writes without an answer': `${ledger.unanswered}`,
    'acknowledged writes lost': '0',
    'start to first answer, median': milliseconds(starts.toSorted((a, b) => a - b)[starts.length >> 1]),
    'start to first answer, slowest': milliseconds(Math.max(...starts)),
    'seconds in total': seconds(began),
  });
  return 0;
}

async function tortureClients(operations: number): Promise<number> {
  const began = performance.now();
  const ends: (() => unknown)[] = [];
  const context = { after: (work: () => unknown) => ends.push(work) };
  const store = options.store === 'postgres' ? await startFailingPostgres() : makeStore();
  const faulty: Faulty = {
    url: () => store.dbUrl,
    ...store,
    start: () => startServiceProcess(store.dbUrl, { WORKERS: options.workers }),
  };
  let faults = 0;
  let code = 0;
  try {
    const figures = await retryThroughFaults(context, faulty, operations, LIFE, (done) => {
      faults += 1;
      const text = `${done} of ${operations} operations, ${faults} faults`;
      progress(text, done === operations, faults % PLAIN_FAULTS === 0);
    });
    report({
      operations: `${operations}`,
      ...Object.fromEntries(Object.entries(figures).map(([name, count]) => [name, `${count}`])),
      'operations lost or carried out twice': '0',
      'seconds in total': seconds(began),
    });
  } catch (error) {
    console.log(`FAILED after ${faults} faults: ${(error as Error).message}.`);
    code = 1;
  }
  for (const work of ends) await work();
  if (code === 1 && 'folder' in store) console.log(`The file is kept: ${store.folder}`);
  else await store.remove();
  return code;
}

/** A store in a new folder on the disk to be tested. */
function makeStore() {
  mkdirSync(options.folder, { recursive: true });
  const folder = mkdtempSync(join(resolve(options.folder), 'book-catalogue-torture-'));
  const remove = () => rmSync(folder, { recursive: true });
  return { dbUrl: `sqlite:${join(folder, 'books.db')}`, folder, remove };
}

function progress(text: string, isLast: boolean, isPlain: boolean): void {
  if (process.stdout.isTTY) process.stdout.write(`\r${text}${isLast ? '\n' : ''}`);
  else if (isPlain) console.log(text);
}

function report(figures: Record<string, string>): void {
  const width = Math.max(...Object.keys(figures).map((name) => name.length));
  console.log();
  for (const [name, figure] of Object.entries(figures)) console.log(`${name.padEnd(width)}  ${figure}`);
}

function milliseconds(value = Number.NaN): string {
  return `${value.toFixed(0)} ms`;
}

function seconds(began: number): string {
  return ((performance.now() - began) / 1000).toFixed(0);
}

async function main(): Promise<number> {
  if (options.help) {
    process.stdout.write(HELP);
    return 0;
  }
  if (!STORES.includes(options.store)) {
    process.stderr.write(`--store must be one of ${STORES.join(', ')}, not "${options.store}".\n`);
    return 1;
  }
  console.log(`Seed ${seed}: ${SEED}=${seed} in the environment repeats its random choices.`);
  return options.operations === undefined
    ? await torture()
    : await tortureClients(Number(options.operations));
}

process.exit(await main());
