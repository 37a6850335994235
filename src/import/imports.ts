// Owns: the imports of this process that requests have sent: their files, in which order they run, what is known of each, and when its
// file is given up. The store has what is asked about an import of another process.
// Does not: read a file or store books: a thread does.

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import type { ChangeLog, LogWriter } from '../books/change-log.ts';
import type { KeptImport } from '../books/kept-imports.ts';
import type { IncomingStream } from '../http/body.ts';
import type { Log } from '../log/log.ts';
import { startThread } from '../thread.ts';
import type { Times } from '../times.ts';
import { within } from '../within.ts';
import { beginIn } from './beginning.ts';
import { type ImportKnown, isHeld, knownOf } from './known.ts';
import { fingerprintOf, type GivenOptions } from './options.ts';
import { emptyReport, type ImportReport, isStopped, isUnreadable, STOPPED } from './summary.ts';
import type { ImportMessage, ImportThreadData } from './thread.ts';
import { FileRoom, Upload } from './upload.ts';

/** Mebibytes of its thread. An array of JSON takes most; without a limit, V8 would leave garbage of twice as much. */
const MEMORY = { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 112 };

/** What a request wants of a file. */
export interface ImportRequest {
  readonly dryRun: boolean;
  readonly options: GivenOptions;
  /** Texts in place of the wrong ones, by the lines of their records. */
  readonly corrections: Readonly<Record<string, string>>;
}

/** Why an import is neither started nor continued: its key was used for another one; it is not known; its file is no longer here. */
export type NotImported = 'conflict' | 'unknown' | 'gone';

interface Job {
  readonly number: number;
  readonly owner: string;
  readonly upload: Upload;
  state: KeptImport['state'];
  books: number;
  report: ImportReport;
  request: ImportRequest;
  ended: PromiseWithResolvers<void>;
  thread: Worker | undefined;
  /** When it was last noted in the store, and when it ended. */
  noted: number;
  endedAt: number;
  /** The latest note, while it is in progress. */
  kept: Promise<boolean> | undefined;
}

export interface ImportsParts {
  readonly changes: ChangeLog;
  readonly dbUrl: string;
  /** Bytes of all files. */
  readonly limit: number;
  /** For the files. */
  readonly folder: string;
  /** How many run at the same time. */
  readonly most: number;
  /** Whether the log says which tags books had. */
  readonly hasHistory: boolean;
  readonly log: Log;
  readonly times: Times;
}

export class Imports {
  readonly #parts: ImportsParts;
  readonly #jobs = new Map<number, Job>();
  readonly #waiting: Job[] = [];
  #running = 0;
  /** Of the files. */
  readonly room: FileRoom;
  #timer: NodeJS.Timeout | undefined;
  #isClosing = false;

  constructor(parts: ImportsParts) {
    this.#parts = parts;
    this.room = new FileRoom(parts.limit, () => this.#giveUpOldest());
  }

  /**
   * Takes the file of a request.
   * @throws BodyTooLarge, BodyIncomplete, NoRoomForFile
   */
  receive(request: IncomingStream): Promise<Upload> {
    return Upload.receive(request, this.#parts.folder, this.room);
  }

  /**
   * Begins an import of a file, or completes an interrupted one. Resolves when it has ended, or after a while.
   * @param key of a request that takes effect once.
   */
  async begin(
    upload: Upload,
    name: string | null,
    request: ImportRequest,
    key: string | undefined,
  ): Promise<(ImportKnown & { readonly isReplay: boolean }) | NotImported> {
    const owner = randomUUID();
    const report = emptyReport(name, request.dryRun, request.options, upload.size);
    const fingerprint = fingerprintIn(upload, request);
    const begin = (log: LogWriter) => beginIn(log, { key, fingerprint, owner, report, lost: this.#lost });
    let begun: Awaited<ReturnType<typeof begin>>;
    try {
      begun = await this.#parts.changes.write(begin, this.#deadline);
    } catch (error) {
      await upload[Symbol.asyncDispose]();
      throw error;
    }
    if (typeof begun === 'string' || begun.isReplay) await upload[Symbol.asyncDispose]();
    if (typeof begun === 'string') return begun;
    const { number, isReplay } = begun;
    if (isReplay) {
      const found = await this.find(number);
      return found === undefined ? 'unknown' : { ...found, isReplay };
    }
    const job: Job = {
      ...{ number, owner, upload, report, request, state: 'open', books: 0, thread: undefined },
      ...{ ended: Promise.withResolvers<void>(), noted: performance.now(), endedAt: 0 },
      kept: undefined,
    };
    const before = this.#jobs.get(number);
    if (before !== undefined && before.endedAt > 0) this.#giveUp(before);
    this.#jobs.set(number, job);
    this.#start(job);
    return { ...(await this.#answerOf(job)), isReplay };
  }

  /** Reads the file of an import again with other options, or stores it. */
  async continue(number: number, request: ImportRequest): Promise<ImportKnown | NotImported> {
    const job = this.#jobs.get(number);
    if (job !== undefined) {
      // The rows that are done with are counted from the beginning of the file as its options have it.
      const next = job.books > 0 ? job.request : request;
      if (job.state === 'checked' || job.state === 'stopped') await this.#restart(job, next);
      return this.#answerOf(job);
    }
    const kept = await this.#parts.changes.read((log) => log.imports.find(number), this.#deadline);
    if (kept === undefined) return 'unknown';
    if (kept.state === 'stored' || kept.state === 'undone') return knownOf(kept, this.#lost);
    if (!isHeld(kept, this.#lost)) return 'gone';
    if (kept.state === 'checked')
      await this.#parts.changes.write((log) => log.imports.want(number, request), this.#deadline);
    const { answer, poll } = this.#parts.times.imports;
    for (const end = performance.now() + answer; ; await pause(poll)) {
      const known = await this.find(number);
      if (known === undefined) return 'unknown';
      if (known.state !== 'open' || performance.now() > end) return known;
    }
  }

  /** @returns undefined if there is no such import, or no longer. */
  async find(number: number): Promise<ImportKnown | undefined> {
    const job = this.#working(number);
    if (job !== undefined) return knownOf(job, this.#lost);
    const kept = await this.#parts.changes.read((log) => log.imports.find(number), this.#deadline);
    return kept && knownOf(kept, this.#lost);
  }

  /** The newest imports of all processes, the newest first. */
  async newest(most: number): Promise<readonly ImportKnown[]> {
    const kept = await this.#parts.changes.read((log) => log.imports.newest(most), this.#deadline);
    return kept.map((one) => knownOf(this.#working(one.number) ?? one, this.#lost));
  }

  /** Ends imports between two of their steps, and gives up all files. */
  async close(): Promise<void> {
    this.#isClosing = true;
    clearInterval(this.#timer);
    for (const job of this.#waiting.splice(0)) this.#end(job, { ...job.report, fault: STOPPED });
    await Promise.all(
      [...this.#jobs.values()].map(async (job) => {
        job.thread?.postMessage('stop');
        if (job.state === 'checked') await this.#keep(Object.assign(job, { state: 'stopped' }));
        await job.ended.promise;
        await job.upload[Symbol.asyncDispose]();
      }),
    );
    this.#jobs.clear();
  }

  get #lost(): number {
    return this.#parts.times.imports.lost;
  }

  get #deadline(): number {
    return performance.now() + this.#parts.times.books.deadline;
  }

  /** An import of this process that has not ended: of others, the store has what became of them. */
  #working(number: number): Job | undefined {
    const job = this.#jobs.get(number);
    return job?.endedAt === 0 ? job : undefined;
  }

  /** Gives up the file that waits longest for its next request. @returns whether there was one. */
  #giveUpOldest(): boolean {
    const held = [...this.#jobs.values()].filter(({ endedAt }) => endedAt > 0);
    const [oldest] = held.sort((one, other) => one.endedAt - other.endedAt);
    if (oldest !== undefined) this.#giveUp(oldest);
    return oldest !== undefined;
  }

  /** An import that is checked ends with it. */
  #giveUp(job: Job): void {
    if (this.#jobs.get(job.number) === job) this.#jobs.delete(job.number);
    if (job.state === 'checked') void this.#keep(Object.assign(job, { state: 'stopped' }));
    void job.upload[Symbol.asyncDispose]();
  }

  async #restart(job: Job, request: ImportRequest): Promise<void> {
    const options = { ...job.report.options, ...request.options };
    job.request = { ...request, options };
    job.report = emptyReport(job.report.name, request.dryRun, options, job.upload.size);
    job.ended = Promise.withResolvers<void>();
    [job.state, job.endedAt] = ['open', 0];
    if (await this.#keep(job, fingerprintIn(job.upload, job.request))) this.#start(job);
    else this.#lose(job);
  }

  #start(job: Job): void {
    this.#timer ??= setInterval(() => this.#look(), this.#parts.times.imports.look).unref();
    if (this.#running >= this.#parts.most) {
      this.#waiting.push(job);
      return;
    }
    this.#running += 1;
    void this.#run(job).finally(() => {
      this.#running -= 1;
      const next = this.#waiting.shift();
      if (next !== undefined) this.#start(next);
    });
  }

  async #run(job: Job): Promise<void> {
    const { dbUrl, times, log, hasHistory } = this.#parts;
    const { number, owner, upload, report, request } = job;
    const fingerprint = fingerprintIn(upload, request);
    const data: ImportThreadData = {
      ...{ dbUrl, times, report, hasHistory },
      ...{ corrections: request.corrections, descriptor: upload.descriptor },
      work: request.dryRun ? undefined : { number, owner, fingerprint },
    };
    let last: ImportMessage | undefined;
    try {
      job.thread = await startThread('src/import/thread.ts', data, MEMORY);
      job.thread.on('message', (message: ImportMessage) => {
        last = message;
        job.books = Math.max(job.books, message.books);
        if (!message.isDone) job.report = message.report;
      });
      const exit = once(job.thread, 'exit');
      job.thread.postMessage('begin');
      if (this.#isClosing) job.thread.postMessage('stop');
      await exit;
    } catch (error) {
      log.error({ err: error, import: number }, 'the thread of an import failed');
    }
    job.thread = undefined;
    if (last?.isLost) return this.#lose(job);
    if (last?.failure !== undefined) log.error({ import: number, reason: last.failure }, 'an import failed');
    const ended = last?.isDone === true ? last.report : { ...job.report, fault: STOPPED };
    this.#end(job, ended);
    log.info({ import: number, file: ended.name, state: job.state, books: job.books }, 'import');
  }

  /** Ends an import that was taken back, or that another process completes. */
  #lose(job: Job): void {
    job.state = 'undone';
    this.#giveUp(job);
    job.ended.resolve();
  }

  #end(job: Job, report: ImportReport): void {
    job.report = report;
    const isStored =
      !job.request.dryRun && report.phase === 'done' && !isUnreadable(report) && !isStopped(report);
    job.state = isStored ? 'stored' : isStopped(report) ? 'stopped' : 'checked';
    job.endedAt = performance.now();
    void this.#keep(job).finally(() => {
      job.ended.resolve();
      if (isStored || this.#jobs.get(job.number) !== job) this.#giveUp(job);
    });
  }

  /**
   * Notes in the store how far an import is. If that fails, the next note has it.
   * @param fingerprint if its file is read again.
   * @returns false if it was taken back, or another process has it.
   */
  async #keep(job: Job, fingerprint?: string): Promise<boolean> {
    const { number, owner, state, report } = job;
    job.noted = performance.now();
    const progress = { state, report, ...(fingerprint === undefined ? {} : { fingerprint }) };
    const keep = (log: LogWriter) => log.imports.keep(number, owner, progress);
    const write = () => this.#parts.changes.write(keep, this.#deadline).catch(() => true);
    const kept = job.kept?.then(write) ?? write(); // no earlier state may replace a later one
    job.kept = kept;
    try {
      return await kept;
    } finally {
      if (job.kept === kept) job.kept = undefined;
    }
  }

  /** Notes that its process is there, or gives up the file of an import that another process has completed. */
  async #noteHeld(job: Job): Promise<void> {
    if (!(await this.#keep(job)) && job.endedAt > 0) this.#giveUp(job);
  }

  /** Notes progress, gives up files that were held long enough, and finds out what other processes want of the others. */
  #look(): void {
    const { seen, held } = this.#parts.times.imports;
    const now = performance.now();
    for (const job of this.#jobs.values()) {
      if (job.endedAt > 0 && now > job.endedAt + held) this.#giveUp(job);
      else if (job.kept === undefined && (job.endedAt === 0 || now > job.noted + seen))
        void this.#noteHeld(job);
      if (job.state === 'checked') void this.#takeWanted(job);
    }
    if (this.#jobs.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #takeWanted(job: Job): Promise<void> {
    const { changes } = this.#parts;
    try {
      const kept = await changes.read((log) => log.imports.find(job.number), this.#deadline);
      if (kept?.wanted == null || job.state !== 'checked') return;
      const take = (log: LogWriter) => log.imports.takeWanted(job.number, job.owner);
      const wanted = (await changes.write(take, this.#deadline)) as ImportRequest | null;
      if (wanted !== null && job.state === 'checked') await this.#restart(job, wanted);
    } catch {} // the next look finds it
  }

  async #answerOf(job: Job): Promise<ImportKnown> {
    await within(this.#parts.times.imports.answer, job.ended.promise);
    return (job.state === 'undone' && (await this.find(job.number))) || knownOf(job, this.#lost);
  }
}

function fingerprintIn({ content }: Upload, { options, dryRun, corrections }: ImportRequest): string {
  const corrected = Object.keys(corrections).length > 0 ? [corrections] : [];
  return fingerprintOf(content, options, ...(dryRun ? ['check'] : []), ...corrected);
}
