// Owns: the way of a file's books into a store, in small batches, of which many become durable together: small ones for
// the sake of memory, whose garbage is then collected before it spreads; together for the sake of the disk. Tells how
// far it came, whatever ended it.

import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
import { type BookFields, FIELD_NAMES } from '../books/book.ts';
import type { Reading } from '../files/reading.ts';
import type { ReadBatch, RefusedRecord } from '../files/rows.ts';
import type { Intake, Target } from './intake.ts';

/** Batches of one transaction. */
const GROUP_BATCHES = 40;

/** Milliseconds to wait for more of the file with a transaction open, in which nobody else may be able to write. */
const PATIENCE = 20;

/** How far it is. What is stored is durable, or would be. */
export class Tally {
  read = 0;
  /** Of the records that were read. */
  refused = 0;
  /** The line of the last book. */
  line = 0;
  books = 0;
  /** Books that lack a field, by its name. */
  lacking = Object.fromEntries(FIELD_NAMES.map((name) => [name, 0])) as Record<keyof BookFields, number>;
  /** Of the refused ones, those whose ids belong to other books. */
  withTakenId = 0;

  store(books: readonly BookFields[]): void {
    this.books += books.length;
    for (const book of books) {
      for (const name of FIELD_NAMES) if (!book[name]) this.lacking[name] += 1;
    }
  }

  /** A copy to go on with. */
  copy(): Tally {
    return Object.assign(new Tally(), this, { lacking: { ...this.lacking } });
  }
}

export interface Outcome {
  readonly tally: Tally;
  /** Why the file could not be read to its end. What comes before that is done. */
  readonly fault: unknown;
  /** Why not all is done that was read. */
  readonly failure: unknown;
}

/**
 * @param size bytes of the file, if known.
 * @param refuse is told of refused records, and how to print a line; resolves when it can take more.
 */
export async function importBooks(
  reading: Reading,
  size: number | undefined,
  intake: Intake,
  target: Target,
  refuse: (records: readonly RefusedRecord[], print: (line: string) => void) => Promise<void>,
): Promise<Outcome> {
  const { store, isDryRun, signal, startProgress } = target;
  let done = new Tally();
  let fault: unknown;
  let failure: unknown;

  /** What work counts becomes true when all of it is durable. */
  const together = async (work: (tally: Tally) => Promise<void>) => {
    const tally = done.copy();
    if (store === undefined || isDryRun) await work(tally);
    else await store.inTransaction(() => work(tally));
    done = tally;
    signal.throwIfAborted();
  };

  const read = async () => {
    const progress = startProgress('rows', size);
    const take = async ({ books, refused, position }: ReadBatch, tally: Tally) => {
      const taken = await intake.take(books);
      tally.store(taken.stored);
      const refusals = [...refused, ...taken.refused].sort((one, other) => one.line - other.line);
      tally.read += books.length + refused.length;
      tally.refused += refusals.length;
      tally.withTakenId += taken.refused.length;
      tally.line = books.at(-1)?.line ?? tally.line;
      await refuse(refusals, (text) => progress.line(text));
      progress.at(position, tally.read);
    };

    const batches = reading.batches[Symbol.asyncIterator]();
    const readNext = async () => {
      const next = await batches.next().catch((error: unknown) => {
        fault = error;
      });
      return next?.value;
    };
    let next = readNext();
    try {
      for (let batch = await next; batch !== undefined; ) {
        await together(async (tally) => {
          for (let count = 1; batch !== undefined; count += 1) {
            const taking = take(batch, tally);
            next = readNext();
            await taking;
            if (count === GROUP_BATCHES || signal.aborted || !(await isAtHand(next))) break;
            batch = await next;
          }
        });
        batch = await next;
      }
    } finally {
      progress.end();
    }
  };

  const storeRest = async () => {
    const { count, batches } = await intake.rest();
    const progress = startProgress('books stored', count);
    try {
      let stored = 0;
      for (const books of batches) {
        await together(async (tally) => {
          if (!isDryRun) await store?.insert(books);
          tally.store(books);
        });
        stored += books.length;
        progress.at(stored);
        await turn();
      }
    } finally {
      progress.end();
    }
  };

  try {
    await intake.begin();
    await read();
    await storeRest();
  } catch (error) {
    failure = error;
  }
  return { tally: done, fault, failure };
}

async function isAtHand(next: Promise<unknown>): Promise<boolean> {
  return Promise.race([next.then(() => true), pause(PATIENCE, false, { ref: false })]);
}
