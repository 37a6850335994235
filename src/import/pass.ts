// Owns: the course of an import: each row of a file is read once, put aside in the store, compared with its books, and stored if it
// is new; and the figures of an import, however it ends.

import { correct } from '../files/correcting.ts';
import type { ReadBatch, ReadBook, Reading, RefusedRecord } from '../files/format.ts';
import { because } from '../files/reasons.ts';
import { shorten } from '../files/rows.ts';
import { UnknownOutcome } from '../stores/bulk.ts';
import type { Comparison, ImportWork, Load } from '../stores/load.ts';
import type { Figures, Summary } from './summary.ts';

export interface Outcome {
  readonly figures: Figures;
  /** Undefined if the rows were not compared with the store. */
  readonly comparison: Comparison | undefined;
  /** How many books were stored, and stay. */
  readonly stored: number;
  /** Why the file could not be read to its end. All rows before that point count. */
  readonly inputError: unknown;
  /** Why the import is not complete. After an UnknownOutcome, more books may be stored. */
  readonly failure: unknown;
}

export interface ImportParts {
  readonly reading: Reading;
  readonly load: Load;
  /** Undefined in a dry run. */
  readonly work:
    | (Omit<ImportWork, 'fingerprint'> & {
        /** Called once the file has been read. */
        fingerprint(): string;
        /** @throws Error if stored books may be lost, since another host takes the writes by now. */
        assertNewest(): Promise<void>;
      })
    | undefined;
  /** Gets what is found. */
  readonly summary: Summary;
  /** Called with rejected records, and with how far the file was read: bytes and rows. The next call follows when it has resolved. */
  onRead?(refused: readonly RefusedRecord[], position: number, rows: number): Promise<void>;
  /** Texts in place of the wrong ones, by the lines of their records. */
  readonly corrections: Readonly<Record<string, string>>;
  /** Ends the work at a point where nothing is half done. */
  readonly signal: AbortSignal;
}

export async function importBooks({
  reading,
  load,
  work,
  summary,
  onRead,
  signal,
  corrections,
}: ImportParts): Promise<Outcome> {
  let figures: Figures = { rows: 0, refused: 0, short: 0, newYears: 0 };
  let position = 0;
  let comparison: Comparison | undefined;
  let stored = 0;
  let inputError: unknown;
  let failure: unknown;
  const found = async (refused: readonly RefusedRecord[]) => {
    summary.read(refused, position);
    await onRead?.(refused, position, figures.rows);
  };
  try {
    const batches = reading.batches[Symbol.asyncIterator]();
    for (;;) {
      const { value: batch } = await batches.next().catch((error: unknown) => {
        signal.throwIfAborted();
        inputError = error;
        summary.broken(error);
        return { value: undefined };
      });
      if (batch === undefined) break;
      signal.throwIfAborted();
      const { books, refused } = await corrected(batch, reading, corrections);
      await load.add(books);
      figures = withBatch(figures, books, refused.length);
      ({ position } = batch);
      await found(refused);
    }
    summary.comparing();
    comparison = await load.compare(signal);
    for await (const rows of load.taken()) {
      const refused = rows.map(({ line, id, title, original }): RefusedRecord => {
        return {
          line,
          column: 'id',
          value: `${id}`,
          reason: because('id-taken', shorten(title)),
          original,
          takesReason: true,
        };
      });
      figures = { ...figures, refused: figures.refused + refused.length };
      await found(refused);
    }
    await summary.compared(figures, comparison, load);
    if (work !== undefined && (inputError === undefined || figures.rows > 0)) {
      const whole = { ...work, fingerprint: work.fingerprint() };
      await load.store(whole, signal, (_, books) => {
        stored = books;
        summary.stored(books);
      });
    }
  } catch (error) {
    failure = error;
  }
  try {
    if (stored > 0) await work?.assertNewest();
  } catch (error) {
    stored = 0;
    failure = new UnknownOutcome((error as Error).message);
  }
  return { figures, comparison, stored, inputError, failure };
}

function withBatch(figures: Figures, books: readonly ReadBook[], refused: number): Figures {
  return {
    rows: figures.rows + books.length + refused,
    refused: figures.refused + refused,
    short: figures.short + books.filter(({ isShort }) => isShort).length,
    newYears: figures.newYears + books.filter(({ isNewYear }) => isNewYear).length,
  };
}

/** Reads the records again that a person has corrected. */
async function corrected(
  { books, refused }: ReadBatch,
  reading: Reading,
  corrections: ImportParts['corrections'],
): Promise<Pick<ReadBatch, 'books' | 'refused'>> {
  const isNamed = ({ line }: { readonly line: number }) => corrections[line] !== undefined;
  if (Object.keys(corrections).length === 0) return { books, refused };
  const wrong: RefusedRecord[] = [];
  const right = books.filter((book) => !isNamed(book) || book.original === undefined);
  // A book whose id is taken is refused later, by the store: another id takes its place here.
  const taken = books
    .filter((book) => !right.includes(book))
    .map((book): RefusedRecord => {
      const { line, original = '' } = book;
      return { line, column: 'id', value: '', reason: because('id-taken', ''), original, takesReason: true };
    });
  for (const record of [...taken, ...refused]) {
    const text = corrections[record.line];
    const read = text === undefined ? record : await correct(record, text, reading);
    if ('reason' in read) wrong.push(read);
    else right.push(read);
  }
  return { books: right.sort((one, other) => one.line - other.line), refused: wrong };
}
