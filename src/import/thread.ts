// Owns: the thread that reads the file of a request, compares it with the store, and stores it: nothing else of the process waits for
// that. It works like the command `import`, on its own connection.

import { read } from 'node:fs';
import { promisify } from 'node:util';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { NoLongerOpen } from '../books/kept-imports.ts';
import { reasonOf } from '../error-words.ts';
import { NoTitleColumn } from '../files/columns.ts';
import type { Reading } from '../files/format.ts';
import { readBooks } from '../files/reading.ts';
import { SeveralSheets } from '../files/unpacking.ts';
import { readYear } from '../files/years.ts';
import { OperatorError } from '../operator-error.ts';
import type { BulkStore } from '../stores/bulk.ts';
import { readDbUrl } from '../stores/open.ts';
import type { Times } from '../times.ts';
import { type GivenOptions, readOptions } from './options.ts';
import { importBooks, type Outcome, rulesOf } from './pass.ts';
import { faultOf, type ImportReport, STOPPED, Summary } from './summary.ts';

export interface ImportThreadData {
  readonly dbUrl: string;
  /** Of the whole file. */
  readonly descriptor: number;
  /** Before the import. */
  readonly report: ImportReport;
  readonly corrections: Readonly<Record<string, string>>;
  readonly hasHistory: boolean;
  /** Of an import that stores; undefined for a check. */
  readonly work:
    | { readonly number: number; readonly owner: string; readonly fingerprint: string }
    | undefined;
  readonly times: Times;
}

/** How far it is. The last message is `done`. */
export interface ImportMessage {
  readonly report: ImportReport;
  readonly books: number;
  readonly isDone: boolean;
  /** Why the store failed, for the log. */
  readonly failure?: string;
  /** Whether it was taken back, or another process completes it. */
  readonly isLost?: boolean;
}

/** Bytes that are read together. */
const PIECE = 64 * 1024;

const readPiece = promisify(read);
if (parentPort !== null) void serve(parentPort, workerData as ImportThreadData);

async function serve(port: MessagePort, data: ImportThreadData): Promise<void> {
  const stop = new AbortController();
  const send = (message: ImportMessage) => port.postMessage(message);
  let [due, phase] = [0, ''];
  const summary = new Summary(data.report, (report, books) => {
    if (report.phase === phase && performance.now() < due) return;
    [due, phase] = [performance.now() + data.times.imports.progress, report.phase];
    send({ report, books, isDone: false });
  });
  // A thread that ended before anybody listened to it would be waited for without end.
  const isHeard = Promise.withResolvers<void>();
  port.on('message', (message) => (message === 'stop' ? stop.abort() : isHeard.resolve()));
  port.postMessage('ready');
  await isHeard.promise;
  send({ ...(await run(data, summary, stop.signal)), report: summary.done(), isDone: true });
  port.close();
}

type Ended = Omit<ImportMessage, 'report' | 'isDone'>;

async function run(data: ImportThreadData, summary: Summary, signal: AbortSignal): Promise<Ended> {
  let reading: Reading;
  try {
    reading = await open(data, data.report.options, summary);
  } catch (error) {
    summary.failed(faultOf(error));
    return { books: 0 };
  }
  let store: BulkStore | undefined;
  try {
    store = await openStore(data);
    const { stored, failure } = await load(data, store, reading, summary, signal);
    return { books: stored, ...(failure === undefined ? {} : failed(failure, summary)) };
  } catch (error) {
    return { books: 0, ...failed(error, summary) };
  } finally {
    await store?.close().catch(() => {}); // after a failure, closing may fail as well
  }
}

async function load(
  { work, report, corrections, hasHistory }: ImportThreadData,
  store: BulkStore,
  reading: Reading,
  summary: Summary,
  signal: AbortSignal,
): Promise<Outcome> {
  const load = await store.load(rulesOf(reading, readOptions(report.options), hasHistory));
  const storing = work && {
    ...work,
    name: report.name ?? '',
    fingerprint: () => work.fingerprint,
    report: () => summary.done(),
    assertNewest: () => store.assertNewest(),
  };
  try {
    return await importBooks({ reading, load, work: storing, summary, signal, corrections });
  } finally {
    await load.close().catch(() => {});
  }
}

function failed(error: unknown, summary: Summary): Pick<ImportMessage, 'failure' | 'isLost'> {
  if (error instanceof NoLongerOpen) return { isLost: true };
  const isStopped = error instanceof Error && error.name === 'AbortError';
  summary.failed(
    isStopped ? STOPPED : { code: 'store', message: 'The store is unavailable, or has no room.' },
  );
  return isStopped ? {} : { failure: reasonOf(error) };
}

async function openStore({ dbUrl, work, times }: ImportThreadData): Promise<BulkStore> {
  const at = await readDbUrl(dbUrl);
  const store = work === undefined ? await at.openBulk('read', times) : await at.openBulk('write', times);
  if (store === undefined) throw new OperatorError('The catalogue is gone.');
  return store;
}

/** A stream would close the file in the end, which the process may read again. */
async function* bytesOf(file: number): AsyncGenerator<Uint8Array, void, void> {
  for (let position = 0; ; ) {
    const { bytesRead, buffer } = await readPiece(file, Buffer.allocUnsafe(PIECE), 0, PIECE, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

/** Opens the file. In a check, it also guesses the columns of a table without a header. */
async function open(data: ImportThreadData, options: GivenOptions, summary: Summary): Promise<Reading> {
  try {
    const wanted = { ...readOptions(options).reading, name: data.report.name ?? '-' };
    const reading = await readBooks(bytesOf(data.descriptor), wanted);
    summary.understood(reading, options);
    return reading;
  } catch (error) {
    const isCheck = data.work === undefined;
    const guessed = isCheck ? guessFrom(error, options) : undefined;
    if (guessed === undefined) throw error;
    return await open(data, guessed, summary);
  }
}

/** @returns the options for the first of several sheets with books, or for a table without a header; undefined if nothing is guessed. */
function guessFrom(error: unknown, options: GivenOptions): GivenOptions | undefined {
  if (error instanceof SeveralSheets) return { ...options, sheet: error.names[0] };
  return error instanceof NoTitleColumn ? guessColumns(error, options) : undefined;
}

/** The first row of a table is a book if it has one year: no column is called 1815. */
function guessColumns(
  { names, line, first }: NoTitleColumn,
  options: GivenOptions,
): GivenOptions | undefined {
  if (line === undefined || options.header !== undefined) return undefined;
  const isYear = (text = '') => {
    const year = readYear(text);
    return typeof year === 'number' && year !== 0;
  };
  const columns = names.map((_, at) => [names, ...first].map((row) => row[at] ?? ''));
  const years = [...columns.keys()].filter((at) => columns[at]?.every((text) => text === '' || isYear(text)));
  const [year] = years;
  if (year === undefined || years.length > 1 || !isYear(names[year])) return undefined;
  const [title, author] = [...columns.keys()].filter(
    (at) => at !== year && columns[at]?.some((text) => /\p{L}/u.test(text)),
  );
  if (title === undefined) return undefined;
  const nameOf = (at: number | undefined) => (at === undefined ? '' : `column ${at + 1}`);
  return { ...options, header: 'no', title: nameOf(title), author: nameOf(author), year: nameOf(year) };
}
