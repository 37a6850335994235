// Owns: the events of the log (rules H7 to H9): imports, undos, and runs of single changes, which are found when they are asked for.

import type {
  CatalogueEvent,
  ChangedBook,
  EventKey,
  LogReader,
  Run,
  Selection,
  SingleChange,
} from './change-log.ts';
import { Ids } from './ids.ts';
import { HEAVY, weightOfChanged } from './store.ts';

/** An event as it is listed. Times are milliseconds since 1970. */
export interface ListedEvent {
  /** Undefined of the beginning of the log. */
  readonly key: EventKey | undefined;
  readonly kind: CatalogueEvent['kind'] | 'changes' | 'beginning';
  readonly at: number;
  readonly until: number;
  readonly name: string | null;
  /** How many books it has changed; null if that was not counted. */
  readonly books: number | null;
  /** Some of its books. */
  readonly first: readonly ChangedBook[];
}

/** Where the next page of events begins: before a time and a number; null at the beginning. */
export type EventsPlace = readonly [runsBefore: number | null, numbersBefore: number | null];

export interface PageOfEvents {
  readonly events: readonly ListedEvent[];
  /** Undefined if no older ones follow. */
  readonly next: EventsPlace | undefined;
}

/** Changes less than this apart are one run: milliseconds. */
const GAP = 5 * 60_000;
/** A run ends with its day in UTC, so that it is never long: milliseconds. */
const DAY = 86_400_000;
/** The most changes of a run whose books are counted. */
const COUNTED = 1000;
/** Books that are shown of an event. */
const SHOWN = 3;
/** After all times. */
const END_OF_TIME = 8.64e15;

/** Some changes of a run, the newest first. */
interface FoundRun extends Run {
  readonly changes: readonly SingleChange[];
  readonly isWhole: boolean;
}

/** The newest events before a place, the newest first; the last one of all is the beginning of the log. */
export async function listEvents(log: LogReader, place: EventsPlace, most: number): Promise<PageOfEvents> {
  const [runsBefore, numbersBefore] = place;
  const runs = await runsBeforeTime(log, runsBefore ?? END_OF_TIME, most + 1);
  const numbered = await log.events.newest(numbersBefore ?? undefined, most + 1);
  const all = [...runs, ...numbered].sort((one, other) => latestOf(other) - latestOf(one));
  const events: ListedEvent[] = [];
  let next = place;
  let weight = 0;
  for (const one of all.slice(0, most)) {
    const listed = 'number' in one ? await listedOf(log, one) : await listedRunOf(log, one);
    events.push(listed);
    next = 'number' in one ? [next[0], one.number] : [one.from, next[1]];
    weight += listed.first.reduce((sum, changed) => sum + weightOfChanged(changed), 0);
    if (weight >= HEAVY) break;
  }
  if (events.length < all.length) return { events, next };
  const began = await log.began();
  const beginning = { key: undefined, kind: 'beginning', name: null, books: 0, first: [] } as const;
  return { events: [...events, { ...beginning, at: began, until: began }], next: undefined };
}

/** @returns undefined if the log has no such event. */
export async function findRun(log: LogReader, run: Run): Promise<ListedEvent | undefined> {
  const changes = await log.events.singleChanges(run.until + 1, COUNTED + 1);
  const own = changes.filter(({ at }) => at >= run.from);
  return own.length === 0
    ? undefined
    : await listedRunOf(log, { ...run, changes: own, isWhole: own.length <= COUNTED });
}

function latestOf(event: FoundRun | CatalogueEvent): number {
  return 'number' in event ? event.at : event.until;
}

async function listedOf(log: LogReader, event: CatalogueEvent): Promise<ListedEvent> {
  const { number, at, kind, name, books } = event;
  const selection = { event: number };
  const first = await log.events.changed(selection, await idsAfter(log, selection, 0, SHOWN));
  return { key: number, kind, at, until: at, name, books, first };
}

async function listedRunOf(
  log: LogReader,
  { from, until, changes, isWhole }: FoundRun,
): Promise<ListedEvent> {
  const run = { from, until };
  const ids = new Ids(changes);
  const first = await log.events.changed(run, ids.next(0, SHOWN));
  const books = isWhole ? ids.count : null;
  return { key: run, kind: 'changes', at: from, until, name: null, books, first };
}

/**
 * The books of an event after an id, ascending.
 * @returns them, and the id after which more follow; undefined if the log has no such event.
 */
export async function booksOf(
  log: LogReader,
  key: EventKey,
  after: number,
  most: number,
): Promise<{ readonly books: readonly ChangedBook[]; readonly next: number | undefined } | undefined> {
  const selection = typeof key === 'number' ? { event: key } : key;
  const ids = await idsAfter(log, selection, after, most + 1);
  if (ids.length === 0 && !(await isThere(log, key))) return undefined;
  const books = await log.events.changed(selection, ids.slice(0, most));
  return { books, next: books.length < ids.length ? books.at(-1)?.id : undefined };
}

async function isThere(log: LogReader, key: EventKey): Promise<boolean> {
  if (typeof key === 'number') return (await log.event(key)) !== undefined;
  return (await log.events.idsAfter(key, 0, 1)).length > 0;
}

/** @returns the next ids of books that the changes are about, ascending: fewer than `most` only at the end. */
async function idsAfter(
  { events }: LogReader,
  selection: Selection,
  after: number,
  most: number,
): Promise<readonly number[]> {
  const ids: number[] = [];
  while (ids.length < most) {
    const next = await events.idsAfter(selection, ids.at(-1) ?? after, most - ids.length);
    if (next.length === 0) break;
    ids.push(...next);
  }
  return ids;
}

/** @param most of the newest runs before the time. */
async function runsBeforeTime(log: LogReader, before: number, most: number): Promise<readonly FoundRun[]> {
  const runs: FoundRun[] = [];
  while (runs.length < most) {
    const changes = await log.events.singleChanges(before, COUNTED + 1);
    const isRest = changes.length <= COUNTED;
    const found = runsOf(changes);
    const last = found.pop();
    if (last === undefined) break;
    runs.push(...found);
    if (isRest) runs.push(last);
    else if (found.length === 0) {
      const from = await log.events.beginningOfRun(last.from, dayOf(last.from) * DAY, GAP);
      runs.push({ ...last, from, isWhole: false });
    }
    if (isRest) break;
    before = (runs.at(-1) as FoundRun).from;
  }
  return runs.slice(0, most);
}

/** @param changes the newest first. */
function runsOf(changes: readonly SingleChange[]): FoundRun[] {
  const runs: { from: number; until: number; changes: SingleChange[]; isWhole: true }[] = [];
  for (const change of changes) {
    const { at } = change;
    const run = runs.at(-1);
    const isNext = run !== undefined && run.from - at < GAP && dayOf(at) === dayOf(run.from);
    if (isNext) {
      run.from = at;
      run.changes.push(change);
    } else runs.push({ from: at, until: at, changes: [change], isWhole: true });
  }
  return runs;
}

function dayOf(at: number): number {
  return Math.floor(at / DAY);
}
