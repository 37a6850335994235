// Owns: the report of an import by request: how its file was understood, its figures, and some of its rows, as codes and values. It is
// put together where the file is read.

import { FIELD_NAMES } from '../books/book.ts';
import { NoTitleColumn } from '../files/columns.ts';
import { asRefused, correctable, refusedName } from '../files/correcting.ts';
import { NotText } from '../files/csv-header.ts';
import { NotUtf8 } from '../files/decoding.ts';
import type { Reading, RefusedRecord } from '../files/format.ts';
import { proposedYear } from '../files/proposals.ts';
import type { Reason } from '../files/reasons.ts';
import { shorten } from '../files/rows.ts';
import { InvalidOption, OperatorError } from '../operator-error.ts';
import type { ChangedSample, Comparison, Load, Sample } from '../stores/load.ts';
import { type GivenOptions, readOptions } from './options.ts';

/** Rows of each kind that a report has; and refused ones, as long as their records have so many characters together. */
const SHOWN_ROWS = 100;
const SHOWN_REFUSED = 1000;
const SHOWN_RECORDS = 512 * 1024;

/** Characters of a longer record that no report has. */
const LONGEST_RECORD = 64 * 1024;

/** Columns, and characters of their names: no table of books is wider. */
const SHOWN_COLUMNS = 200;
const LONGEST_NAME = 1000;

/** Characters. A longer text is not to be corrected in a field. */
const LONGEST_CORRECTABLE = 2000;

export interface RefusedRow {
  readonly line: number;
  /** The title in its record, if it can be told. */
  readonly title: string | null;
  /** The column whose value is wrong; null if the whole record is. */
  readonly column: string | null;
  /** The value, or the record, that a correction replaces; null if it is too long. */
  readonly text: string | null;
  readonly reason: Reason;
  /** A text in its place. */
  readonly proposal: string | null;
  /** The record in a file of refused rows; null if it is too long. */
  readonly record: string | null;
}

/** The figures of a file. */
export interface Figures {
  readonly rows: number;
  /** How many of them are no books that may be stored. */
  readonly refused: number;
  /** Rows that end before a column that is used. */
  readonly short: number;
  /** Books with a date on 31 December in UTC that is 1 January elsewhere, so that the year is the new one. */
  readonly newYears: number;
}

export interface ImportReport {
  /** The name of the file. */
  readonly name: string | null;
  readonly dryRun: boolean;
  /** As they were given, or found in a check. */
  readonly options: GivenOptions;
  readonly phase: 'waiting' | 'reading' | 'comparing' | 'storing' | 'done';
  /** Bytes that were read, of all. */
  readonly read: number;
  readonly size: number;
  /** Null if the file cannot be understood. */
  readonly file: {
    readonly format: string;
    readonly encoding: string;
    readonly delimiter: string | null;
    /** Of a workbook: the sheet that is read, and all that are shown. */
    readonly sheet: string | null;
    readonly sheets: readonly string[];
    readonly header: boolean;
    readonly ids: 'keep' | 'new';
    /** The text above the header, which was left out. */
    readonly above: string;
    readonly names: readonly string[];
    /** The first records, with the beginnings of all their values. */
    readonly first: readonly (readonly string[])[];
    readonly columns: Readonly<Record<'title' | 'author' | 'year', string | null>>;
    readonly otherYears: readonly string[];
  } | null;
  readonly figures: Figures & {
    readonly new: number;
    readonly here: number;
    readonly repeated: number;
    readonly doubtful: number;
    /** Rows that change a book. */
    readonly changed: number;
    /** Of the refused rows, those whose books have been changed or removed since; null if the log does not say. */
    readonly changedSince: number | null;
    /** Of the refused rows, those with the ids of books with other values, without the present tags. */
    readonly conflicts: number;
    /** Books that no row has the id of; null if no row has an id that counts. */
    readonly absent: number | null;
    /** New books that lack a field. */
    readonly lacking: Readonly<Record<string, number>>;
  };
  readonly rows: {
    readonly new: readonly Sample[];
    readonly here: readonly Sample[];
    readonly doubtful: readonly Sample[];
    readonly changed: readonly ChangedSample[];
  };
  readonly refused: readonly RefusedRow[];
  /** What a file of refused rows is called, and what stands before them, between them, and after them. */
  readonly rejects: {
    readonly name: string;
    readonly before: string;
    readonly between: string;
    readonly after: string;
  } | null;
  /** Why the file cannot be read, or only to a line; or why the import stopped. */
  readonly fault: {
    readonly code: 'no-title' | 'not-text' | 'not-utf8' | 'option' | 'unreadable' | 'stopped' | 'store';
    readonly message: string;
    /** If no column is known to be the title: the columns, and the first records; the line of the columns if they may be a record. */
    readonly names?: readonly string[];
    readonly first?: readonly (readonly string[])[];
    readonly line?: number | undefined;
  } | null;
}

const NO_FIGURES: ImportReport['figures'] = {
  ...{ rows: 0, new: 0, here: 0, repeated: 0, doubtful: 0, changed: 0, refused: 0, short: 0, newYears: 0 },
  ...{ changedSince: null, conflicts: 0, absent: null },
  lacking: Object.fromEntries(FIELD_NAMES.map((name) => [name, 0])),
};

/** The report of an import that has not been started. */
export function emptyReport(
  name: string | null,
  dryRun: boolean,
  options: GivenOptions,
  size: number,
): ImportReport {
  return {
    ...{ name, dryRun, options, size, phase: 'waiting', read: 0, file: null, figures: NO_FIGURES },
    ...{ rows: { new: [], here: [], doubtful: [], changed: [] }, refused: [], rejects: null, fault: null },
  };
}

/** Puts the report of one import together. */
export class Summary {
  #report: ImportReport;
  #reading: Reading | undefined;
  readonly #refused: RefusedRow[] = [];
  #characters = 0;
  readonly #onProgress: (report: ImportReport, books: number) => void;

  /**
   * @param report as it begins.
   * @param onProgress is called with how far it is, and how many books are stored.
   */
  constructor(report: ImportReport, onProgress: (report: ImportReport, books: number) => void = () => {}) {
    this.#report = report;
    this.#onProgress = onProgress;
  }

  get report(): ImportReport {
    return this.#report;
  }

  /** @param options with those that were found. */
  understood(reading: Reading, options: GivenOptions): void {
    this.#reading = reading;
    const { format, delimiter, keepsIds, above = '', names, columns, rejects, encoding, first } = reading;
    const { sheet = null, sheets = [] } = reading;
    const { before, between, after } = rejects;
    const { name } = this.#report;
    const shown = (column: string | undefined) => column?.slice(0, LONGEST_NAME) ?? null;
    this.#report = {
      ...this.#report,
      ...{ options, phase: 'reading' },
      rejects:
        before.length > LONGEST_RECORD
          ? null
          : { name: refusedName(name ?? undefined, format), before, between, after },
      file: {
        ...{ format: format.name, encoding, delimiter: delimiter ?? null, sheet, sheets: narrow(sheets) },
        names: narrow(names),
        first: first.map(narrow),
        header: options.header !== 'no',
        ids: keepsIds ? 'keep' : 'new',
        above: shorten(above.trim()),
        columns: { title: shown(columns.title), author: shown(columns.author), year: shown(columns.year) },
        otherYears: narrow(columns.otherYears),
      },
    };
  }

  /** The figures come with the comparison: they add up at any time. */
  read(refused: readonly RefusedRecord[], position: number): void {
    for (const record of refused) this.#add(record);
    this.#report = { ...this.#report, read: position, refused: this.#refused };
    this.#onProgress(this.#report, 0);
  }

  comparing(): void {
    this.#report = { ...this.#report, phase: 'comparing' };
    this.#onProgress(this.#report, 0);
  }

  stored(books: number): void {
    this.#report = { ...this.#report, phase: 'storing' };
    this.#onProgress(this.#report, books);
  }

  async compared(
    figures: Figures,
    { fresh, doubtful, here, repeated, changed, changedSince, conflicts, absent }: Comparison,
    load: Load,
  ): Promise<void> {
    const { skipsDoubtful } = readOptions(this.#report.options);
    const rows = await load.samples(SHOWN_ROWS);
    this.#report = {
      ...this.#report,
      figures: {
        ...{ ...figures, lacking: fresh.lacking, doubtful, here, repeated },
        ...{ changed, conflicts, changedSince: changedSince ?? null, absent: absent ?? null },
        new: skipsDoubtful ? fresh.count : fresh.count - doubtful,
      },
      rows: {
        new: rows.fresh.map(inShort),
        here: rows.here.map(inShort),
        doubtful: rows.doubtful.map(inShort),
        changed: rows.changed.map(({ id, before, ...row }) => ({ ...inShort(row), id, before })),
      },
    };
  }

  /** Once the changes are stored. */
  changed({ changed, here }: Comparison): void {
    this.#report = { ...this.#report, figures: { ...this.#report.figures, changed, here } };
  }

  broken(error: unknown): void {
    this.failed(faultOf(error));
  }

  failed(fault: ImportReport['fault']): void {
    this.#report = { ...this.#report, fault };
  }

  done(): ImportReport {
    this.#report = { ...this.#report, phase: 'done' };
    return this.#report;
  }

  #add(record: RefusedRecord): void {
    const reading = this.#reading as Reading;
    if (this.#refused.length >= SHOWN_REFUSED || this.#characters > SHOWN_RECORDS) return;
    const { line, reason, original } = record;
    const { title, year, otherYears } = reading.columns;
    const { column, text } = correctable(record, reading);
    const isYear = column !== undefined && (column === year || otherYears.includes(column));
    const named = title === undefined || column === undefined ? undefined : reading.valueIn(original, title);
    const whole = asRefused(record, reading);
    const isLong = whole.length > LONGEST_RECORD;
    this.#characters += isLong ? 0 : whole.length;
    this.#refused.push({
      ...{
        line,
        reason,
        column: column === undefined ? null : shorten(column),
        record: isLong ? null : whole,
      },
      title: named === undefined ? null : shorten(named),
      text: text.length > LONGEST_CORRECTABLE ? null : text,
      proposal: record.proposal ?? (isYear ? proposedYear(text)?.toString() : undefined) ?? null,
    });
  }
}

function narrow(names: readonly string[]): readonly string[] {
  return names.slice(0, SHOWN_COLUMNS).map((name) => name.slice(0, LONGEST_NAME));
}

/** Texts of a megabyte have no place in a report. */
function inShort({ line, title, author, year, doubt }: Sample): Sample {
  return { line, title: shorten(title), author: shorten(author), year, doubt };
}

/** Whether no books can be found in a file. */
export function isUnreadable({ file, fault, figures }: ImportReport): boolean {
  return file === null || (fault !== null && !isStopped({ fault }) && figures.rows === 0);
}

/** The fault of an import that a stop has ended. */
export const STOPPED = { code: 'stopped', message: 'The service was stopped.' } as const;

/** Whether an import ended before its end. */
export function isStopped({ fault }: Pick<ImportReport, 'fault'>): boolean {
  return fault?.code === 'stopped' || fault?.code === 'store';
}

/** Why a file cannot be read, for people. */
export function faultOf(error: unknown): NonNullable<ImportReport['fault']> {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof NoTitleColumn)
    return {
      ...{ code: 'no-title', message, line: error.line },
      names: narrow(error.names),
      first: error.first.map(narrow),
    };
  if (error instanceof NotText) return { code: 'not-text', message };
  if (error instanceof NotUtf8) return { code: 'not-utf8', message };
  if (error instanceof InvalidOption) return { code: 'option', message };
  return {
    code: 'unreadable',
    message: error instanceof OperatorError ? message : 'The file cannot be read.',
  };
}
