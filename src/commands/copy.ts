// Owns: `copy`: all books of one store into another one, with their ids.

import { createHash } from 'node:crypto';
import { asJson, parseBooks } from '../books/line.ts';
import { reasonOf } from '../error-words.ts';
import { limitHeapGrowth } from '../import/memory.ts';
import { OperatorError } from '../operator-error.ts';
import { type BulkStore, UnknownOutcome } from '../stores/bulk.ts';
import { describeStore, readDbUrl, type StoreAt } from '../stores/open.ts';
import { counted } from '../terminal/counted.ts';
import { writeLine } from '../terminal/printable.ts';
import { Progress } from '../terminal/progress.ts';
import { type Arguments, type CommandContext, UsageError } from './command.ts';

export const HELP = `Usage: book-catalogue copy FROM TO [--overwrite]

Copies a consistent snapshot of all books of one store, with their ids, to another store. FROM and TO have the form of
DB_URL:
sqlite:data/books.db, postgres://user@db.example.org/library (the password may come from PGPASSWORD or ~/.pgpass).
Before the copy is committed, it is compared with the books that were read: all of them are copied, or nothing. TO must have no books.
FROM may be read-only. If its role may not read the sequence books_id_seq, TO may give the ids of removed books again.

  --overwrite  removes the books of TO first
`;

export const OPTIONS = { overwrite: { type: 'boolean' } } as const;
export const OPERANDS = ['FROM', 'TO'] as const;

export async function run(context: CommandContext, { operands, options }: Arguments): Promise<number> {
  const [from = '', to = ''] = operands;
  limitHeapGrowth();
  const [fromAt, toAt] = [await storeAt(from, 'FROM'), await storeAt(to, 'TO')];
  const areOneFile = fromAt.file !== undefined && fromAt.file === toAt.file;
  if (areOneFile || describeStore(from) === describeStore(to))
    throw new UsageError('FROM and TO are the same store.');

  const source = await fromAt.openBulk('read', context.times);
  if (source === undefined) throw new OperatorError(`FROM: there is no catalogue at ${describeStore(from)}.`);
  let target: BulkStore | undefined;
  try {
    target = await toAt.openBulk('write', context.times);
    const { books, checksum } = await copy(source, target, options.overwrite === true, context);
    const copied = `${counted(books, 'book')} copied to ${describeStore(to)}, verified (sha256 ${checksum}).`;
    writeLine(context.stdout, copied);
    return 0;
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    if (error instanceof UnknownOutcome) {
      throw new OperatorError(
        `The connection or the disk failed while the copy was committed: ${error.message}. TO has all books of FROM, or is unchanged: look there.`,
      );
    }
    throw new OperatorError(`Nothing was copied: ${reasonOf(error)}.`);
  } finally {
    for (const store of [source, target]) await store?.close().catch(() => {}); // after a failure, closing may fail as well
  }
}

/** @param store within a snapshot or a transaction. */
async function checksumOf(store: BulkStore): Promise<string> {
  const checksum = createHash('sha256');
  for await (const chunk of store.text()) checksum.update(chunk);
  return checksum.digest('hex');
}

/** @throws UsageError if the argument is no URL of a store. */
async function storeAt(url: string, name: string): Promise<StoreAt> {
  try {
    return await readDbUrl(url, name);
  } catch (error) {
    throw error instanceof OperatorError ? new UsageError(error.message) : error;
  }
}

/** @throws Error; the target is then unchanged, except perhaps after an UnknownOutcome. */
async function copy(
  source: BulkStore,
  target: BulkStore,
  overwrite: boolean,
  context: CommandContext,
): Promise<{ books: number; checksum: string }> {
  return source.inSnapshot(() =>
    target.inTransaction(async () => {
      const there = await target.count();
      if (there > 0 && !overwrite) {
        throw new OperatorError(`TO has ${counted(there, 'book')} already: --overwrite removes them.`);
      }
      await target.removeAll(); // also its keys, if it has no books
      const total = await source.count();
      const progress = new Progress(context);
      try {
        const read = createHash('sha256');
        let books = 0;
        async function* watched() {
          for await (const batch of parseBooks(source.text(), '\n')) {
            context.signal.throwIfAborted();
            yield batch;
            read.update(batch.map(asJson).join(''));
            books += batch.length;
            progress.at('books', books, total);
          }
        }
        await target.insertWithIds(watched());
        await target.reserveIdsThrough(await source.lastId());
        const checksum = read.digest('hex');
        if ((await target.count()) !== books || (await checksumOf(target)) !== checksum) {
          throw new Error('TO differs from the books that were read');
        }
        await target.assertNewest();
        return { books, checksum };
      } finally {
        progress.end();
      }
    }),
  );
}
