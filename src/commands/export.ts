// Owns: `export`: all books of a store, as of one moment, into a file or a pipe.

import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { readStoreUrl } from '../config.ts';
import { OperatorError } from '../operator-error.ts';
import { readSecretFile } from '../secret-file.ts';
import { type BulkStore, CSV_HEADER } from '../stores/bulk.ts';
import { describeStore, readDbUrl } from '../stores/open.ts';
import { isPartOf } from '../stores/sqlite/backup.ts';
import { Progress } from '../terminal/progress.ts';
import { writeWholeFile } from '../terminal/whole-file.ts';
import { type Arguments, type CommandContext, UsageError } from './command.ts';

export const HELP = `Usage: book-catalogue export [FILE] [--format csv|json|jsonl] [--overwrite]

Writes all books of DB_URL, as of one moment, to FILE; without FILE, or if it is -, to the standard output. The service
may keep running. The output is the same, byte for byte, from every store, and can be imported again.

  --format     csv, json (one array) or jsonl (one object per line); default: the extension of FILE, csv without FILE
  --overwrite  replaces FILE if it exists
`;

export const OPTIONS = { format: { type: 'string' }, overwrite: { type: 'boolean' } } as const;
export const OPERANDS = ['[FILE]'] as const;

/** The content of a file, by its format. */
const FORMATS = new Map<unknown, (store: BulkStore) => AsyncIterable<string | Uint8Array>>([
  ['csv', asCsvFile],
  ['json', asJsonFile],
  ['jsonl', (store) => store.text('jsonl')],
]);

export async function run(context: CommandContext, args: Arguments): Promise<number> {
  const { env, stdout, stderr, stop } = context;
  const [file = '-'] = args.operands;
  const content = FORMATS.get(args.options.format ?? endingOf(file));
  if (content === undefined) {
    throw new UsageError('The format must be csv, json or jsonl: set --format, or the extension of FILE.');
  }
  const url = readStoreUrl(env, readSecretFile);
  const at = await readDbUrl(url);
  if (at.file !== undefined && isPartOf(at.file, file)) {
    throw new OperatorError(`${file} is part of the store: choose another file.`);
  }
  const store = await at.openBulk('read');
  if (store === undefined) throw new OperatorError(`DB_URL: there is no catalogue at ${describeStore(url)}.`);

  const stopping = new AbortController();
  const { signal } = stopping;
  stop.then(() => stopping.abort());
  try {
    const books = await store.inSnapshot(async () => {
      const count = await store.count();
      const progress = file === '-' && stdout.isTTY ? undefined : new Progress(context, 'books', count);
      const write = (to: Writable) => pipeline(watched(content(store), count, progress), to, { signal });
      if (file === '-') await write(destroyable(stdout));
      else await writeWholeFile(file, args.options.overwrite === true, write);
      return count;
    });
    stderr.write(`${books} books exported${file === '-' ? '' : ` to ${file}`}.\n`);
    return 0;
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    if ((error as NodeJS.ErrnoException).code === 'EPIPE') return 1; // the reader has closed the pipe
    throw new OperatorError(
      `Nothing was exported: ${signal.aborted ? 'stopped' : (error as Error).message}.`,
    );
  } finally {
    await store.close();
  }
}

/** The same chunks, with progress: each line counts as a book, although texts may have line ends of their own. */
async function* watched(
  chunks: AsyncIterable<string | Uint8Array>,
  books: number,
  progress: Progress | undefined,
): AsyncGenerator<Buffer, void, void> {
  let lines = 0;
  try {
    for await (const chunk of chunks) {
      const bytes =
        typeof chunk === 'string'
          ? Buffer.from(chunk)
          : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, end + 1)) lines += 1;
      progress?.at(Math.min(lines, books));
      yield bytes;
    }
  } finally {
    progress?.end();
  }
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

async function* asCsvFile(store: BulkStore): AsyncGenerator<string | Uint8Array, void, void> {
  yield CSV_HEADER;
  yield* store.text('csv');
}

/** An array with one book per line. */
async function* asJsonFile(store: BulkStore): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder();
  let before = '[\n'; // precedes the next chunk
  for await (const chunk of store.text('jsonl')) {
    const text = typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true });
    const isWhole = text.endsWith('\n');
    // Within a book every line end is escaped.
    yield before + (isWhole ? text.slice(0, -1) : text).replaceAll('\n', ',\n');
    before = isWhole ? ',\n' : '';
  }
  yield before === '[\n' ? '[]\n' : '\n]\n';
}
