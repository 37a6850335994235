// Owns: the course of every undo (rule H5), for requests and commands, in one step or in parts, on every store. A store reads the
// log and writes books; `undo-decision.ts` decides on each book.

import type {
  CatalogueEvent,
  ChangeLog,
  LogReader,
  LogWriter,
  NotUndone,
  PastBook,
  Restored,
  Selection,
  UndoRequest,
} from './change-log.ts';
import { Ids } from './ids.ts';
import type { Once } from './once.ts';
import { decide } from './undo-decision.ts';

/** The most books that are looked through, and the most rows of the log, with the bytes of their texts. */
interface Bounds {
  readonly books: number;
  readonly rows: number;
  readonly bytes: number;
}

const MEBIBYTE = 1024 * 1024;

/** An undo within these bounds is one step, for which other writes wait. */
const STEP: Bounds = { books: 10_000, rows: 100_000, bytes: 64 * MEBIBYTE };
/** Each part of a larger undo is within these. */
const PART: Bounds = { books: 500, rows: 10_000, bytes: 8 * MEBIBYTE };

/** Books that are decided on together. */
const TOGETHER = 500;

/** The most ids that are kept of books that were left as they are: nobody needs more. */
const NAMED = 10_000;

/** How far an undo is. */
export interface UndoProgress {
  /** The number of the undo, with which it can be taken back itself; null if there was no change to take back. */
  readonly event: number | null;
  /** How many books the selected changes are about. */
  readonly books: number;
  /** How many of them have been looked at. */
  readonly checked: number;
  /** How many of them are as they were before the selected changes. */
  readonly undone: number;
  /** How many of them were left as they are, since others have changed them later. */
  readonly changedLater: number;
  /** The ids of these: the first 10,000. */
  readonly left: readonly number[];
}

/** The `work` that is kept with the event. */
type UndoWork = Pick<UndoProgress, 'books' | 'checked' | 'left' | 'changedLater'> & {
  readonly selection: Selection;
  /** The highest id that has been looked at. */
  readonly through: number;
};

const NOTHING: UndoProgress = { event: null, books: 0, checked: 0, undone: 0, left: [], changedLater: 0 };

export function isDone({ books, checked }: UndoProgress): boolean {
  return checked === books;
}

const COUNTS = ['books', 'checked', 'changedLater', 'through'] as const;

/** @returns undefined if the event is no undo, is one of a build before the release, or was damaged by another program. */
function workOf(event: CatalogueEvent | undefined): UndoWork | undefined {
  if (event?.kind !== 'undo') return undefined;
  const { selection, left, ...counts } = { ...(event.work as Partial<UndoWork> | null) };
  const numbers = [...Object.values(selection ?? {}), ...COUNTS.map((name) => counts[name])];
  const isWhole =
    selection !== undefined && Array.isArray(left) && [...numbers, ...left].every(Number.isSafeInteger);
  return isWhole ? (event.work as UndoWork) : undefined;
}

/** @returns undefined if `workOf` does. */
export function progressOf(event: CatalogueEvent | undefined): UndoProgress | undefined {
  const work = workOf(event);
  if (event === undefined || work === undefined) return undefined;
  const { books, checked, left, changedLater } = work;
  return { event: event.number, books, checked, undone: event.books, left, changedLater };
}

/** The outcome of a request; `conflict` if its key has been used for another one. */
export type UndoOutcome =
  | {
      readonly progress: UndoProgress;
      readonly isReplay: boolean;
      /** The undo, if it is not complete. */
      readonly rest?: Undo;
    }
  | NotUndone
  | 'conflict';

/** The answer to an earlier request with the same key. */
type Known = { readonly known: UndoProgress } | 'conflict' | 'unknown';

/** The changes that an undo takes back, and the books that they are about. */
interface Plan {
  readonly selection: Selection;
  readonly ids: Ids;
}

/** One undo. Several processes may continue it at the same time; its parts follow one after the other. */
export class Undo {
  readonly #log: ChangeLog;
  readonly number: number;
  #ids: Ids | undefined;

  /** @param number of an undo that was started. */
  constructor(changes: ChangeLog, number: number, ids?: Ids) {
    this.#log = changes;
    this.number = number;
    this.#ids = ids;
  }

  /**
   * Begins an undo, and carries it out if it fits into one step.
   * @returns how far it is, and the undo if it has to be continued.
   */
  static async begin(
    changes: ChangeLog,
    request: UndoRequest,
    once: Once | undefined,
    deadline?: number,
  ): Promise<UndoOutcome> {
    const read = async (log: LogReader) => (await knownFor(log, once)) ?? planOf(log, request);
    const plan = await changes.read(read, deadline);
    if (typeof plan === 'string') return plan;
    const begun = 'known' in plan ? plan : await changes.write((log) => beginStep(log, plan, once), deadline);
    if (typeof begun === 'string') return begun;
    const isReplay = 'known' in begun;
    const progress = isReplay ? begun.known : begun;
    if (progress.event === null || isDone(progress)) return { progress, isReplay };
    const isAsPlanned = 'ids' in plan && !isReplay && plan.ids.count === progress.books;
    const ids = isAsPlanned ? plan.ids : undefined;
    return { progress, isReplay, rest: new Undo(changes, progress.event, ids) };
  }

  /**
   * Finds out the result of an undo, without it.
   * @param isEnough called with how far it is.
   */
  static look(
    changes: ChangeLog,
    request: UndoRequest,
    isEnough: (progress: UndoProgress) => boolean,
    deadline?: number,
  ): Promise<UndoProgress | NotUndone> {
    return changes.read(async (log) => {
      const plan = await planOf(log, request);
      if (typeof plan === 'string') return plan;
      const { selection, ids } = plan;
      const left: number[] = [];
      const progress = { ...NOTHING, books: ids.count, left };
      for (let through = 0; !isDone(progress) && !isEnough(progress); ) {
        const books = await log.past(ids.next(through, TOGETHER), selection);
        const { restored, leftAlone } = decisionsOn(books);
        left.push(...leftAlone.slice(0, NAMED - left.length));
        progress.changedLater += leftAlone.length;
        progress.undone += restored.length;
        progress.checked += books.length;
        through = (books.at(-1) as PastBook).id;
      }
      return progress;
    }, deadline);
  }

  /** Takes the next part back. @returns how far it is then; undefined if there is no such undo. */
  async continue(deadline?: number): Promise<UndoProgress | undefined> {
    this.#ids ??= await this.#log.read(async (log) => {
      const work = workOf(await log.event(this.number));
      return work === undefined ? new Ids() : await log.booksOf(work.selection);
    }, deadline);
    const ids = this.#ids;
    return await this.#log.write(async (log) => {
      if (workOf(await log.event(this.number)) === undefined) return undefined; // no change becomes a part of it
      const event = await log.resume(this.number);
      const work = workOf(event);
      if (event === undefined || work === undefined) return undefined;
      if (work.checked < work.books) return await takeBack(log, event, work, ids, PART);
      await log.end(this.number, 0);
      return progressOf(event);
    }, deadline);
  }
}

async function planOf(log: LogReader, request: UndoRequest): Promise<Plan | NotUndone> {
  const selection = await select(log, request);
  if (typeof selection === 'string') return selection;
  const ids = await log.booksOf(selection);
  return 'from' in selection && ids.count === 0 ? 'unknown' : { selection, ids };
}

async function select(log: LogReader, request: UndoRequest): Promise<Selection | NotUndone> {
  if ('since' in request) return (await log.reaches(request.since)) ? request : 'beyond';
  const isChange = 'change' in request;
  const key = isChange ? request.change : request.event;
  if (typeof key !== 'number') return key;
  if ((await log.event(key)) !== undefined) return { event: key };
  const book = isChange ? await log.bookOf(key) : undefined;
  return book === undefined ? 'unknown' : { change: key, book };
}

async function knownFor(log: LogReader, once: Once | undefined): Promise<Known | undefined> {
  if (once === undefined) return undefined;
  const known = await log.known(once.key);
  if (known === undefined) return undefined;
  if (known.fingerprint !== once.fingerprint) return 'conflict';
  const [number] = known.ids;
  if (number === undefined) return { known: NOTHING };
  const progress = progressOf(await log.event(number));
  return progress === undefined ? 'unknown' : { known: progress };
}

async function beginStep(
  log: LogWriter,
  { selection, ids: planned }: Plan,
  once: Once | undefined,
): Promise<UndoProgress | Known> {
  if (once !== undefined && !(await log.claim(once))) return (await knownFor(log, once)) ?? 'conflict';
  const isEnded = 'event' in selection && (await endUndo(log, selection.event));
  if (planned.count === 0) return NOTHING;
  const { number, before } = await log.begin('undo', null);
  if (once !== undefined) await log.keep(once.key, [number]);
  // To complete an import would leave out the books that are taken back. It may have stored more since the plan was made.
  const mayHaveImport = 'event' in selection || 'since' in selection;
  const isImport =
    mayHaveImport && (await log.imports.close('event' in selection ? selection.event : undefined));
  const ids = isImport || isEnded ? await log.booksOf(selection) : planned;
  const books = ids.count;
  const bounded = 'since' in selection ? { ...selection, before } : selection;
  const work: UndoWork = { selection: bounded, books, checked: 0, through: 0, left: [], changedLater: 0 };
  const bounds = books > STEP.books ? { ...STEP, books: 0 } : STEP;
  return await takeBack(log, { number, books: 0 }, work, ids, bounds);
}

/** Ends an undo that is taken back before it is complete. @returns whether it was such a one. */
async function endUndo(log: LogWriter, number: number): Promise<boolean> {
  if (workOf(await log.event(number)) === undefined) return false;
  const work = workOf(await log.resume(number));
  const isOpen = work !== undefined && work.checked < work.books;
  await log.end(number, 0, isOpen ? { ...work, books: work.checked } : undefined);
  return isOpen;
}

/** Takes the changes of the next books back, within bounds. */
async function takeBack(
  log: LogWriter,
  event: Pick<CatalogueEvent, 'number' | 'books'>,
  before: UndoWork,
  ids: Ids,
  bounds: Bounds,
): Promise<UndoProgress> {
  let { through, checked, changedLater } = before;
  const left = [...before.left];
  let undone = 0;
  let rows = 0;
  let bytes = 0;
  const end = checked + bounds.books;
  while (checked < end && rows < bounds.rows && bytes < bounds.bytes) {
    const next = ids.next(through, Math.min(TOGETHER, ids.together, end - checked));
    if (next.length === 0) break;
    const books = await log.past(next, before.selection);
    const { restored, leftAlone } = decisionsOn(books);
    await log.restore(restored);
    ids.together = 2 * books.length; // fewer after books with a long past, and then more again
    left.push(...leftAlone.slice(0, NAMED - left.length));
    changedLater += leftAlone.length;
    undone += restored.length;
    checked += books.length;
    rows += books.reduce((sum, { changes }) => sum + changes.length, 0);
    bytes += books.reduce((sum, book) => sum + book.bytes, 0);
    through = (books.at(-1) as PastBook).id;
  }
  const isEnd = ids.next(through, 1).length === 0;
  // Another process may have found more books, or fewer: a transaction with changes may have been in progress.
  const books = isEnd ? checked : Math.max(before.books, checked + 1);
  const work = { ...before, books, checked, through, left, changedLater };
  await log.end(event.number, undone, work);
  return { ...work, event: event.number, undone: event.books + undone };
}

/** @returns the books that become what they were, and the ids of books that are left as they are. */
function decisionsOn(books: readonly PastBook[]): { restored: Restored[]; leftAlone: number[] } {
  const restored: Restored[] = [];
  const leftAlone: number[] = [];
  for (const { id, changes, present } of books) {
    const decision = decide(changes, present);
    if (decision === 'left') leftAlone.push(id);
    else if (decision !== 'same')
      restored.push({
        id,
        change: decision.number,
        isRemoved: decision.state === null,
        isNew: present === null,
      });
  }
  return { restored, leftAlone };
}
