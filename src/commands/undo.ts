// Owns: `undo`: takes changes back that any program has made, and lists imports and undos (rule H5).
// Does not: change anything without `--yes`.

import { readBookId } from '../books/book.ts';
import type { NotUndone, UndoRequest } from '../books/store.ts';
import { readSetting } from '../config.ts';
import { reasonOf } from '../error-words.ts';
import { OperatorError } from '../operator-error.ts';
import { readTime } from '../read-time.ts';
import type { BulkStore, EventOfLog } from '../stores/bulk.ts';
import { describeStore, readDbUrl } from '../stores/open.ts';
import { counted } from '../terminal/counted.ts';
import { printable } from '../terminal/printable.ts';
import { Progress } from '../terminal/progress.ts';
import { TIMES } from '../times.ts';
import { type Arguments, type CommandContext, UsageError } from './command.ts';

export const HELP = `Usage: book-catalogue undo --since TIME | --book ID | --import NUMBER | --change NUMBER [--yes]
       book-catalogue undo --list

Takes back changes that any program has made in the store that DB_URL names; removed books return under their ids. The
service may keep running. Books that were changed later are left, and named. Without --yes, it only says what it would do.

  --since TIME     all changes since a time, such as 10:40, "2026-11-27 10:40" or 2026-11-27T10:40:00Z, but no undo
  --book ID        the newest change of a book
  --import NUMBER  an import
  --change NUMBER  a change of GET /book/<id>/history, or an undo
  --list           lists the newest imports and undos, with their numbers
  --yes            does it
`;

export const OPTIONS = {
  since: { type: 'string' },
  book: { type: 'string' },
  import: { type: 'string' },
  change: { type: 'string' },
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
  const { env, stdout } = context;
  const wanted = ['since', 'book', 'import', 'change', 'list'].filter((name) => options[name] !== undefined);
  const [name = ''] = wanted;
  if (wanted.length !== 1)
    throw new UsageError(`Name one of --since, --book, --import, --change and --list. ${SEE}`);
  const text = String(options[name]);
  const value = name === 'list' ? 0 : name === 'since' ? timeOf(text) : numberOf(name, text);
  const url = readSetting('dbUrl', env);
  const store = await openExisting(url, options.yes === true && name !== 'list');
  try {
    if (name !== 'list')
      return await undo(context, store, await requestOf(store, name, value), options.yes === true);
    stdout.write(listOf(await store.events(LISTED)));
    return 0;
  } catch (error) {
    if (error instanceof OperatorError || error instanceof UsageError) throw error;
    const reason = `the undo ended early: ${context.signal.aborted ? 'stopped' : reasonOf(error)}`;
    throw new OperatorError(`${describeStore(url)}: ${reason}. Start it again for the rest.`);
  } finally {
    await store.close().catch(() => {}); // after a failure, closing may fail as well
  }
}

/**
 * @param isMeant whether it is to be changed. Otherwise it may be read-only.
 * @throws OperatorError if there is no store.
 */
export async function openExisting(url: string, isMeant: boolean): Promise<BulkStore> {
  const at = await readDbUrl(url);
  const found = await at.openBulk('read', TIMES);
  if (found === undefined) throw new OperatorError(`DB_URL: there is no catalogue at ${describeStore(url)}.`);
  try {
    const store = await at.openBulk('write', TIMES); // it notes the new books of other programs, and begins a missing log
    await found.close();
    return store;
  } catch (error) {
    if (!isMeant) return found;
    await found.close();
    throw error;
  }
}

async function undo(
  { env, stdout, stderr, signal }: CommandContext,
  store: BulkStore,
  request: UndoRequest,
  isMeant: boolean,
): Promise<number> {
  const found = await store.undo(request, !isMeant);
  if (typeof found === 'string') throw new OperatorError(REASONS[found]);
  if ('since' in request) stdout.write(`Since ${utc(request.since)}, ${ago(request.since)}:\n`);
  const number = isMeant && found.books > 0 ? await store.beginEvent('undo', null) : undefined;
  const progress = new Progress({ stderr, env });
  const left: number[] = [];
  let undone = 0;
  try {
    for await (const part of found.parts) {
      undone += part.undone;
      left.push(...part.left);
      signal.throwIfAborted();
      progress.at('books taken back', undone + left.length, found.books, undone);
    }
    if (isMeant) await store.assertNewest();
  } finally {
    progress.end();
  }
  const books = counted(undone, 'book');
  if (isMeant) {
    stdout.write(`${books} taken back.\n`);
    if (undone > 0) stdout.write(`To take this back: book-catalogue undo --change ${number} --yes\n`);
  } else if (undone > 0)
    stdout.write(`${books} would be taken back. Nothing was changed: add --yes to do it.\n`);
  else stdout.write('Nothing would be taken back.\n');
  if (left.length > 0) {
    const ids = left.slice(0, LISTED).join(', ');
    const more = left.length > LISTED ? `, and ${left.length - LISTED} more` : '';
    stdout.write(`${counted(left.length, 'book')} left, changed later: ${ids}${more}\n`);
  }
  return 0;
}

const REASONS: Readonly<Record<NotUndone, string>> = {
  unknown:
    'There is no such change, or it is no longer kept: see book-catalogue undo --list and GET /book/<id>/history.',
  beyond: 'The changes since then are not all kept: name a later time.',
  many: 'There are too many changes.',
  distributed: 'Citus distributes its table "books", and nothing can be taken back there.',
};

/**
 * @param name of the option with the value.
 * @throws OperatorError
 */
async function requestOf(store: BulkStore, name: string, value: number): Promise<UndoRequest> {
  if (name !== 'book') return { [name]: value } as UndoRequest;
  const change = await store.newestChangeOf(value);
  if (change === undefined) throw new OperatorError(`No change of book ${value} is known.`);
  return { change };
}

/** @throws UsageError */
function numberOf(option: string, text: string): number {
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
  return `${new Date(moment).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** A whole number of the largest unit of which there are two, so that it is never far off. */
function ago(moment: number): string {
  const seconds = Math.floor((Date.now() - moment) / 1000);
  const [unit, length] = UNITS.find(([, length]) => seconds >= 2 * length) ?? ['second', 1];
  return `${counted(Math.floor(seconds / length), unit)} ago`;
}

/** A line for each, with its number, time, kind, books and name. */
function listOf(events: readonly EventOfLog[]): string {
  if (events.length === 0) return 'No import and no undo is known.\n';
  const lines = events.map(({ number, at, event, books, name }) => {
    return `${String(number).padStart(8)}  ${utc(at)}  ${event.padEnd(6)}  ${counted(books, 'book').padStart(12)}  ${printable(name ?? '')}`;
  });
  return `${lines.map((line) => line.trimEnd()).join('\n')}\n`;
}
