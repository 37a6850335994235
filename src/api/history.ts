// Owns: what a client does with the log of changes: reading the changes after a page, the states of a book and events, and taking
// changes back (rules H1 to H9).

import { readBookId } from '../books/book.ts';
import type { PageOfChanges, UndoRequest } from '../books/change-log.ts';
import { readEventKey } from '../books/event-key.ts';
import type { EventsPlace } from '../books/events.ts';
import { LARGEST_PAGE } from '../books/search.ts';
import { isDone, progressOf } from '../books/undo.ts';
import type { Answer } from '../http/answer.ts';
import { parseBody, readBody } from '../http/body.ts';
import { asJsonObject } from '../json/parse.ts';
import { readTime } from '../rfc3339.ts';
import { INVALID, idempotencyKeyOf } from './conditions.ts';
import * as answers from './envelope.ts';
import type { AppParts, Exchange } from './exchange.ts';
import { asCursor, contentOf, PAGE, readLimit, readParameters } from './query.ts';

const SECOND = 1000;

/** The cursor of the present moment (rule H1). */
const NOW = 'now';

/** Events of a page, unless `limit` says otherwise; and at most. */
export const EVENTS = 20;
export const MOST_EVENTS = 100;

/** Of pages that several requests may have read together. */
const shared = new WeakMap<PageOfChanges, Answer>();

export async function readChanges(
  { request, path }: Exchange,
  { catalogue, times }: AppParts,
): Promise<Answer> {
  const query = readPlace(path.query, (text) => {
    const content = text === NOW ? NOW : contentOf(text);
    return content === NOW || Array.isArray(content) ? content : undefined;
  });
  if ('invalid' in query) return answers.invalidParameter(query.invalid);
  const { cursor, limit } = query;
  // No change is after a moment that is always the present one.
  const wait = cursor === NOW ? 0 : Math.min(waitOf(request.headers.prefer), times.api.wait);
  const left = new AbortController();
  request.onLeave(() => left.abort());
  const { page, waited } = await catalogue.changes(cursor, limit, wait, left.signal);
  if (page === 'gone') return answers.CURSOR_GONE;
  const headers = ['link', linkTo('/changes', limit, page.cursor)];
  if (waited !== undefined) headers.push('preference-applied', `wait=${wait / SECOND}`);
  const answer = shared.get(page) ?? inBytes(answers.changesRetrieved(page.changes));
  shared.set(page, answer);
  return { ...answer, own: headers, ...(waited !== undefined && { waited }) };
}

export async function readHistory({ path }: Exchange, { catalogue }: AppParts): Promise<Answer> {
  const query = readPlace(path.query, readNumber);
  if ('invalid' in query) return answers.invalidParameter(query.invalid);
  const { cursor, limit } = query;
  const id = readBookId(path.sent.slice('/book/'.length, -'/history'.length));
  if (id === undefined) return answers.BOOK_NOT_FOUND;
  const { states, next } = await catalogue.states(id, cursor, limit);
  const [known] = states.length > 0 ? states : (await catalogue.states(id, undefined, 1)).states;
  if (known === undefined) return answers.BOOK_NOT_FOUND;
  const link = next === undefined ? [] : ['link', linkTo(`/book/${id}/history`, limit, next)];
  return answers.historyRetrieved(states, link);
}

/** With `dry-run`, nothing is taken back. */
export async function undoChanges(exchange: Exchange, { catalogue, config }: AppParts): Promise<Answer> {
  const parameters = readParameters(exchange.path.query, (name, value) => name === 'dry-run' && value === '');
  if ('invalid' in parameters) return answers.invalidParameter(parameters.invalid);
  const key = idempotencyKeyOf(exchange);
  if (key === INVALID) return answers.INVALID_KEY;
  const request = readUndo(asJsonObject(parseBody(await readBody(exchange.request, config.bodyLimit))));
  if (request === undefined) return answers.INVALID_BOOK;
  if (parameters.has('dry-run')) {
    const progress = await catalogue.checkUndo(request);
    return typeof progress === 'string' ? answers.NOT_UNDONE[progress] : answers.undoChecked(progress);
  }
  const outcome = await catalogue.undo(request, key);
  if (outcome === 'conflict') return answers.KEY_USED;
  if (typeof outcome === 'string') return answers.NOT_UNDONE[outcome];
  const { progress, rest } = outcome;
  const event = rest && (await catalogue.event(rest.number));
  const answer = event === undefined ? answers.changesUndone(progress) : answers.undoInProgress(event);
  return outcome.isReplay ? answers.replayOf(answer) : answer;
}

export async function readEvents({ path }: Exchange, { catalogue }: AppParts): Promise<Answer> {
  const query = readPlace(path.query, (text) => readEventsPlace(contentOf(text)), EVENTS, MOST_EVENTS);
  if ('invalid' in query) return answers.invalidParameter(query.invalid);
  const { cursor = [null, null], limit } = query;
  const { events, next } = await catalogue.events(cursor, limit);
  return answers.eventsRetrieved(events, next === undefined ? [] : ['link', linkTo('/events', limit, next)]);
}

export async function readBooksOfEvent({ path }: Exchange, { catalogue }: AppParts): Promise<Answer> {
  const query = readPlace(path.query, readNumber);
  if ('invalid' in query) return answers.invalidParameter(query.invalid);
  const { cursor = 0, limit } = query;
  const name = path.sent.slice('/event/'.length, -'/books'.length);
  const key = readEventKey(name);
  const found = key === undefined ? undefined : await catalogue.booksOfEvent(key, cursor, limit);
  if (found === undefined) return answers.EVENT_NOT_FOUND;
  const { books, next } = found;
  const link = next === undefined ? [] : ['link', linkTo(`/event/${name}/books`, limit, next)];
  return answers.booksOfEventRetrieved(books, link);
}

/** With `POST`, an undo that is not complete is continued. */
export async function readEvent({ request, path }: Exchange, { catalogue }: AppParts): Promise<Answer> {
  const key = readEventKey(path.sent.slice('/event/'.length));
  if (typeof key === 'object') {
    const run = await catalogue.run(key);
    return run === undefined ? answers.EVENT_NOT_FOUND : answers.runRetrieved(run);
  }
  const event = key === undefined ? undefined : await catalogue.event(key);
  if (event === undefined) return answers.EVENT_NOT_FOUND;
  const progress = progressOf(event);
  if (request.method !== 'POST' || progress === undefined || isDone(progress))
    return answers.eventRetrieved(event);
  catalogue.continue(event.number);
  return answers.undoInProgress(event);
}

/** Several answers share the memory of their bytes; a text would be copied for each. */
function inBytes(answer: answers.EnvelopeAnswer): Answer {
  return { ...answer, body: Buffer.from(answer.body) };
}

/** A place that is a number. */
function readNumber(text: string): number | undefined {
  const content = contentOf(text);
  return isNumber(content) ? content : undefined;
}

function readEventsPlace(content: unknown): EventsPlace | undefined {
  const isPlace =
    Array.isArray(content) &&
    content.length === 2 &&
    (content[0] === null || Number.isSafeInteger(content[0])) && // a time may be before 1970
    (content[1] === null || isNumber(content[1]));
  return isPlace ? (content as unknown as EventsPlace) : undefined;
}

function isNumber(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) > 0;
}

/** @returns undefined unless it has one of the three, and that is valid. */
function readUndo(body: Readonly<Record<string, unknown>> = {}): UndoRequest | undefined {
  const { change, event, since } = body;
  if ([change, event, since].filter((value) => value !== undefined).length !== 1) return undefined;
  if (isNumber(change)) return { change };
  if (isNumber(event)) return { event };
  if (typeof event === 'string') {
    const key = readEventKey(event);
    return typeof key === 'object' ? { event: key } : undefined;
  }
  const time = typeof since === 'string' ? readTime(since) : undefined;
  return time === undefined ? undefined : { since: time };
}

/**
 * @param read makes a place of a cursor; undefined if it is none.
 * @param usual elements of a page without `limit`.
 * @returns the name of the first invalid parameter, if there is one.
 */
function readPlace<Shard>(
  query: string,
  read: (text: string) => Shard | undefined,
  usual = PAGE,
  most = LARGEST_PAGE,
): { readonly cursor: Shard | undefined; readonly limit: number } | { readonly invalid: string } {
  let limit = usual;
  let cursor: Shard | undefined;
  const parameters = readParameters(query, (name, value) => {
    if (name === 'cursor') cursor = read(value);
    else if (name === 'limit') limit = readLimit(value, most);
    else return false;
    return name === 'cursor' ? cursor !== undefined : limit > 0;
  });
  return 'invalid' in parameters ? parameters : { cursor, limit };
}

function linkTo(path: string, limit: number, cursor: unknown): string {
  return `<${path}?limit=${limit}&cursor=${asCursor(cursor)}>; rel="next"`;
}

/** @param prefer the header `Prefer` (RFC 7240). @returns milliseconds; 0 if it asks for no wait. */
function waitOf(prefer = ''): number {
  const [, seconds = 0] = /(?:^|,)\s*wait\s*=\s*"?(\d+)"?\s*(?:,|;|$)/i.exec(prefer) ?? [];
  return Number(seconds) * SECOND;
}
