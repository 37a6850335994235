// Owns: `export`: all books of a store, in one consistent snapshot, into a file or a pipe.

import { createWriteStream } from 'node:fs';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Book } from '../books/book.ts';
import { parseBooks } from '../books/line.ts';
import { readSetting } from '../config.ts';
import { reasonOf } from '../error-words.ts';
import { WRITERS } from '../files/writing.ts';
import { finalPath } from '../final-path.ts';
import { OperatorError } from '../operator-error.ts';
import { describeStore, readDbUrl } from '../stores/open.ts';
import { counted } from '../terminal/counted.ts';
import { writeLine } from '../terminal/printable.ts';
import { Progress } from '../terminal/progress.ts';
import { makeWholeFile } from '../terminal/whole-file.ts';
import { type Arguments, type CommandContext, UsageError } from './command.ts';

export const HELP = `Usage: book-catalogue export [FILE] [--format csv|json|jsonl|xlsx] [--overwrite]

Writes a consistent snapshot of all books of DB_URL to FILE; without FILE, or if it is -, to the standard output. The
service may keep running. The output is the same, byte for byte, from every store. Correct it and import it again: the
column etag tells which books have changed since. If DB_READ_URL names a standby that is as new as the primary, the books
are read there.

  --format     csv, json (one array), jsonl (one object per line) or xlsx (a workbook); default: the extension of FILE,
               csv without FILE
  --overwrite  replaces FILE if it exists
`;

export const OPTIONS = {
  format: { type: 'string' },
  overwrite: { type: 'boolean' },
} as const;
export const OPERANDS = ['[FILE]'] as const;

export async function run(context: CommandContext, args: Arguments): Promise<number> {
  const { env, stdout, stderr, signal, times } = context;
  const [file = '-'] = args.operands;
  const writer = WRITERS.get(args.options.format ?? endingOf(file));
  if (writer === undefined) {
    throw new UsageError(
      'The format must be csv, json, jsonl or xlsx: set --format, or the extension of FILE.',
    );
  }
  const url = readSetting('dbUrl', env);
  const at = await readDbUrl(url, 'DB_URL', readSetting('readUrl', env));
  if (finalPath(file) === at.file) throw new OperatorError(`${file} is the store: choose another file.`);
  const store = await at.openBulk('read', times);
  if (store === undefined) throw new OperatorError(`DB_URL: there is no catalogue at ${describeStore(url)}.`);

  try {
    const books = await store.inSnapshot(async () => {
      const count = await store.count();
      const progress = file === '-' && stdout.isTTY ? undefined : new Progress(context);
      const write = (to: Writable) =>
        pipeline(writer.write(watched(parseBooks(store.text(), '\n'), count, progress)), to, { signal });
      try {
        if (file === '-') await write(destroyable(stdout));
        else {
          const isReplaced = args.options.overwrite === true;
          // Without `r+`, one that is opened only after a failure would come back.
          await makeWholeFile(file, isReplaced, (path) => write(createWriteStream(path, { flags: 'r+' })));
        }
      } finally {
        progress?.end();
      }
      return count;
    });
    writeLine(stderr, `${counted(books, 'book')} exported${file === '-' ? '' : ` to ${file}`}.`);
    return 0;
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    if ((error as NodeJS.ErrnoException).code === 'EPIPE') return 1; // the reader has closed the pipe
    throw new OperatorError(`Nothing was exported: ${reasonOf(error)}.`);
  } finally {
    await store.close();
  }
}

async function* watched(
  batches: AsyncIterable<readonly Book[]>,
  total: number,
  progress: Progress | undefined,
): AsyncGenerator<readonly Book[], void, void> {
  let done = 0;
  for await (const books of batches) {
    done += books.length;
    progress?.at('books', done, total);
    yield books;
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
  return file === '-' ? 'csv' : /\.(csv|jsonl?|xlsx)$/i.exec(file)?.[1]?.toLowerCase();
}
