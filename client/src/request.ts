// Owns: one request and its answer, retried as long as that is useful and in time. It is independent of logins and
// books.
// Does not: repeat requests that are not safe to repeat. Those that store books or take changes back have an Idempotency-Key.

import type { Deadline } from './deadline.ts';
import { CatalogueError, CursorExpired, WrongCredentials } from './errors.ts';

/** JSON if it is a text, else a file. A stream can be sent once. */
export type Body = string | Uint8Array | Blob | ReadableStream<Uint8Array>;

export interface Request {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly url: URL;
  /** It may change the catalogue. */
  readonly isChange?: true;
  /** The same in every attempt, even if the caller changes its objects meanwhile. */
  readonly body?: Body;
  /** Beside those of every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Seconds from the start of the call for which the service may hold its answer back. A retry asks for those that are
   * left, so that the timeout stays for everything else.
   */
  readonly wait?: number;
  /** The body of an answer with status 200 is left unread. */
  readonly isStreamed?: true;
}

export interface Circumstances {
  readonly deadline: Deadline;
  readonly fetch: typeof fetch;
  /** The name and the value of the header that lets the request through. */
  readonly login?: readonly [name: string, value: string];
  readonly requestId?: string | undefined;
}

export interface Answer {
  /** Undefined when there was no answer. */
  readonly status: number | undefined;
  /** The service's message, or the reason for its absence. */
  readonly message: string;
  /** Undefined when the answer is not the service's. */
  readonly data: unknown;
  /** The body that is left unread. */
  readonly stream?: ReadableStream<Uint8Array>;
  readonly headers?: Headers;
  readonly requestId: string | undefined;
  /** Whether this attempt or an earlier one may have carried out the request, with an unknown outcome. */
  readonly mayBeDone: boolean;
  readonly cause?: unknown;
}

/** Statuses that mean "not now": the service's own, and those of proxies that cannot reach it. */
const NOT_NOW: readonly unknown[] = [429, 502, 503, 504];

/** Milliseconds before a retry if the answer has no `Retry-After`: doubled each time, up to a longest. */
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 2000;

/**
 * Sends a request until there is an answer other than "not now", or no time for another attempt.
 * @throws the reason of the caller's signal, and nothing else.
 */
export async function send(request: Request, circumstances: Circumstances): Promise<Answer> {
  const { method, url, isChange = false, body = null, wait = 0 } = request;
  const { deadline, fetch, login, requestId } = circumstances; // browsers refuse a fetch that is called as a method
  const headers = new Headers(request.headers);
  if (login !== undefined) headers.set(...login);
  if (requestId !== undefined) headers.set('x-request-id', requestId);
  if (typeof body === 'string') headers.set('content-type', 'application/json');
  const isOnce = isStream(body);
  let mayBeDone = false;
  for (let attempt = 0; ; attempt += 1) {
    const waitLeft = Math.round(wait - deadline.spent / 1000);
    if (waitLeft > 0) headers.set('prefer', `wait=${waitLeft}`);
    else if (wait > 0) headers.delete('prefer');
    let answer: Answer;
    try {
      const response = await fetch(url, {
        ...{
          method,
          headers,
          body: body as NonNullable<RequestInit['body']> | null,
          signal: deadline.signal,
        },
        ...(isOnce && { duplex: 'half' }),
      });
      answer = await readAnswer(response, request, requestId);
    } catch (cause) {
      if (deadline.isGivenUp) throw deadline.signal.reason;
      const message = deadline.isOver ? deadline.message : `no answer from ${url.origin}: ${wordsOf(cause)}`;
      answer = noAnswer(message, cause, { requestId, mayBeDone: isChange });
    }
    mayBeDone ||= answer.mayBeDone;
    const isFinal = isOnce || (answer.status !== undefined && !NOT_NOW.includes(answer.status));
    const pause = pauseBefore(attempt + 1, answer);
    if (isFinal || deadline.remaining < pause) return { ...answer, mayBeDone };
    await deadline.pause(pause);
  }
}

/** Whether it can be sent only once. */
export function isStream(body: Body | null = null): boolean {
  return body instanceof ReadableStream;
}

/** Stands for a missing answer. */
export function noAnswer(
  message: string,
  cause: unknown,
  { requestId, mayBeDone = false }: { requestId?: string | undefined; mayBeDone?: boolean } = {},
): Answer {
  return { status: undefined, message, data: undefined, requestId, mayBeDone, cause };
}

/**
 * The data of an answer with the expected status.
 * @throws CatalogueError for any other answer.
 */
export function dataOf(answer: Answer, status: number): unknown {
  if (answer.status === status && answer.data !== undefined) return answer.data;
  throw failureOf(answer);
}

/**
 * The query of the next page. Only the query is taken from the link: its path is another one behind a proxy.
 * @returns undefined when the answer has no link to a next page.
 */
export function nextOf({ headers }: Answer): URLSearchParams | undefined {
  const query = /<[^>?]*\?([^>]*)>; rel="next"/.exec(headers?.get('link') ?? '')?.[1];
  return query === undefined ? undefined : new URLSearchParams(query);
}

/** The error of a call that has got no other answer than this one. */
export function failureOf(answer: Answer): CatalogueError {
  if (answer.message === 'Invalid credentials' || answer.message === 'Session expired')
    return new WrongCredentials(answer.message, answer);
  if (answer.message === 'Cursor no longer valid') return new CursorExpired(answer.message, answer);
  const isForeign = answer.status !== undefined && answer.data === undefined;
  return new CatalogueError(answer.message, { ...answer, isForeign });
}

async function readAnswer(response: Response, request: Request, sentId: string | undefined): Promise<Answer> {
  const { status, statusText, headers, body } = response;
  const common = { status, headers, requestId: headers.get('x-request-id') ?? sentId };
  if (request.isStreamed && status === 200 && body !== null) {
    return { ...common, message: '', data: null, stream: body, mayBeDone: false };
  }
  const { message, data } = readEnvelope(await response.text()) ?? {
    message: `${`${status} ${statusText}`.trim()}: not the answer of a book catalogue`, // HTTP/2 has no text
    data: undefined,
  };
  const isUnknown = status >= 500 || data === undefined;
  return { ...common, message, data, mayBeDone: isUnknown && request.isChange === true };
}

/** @returns undefined when the text is not an envelope. */
export function readEnvelope(text: string): { message: string; data: unknown } | undefined {
  try {
    const { message, data } = JSON.parse(text);
    return typeof message === 'string' && data !== undefined ? { message, data } : undefined;
  } catch {
    return undefined;
  }
}

/** Milliseconds, with random jitter, so that clients that were refused together do not come back together. */
function pauseBefore(attempt: number, { headers }: Answer): number {
  const seconds = Number(headers?.get('retry-after') ?? Number.NaN);
  const pause = seconds > 0 ? seconds * 1000 : Math.min(FIRST_PAUSE * 2 ** (attempt - 1), LONGEST_PAUSE);
  return pause * (1 + Math.random() / 4);
}

/** Some errors have the reason only in their cause. */
function wordsOf(error: unknown): string {
  const reason = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return reason instanceof Error ? reason.message || reason.name : String(reason);
}

/** A new `Idempotency-Key` of 128 bits. `crypto.randomUUID` is missing on pages without TLS. */
export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
