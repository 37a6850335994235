// Owns: what the tests of the client share: a book, how a call has failed, and a catalogue with answers and time that the
// test decides.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import {
  BookCatalogue,
  BookChanged,
  type CallOptions,
  CatalogueError,
  type Search,
} from '../../client/src/book-catalogue.ts';
import { settled, VirtualTime } from './virtual-time.ts';

export const PAIR = { username: 'librarian', password: 'correct horse' };

/** With more time than any machine needs, for calls that must not run out of it. */
export const PATIENT = { ...PAIR, timeout: 600_000 };

export const BOOK = { title: 'Don Quijote', author: 'Miguel de Cervantes', year: 1605 };

export function allOf(catalogue: BookCatalogue, options?: CallOptions) {
  return Array.fromAsync(catalogue.list(options));
}

export function found(catalogue: BookCatalogue, search: Search, options?: CallOptions) {
  return Array.fromAsync(catalogue.find(search, options));
}

/** The error of a call, which must fail with one. */
export async function errorOf(call: Promise<unknown>): Promise<CatalogueError> {
  const error = await call.then(
    () => assert.fail('it should have failed'),
    (reason) => reason,
  );
  assert.ok(error instanceof CatalogueError, String(error));
  return error;
}

/** What a program reads of that error. */
export async function failureOf(call: Promise<unknown>) {
  const { name, message, status, mayBeDone } = await errorOf(call);
  return { name, message, status, mayBeDone };
}

/** Fails unless the call is refused with these words, and has changed nothing. */
export async function assertRefused(
  call: Promise<unknown>,
  status: number | undefined,
  message: string,
): Promise<void> {
  assert.deepEqual(await failureOf(call), { name: 'CatalogueError', message, status, mayBeDone: false });
}

/** What the error of a call says about the book, which must have changed. */
export async function changed(call: Promise<unknown>) {
  const error = await errorOf(call);
  assert.ok(error instanceof BookChanged, String(error));
  const { name, message, status, mayBeDone, current } = error;
  assert.deepEqual([name, message, status], ['BookChanged', 'Precondition failed', 412]);
  return { current, mayBeDone };
}

/** A request of the client. */
export interface Sent {
  /** Method, path and query. */
  readonly line: string;
  /** How often that line has been sent. */
  readonly times: number;
  readonly headers: Headers;
  readonly body: string;
  readonly signal: AbortSignal;
}

type Player = (sent: Sent) => Response | Promise<Response>;

/** For a player that never answers. */
export const SILENCE = new Promise<never>(() => {});

export function answer(status: number, data: unknown, message = '', headers: Record<string, string> = {}) {
  return new Response(JSON.stringify({ status, message, data }), { status, headers });
}

/** A catalogue whose requests are answered by functions, and the lines of these requests. */
export function played(player: Player, login: Player = () => answer(200, { token: 'played' })) {
  const seen: string[] = [];
  const fetch = async (url: unknown, init: RequestInit = {}) => {
    const signal = init.signal as AbortSignal;
    signal.throwIfAborted();
    const { pathname, search } = url as URL;
    const line = `${init.method} ${pathname}${search}`;
    seen.push(line);
    const times = seen.filter((other) => other === line).length;
    const sent = { line, times, headers: init.headers as Headers, body: String(init.body ?? ''), signal };
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    signal.addEventListener('abort', () => reject(signal.reason));
    return await Promise.race([(pathname === '/token' ? login : player)(sent), aborted]);
  };
  return { catalogue: new BookCatalogue('http://books.test', { ...PAIR, fetch }), seen };
}

/** Time that passes only when nothing else can happen before the end of a call. */
class Clock extends VirtualTime {
  async until<Result>(call: Promise<Result>): Promise<Result> {
    let isOver = false;
    const over = () => {
      isOver = true;
    };
    call.then(over, over);
    for (await settled(); !isOver; await settled()) {
      assert.ok(this.pending > 0, 'the call waits for ever');
      this.pass();
    }
    return call;
  }

  /** Resolves when so much time has passed. */
  after(milliseconds: number): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, milliseconds));
  }

  /** How a call fails, and after how many milliseconds. */
  async failureOf(call: Promise<unknown>) {
    const began = this.now;
    const failure = await this.until(failureOf(call));
    return { ...failure, after: this.now - began };
  }
}

/** A test during which time passes as it decides. A call that has ended leaves no timer behind. */
export function timed(title: string, work: (time: Clock, context: TestContext) => Promise<void>): void {
  test(title, async (context) => {
    const time = new Clock();
    await time.during(() => work(time, context));
    assert.equal(time.pending, 0);
  });
}
