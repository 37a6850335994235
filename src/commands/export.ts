// Owns: `export`: all books of a store, or those that match filters, in one consistent snapshot, into a file or a pipe.

import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Book } from '../books/book.ts';
import { asCsv, asJson } from '../books/line.ts';
import { allOf, describeFilter, FILTER_NAMES, type Filters, matcher, readFilter } from '../books/search.ts';
import { readSetting } from '../config.ts';
import { reasonOf } from '../error-words.ts';
import { asCsvFile, asJsonFile } from '../files/writing.ts';
import { OperatorError } from '../operator-error.ts';
import { type BulkStore, booksOf, type RecordFormat } from '../stores/bulk.ts';
import { describeStore, readDbUrl } from '../stores/open.ts';
import { isPartOf } from '../stores/sqlite/backup.ts';
import { counted } from '../terminal/counted.ts';
import { helpEntry } from '../terminal/help-entry.ts';
import { Progress } from '../terminal/progress.ts';
import { writeWholeFile } from '../terminal/whole-file.ts';
import { TIMES } from '../times.ts';
import { type Arguments, type CommandContext, UsageError } from './command.ts';

export const HELP = `Usage: book-catalogue export [FILE] [--format csv|json|jsonl] [--overwrite] [FILTERS]

Writes a consistent snapshot of all books of DB_URL to FILE; without FILE, or if it is -, to the standard output. The
service may keep running. The output is the same, byte for byte, from every store, and can be imported again. If DB_READ_URL names
a standby that is as new as the primary, the books are read there.

  --format     csv, json (one array) or jsonl (one object per line); default: the extension of FILE, csv without FILE
  --overwrite  replaces FILE if it exists

Filters limit the export to the books that match all of them. They are those of GET /books, and need no index. A negative
year needs the sign: --year-lte=-1

${FILTER_NAMES.map((name) => helpEntry(`--${optionOf(name)}`, describeFilter(name).help)).join('')}`;

export const OPTIONS = {
  format: { type: 'string' },
  overwrite: { type: 'boolean' },
  ...Object.fromEntries(FILTER_NAMES.map((name) => [optionOf(name), { type: 'string' }] as const)),
} as const;
export const OPERANDS = ['[FILE]'] as const;

/** The content of a file, by its format. */
const FORMATS = new Map<unknown, (source: Source) => AsyncIterable<string | Uint8Array>>([
  ['csv', (source) => asCsvFile(source.text('csv'))],
  ['json', (source) => asJsonFile(source.text('jsonl'))],
  ['jsonl', (source) => source.text('jsonl')],
]);

/** Where the lines of the books come from. */
interface Source {
  text(format: RecordFormat): AsyncIterable<string | Uint8Array>;
}

export async function run(context: CommandContext, args: Arguments): Promise<number> {
  const { env, stdout, stderr, signal } = context;
  const [file = '-'] = args.operands;
  const content = FORMATS.get(args.options.format ?? endingOf(file));
  if (content === undefined) {
    throw new UsageError('The format must be csv, json or jsonl: set --format, or the extension of FILE.');
  }
  const filters = readFilters(args.options);
  const url = readSetting('dbUrl', env);
  const at = await readDbUrl(url, 'DB_URL', readSetting('readUrl', env));
  if (at.file !== undefined && isPartOf(at.file, file)) {
    throw new OperatorError(`${file} is part of the store: choose another file.`);
  }
  const store = await at.openBulk('read', TIMES);
  if (store === undefined) throw new OperatorError(`DB_URL: there is no catalogue at ${describeStore(url)}.`);

  try {
    const books = await store.inSnapshot(async () => {
      const count = await store.count();
      const progress = file === '-' && stdout.isTTY ? undefined : new Progress(context, 'books', count);
      const some = filters && new SomeBooks(store, matcher(filters), progress);
      const chunks = some ? asBytes(content(some)) : watched(content(store), count, progress);
      const write = (to: Writable) => pipeline(chunks, to, { signal });
      try {
        if (file === '-') await write(destroyable(stdout));
        else await writeWholeFile(file, args.options.overwrite === true, write);
      } finally {
        progress?.end();
      }
      return some?.count ?? count;
    });
    stderr.write(`${counted(books, 'book')} exported${file === '-' ? '' : ` to ${file}`}.\n`);
    return 0;
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    if ((error as NodeJS.ErrnoException).code === 'EPIPE') return 1; // the reader has closed the pipe
    throw new OperatorError(`Nothing was exported: ${signal.aborted ? 'stopped' : reasonOf(error)}.`);
  } finally {
    await store.close();
  }
}

/** The same chunks, with progress: each line counts as a book, although texts may contain line ends. */
async function* watched(
  chunks: AsyncIterable<string | Uint8Array>,
  books: number,
  progress: Progress | undefined,
): AsyncGenerator<Buffer, void, void> {
  let lines = 0;
  for await (const bytes of asBytes(chunks)) {
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, end + 1)) lines += 1;
    progress?.at(Math.min(lines, books));
    yield bytes;
  }
}

async function* asBytes(chunks: AsyncIterable<string | Uint8Array>): AsyncGenerator<Buffer, void, void> {
  for await (const chunk of chunks) {
    yield typeof chunk === 'string'
      ? Buffer.from(chunk)
      : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  }
}

/** The books of a store that match, as text; and the progress of reading all of them. */
class SomeBooks implements Source {
  readonly #store: BulkStore;
  readonly #matches: (book: Book) => boolean;
  readonly #progress: Progress | undefined;
  /** How many there were. */
  count = 0;

  constructor(store: BulkStore, matches: (book: Book) => boolean, progress: Progress | undefined) {
    this.#store = store;
    this.#matches = matches;
    this.#progress = progress;
  }

  async *text(format: RecordFormat): AsyncGenerator<string, void, void> {
    const asLine = format === 'csv' ? asCsv : asJson;
    let read = 0;
    for await (const books of booksOf(this.#store)) {
      const found = books.filter(this.#matches);
      this.count += found.length;
      if (found.length > 0) yield found.map(asLine).join('');
      read += books.length;
      this.#progress?.at(read);
    }
  }
}

/**
 * @returns undefined without any filter.
 * @throws UsageError
 */
function readFilters(options: Arguments['options']): Filters | undefined {
  const filters = FILTER_NAMES.flatMap((name) => {
    const value = options[optionOf(name)];
    if (typeof value !== 'string') return [];
    const read = readFilter(name, value);
    if (read === undefined)
      throw new UsageError(
        `--${optionOf(name)} cannot be ${JSON.stringify(value)}: docs/search.md says what a filter may be.`,
      );
    return [read];
  });
  return filters.length === 0 ? undefined : allOf(filters);
}

function optionOf(name: string): string {
  return name.replaceAll('_', '-');
}

/**
 * A stream that ends when the standard output has taken everything. The standard output itself cannot be destroyed, so
 * a pipeline into it could not be stopped while it waits for a reader.
 */
function destroyable(stdout: NodeJS.WritableStream): Writable {
  stdout.on('error', () => {}); // the write in progress reports it
  return new Writable({ write: (chunk, _encoding, done) => void stdout.write(chunk, done) });
}

/** The extension of a file, in lower case; that of the default format for a pipe. */
function endingOf(file: string): string | undefined {
  return file === '-' ? 'csv' : /\.(csv|jsonl?)$/i.exec(file)?.[1]?.toLowerCase();
}
