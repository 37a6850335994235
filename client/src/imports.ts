// Owns: importing a file, and the report on its rows (rules M1 to M6).

import type { CallOptions, Connection, Work } from './connection.ts';
import { CatalogueError } from './errors.ts';
import { type Answer, type Body, dataOf, type Request } from './request.ts';

/** Milliseconds between two requests for the report of an import: doubled each time, up to a longest. */
const FIRST_LOOK = 250;
const LONGEST_LOOK = 2000;

/** CSV, a JSON array or JSON Lines. A stream can be sent once, so its request is not retried. */
export type ImportedFile =
  | string
  | Uint8Array
  | Blob
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array>;

/** How a file is read, and which of its rows become books. The service finds the options that are left out. */
export interface ImportOptions {
  /** Whether the file is only checked: nothing is stored, and the report says which rows would become books. */
  readonly dryRun?: boolean | undefined;
  /** Rows that equal a book or an earlier row: `skip` by default. */
  readonly onDuplicate?: 'skip' | 'add' | undefined;
  /**
   * Rows with the id of a book with other values, without its present tag: they are refused by default, change that book, or are added
   * under another id.
   */
  readonly onConflict?: 'refuse' | 'change' | 'add' | undefined;
  /** Rows without a title or with an unlikely year: `add` by default. */
  readonly doubtful?: 'add' | 'skip' | undefined;
  /** Whether the ids of the file count: by default, those of an export do. */
  readonly ids?: 'keep' | 'new' | undefined;
  /** The columns, by their names; '' for none. */
  readonly title?: string | undefined;
  readonly author?: string | undefined;
  readonly year?: string | undefined;
  readonly format?: 'csv' | 'json' | 'jsonl' | 'xlsx' | undefined;
  /** The sheet of a workbook, if several have books. */
  readonly sheet?: string | undefined;
  readonly encoding?: string | undefined;
  readonly delimiter?: string | undefined;
  readonly header?: 'yes' | 'no' | undefined;
  readonly fromLine?: number | undefined;
  /** Texts in place of wrong ones, by the `line` of their rows. */
  readonly corrections?: Readonly<Record<number, string>> | undefined;
}

export interface ContinueOptions extends ImportOptions {
  /** Whether the call ends with the import. Without it, it ends after a few seconds with the report so far. */
  readonly wait?: boolean | undefined;
  /** Milliseconds in place of the timeout of all calls: a large file takes long to send. */
  readonly timeout?: number | undefined;
}

export interface ImportFileOptions extends ContinueOptions {
  /** The name of the file, for people; a `File` has its own. */
  readonly name?: string | undefined;
  /**
   * 1 to 255 visible ASCII characters. Equal calls with one key store a file once, within 24 hours. By default, each call
   * that stores has its own random key.
   */
  readonly idempotencyKey?: string | undefined;
}

/** An import, without its rows. */
export interface ImportInShort {
  /** Its number, with which it can be taken back. */
  readonly import: number;
  /** One that is `stopped` is completed by the same call again. */
  readonly state: 'open' | 'checked' | 'stopped' | 'stored' | 'undone';
  /** How many are stored so far. */
  readonly books: number;
  /** The name of its file. */
  readonly name: string | null;
  readonly dryRun: boolean;
  readonly phase: 'waiting' | 'reading' | 'comparing' | 'storing' | 'done';
  /** Bytes of the file that were read, of all. */
  readonly read: number;
  readonly size: number;
  /** Rows: `rows` is the sum of the next six, once all are compared. */
  readonly figures: {
    readonly rows: number;
    readonly new: number;
    readonly here: number;
    readonly repeated: number;
    readonly doubtful: number;
    readonly changed: number;
    readonly refused: number;
    /** Of the refused rows, those whose books have been changed or removed since; null if the service keeps no history. */
    readonly changedSince: number | null;
    /** Of the refused rows, those that `onConflict` is about. */
    readonly conflicts: number;
    /** Books that are not in the file, and stay; null if its ids do not count. */
    readonly absent: number | null;
    readonly short: number;
    readonly newYears: number;
    readonly lacking: Readonly<Record<'title' | 'author' | 'year', number>>;
  };
  /** Why the file was not read to its end, or the import stopped. */
  readonly fault: {
    readonly code: string;
    readonly message: string;
    readonly names?: readonly string[];
    readonly first?: readonly (readonly string[])[];
    /** Of the names, if they may be a record. */
    readonly line?: number;
  } | null;
}

export interface ImportReport extends ImportInShort {
  /** As they were sent, with the service's names, or found in a check. */
  readonly options: Readonly<Record<string, string>>;
  /** How the file was understood; null if no books can be found in it. */
  readonly file: {
    readonly format: string;
    readonly encoding: string;
    readonly delimiter: string | null;
    /** Of a workbook: the sheet that is read, and all that are shown. */
    readonly sheet: string | null;
    readonly sheets: readonly string[];
    readonly header: boolean;
    readonly ids: 'keep' | 'new';
    readonly above: string;
    readonly names: readonly string[];
    readonly first: readonly (readonly string[])[];
    readonly columns: Readonly<Record<'title' | 'author' | 'year', string | null>>;
    readonly otherYears: readonly string[];
  } | null;
  /** Up to 100 rows of each kind; `here` also has those that are repeated. */
  readonly rows: Readonly<Record<'new' | 'here' | 'doubtful', readonly ImportedRow[]>> & {
    readonly changed: readonly ChangedRow[];
  };
  /** Up to 1,000 rows. */
  readonly refused: readonly RefusedRow[];
  /** A file of refused rows: its name, and the texts before, between and after their records. */
  readonly rejects: {
    readonly name: string;
    readonly before: string;
    readonly between: string;
    readonly after: string;
  } | null;
}

export interface ImportedRow {
  readonly line: number;
  readonly title: string;
  readonly author: string;
  readonly year: number;
  /** A code, such as `no-title`. */
  readonly doubt: string | null;
}

/** A row that changes a book. */
export interface ChangedRow extends ImportedRow {
  readonly id: number;
  /** What the book has now, in the fields that change. */
  readonly before: { readonly title?: string; readonly author?: string; readonly year?: number };
}

export interface RefusedRow {
  readonly line: number;
  readonly title: string | null;
  /** The column of the wrong text; null if the whole record is wrong. */
  readonly column: string | null;
  /** The text that a correction replaces. */
  readonly text: string | null;
  readonly reason: { readonly code: string; readonly values: readonly (string | number)[] };
  /** A text in its place. */
  readonly proposal: string | null;
  /** Its record in a file of refused rows; null if it is too long. */
  readonly record: string | null;
}

/** No books can be found in a file. Its status is 400. */
export class InvalidFile extends CatalogueError {
  override readonly name = 'InvalidFile';
  /** Its `fault` says why. `continueImport` can try again with other options. */
  readonly report: ImportReport;

  constructor(
    message: string,
    report: ImportReport,
    answer: ConstructorParameters<typeof CatalogueError>[1],
  ) {
    super(message, answer);
    this.report = report;
  }
}

/**
 * The request that imports a file, or continues with one that the service has.
 * @param newKey for a file that is stored.
 */
export function fileRequest(
  url: URL,
  options: ImportFileOptions,
  file?: ImportedFile,
  newKey?: () => string,
): Request {
  const { dryRun, idempotencyKey = dryRun ? undefined : newKey?.() } = options;
  const { name = file instanceof Blob && 'name' in file ? String(file.name) : undefined } = options;
  url.search = queryOf({ ...options, name });
  return {
    ...{ method: 'POST', url },
    ...(file !== undefined && { body: bodyOf(file) }),
    ...(idempotencyKey !== undefined && { headers: { 'idempotency-key': idempotencyKey } }),
    ...(!dryRun && { isChange: true }),
  };
}

function queryOf({ corrections, ...options }: ImportFileOptions): string {
  const { name, dryRun, onDuplicate, onConflict, doubtful, ids, title, author, year } = options;
  const { format, sheet, encoding, delimiter, header, fromLine } = options;
  const parameters = Object.entries({
    ...{ name, 'dry-run': dryRun, 'on-duplicate': onDuplicate, 'on-conflict': onConflict },
    ...{ doubtful, ids, title, author, year },
    ...{ format, sheet, encoding, delimiter, header, 'from-line': fromLine },
    corrections: corrections && JSON.stringify(corrections),
  });
  const sent = parameters.filter(([, value]) => value !== undefined);
  return new URLSearchParams(sent.map(([key, value]) => [key, String(value)])).toString();
}

function bodyOf(file: ImportedFile): Body {
  if (typeof file === 'string') return new TextEncoder().encode(file);
  if (file instanceof Uint8Array || file instanceof Blob || file instanceof ReadableStream) return file;
  const pieces = file[Symbol.asyncIterator]();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await pieces.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await pieces.return?.();
    },
  });
}

/** @throws CatalogueError when the answer is no report of an import; InvalidFile when there are no books in its file. */
export function reportOf(answer: Answer): ImportReport {
  if (answer.message === 'Invalid file' && answer.data != null)
    throw new InvalidFile(answer.message, answer.data as ImportReport, answer);
  return dataOf(answer, answer.status === 202 ? 202 : 200) as ImportReport;
}

/** The report in an answer, or at the end of the import if the caller waits for it. @throws as `reportOf`. */
export async function endedImport(
  connection: Connection,
  answer: Answer,
  { wait, ...options }: ContinueOptions & CallOptions,
): Promise<ImportReport> {
  let report = reportOf(answer);
  for (let pause = FIRST_LOOK; wait && report.state === 'open'; pause = Math.min(2 * pause, LONGEST_LOOK)) {
    const request = { method: 'GET', url: connection.at(`import/${report.import}`) } as const;
    const look: Work<Answer> = async (send, deadline) => {
      await deadline.pause(pause);
      return send(request);
    };
    report = endOf(await connection.within({ ...options, timeout: undefined }, look, pause / 1000));
  }
  return report;
}

/** As the answer to the file itself would be. @throws as `reportOf`. */
function endOf(answer: Answer): ImportReport {
  const report = reportOf(answer);
  if (report.state !== 'checked' || report.file !== null) return report;
  throw new InvalidFile('Invalid file', report, { ...answer, status: 400 });
}
