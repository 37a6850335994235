// Owns: how the tests are run: which files and in which order, how many at a time, the PostgreSQL server that they
// share, the seed of their random choices, and the exit code.
// Does not: pass if no test ran, if a named file does not exist, or if a file did not report its end.

import { spawn } from 'node:child_process';
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { constants } from 'node:os';
import { basename, relative, resolve } from 'node:path';
import { finished } from 'node:stream/promises';
import { run } from 'node:test';
import { spec as Spec, type TestEvent } from 'node:test/reporters';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { assertUsable, COORDINATOR, removeCatalogues } from './support/citus.ts';
import { OLDER_VERSIONS, olderLibrary } from './support/older-postgres.ts';
import { NoPostgres, PostgresServer, SERVER_MODULE, SHARED_SERVER } from './support/postgres.ts';
import { seed as chosenSeed, SEED } from './support/random.ts';
import { pathTo } from './support/repository.ts';
import { FAST, NIGHTLY, SHELF } from './support/scale.ts';
import { ONLY_STORE, POSTGRES, SQLITE } from './support/service.ts';

/** Folders whose tests do not run before a push: test/README.md says when they do. */
const OTHER_SHELVES = ['browser', 'citus', NIGHTLY, 'packages', 'release'];

/** What runs on a cluster of Citus unless files are named: the contract, searches, followers, undos, import and export, and failures. */
const ON_CITUS = [
  ...['contract', 'list', 'model'].map((name) => `test/contract/${name}.test.ts`),
  ...['oracle', 'pages'].map((name) => `test/find/${name}.test.ts`),
  ...['bulk', 'changes', 'imports', 'undo', 'undo-parts'].map((name) => `test/stores/${name}.test.ts`),
  'test/nightly/contract.test.ts',
  'test/citus',
];

/** A line at the beginning of a file that takes 20 s or more: the run ends sooner if such a file does not begin last. */
const LONG = '\n// It takes long, and begins first.\n';

/** Files at a time, on two cores: some of them only wait. */
const CONCURRENCY = 4;

/** Minutes that a file may take, on the slowest machine. Nothing in the tests has a tighter limit. */
const TIME_LIMIT = 20;

/** Where Node.js keeps the translated test files: not in the cache of the service, which a test checks. */
const COMPILE_CACHE = pathTo('node_modules/.cache/test');

/** How many files are listed at the end of the run, which shows what takes long. */
const NAMED = 8;

/** A process that keeps a core busy until this one ends or kills it. */
const NOISE = `process.stdin.resume().on('end', () => process.exit());
  setInterval(() => { for (const end = Date.now() + 200; Date.now() < end; ); });`;

const STORE_NAMES: readonly string[] = [SQLITE.name, POSTGRES.name];

const HELP = `Usage: node test/run.ts [FILE or FOLDER ...] [options]

Runs these test files. Without any, it runs all of a push: every folder but ${OTHER_SHELVES.join(', ')}.

  --name PATTERN     only tests whose full name matches this regular expression; may be repeated
  --store NAME       only this store: SQLite or PostgreSQL
  --postgres NUMBER  on this version of PostgreSQL (${OLDER_VERSIONS.join(', ')}), which npm brings
  --citus URL        on the empty database at this URL, of the coordinator of a cluster of Citus on this machine
  --nightly          test/nightly as well; every loop of random choices goes round 16 times as often
  --fast             on SQLite, without PostgreSQL; every loop of random choices goes round a quarter as often
  --watch            run again whenever a file or something that it imports changes
  --random           files and tests in random order
  --seed NUMBER      seed of that order and of all random choices in the tests
  --repeat NUMBER    run this many times, each with its own seed; stop at the first run that fails
  --noise NUMBER     beside this many processes that keep a core busy
  --at-once NUMBER   files at a time (default ${CONCURRENCY}; 1 on Citus, whose servers fail for all files)
  --minutes NUMBER   time limit of a file (default ${TIME_LIMIT})
  --help             this text
`;

/** The command line is invalid; the message says why. */
class UsageError extends Error {}

interface Options {
  readonly files: readonly string[];
  readonly names: readonly string[];
  readonly random: boolean;
  readonly watch: boolean;
  readonly atOnce: number;
  /** Milliseconds. */
  readonly timeLimit: number;
}

/** The results of one run. */
interface Totals {
  passed: number;
  failed: number;
  skipped: number;
  /** Milliseconds by file. */
  readonly durations: Map<string, number>;
}

async function main(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      name: { type: 'string', multiple: true, default: [] },
      store: { type: 'string' },
      postgres: { type: 'string' },
      citus: { type: 'string' },
      nightly: { type: 'boolean', default: false },
      fast: { type: 'boolean', default: false },
      watch: { type: 'boolean', default: false },
      random: { type: 'boolean', default: false },
      seed: { type: 'string' },
      repeat: { type: 'string', default: '1' },
      noise: { type: 'string', default: '0' },
      'at-once': { type: 'string' },
      minutes: { type: 'string', default: String(TIME_LIMIT) },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const isOnPostgres = values.postgres !== undefined || values.citus !== undefined;
  const store = values.fast ? 'SQLite' : isOnPostgres ? 'PostgreSQL' : values.store;
  if (store !== undefined && !STORE_NAMES.includes(store)) {
    throw new UsageError(`--store must be one of ${STORE_NAMES.join(', ')}, not "${store}".`);
  }
  if (store !== undefined) process.env[ONLY_STORE] = store;
  const older = OLDER_VERSIONS.find((version) => String(version) === values.postgres);
  if (values.postgres !== undefined && older === undefined) {
    throw new UsageError(`--postgres must be one of ${OLDER_VERSIONS.join(', ')}, not "${values.postgres}".`);
  }
  if (values.nightly) process.env[SHELF] = NIGHTLY;
  if (values.fast) process.env[SHELF] = FAST;
  const missing = positionals.find((path) => !existsSync(path));
  if (missing !== undefined) throw new UsageError(`${missing}: there is no such file.`);
  const named = positionals.length === 0 && values.citus !== undefined ? ON_CITUS : positionals;
  const files = named.length > 0 ? named.flatMap(filesAt) : filesOf(values.nightly);

  const options: Options = {
    files,
    names: values.name,
    random: values.random,
    watch: values.watch,
    atOnce: Number(values['at-once'] ?? (values.citus === undefined ? CONCURRENCY : 1)),
    timeLimit: Number(values.minutes) * 60_000,
  };
  process.env.NODE_COMPILE_CACHE ??= COMPILE_CACHE;

  const interrupted = new AbortController();
  process.once('SIGINT', () => interrupted.abort());
  process.once('SIGTERM', () => interrupted.abort());

  if (values.citus !== undefined) {
    process.env[COORDINATOR] = values.citus;
    await assertUsable(values.citus).catch((error) => {
      throw new UsageError(`--citus: the database cannot be used: ${error.message}.`);
    });
  }
  if (older !== undefined) process.env[SERVER_MODULE] = await olderLibrary(older);
  const needsServer =
    store !== 'SQLite' && values.citus === undefined && process.env[SHARED_SERVER] === undefined;
  const server = needsServer ? await PostgresServer.start() : undefined;
  if (server !== undefined) process.env[SHARED_SERVER] = server.url();
  const noise = Array.from({ length: Number(values.noise) }, () =>
    spawn(process.execPath, ['-e', NOISE], { stdio: ['pipe', 'inherit', 'inherit'] }),
  );
  try {
    const first = values.seed === undefined ? chosenSeed : Number(values.seed);
    for (let round = 0; round < Number(values.repeat); round += 1) {
      const succeeded = await runOnce(options, (first + round) >>> 0, interrupted.signal);
      if (interrupted.signal.aborted) return 128 + constants.signals.SIGINT;
      if (!succeeded) return 1;
    }
    return 0;
  } finally {
    for (const { stdin } of noise) stdin.end();
    await server?.remove();
    if (values.citus !== undefined) await removeCatalogues();
  }
}

/** The test files in a folder, or the one file. */
function filesAt(path: string): string[] {
  return statSync(path).isDirectory() ? globSync(`${path}/*.test.ts`).sort() : [path];
}

/** Every test file of a push; those of a night as well, if it is one. */
function filesOf(isNightly: boolean): string[] {
  const others = OTHER_SHELVES.filter((folder) => folder !== NIGHTLY || !isNightly);
  const folders = globSync('test/*/').filter((folder) => !others.includes(basename(folder)));
  return folders.sort().flatMap(filesAt);
}

/** @returns whether tests ran and none of them failed. */
async function runOnce(options: Options, seed: number, signal: AbortSignal): Promise<boolean> {
  process.env[SEED] = String(seed);
  process.stdout.write(`Seed ${seed}: --seed ${seed} repeats its random choices.\n`);
  const began = performance.now();
  const totals: Totals = { passed: 0, failed: 0, skipped: 0, durations: new Map() };
  const report = new Spec();
  report.pipe(process.stdout, { end: false });
  const { files, random } = options;
  const events = run({
    files: (random ? files : files.toSorted(byLength)).map(pathTo),
    concurrency: options.atOnce,
    signal,
    timeout: options.timeLimit,
    watch: options.watch,
    // Node.js 26.10 sometimes does not end a process whose threads were terminated: it waits for a handle in a busy loop.
    execArgv: [
      '--test-force-exit',
      ...['blocking-output.ts', 'patience.js'].flatMap((file) => {
        return ['--import', pathToFileURL(pathTo(`test/support/${file}`)).href];
      }),
    ],
    testNamePatterns: options.names,
    ...(random && { randomize: true, randomSeed: seed }),
  });
  for await (const event of events) {
    if (event.type === 'test:diagnostic' && event.data.file === undefined) continue; // its own totals: ours come last
    count(totals, event);
    report.write(event);
  }
  report.end();
  await finished(report);
  const isMissing = (file: string) => !totals.durations.has(relative(pathTo(''), resolve(file)));
  const unfinished = signal.aborted ? [] : options.files.filter(isMissing);

  const slowest = [...totals.durations].sort(([, one], [, other]) => other - one).slice(0, NAMED);
  if (slowest.length > 1) {
    process.stdout.write('\nLongest files:\n');
    for (const [file, milliseconds] of slowest) {
      process.stdout.write(`  ${(milliseconds / 1000).toFixed(1).padStart(6)} s  ${file}\n`);
    }
  }
  const seconds = Math.round((performance.now() - began) / 1000);
  const { passed, failed, skipped } = totals;
  process.stdout.write(
    `\nSeed ${seed}, ${seconds} s\n${passed} passed, ${failed} failed, ${skipped} skipped\n`,
  );
  for (const file of unfinished)
    process.stderr.write(`${file} did not report its end: tests of it may be missing.\n`);
  if (passed + failed === 0) process.stderr.write('No test ran.\n');
  return failed === 0 && passed > 0 && unfinished.length === 0;
}

/** A file without a matching test passes as a test with the name of the file, and one that cannot be loaded fails as such. */
function count(totals: Totals, { type, data }: TestEvent): void {
  if (type === 'test:summary' && data.file !== undefined) {
    totals.durations.set(relative(pathTo(''), data.file), data.duration_ms);
  } else if (type === 'test:fail' && !failsOfItsTests(data)) {
    totals.failed += 1;
  } else if (type === 'test:pass' && data.details.type !== 'suite' && data.name !== data.file) {
    if (data.skip === undefined) totals.passed += 1;
    else totals.skipped += 1;
  }
}

/** A suite fails with its tests, which count, or with its own hook. */
function failsOfItsTests({ details }: Extract<TestEvent, { type: 'test:fail' }>['data']): boolean {
  const { failureType } = details.error as { failureType?: string };
  return details.type === 'suite' && failureType === 'subtestsFailed';
}

/** Long ones first, each kind in the order of its names. */
function byLength(one: string, other: string): number {
  const isLong = (file: string) => Number(readFileSync(file, 'utf8').slice(0, 1000).includes(LONG));
  return isLong(other) - isLong(one) || one.localeCompare(other);
}

process.exitCode = await main(process.argv.slice(2)).catch((error) => {
  const isExplained = error instanceof UsageError || error instanceof NoPostgres;
  if (!isExplained && !String(error.code).startsWith('ERR_PARSE_ARGS')) throw error;
  process.stderr.write(`${error.message}\n`);
  return 2;
});
