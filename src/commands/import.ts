// Owns: `import`: the books of a file or a pipe into DB_URL, and the exit code.

import { createHash, type Hash, randomUUID } from 'node:crypto';
import { closeSync, createReadStream, fstatSync, open } from 'node:fs';
import { Socket } from 'node:net';
import { basename } from 'node:path';
import { addAbortSignal, type Readable } from 'node:stream';
import { promisify } from 'node:util';
import { readSetting } from '../config.ts';
import { reasonOf } from '../error-words.ts';
import { readBooks } from '../files/reading.ts';
import { limitHeapGrowth } from '../import/memory.ts';
import { fingerprintOf, type GivenOptions, OPTION_NAMES, readOptions } from '../import/options.ts';
import { ImportOutput } from '../import/output.ts';
import { importBooks, rulesOf } from '../import/pass.ts';
import { rejectsPath } from '../import/rejects.ts';
import { emptyReport, Summary } from '../import/summary.ts';
import { InvalidOption, OperatorError } from '../operator-error.ts';
import { describeStore, openScratch, readDbUrl } from '../stores/open.ts';
import { type Arguments, type CommandContext, UsageError } from './command.ts';

export const HELP = `Usage: book-catalogue import FILE|- [OPTIONS]

Stores the books of FILE, or of the standard input, in DB_URL. The store is created if missing; the service may keep
running. FILE is a workbook (.xlsx), CSV with a header line (also with semicolons, tabs or bars), a JSON array or JSON
Lines, from an export or from another program, perhaps in a .zip or .gz file. A row that equals a stored book in title,
author and year is skipped, so an interrupted import can simply be rerun. A row of an export that was corrected changes
its book, unless that was changed since. Rejected rows are reported by line and saved to a file that you can fix and
import. Defaults are in brackets.

  --dry-run              reports what would be done, and stores nothing
  --on-duplicate WHAT    skip rows that equal a stored book, or add them as well (skip)
  --on-conflict WHAT     refuse rows with the id of a book with other values that lack its present etag; change that
                         book; or add them under new ids (refuse)
  --doubtful WHAT        add new books without a title or with an unlikely year, or skip them (add)
  --ids WHAT             keep the ids of the file, so that rows change the books with their ids, or give new ones
                         (keep if the file is an export)
  --title COLUMN         the column of the title,
  --author COLUMN        of the author,
  --year COLUMN          of the year (found by their usual names; empty if the file has none)
  --format FORMAT        csv, json, jsonl or xlsx (by the name and content of FILE)
  --sheet NAME           the sheet of a workbook (the one with books)
  --encoding ENCODING    such as windows-1252 (that of the byte order mark, else UTF-8)
  --delimiter CHARACTER  between the fields of CSV, \\t for a tab (by the header)
  --header WHAT          yes, or no if the first row of a table is a book: the columns are "column 1" and so on (yes)
  --from-line N          leaves out the lines of a table before line N (1)
  --rejects FILE         where rejected rows go, - for the standard output (books.rejects.csv beside books.csv; in a
                         dry run nowhere)

Exits with code 0 if every row is in the catalogue, otherwise with 1.
`;

export const OPTIONS = {
  'dry-run': { type: 'boolean' },
  ...Object.fromEntries(OPTION_NAMES.map((name) => [name, { type: 'string' }] as const)),
  rejects: { type: 'string' },
} as const;
export const OPERANDS = ['FILE'] as const;

export async function run(context: CommandContext, args: Arguments): Promise<number> {
  const { env, signal, times } = context;
  const [file = '-'] = args.operands;
  const { 'dry-run': dryRun, rejects: rejectsFile, ...others } = args.options;
  const isDryRun = dryRun === true;
  const wantedRejects = typeof rejectsFile === 'string' ? rejectsFile : undefined;
  const given = others as GivenOptions;
  const options = asUsage(() => readOptions(given));
  if (options.onConflict === 'change' && readSetting('requireIfMatch', env))
    throw new UsageError('With REQUIRE_IF_MATCH=on, only rows with their present tags change books.');
  limitHeapGrowth();
  const url = readSetting('dbUrl', env);
  const at = await readDbUrl(url);
  const name = file === '-' ? 'stdin' : file;
  const { bytes, size } = await openInput(file, context, signal);
  bytes.on('error', () => {}); // the code that reads gets it
  try {
    const content = createHash('sha256');
    const reading = await readBooks(hashed(bytes, content), { ...options.reading, name: file }).catch(
      (error: Error) => {
        if (signal.aborted) throw new OperatorError('Nothing was imported: stopped.');
        if (error instanceof InvalidOption) throw new UsageError(error.message);
        if (error instanceof OperatorError) throw new OperatorError(`${name}: ${error.message}`);
        throw new OperatorError(`${name} cannot be read: ${reasonOf(error)}.`);
      },
    );
    const { skipsEqual, skipsDoubtful } = options;
    const rejects = wantedRejects ?? (isDryRun ? undefined : rejectsPath(file, reading));
    const shown = { name, size, rejects, store: describeStore(url), isDryRun, skipsEqual, skipsDoubtful };
    const output = new ImportOutput(context, reading, shown);
    const summary = new Summary(emptyReport(basename(name), isDryRun, given, size ?? 0));
    summary.understood(reading, given);
    const store = isDryRun
      ? ((await at.openBulk('read', times)) ?? (await openScratch(times)))
      : await at.openBulk('write', times);
    try {
      const rules = rulesOf(reading, options, readSetting('history', env) !== undefined);
      const load = await store.load(rules).catch((error) => {
        throw new OperatorError(`${describeStore(url)}: ${reasonOf(error)}. Nothing was imported.`);
      });
      const work = isDryRun
        ? undefined
        : {
            name: basename(name),
            owner: randomUUID(),
            number: undefined,
            fingerprint: () => fingerprintOf(content.digest('hex'), given),
            report: (isDone: boolean) => (isDone ? summary.done() : summary.report),
            assertNewest: () => store.assertNewest(),
          };
      const outcome = await importBooks({
        reading,
        load,
        work,
        summary,
        onRead: (refused, position, rows) => output.read(refused, position, rows),
        onCompared: () => output.changes(summary.report.rows.changed, summary.report.figures.changed),
        signal,
        corrections: {},
      });
      await load.close().catch(() => {}); // after a failure, closing may fail as well
      return await output.end(outcome);
    } finally {
      await store.close().catch(() => {});
    }
  } finally {
    bytes.destroy();
  }
}

/** @throws UsageError */
function asUsage<Result>(read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    throw error instanceof InvalidOption ? new UsageError(error.message) : error;
  }
}

async function* hashed(bytes: AsyncIterable<Uint8Array>, hash: Hash): AsyncGenerator<Uint8Array, void, void> {
  for await (const piece of bytes) {
    hash.update(piece);
    yield piece;
  }
}

/** @throws OperatorError when it cannot be opened. */
async function openInput(
  file: string,
  context: CommandContext,
  signal: AbortSignal,
): Promise<{ bytes: Readable; size: number | undefined }> {
  if (file === '-') {
    const { stdin, stderr } = context;
    if (stdin.isTTY) stderr.write('Reading from the terminal: end with Ctrl-D on an empty line.\n');
    return { bytes: addAbortSignal(signal, stdin), size: undefined };
  }
  try {
    const descriptor = await promisify(open)(file, 'r');
    const found = fstatSync(descriptor);
    if (found.isDirectory()) {
      closeSync(descriptor);
      throw new Error('it is a folder');
    }
    // A read of a pipe that brings nothing could not be ended by a signal.
    if (found.isFIFO())
      return { bytes: addAbortSignal(signal, new Socket({ fd: descriptor })), size: undefined };
    const bytes = createReadStream('', { fd: descriptor, signal });
    return { bytes, size: found.isFile() ? found.size : undefined };
  } catch (error) {
    throw new OperatorError(`${file} cannot be read: ${reasonOf(error).replace(`${file}: `, '')}.`);
  }
}
