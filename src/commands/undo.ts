// Owns: `undo`: takes changes back that any program has made, and lists the events of the log (rules H5 and H8).
// Does not: change anything without `--yes`.

import { readBookId } from '../books/book.ts';
import type { ChangeLog, EventKey, NotUndone, UndoRequest } from '../books/change-log.ts';
import { nameOf, readEventKey } from '../books/event-key.ts';
import { type ListedEvent, listEvents } from '../books/events.ts';
import { isDone, Undo, type UndoProgress } from '../books/undo.ts';
import { readSetting } from '../config.ts';
import { reasonOf } from '../error-words.ts';
import { OperatorError } from '../operator-error.ts';
import { readTime, writeTime } from '../rfc3339.ts';
import type { BulkStore } from '../stores/bulk.ts';
import { describeStore, readDbUrl } from '../stores/open.ts';
import { counted } from '../terminal/counted.ts';
import { printable } from '../terminal/printable.ts';
import { Progress } from '../terminal/progress.ts';
import { type Arguments, type CommandContext, UsageError } from './command.ts';

export const HELP = `Usage: book-catalogue undo --since TIME | --book ID | --event EVENT | --change NUMBER [--yes]
       book-catalogue undo --continue NUMBER --yes
       book-catalogue undo --list

Takes back changes that any program has made in the store that DB_URL names; removed books return under their ids. The
service may keep running. Books that were changed later are left, and named. Without --yes, it only says what it would do.

  --since TIME     all changes since a time, such as 10:40, "2026-11-27 10:40" or 2026-11-27T10:40:00Z, but no undo
  --book ID        the newest change of a book
  --event EVENT    an import, an undo, or changes that were made together, as in --list
  --change NUMBER  a change of GET /book/<id>/history, or an undo
  --continue NUMBER  the rest of an undo that ended early
  --list           lists the newest events, each with the time of its last change
  --yes            does it
`;

export const OPTIONS = {
  since: { type: 'string' },
  book: { type: 'string' },
  event: { type: 'string' },
  change: { type: 'string' },
  continue: { type: 'string' },
  list: { type: 'boolean' },
  yes: { type: 'boolean' },
} as const;

const SEE = 'See book-catalogue undo --help.';

const DAY = 86_400_000; // milliseconds

/** In seconds. */
const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const;

/** Lines of a list, and ids in a sentence. */
const LISTED = 1000;

export async function run(context: CommandContext, { options }: Arguments): Promise<number> {
  const { env, stdout, stderr, signal } = context;
  const wanted = ['since', 'book', 'event', 'change', 'continue', 'list'].filter(
    (name) => options[name] !== undefined,
  );
  const [name = ''] = wanted;
  if (wanted.length !== 1)
    throw new UsageError(`Name one of --since, --book, --event, --change, --continue and --list. ${SEE}`);
  const text = String(options[name]);
  const read = name === 'since' ? timeOf : name === 'event' ? keyOf : numberOf;
  const value = name === 'list' ? 0 : read(text, name);
  const url = readSetting('dbUrl', env);
  const isMeant = options.yes === true && name !== 'list';
  const store = await openExisting(context, url, isMeant);
  const { log } = store;
  const progress = new Progress({ stderr, env });
  /** Of an undo in progress. */
  let number: number | undefined;
  const show = ({ event, checked, books, undone }: UndoProgress) => {
    number = event ?? number;
    signal.throwIfAborted();
    progress.at('books taken back', checked, books, undone);
  };
  try {
    if (name === 'list') {
      const { events } = await log.read((rows) => listEvents(rows, [null, null], LISTED));
      stdout.write(events.map(lineOf).join(''));
      return 0;
    }
    if (name === 'continue') number = Number(value);
    const request = number === undefined ? await requestOf(log, name, value) : new Undo(log, number);
    const done = isMeant ? await takeBack(log, request, show) : await look(log, request, show);
    if (isMeant) await store.assertNewest();
    progress.end();
    if ('since' in request) stdout.write(`Since ${utc(request.since)}, ${ago(request.since)}:\n`);
    stdout.write(reportOf(done, isMeant));
    return 0;
  } catch (error) {
    if (error instanceof OperatorError || error instanceof UsageError) throw error;
    const reason = `the undo ended early: ${signal.aborted ? 'stopped' : reasonOf(error)}`;
    const rest = number === undefined ? '' : ` For the rest: book-catalogue undo --continue ${number} --yes`;
    throw new OperatorError(`${describeStore(url)}: ${reason}.${rest}`);
  } finally {
    progress.end();
    await store.close().catch(() => {}); // after a failure, closing may fail as well
  }
}

/**
 * @param isMeant whether it is to be changed. Otherwise it may be read-only.
 * @throws OperatorError if there is no store.
 */
export async function openExisting(
  { times }: Pick<CommandContext, 'times'>,
  url: string,
  isMeant: boolean,
): Promise<BulkStore> {
  const at = await readDbUrl(url);
  const found = await at.openBulk('read', times);
  if (found === undefined) throw new OperatorError(`DB_URL: there is no catalogue at ${describeStore(url)}.`);
  try {
    const store = await at.openBulk('write', times); // it notes the new books of other programs, and begins a missing log
    await found.close();
    return store;
  } catch (error) {
    if (!isMeant) return found;
    await found.close();
    throw error;
  }
}

/** Takes changes back. @param request for changes, or an undo that ended early. */
async function takeBack(
  log: ChangeLog,
  request: UndoRequest | Undo,
  show: (progress: UndoProgress) => void,
): Promise<UndoProgress> {
  let undo = request;
  if (!(undo instanceof Undo)) {
    const { progress, rest } = found(await Undo.begin(log, undo, undefined));
    if (rest === undefined) return progress;
    show(progress);
    undo = rest;
  }
  for (;;) {
    const progress = found(await undo.continue());
    if (isDone(progress)) return progress;
    show(progress);
  }
}

async function look(
  log: ChangeLog,
  request: UndoRequest | Undo,
  show: (progress: UndoProgress) => void,
): Promise<UndoProgress> {
  const isEnough = (progress: UndoProgress) => {
    show(progress);
    return false;
  };
  if (!(request instanceof Undo)) return found(await Undo.look(log, request, isEnough));
  throw new UsageError(`--continue needs --yes. ${SEE}`);
}

/** @throws OperatorError if the log has no such change. */
function found<Answer extends object>(answer: Answer | NotUndone | 'conflict' | undefined): Answer {
  if (typeof answer === 'object') return answer;
  throw new OperatorError(REASONS[answer === 'beyond' ? answer : 'unknown']);
}

function reportOf({ event, undone, left, changedLater }: UndoProgress, isMeant: boolean): string {
  const books = counted(undone, 'book');
  const lines = isMeant
    ? [
        `${books} taken back.`,
        ...(undone > 0 ? [`To take this back: book-catalogue undo --change ${event} --yes`] : []),
      ]
    : [
        undone > 0
          ? `${books} would be taken back. Nothing was changed: add --yes to do it.`
          : 'Nothing would be taken back.',
      ];
  if (changedLater > 0) {
    const ids = left.slice(0, LISTED).join(', ');
    const more = changedLater > LISTED ? `, and ${changedLater - LISTED} more` : '';
    lines.push(`${counted(changedLater, 'book')} left, changed later: ${ids}${more}`);
  }
  return lines.map((line) => `${line}\n`).join('');
}

const REASONS: Readonly<Record<NotUndone, string>> = {
  unknown:
    'There is no such change or event, or it is no longer kept: see book-catalogue undo --list and GET /book/<id>/history.',
  beyond: 'The changes since then are not all kept: name a later time.',
};

/**
 * @param name of the option with the value.
 * @throws OperatorError
 */
async function requestOf(log: ChangeLog, name: string, value: EventKey): Promise<UndoRequest> {
  if (name !== 'book') return { [name]: value } as UndoRequest;
  const change = await log.read((rows) => rows.newestChange(Number(value)));
  if (change === undefined) throw new OperatorError(`No change of book ${value} is known.`);
  return { change };
}

/** @throws UsageError */
function keyOf(text: string): EventKey {
  const key = readEventKey(text);
  if (key !== undefined) return key;
  throw new UsageError(`--event must be an event of book-catalogue undo --list. ${SEE}`);
}

/** @throws UsageError */
function numberOf(text: string, option: string): number {
  const number = readBookId(text); // numbers of changes are written like ids
  if (number !== undefined) return number;
  throw new UsageError(`--${option} must be a number. ${SEE}`);
}

/**
 * Without an offset, it is a time by the clocks of this machine; without a date, of today.
 * @returns milliseconds since 1970.
 * @throws UsageError
 */
function timeOf(text: string): number {
  const [, date, time, seconds = ':00', zone] =
    /^(\d{4}-\d\d-\d\d)?[T ]?(?:(\d\d:\d\d)(:\d\d(?:\.\d+)?)?)?( ?UTC|Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)?$/i.exec(
      text,
    ) ?? [];
  const ofZone =
    zone === undefined ? undefined : readTime(`1970-01-01T00:00:00${zone.replace(/ ?UTC/i, 'Z')}`);
  /** How far the clocks are behind UTC at this moment. */
  const behind = (moment: number) => ofZone ?? new Date(moment).getTimezoneOffset() * 60_000;
  const now = Date.now();
  const day = date ?? new Date(now - behind(now)).toISOString().slice(0, 10);
  const clock = readTime(`${day}T${time ?? '00:00'}${seconds}Z`);
  if ((date ?? time) === undefined || clock === undefined)
    throw new UsageError(
      `--since must be a time such as 10:40, "2026-11-27 10:40" or 2026-11-27T10:40:00Z. ${SEE}`,
    );
  const shown = `--since ${day} ${time ?? '00:00'}`;
  // The clocks may be put forward or back at that time: it is what they are before or after, or both, or neither.
  const all = [-DAY, DAY].map((way) => clock + behind(clock + way));
  const [moment, later] = new Set(all.filter((moment) => moment - behind(moment) === clock));
  if (moment === undefined)
    throw new UsageError(`${shown} never was: the clocks were put forward. Name an earlier time.`);
  if (later !== undefined)
    throw new UsageError(
      `${shown} was twice: the clocks were put back. Name "${utc(moment)}" or "${utc(later)}".`,
    );
  if (moment > now) throw new UsageError(`--since ${utc(moment)} is in the future: name an earlier time.`);
  return moment;
}

/** As people read it, and `--since` does. */
function utc(moment: number): string {
  return `${writeTime(moment).slice(0, 19).replace('T', ' ')} UTC`;
}

/** A whole number of the largest unit of which there are two, so that it is never far off. */
function ago(moment: number): string {
  const seconds = Math.floor((Date.now() - moment) / 1000);
  const [unit, length] = UNITS.find(([, length]) => seconds >= 2 * length) ?? ['second', 1];
  return `${counted(Math.floor(seconds / length), unit)} ago`;
}

/** What `--event` takes, the time of the last change, kind, books and name; of the beginning only when that was. */
function lineOf({ key, until, kind, books, name }: ListedEvent): string {
  if (key === undefined) return `The log begins at ${utc(until)}.\n`;
  const count = books === null ? 'many books' : counted(books, 'book');
  const line = `${String(nameOf(key)).padEnd(27)}  ${utc(until)}  ${kind.padEnd(7)}  ${count.padStart(12)}  ${printable(name ?? '')}`;
  return `${line.trimEnd()}\n`;
}
