// Owns: the requests of imports (rules M1 to M8), and of taking one back. Each is repeated until the catalogue answers it.
// Does not: read the file: the service does.

import { type BookCatalogue, CatalogueError } from '../../client/src/book-catalogue.ts';
import type { Reason, ReasonCode } from '../../src/files/reasons.ts';
import type { Field } from '../elements/text.ts';
import { isRefusal } from './refusal.ts';
import type { Session } from './session.ts';

/** As the service names them; its report has them as well. */
export type Options = Readonly<Record<string, string>>;

type Texts = readonly string[];

/** A row that is a book. */
export interface BookRow extends Readonly<Record<'title' | 'author', string>> {
  readonly line: number;
  readonly year: number;
  readonly doubt: ReasonCode | null;
}

/** Without a column, the whole row is wrong; without a text, it is too long to be corrected here. */
export interface RefusedRow
  extends Readonly<Record<'title' | 'column' | 'text' | 'proposal', string | null>> {
  readonly line: number;
  readonly reason: Reason;
  /** As a file of refused rows has it. */
  readonly record: string;
}

/** The report of an import (rule M3). */
export interface Import {
  readonly import: number;
  readonly state: 'open' | 'checked' | 'stopped' | 'stored' | 'undone';
  readonly books: number;
  readonly name: string | null;
  readonly dryRun: boolean;
  readonly options: Options;
  readonly phase: 'waiting' | 'reading' | 'comparing' | 'storing' | 'done';
  readonly read: number;
  readonly size: number;
  readonly file:
    | (Readonly<Record<'format' | 'encoding' | 'above', string>> & {
        readonly delimiter: string | null;
        readonly names: Texts;
        readonly first: readonly Texts[];
        readonly columns: Readonly<Record<Field, string | null>>;
        readonly otherYears: Texts;
      })
    | null;
  readonly figures: Readonly<Record<Figure, number>> & { readonly lacking: Readonly<Record<Field, number>> };
  readonly rows: Readonly<Record<'new' | 'here' | 'doubtful', readonly BookRow[]>>;
  readonly refused: readonly RefusedRow[];
  readonly rejects: Readonly<Record<'name' | 'before' | 'between' | 'after', string>> | null;
  /** If no column is known to be the title, with those that there are; the line of a first row that may be a book. */
  readonly fault:
    | (Readonly<Record<'code' | 'message', string>> & {
        readonly names?: Texts;
        readonly first?: readonly Texts[];
        readonly line?: number;
      })
    | null;
}

type Figure = 'rows' | 'new' | 'here' | 'repeated' | 'doubtful' | 'refused' | 'short' | 'newYears';

/** As the list of imports has it. */
export type ImportInShort = Omit<Import, 'options' | 'file' | 'rows' | 'refused' | 'rejects'>;

/** An import that a person may look for, and whether the log can take it back. */
export type RecentImport = ImportInShort & { readonly isInLog: boolean };

export interface Watching {
  readonly signal: AbortSignal;
  /** Called with how much of the file is sent. */
  readonly onSent?: (bytes: number) => void;
  /** Called with how far it is. */
  readonly onReport?: (known: ImportInShort) => void;
}

/** It cannot continue. The message is for the person at the page. */
export class Complaint extends Error {}

// Milliseconds
const POLL = 500;
const PAUSE = 1000;
const DAY = 24 * 60 * 60 * 1000;

const MOST_RECENT = 5;

const NO_ROOM = 'The catalogue could not store all of it: it is away, or has no room.';
const FORGOTTEN = 'The catalogue does not know this import any more. Choose the file again.';
const GONE = 'The file was moved, renamed or deleted after it was chosen. Choose it again.';
const CHANGED = 'The file was saved again after it was chosen, or it cannot be read. Choose it again.';

export class Imports {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  /** Has a file read and compared, and stores nothing. */
  async check(file: File, options: Options, watching: Watching): Promise<Import> {
    const sent = { ...options, name: file.name, 'dry-run': '' };
    return this.#decoded(file, await this.#ended(await this.#send(file, sent, watching), watching), watching);
  }

  /** Checks the file of a check with other options. */
  async checkAgain(known: Import, file: File, options: Options, watching: Watching): Promise<Import> {
    const asked = await this.#continue(known.import, { ...options, 'dry-run': '' }, watching);
    if (asked === undefined) return this.check(file, { ...known.options, ...options }, watching);
    return this.#decoded(file, await this.#ended(asked, watching), watching);
  }

  /** An older program has written a file that is not UTF-8. */
  async #decoded(file: File, known: Import, watching: Watching): Promise<Import> {
    if (known.fault?.code !== 'not-utf8' || known.options.encoding !== undefined) return known;
    return this.checkAgain(known, file, { encoding: 'windows-1252' }, watching);
  }

  /**
   * Stores the file of a check, or the rest of it: under one number, however often the service is started again.
   * @throws Complaint when the store has no room. To repeat the call continues.
   */
  async store(known: ImportInShort, file: File, options: Options, watching: Watching): Promise<Import> {
    for (let { import: number } = known; ; await pause(PAUSE, watching.signal)) {
      let next = await this.#continue(number, options, watching);
      if (next === undefined) {
        next = await this.#find(number, watching);
        if (next === undefined) throw new Complaint(FORGOTTEN);
        const { corrections = '{}', ...others } = options;
        if (next.dryRun) next = await this.check(file, { ...next.options, ...others }, watching);
        else if (next.state === 'stopped')
          next = await this.#send(file, { ...next.options, corrections, name: file.name }, watching);
      }
      const ended = await this.#ended(next, watching);
      if (ended.state === 'stored' || ended.state === 'undone') return ended;
      if (!ended.dryRun && ended.fault?.code === 'store') throw new Complaint(NO_ROOM);
      number = ended.import;
    }
  }

  /** Those that are not complete, and those of the last day. */
  async recent(signal: AbortSignal): Promise<readonly RecentImport[]> {
    const all = (await this.#ask('GET', 'import', { signal })) as unknown as readonly ImportInShort[];
    const recent: RecentImport[] = [];
    for (const one of all) {
      const isEnded = one.state === 'stored' || one.state === 'undone';
      if (recent.length === MOST_RECENT) break;
      if (isEnded ? one.books === 0 : one.dryRun) continue;
      const find = (catalogue: BookCatalogue) => catalogue.event(one.import, { signal });
      const event = await this.#session.call(find).catch(() => undefined); // nothing is stored yet, or there is no log
      signal.throwIfAborted();
      if (isEnded && event !== undefined && Date.now() - Date.parse(event.at) > DAY) break;
      recent.push({ ...one, name: one.name ?? event?.name ?? null, isInLog: event !== undefined });
    }
    return recent;
  }

  /**
   * Takes an import back. The service continues it without the page.
   * @param onProgress is called with the number of books that are done with, of all.
   * @returns how many were removed, and how many stay, since others have changed them.
   */
  async takeBack(
    number: number,
    onProgress: (done: number, of: number) => void,
  ): Promise<readonly [number, number]> {
    const { signal } = new AbortController();
    const call = <Result>(work: (catalogue: BookCatalogue) => Promise<Result>) =>
      this.#persist(signal, () => this.#session.call(work));
    const idempotencyKey = `page-takes-back-import-${number}`;
    let event = await call((catalogue) => catalogue.undo({ import: number }, { idempotencyKey }));
    for (;;) {
      if ('undone' in event) return [event.undone, event.left.length];
      const { event: going, undo, books } = event;
      if (undo === null || undo.checked >= undo.books) return [books, undo?.changedLater ?? 0];
      onProgress(undo.checked, undo.books);
      await pause(POLL, signal);
      event = await call((catalogue) => catalogue.continueUndo(going));
    }
  }

  /** Waits until it is neither read nor stored any more. */
  async #ended(known: Import, watching: Watching): Promise<Import> {
    let now: Import | undefined = known;
    while (now?.state === 'open') {
      watching.onReport?.(now);
      await pause(POLL, watching.signal);
      now = await this.#find(known.import, watching);
    }
    if (now === undefined) throw new Complaint(FORGOTTEN);
    return now;
  }

  #send(file: File, options: Options, watching: Watching): Promise<Import> {
    return this.#ask('POST', `import?${new URLSearchParams(options)}`, watching, file) as Promise<Import>;
  }

  #continue(number: number, options: Options, watching: Watching): Promise<Import | undefined> {
    return this.#ask('POST', `import/${number}?${new URLSearchParams(options)}`, watching);
  }

  #find(number: number, watching: Watching): Promise<Import | undefined> {
    return this.#ask('GET', `import/${number}`, watching);
  }

  /** @returns undefined if the file or the import is no longer here. */
  async #ask(
    method: 'GET' | 'POST',
    path: string,
    { signal, onSent }: Watching,
    file?: File,
  ): Promise<Import | undefined> {
    const send = () => this.#session.send({ method, path, file, onSent, signal });
    const { status, message, data } = await this.#persist(signal, send, file);
    if (data !== null) return data as Import;
    if (status === 410 || status === 404) return undefined;
    throw new CatalogueError(message, { status });
  }

  /** Repeats work until the catalogue answers. */
  async #persist<Result>(signal: AbortSignal, work: () => Promise<Result>, file?: File): Promise<Result> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        const isFinal = !(error instanceof CatalogueError) || error.status === 413 || isRefusal(error);
        if (isFinal) throw error;
      }
      await file
        ?.slice(0, 1)
        .arrayBuffer()
        .catch(({ name }) => {
          // A browser reads a file only as it was when a person chose it (File API, section 4).
          throw new Complaint(name === 'NotFoundError' ? GONE : CHANGED);
        });
      await pause(PAUSE, signal);
    }
  }
}

async function pause(time: number, signal: AbortSignal): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, time));
  signal.throwIfAborted();
}
