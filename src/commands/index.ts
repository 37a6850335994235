// Owns: `index`: builds or removes the search index.

import { readSetting } from '../config.ts';
import { reasonOf } from '../error-words.ts';
import { OperatorError } from '../operator-error.ts';
import type { BookIndex } from '../stores/book-index.ts';
import { describeStore, readDbUrl } from '../stores/open.ts';
import { counted } from '../terminal/counted.ts';
import { Progress } from '../terminal/progress.ts';
import { TIMES } from '../times.ts';
import { type Arguments, type CommandContext, UsageError } from './command.ts';

export const HELP = `Usage: book-catalogue index [--rebuild | --remove]

Brings the search index up to date, and creates it if it is missing. A service does the same in the background, but
answers searches only after its first index is complete. For a large catalogue, this command is faster: run it before
the service starts. If it is interrupted, the next run resumes where it stopped. On SQLite, other programs cannot write
at the end of the first index, for about 2 seconds for each million books.

  --rebuild  builds the index again
  --remove   removes the index and its triggers. Set FIND=off first, or the service creates the index again
`;

export const OPTIONS = {
  rebuild: { type: 'boolean' },
  remove: { type: 'boolean' },
} as const;

export async function run(context: CommandContext, { options }: Arguments): Promise<number> {
  const { env, stdout, stop } = context;
  if (options.rebuild && options.remove)
    throw new UsageError('Only one of --rebuild and --remove is possible.');
  const url = readSetting('dbUrl', env);
  if (!readSetting('find', env) && !options.remove)
    throw new OperatorError('FIND is off: there is no index to maintain.');
  const at = await readDbUrl(url);
  const index = await at.openIndex(TIMES);
  if (index === undefined) throw new OperatorError(`DB_URL: there is no catalogue at ${describeStore(url)}.`);

  let isStopped = false;
  stop.then(() => {
    isStopped = true;
  });
  const assertRunning = () => {
    if (isStopped) throw new OperatorError('Stopped. The next run resumes here.');
  };
  try {
    if (options.remove) {
      stdout.write((await index.remove()) ? 'The index is removed.\n' : 'There is no index.\n');
      return 0;
    }
    if (options.rebuild) await index.rebuild();
    else await index.create();
    const books = await bringUpToDate(index, context, assertRunning);
    stdout.write(`${counted(books, 'book is', 'books are')} indexed.\n`);
    return 0;
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(`The index of ${describeStore(url)} failed: ${reasonOf(error)}.`);
  } finally {
    await index.close();
  }
}

/** @returns the number of books. */
async function bringUpToDate(
  index: BookIndex,
  context: CommandContext,
  assertRunning: () => void,
): Promise<number> {
  const books = await index.countBooks();
  const progress = new Progress(context, 'books', books);
  try {
    let remaining: number;
    do {
      assertRunning();
      remaining = await index.advance();
      progress.at(Math.max(0, books - remaining));
    } while (remaining > 0);
  } finally {
    progress.end();
  }
  return index.countBooks();
}
