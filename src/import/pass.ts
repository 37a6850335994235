// Owns: the course of an import: each row of a file is read once, put aside in the store, compared with its books, and stored if it
// is new or changes a book; and the figures of an import, however it ends.

import { FIELD_NAMES } from '../books/book.ts';
import type { Columns } from '../files/columns.ts';
import { correct } from '../files/correcting.ts';
import type { ReadBatch, ReadBook, Reading, RefusedRecord } from '../files/format.ts';
import { because, type Reason } from '../files/reasons.ts';
import { shorten } from '../files/rows.ts';
import { UnknownOutcome } from '../stores/bulk.ts';
import type { Comparison, ImportWork, LeftRow, Load, LoadRules, Made, WhyLeft } from '../stores/load.ts';
import type { ImportOptions } from './options.ts';
import type { Figures, Summary } from './summary.ts';

export interface Outcome {
  readonly figures: Figures;
  /** Undefined if the rows were not compared with the store. */
  readonly comparison: Comparison | undefined;
  /** How many books were stored, and stay: also before an interruption, but for `made`. */
  readonly stored: number;
  readonly made: Made;
  /** Why the file could not be read to its end. All rows before that point count. */
  readonly inputError: unknown;
  /** Why the import is not complete. After an UnknownOutcome, more books may be stored. */
  readonly failure: unknown;
}

/** @param hasHistory whether the log says which tags books had. */
export function rulesOf({ columns }: Reading, options: ImportOptions, hasHistory: boolean): LoadRules {
  const { skipsEqual, skipsDoubtful, onConflict } = options;
  const fields = FIELD_NAMES.filter((name) => columns[name] !== undefined);
  return { fields, skipsEqual, skipsDoubtful, onConflict, hasHistory };
}

export interface ImportParts {
  readonly reading: Reading;
  readonly load: Load;
  /** Undefined in a dry run. */
  readonly work:
    | (Omit<ImportWork, 'fingerprint' | 'report'> & {
        /** Called once the file has been read. */
        fingerprint(): string;
        /** @param isDone whether all is stored. */
        report(isDone: boolean): unknown;
        /** @throws Error if stored books may be lost, since another host takes the writes by now. */
        assertNewest(): Promise<void>;
      })
    | undefined;
  /** Gets what is found. */
  readonly summary: Summary;
  /** Called with rejected records, and with how far the file was read: bytes and rows. The next call follows when it has resolved. */
  onRead?(refused: readonly RefusedRecord[], position: number, rows: number): Promise<void>;
  /** Called before anything is stored. */
  onCompared?(): void;
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
  onCompared,
  signal,
  corrections,
}: ImportParts): Promise<Outcome> {
  let figures: Figures = { rows: 0, refused: 0, short: 0, newYears: 0 };
  let position = 0;
  let comparison: Comparison | undefined;
  let stored = 0;
  let made: Made = { added: 0, changed: 0 };
  let inputError: unknown;
  let failure: unknown;
  const found = async (refused: readonly RefusedRecord[]) => {
    summary.read(refused, position);
    await onRead?.(refused, position, figures.rows);
  };
  const leave = async (why: readonly WhyLeft[]) => {
    for await (const rows of load.left(why)) {
      figures = { ...figures, refused: figures.refused + rows.length };
      await found(rows.map((row) => refusedOf(row, reading.columns)));
    }
  };
  const leaveMeanwhile = async () => {
    const { refused } = figures;
    await leave(['changedMeanwhile']);
    if (comparison === undefined || figures.refused === refused) return;
    comparison = withChanged(comparison, figures.refused - refused);
    await summary.compared(figures, comparison, load);
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
    await leave(['changedSince', 'conflict', 'lacking', 'twice']);
    await summary.compared(figures, comparison, load);
    onCompared?.();
    if (work !== undefined && (inputError === undefined || figures.rows > 0)) {
      const report = async (isDone: boolean) => {
        if (isDone) await leaveMeanwhile();
        return work.report(isDone);
      };
      const whole = { ...work, report, fingerprint: work.fingerprint() };
      made = await load.store(whole, signal, (_, books) => {
        stored = books;
        summary.stored(books);
      });
      // Another import may have made some of the changes meanwhile.
      const isHere = comparison.changed - made.changed;
      comparison = { ...comparison, changed: made.changed, here: comparison.here + isHere };
      summary.changed(comparison);
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
  return { figures, comparison, stored, made, inputError, failure };
}

function withBatch(figures: Figures, books: readonly ReadBook[], refused: number): Figures {
  return {
    rows: figures.rows + books.length + refused,
    refused: figures.refused + refused,
    short: figures.short + books.filter(({ isShort }) => isShort).length,
    newYears: figures.newYears + books.filter(({ isNewYear }) => isNewYear).length,
  };
}

function withChanged(comparison: Comparison, meanwhile: number): Comparison {
  const { changed, changedSince } = comparison;
  const since = changedSince === undefined ? undefined : changedSince + meanwhile;
  return { ...comparison, changed: changed - meanwhile, changedSince: since };
}

/** A row with an id that the store has left. A correction replaces its tag if it has one, or else its id. */
function refusedOf(row: LeftRow, columns: Columns): RefusedRecord {
  const { line, id, rowTag, original, tag } = row;
  const { id: idColumn, etag } = columns;
  const column = rowTag === null ? undefined : rowTag === '' ? idColumn : etag;
  const value = rowTag === '' ? `${id}` : (rowTag ?? '');
  const proposal = rowTag === '' ? null : tag;
  return { line, column, value, reason: reasonFor(row), original, takesReason: true, proposal };
}

function reasonFor({ why, id, rowTag, tag, here, own }: LeftRow): Reason {
  const both = FIELD_NAMES.flatMap((name) => {
    const [value, other] = [here[name], own[name]];
    return value === undefined || other === undefined ? [] : [name, short(value), short(other)];
  });
  if (why === 'twice') return because('id-twice', ...both);
  if (why === 'changedMeanwhile') return because('changed-meanwhile');
  if (why === 'lacking') return because('value-missing', id);
  if (why === 'changedSince')
    return tag === null ? because('removed-since', id) : because('changed-since', id, tag, ...both);
  return rowTag === '' ? because('id-taken', ...both) : because('etag-unknown', id, tag ?? '', ...both);
}

const short = (value: string | number) => (typeof value === 'string' ? shorten(value) : value);

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
  // Rows with ids are refused later, by the store.
  const left = books
    .filter((book) => !right.includes(book))
    .map(({ line, id = 0, tag, original = '' }) => {
      const row = { line, id, rowTag: tag ?? null, original, tag: null, here: {}, own: {} };
      return refusedOf({ ...row, why: 'conflict' }, reading.columns);
    });
  for (const record of [...left, ...refused]) {
    const text = corrections[record.line];
    const read = text === undefined ? record : await correct(record, text, reading);
    if ('reason' in read) wrong.push(read);
    else right.push(read);
  }
  return { books: right.sort((one, other) => one.line - other.line), refused: wrong };
}
