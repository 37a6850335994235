// Owns: the output of an import. On stderr: how the file is interpreted, each rejected row, and why the import is
// incomplete. On stdout: the result. Its first line, the second one of a dry run, is for scripts:
// `<n> rows read: <n> imported, <n> already there, <n> refused.` After a stop or a failure, the number of rows already
// there is unknown and left out, and only rows that are certainly stored are counted.

import { BOOK_FIELDS, FIELD_NAMES } from '../books/book.ts';
import { keepsIds, list, namesOf, REFUSED } from '../files/columns.ts';
import type { Reading, RefusedRecord } from '../files/format.ts';
import { because, REMARKS, type ReasonCode, sentenceOf } from '../files/reasons.ts';
import { shorten } from '../files/rows.ts';
import { OperatorError } from '../operator-error.ts';
import { UnknownOutcome } from '../stores/bulk.ts';
import type { Made } from '../stores/load.ts';
import { counted } from '../terminal/counted.ts';
import { writeLine } from '../terminal/printable.ts';
import { Progress, type Screen } from '../terminal/progress.ts';
import { untilRead } from '../terminal/until-read.ts';
import type { Outcome } from './pass.ts';
import { type Output, Rejects } from './rejects.ts';
import type { ImportReport } from './summary.ts';

/** Rejected rows that a terminal shows; a pipe gets all of them. */
const SHOWN_REFUSALS = 20;

/** Bytes of messages that may wait for a slow reader before the import also waits for it. */
const MESSAGE_BACKLOG = 1024 * 1024;

/** What the result says of rows with the ids of books, as `REMARKS`. */
const WITH_IDS = [
  [
    'conflicts',
    'row has the id of a book with other values:',
    'rows have the ids of books with other values:',
    '--on-conflict change changes these books, --on-conflict add gives the rows new ids.',
  ],
  ['changedSince', 'row is', 'rows are', 'from before a change or a removal, which stays.'],
  ['absent', 'book stays:', 'books stay:', 'no row that was read has the id.'],
] as const;

const NO_HISTORY =
  'HISTORY is off: books that were changed since the export are unknown, and those that were removed since are imported again.';

export interface OutputOptions {
  /** The name of the file in messages. */
  readonly name: string;
  /** The name of the store in messages. */
  readonly store: string;
  readonly isDryRun: boolean;
  readonly skipsEqual: boolean;
  readonly skipsDoubtful: boolean;
  /** Bytes of the file, if they are known. */
  readonly size: number | undefined;
  /** The path for rejected rows; undefined if they are not kept. */
  readonly rejects: string | undefined;
}

interface Streams extends Screen, Output {
  readonly stderr: Screen['stderr'] & Pick<NodeJS.WriteStream, 'writableLength'>;
}

export class ImportOutput {
  readonly #output: Streams;
  readonly #options: OutputOptions;
  readonly #rejects: Rejects | undefined;
  readonly #progress: Progress;
  readonly #reading: Reading;
  #refused = 0;

  /**
   * Prints how the file is interpreted.
   * @throws OperatorError when no file of rejected rows can be created.
   */
  constructor(output: Streams, reading: Reading, options: OutputOptions) {
    this.#output = output;
    this.#options = options;
    this.#reading = reading;
    this.#warn(`${options.name}: ${describe(reading)}; into ${options.store}`);
    const { names, columns } = reading;
    const unused = names.filter(
      (name) => ![...namesOf(columns), columns.id, columns.etag, REFUSED].includes(name),
    );
    const missing = FIELD_NAMES.filter((field) => columns[field] === undefined).map((field) => `--${field}`);
    if (missing.length === 0 && columns.id !== undefined && !reading.keepsIds)
      this.#warn(
        `${options.name}: the ids are not used; with --ids keep, rows change the books with their ids`,
      );
    if (missing.length > 0 && unused.length > 0)
      this.#warn(`${options.name}: set ${missing.join(' and ')}, if books have it: ${list(unused)}`);
    const above = reading.above?.trim();
    if (above) this.#warn(`${options.name}: left out above the header: ${shorten(above)}`);
    this.#rejects = options.rejects === undefined ? undefined : new Rejects(reading, options.rejects, output);
    this.#progress = new Progress(output);
  }

  /** Prints rejected records, and adds them to their file. */
  async read(refused: readonly RefusedRecord[], position: number, rows: number): Promise<void> {
    const { stderr, stop } = this.#output;
    const { unit } = this.#reading.format;
    for (const { line, column, value, reason } of refused) {
      this.#refused += 1;
      if (stderr.isTTY && this.#refused > SHOWN_REFUSALS) continue;
      const what = [
        column,
        value === '' && column === undefined ? undefined : `"${value}"`,
        sentenceOf(reason),
      ];
      const said = what.filter((part) => part !== undefined).join(' ');
      this.#progress.line(`${this.#options.name}${unit === 'line' ? ':' : `, ${unit} `}${line}: ${said}`);
      if (stderr.writableLength > MESSAGE_BACKLOG) await Promise.race([untilRead(stderr), stop]);
    }
    await this.#rejects?.add(refused);
    this.#progress.at('rows', position, this.#options.size, rows);
  }

  /** Prints which books change. @param rows the first of them. @param count of all. */
  changes(rows: ImportReport['rows']['changed'], count: number): void {
    if (count === 0) return;
    const { name } = this.#options;
    const shown = this.#output.stderr.isTTY ? rows.slice(0, SHOWN_REFUSALS) : rows;
    this.#progress.line(`${counted(count, 'book changes', 'books change')}:`);
    for (const { line, title, before, doubt, ...row } of shown) {
      const own = { ...row, title };
      const fields = FIELD_NAMES.flatMap((field) =>
        before[field] === undefined ? [] : [`${field} ${quoted(before[field])} → ${quoted(own[field])}`],
      );
      this.#progress.line(
        `${name}:${line}: "${shorten(before.title ?? title)}": ${fields.join(', ')}${doubted(doubt)}`,
      );
    }
    if (shown.length < count) this.#progress.line(`and ${count - shown.length} more books.`);
  }

  /** @returns the exit code: 0 if every row is in the catalogue. */
  async end(outcome: Outcome): Promise<number> {
    this.#progress.end();
    let { failure } = outcome;
    const rejects = await this.#rejects?.close().catch((error: unknown) => {
      failure ??= error;
      return undefined;
    });
    const { figures, comparison } = outcome;
    const { rows: read, refused } = figures;
    if (this.#output.stderr.isTTY && refused > SHOWN_REFUSALS) {
      this.#warn(`and ${refused - SHOWN_REFUSALS} more rejected rows.`);
    }
    const { isDryRun, skipsDoubtful } = this.#options;
    if (isDryRun) this.#say('Dry run: nothing was stored. Without --dry-run:');
    const { added: imported, changed } = this.#storedIn(outcome, failure);
    const doubtful = comparison?.doubtful ?? 0;
    const there = read - refused - imported - changed - (skipsDoubtful ? doubtful : 0);
    const known = failure === undefined ? ` ${there} already there,` : '';
    const changes = changed > 0 ? ` ${changed} changed,` : '';
    this.#say(`${counted(read, 'row')} read: ${imported} imported,${changes}${known} ${refused} refused.`);
    for (const name of FIELD_NAMES) {
      const lacking = failure === undefined ? (comparison?.fresh.lacking[name] ?? 0) : 0;
      if (lacking === 0) continue;
      const what = `${/^[aeiou]/.test(name) ? 'an' : 'a'} ${name}`;
      this.#say(`${lacking} without ${what}: stored as ${JSON.stringify(BOOK_FIELDS[name].default)}.`);
    }
    if (rejects !== undefined) {
      const rows = counted(this.#refused, 'rejected row');
      // After a dry run, importing that file would not be enough: the other rows are not imported.
      const advice = `: fix ${this.#refused === 1 ? 'it' : 'them'} there and import that file${idsAdvice(this.#reading)}`;
      const to = rejects === '-' ? 'the standard output' : rejects;
      this.#say(`${rows} written to ${to}${isDryRun || rejects === '-' ? '' : advice}.`);
    }
    const doubts = `${counted(doubtful, 'new book')} without a title or with an unlikely year`;
    if (doubtful > 0)
      this.#say(
        `${doubts}: ${skipsDoubtful ? 'left out' : 'look at them, or leave them out with --doubtful skip'}.`,
      );
    const { conflicts = 0, changedSince = 0, absent = 0 } = comparison ?? {};
    const isPart = this.#reading.names.includes(REFUSED);
    const remarked = { ...figures, conflicts, changedSince, absent: isPart ? 0 : absent };
    for (const [name, one, several, rest] of [...REMARKS, ...WITH_IDS])
      if (remarked[name] > 0) this.#say(`${counted(remarked[name], one, several)} ${rest}`);
    const hasTags = this.#reading.keepsIds && this.#reading.columns.etag !== undefined;
    if (hasTags && comparison !== undefined && comparison.changedSince === undefined) this.#say(NO_HISTORY);
    const trouble = this.#explain({ ...outcome, failure });
    if (trouble !== undefined) this.#warn(trouble);
    return trouble === undefined && refused === 0 ? 0 : 1;
  }

  /** Of an import that has failed, it is not known how many of the stored books were changed. */
  #storedIn({ comparison, stored, made }: Outcome, failure: unknown): Made {
    if (failure !== undefined || comparison === undefined) return { added: stored, changed: 0 };
    const { fresh, changed, absent } = comparison;
    if (this.#options.isDryRun) return { added: fresh.count, changed };
    return absent === undefined ? { added: stored, changed: 0 } : made;
  }

  /** Why the import is incomplete, and what to do. */
  #explain(outcome: Outcome): string | undefined {
    const { figures, inputError, failure } = outcome;
    const { rows: read, refused } = figures;
    const { name, store, isDryRun } = this.#options;
    const advice = isDryRun ? '' : this.#advice(outcome);
    if (failure instanceof OperatorError) return `${failure.message}${advice}`;
    if (failure instanceof Error) {
      return failure.name === 'AbortError' ? `Stopped.${advice}` : `${store}: ${failure.message}.${advice}`;
    }
    if (inputError instanceof Error) {
      const reason =
        inputError instanceof OperatorError
          ? inputError.message
          : `it cannot be read: ${inputError.message}.`;
      const rest = read > 0 && !isDryRun ? ' Everything before that is imported.' : '';
      return `${name}: ${reason}${rest}`;
    }
    if (read === 0) return `Nothing was imported: ${name} has no rows.`;
    return refused === read ? 'Nothing was imported: every row was rejected.' : undefined;
  }

  /** What is stored, and how to import the rest of the file. */
  #advice({ stored, failure }: Outcome): string {
    if (failure instanceof UnknownOutcome && !this.#options.skipsEqual)
      return ' The rows may be stored: look for the last ones in the catalogue before you run the command again.';
    if (stored === 0 && !(failure instanceof UnknownOutcome)) return ' Nothing was imported.';
    return ' Run the same command again to complete the import.';
  }

  #say(line: string): void {
    // Rejected rows may have the standard output for themselves.
    const { stdout, stderr } = this.#output;
    writeLine(this.#options.rejects === '-' ? stderr : stdout, line);
  }

  #warn(line: string): void {
    writeLine(this.#output.stderr, line);
  }
}

function quoted(value: string | number): string {
  return typeof value === 'string' ? `"${shorten(value)}"` : `${value}`;
}

function doubted(doubt: string | null): string {
  return doubt === null ? '' : ` (${sentenceOf(because(doubt as ReasonCode))})`;
}

/** The option with which rejected rows are read as the whole file was; '' if it is the default for them. */
function idsAdvice({ format, keepsIds: keeps, names }: Reading): string {
  // A record of JSON may lack keys, and so may all that are rejected: those with an id may look like an export.
  const isDefault = format.isTable
    ? keeps === keepsIds([...names, REFUSED], undefined)
    : !keeps && !names.includes('id');
  return isDefault ? '' : ` with --ids ${keeps ? 'keep' : 'new'}`;
}

/** Such as `CSV, title from "title", no year`. */
function describe({ format, sheet, columns, keepsIds }: Reading): string {
  const fields = FIELD_NAMES.map((field) => {
    const column = columns[field];
    return column === undefined ? `no ${field}` : `${field} from "${column}"`;
  });
  const orElse = columns.otherYears.map((name) => ` or else "${name}"`).join('');
  const inSheet = sheet === undefined ? [] : [`sheet "${sheet}"`];
  return `${[format.title, ...inSheet, ...(keepsIds ? ['ids kept'] : []), ...fields].join(', ')}${orElse}`;
}
