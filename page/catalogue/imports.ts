// Owns: the requests of imports (rules M1 to M8). Each is repeated until the catalogue answers it.
// Does not: read the file: the service does.

import type { BookCatalogue, ImportInShort, ImportReport } from '../../client/src/book-catalogue.ts';
import { CATALOGUE } from '../texts/catalogue.ts';
import { Complaint, complaintOf, PAUSE, pause, persist } from './persist.ts';
import type { Session } from './session.ts';

/** As the service names them; its report has them as well. */
export type Options = ImportReport['options'];

/** An import that a person may look for, and whether the log can take it back. */
export type RecentImport = ImportInShort & { readonly isInLog: boolean };

/** How far an import is, or bytes that are sent. */
export type Going =
  | ImportReport
  | { readonly phase: 'sending'; readonly done: number; readonly total: number };

export interface Watching {
  readonly signal: AbortSignal;
  readonly onProgress?: (going: Going) => void;
}

// Milliseconds
const POLL = 500;
const DAY = 24 * 60 * 60 * 1000;

const MOST_RECENT = 5;

export class Imports {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  /** Why the present import does not continue; '' if it does. */
  get trouble(): string {
    const { trouble } = this.#session.reach;
    return trouble && CATALOGUE.continues(trouble);
  }

  /** Has a file read and compared, and stores nothing. */
  async check(file: File, options: Options, watching: Watching): Promise<ImportReport> {
    const sent = { ...options, name: file.name, 'dry-run': '' };
    return this.#checked(await this.#send(file, sent, watching), file, watching);
  }

  /** Checks the file of a check with other options. */
  async checkAgain(
    known: ImportReport,
    file: File,
    options: Options,
    watching: Watching,
  ): Promise<ImportReport> {
    const asked = await this.#continue(known.import, { ...options, 'dry-run': '' }, watching);
    if (asked === undefined) return this.check(file, { ...known.options, ...options }, watching);
    return this.#checked(asked, file, watching);
  }

  /** An older program has written a file that is not UTF-8. */
  async #checked(begun: ImportReport, file: File, watching: Watching): Promise<ImportReport> {
    const known = await this.#ended(begun, watching);
    if (known.fault?.code !== 'not-utf8' || known.options.encoding !== undefined) return known;
    return this.checkAgain(known, file, { encoding: 'windows-1252' }, watching);
  }

  /**
   * Stores the file of a check, or the rest of it, under one number, however often the service is started again.
   * @throws Complaint when the store has no room. A repeated call continues.
   */
  store(known: ImportInShort, file: File, options: Options, watching: Watching): Promise<ImportReport> {
    return this.#session.during(async () => {
      for (let { import: number } = known; ; await pause(PAUSE, watching.signal)) {
        let next = await this.#continue(number, options, watching);
        if (next === undefined) {
          next = await this.#find(number, watching);
          if (next === undefined) throw new Complaint(CATALOGUE.forgottenImport);
          const { corrections = '{}', ...others } = options;
          if (next.dryRun) next = await this.check(file, { ...next.options, ...others }, watching);
          else if (next.state === 'stopped')
            next = await this.#send(file, { ...next.options, corrections, name: file.name }, watching);
        }
        const ended = await this.#ended(next, watching);
        if (ended.state === 'stored' || ended.state === 'undone') return ended;
        if (!ended.dryRun && ended.fault?.code === 'store') throw new Complaint(CATALOGUE.noRoom);
        number = ended.import;
      }
    });
  }

  /** Those that are not complete, and those of the last day. */
  async recent(signal: AbortSignal): Promise<readonly RecentImport[]> {
    const all = (await this.#ask<readonly ImportInShort[]>('GET', 'import', { signal })) ?? [];
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

  /** Waits until it is neither read nor stored any more. */
  async #ended(begun: ImportReport, watching: Watching): Promise<ImportReport> {
    let now: ImportReport | undefined = begun;
    while (now?.state === 'open') {
      watching.onProgress?.(now);
      await pause(POLL, watching.signal);
      now = await this.#find(begun.import, watching);
    }
    if (now === undefined) throw new Complaint(CATALOGUE.forgottenImport);
    return now;
  }

  #send(file: File, options: Options, watching: Watching): Promise<ImportReport> {
    const path = `import?${new URLSearchParams(options)}`;
    return this.#ask('POST', path, watching, file) as Promise<ImportReport>;
  }

  #continue(number: number, options: Options, watching: Watching): Promise<ImportReport | undefined> {
    return this.#ask('POST', `import/${number}?${new URLSearchParams(options)}`, watching);
  }

  #find(number: number, watching: Watching): Promise<ImportReport | undefined> {
    return this.#ask('GET', `import/${number}`, watching);
  }

  /** @returns undefined if the file or the import is no longer here. */
  async #ask<Data>(
    method: 'GET' | 'POST',
    path: string,
    { signal, onProgress }: Watching,
    file?: File,
  ): Promise<Data | undefined> {
    const onSent = (done: number) => onProgress?.({ phase: 'sending', done, total: file?.size ?? 0 });
    const send = () => this.#session.send({ method, path, body: file, onSent, signal });
    const { status, message, data } = await persist(
      signal,
      send,
      CATALOGUE.refusedImports,
      () => file && checkThere(file),
    );
    if (data !== null) return data as Data;
    if (status === 410 || status === 404) return undefined;
    throw complaintOf({ status, message }, CATALOGUE.refusedImports);
  }
}

/** A browser reads a file only as it was when a person chose it (File API, section 4). */
async function checkThere(file: File): Promise<void> {
  const first = file.slice(0, 1);
  await first.arrayBuffer().catch(({ name }) => {
    throw new Complaint(name === 'NotFoundError' ? CATALOGUE.goneFile : CATALOGUE.changedFile);
  });
}
