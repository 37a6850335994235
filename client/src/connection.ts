// Owns: the calls to a service: its address, the login of each request, and one timeout for all requests of a call.

import { Deadline } from './deadline.ts';
import { type Answer, dataOf, failureOf, isStream, type Request, send } from './request.ts';
import { Session } from './session.ts';

/** An account; or a session of the page's port (rule S1), by its key: the browser has the cookie. */
export type Options = CommonOptions &
  (
    | { readonly username: string; readonly password: string; readonly sessionKey?: undefined }
    | { readonly sessionKey: string; readonly username?: undefined; readonly password?: undefined }
  );

interface CommonOptions {
  /**
   * Milliseconds that a call may take, including its login, all its attempts and the waits between them. For a list,
   * the limit is for its beginning, and then for each of its pieces; for a search, changes, a history and events, for
   * each of their pages. 10,000 by default.
   */
  readonly timeout?: number;
  /**
   * Sends each request, instead of the global `fetch`: through a proxy, with `keepalive`, or to measure it. It is
   * called with a URL, and with a method, headers, body and signal; it rejects if there is no answer.
   */
  readonly fetch?: typeof fetch;
}

/** The options of every call. */
export interface CallOptions {
  /** Aborts the call: it rejects with the signal's reason. A change may be carried out nevertheless. */
  readonly signal?: AbortSignal | undefined;
  /** The request's id in the service's log: up to 128 letters, digits, `_`, `.`, `:` and `-`. */
  readonly requestId?: string | undefined;
}

interface Limits extends CallOptions {
  /** Milliseconds in place of the timeout of all calls. */
  readonly timeout?: number | undefined;
}

/** The requests of a call, one after the other. */
export type Work<Result> = (
  send: (request: Request) => Promise<Answer>,
  deadline: Deadline,
) => Promise<Result>;

export class Connection {
  readonly #url: URL;
  readonly #timeout: number;
  readonly #fetch: typeof fetch;
  readonly #session: Session;
  readonly #sessionKey: string | undefined;

  /** @throws TypeError or RangeError when an argument is invalid. */
  constructor(url: string | URL, options: Options) {
    const { username, password, sessionKey, timeout = 10_000 } = options;
    const { fetch = (...sent) => globalThis.fetch(...sent) } = options;
    this.#url = new URL(url);
    if (!/^https?:$/.test(this.#url.protocol)) throw new TypeError(`${url} is not an http or https URL`);
    if (this.#url.username || this.#url.password) {
      throw new TypeError('the URL has a username or password: pass them as options');
    }
    if (!(timeout > 0 && timeout < 2 ** 31))
      throw new RangeError('timeout must be 1 to 2147483647 milliseconds');
    if (typeof fetch !== 'function') throw new TypeError('fetch is not a function');
    this.#timeout = timeout;
    this.#fetch = fetch;
    this.#sessionKey = sessionKey;
    const body = JSON.stringify({ username, password });
    this.#session = new Session({ method: 'POST', url: this.at('token'), body }, { timeout, fetch });
  }

  /** @throws WrongCredentials */
  async logIn({ signal }: CallOptions): Promise<void> {
    if (this.#sessionKey !== undefined) return;
    const deadline = new Deadline(this.#timeout, signal);
    try {
      const { token, answer } = await this.#session.login(deadline);
      if (token === undefined) throw failureOf(answer);
    } finally {
      deadline.close();
    }
  }

  /** A call of one request. */
  call(request: Request, options?: Limits): Promise<Answer> {
    return this.within(options, (send) => send(request));
  }

  /**
   * A call of several requests, with one timeout for all of them.
   * @param wait seconds that the service may wait within the call.
   */
  async within<Result>(
    { signal, requestId, timeout = this.#timeout }: Limits = {},
    work: Work<Result>,
    wait = 0,
  ): Promise<Result> {
    const deadline = new Deadline(timeout + wait * 1000, signal);
    try {
      return await work((request) => this.#send(request, deadline, requestId), deadline);
    } finally {
      deadline.close();
    }
  }

  /** A call whose answer is read as it arrives, with the timeout for its beginning. */
  async *reading<Piece>(
    request: Request,
    { signal, requestId }: CallOptions,
    read: (answer: Answer, deadline: Deadline) => AsyncIterable<Piece>,
  ): AsyncGenerator<Piece, void, undefined> {
    const deadline = new Deadline(this.#timeout, signal);
    try {
      const answer = await this.#send({ ...request, isStreamed: true }, deadline, requestId);
      dataOf(answer, 200);
      yield* read(answer, deadline);
    } finally {
      deadline.close();
    }
  }

  /** A token that is refused, such as one from before the service was restarted, is replaced once. */
  async #send(request: Request, deadline: Deadline, requestId: string | undefined): Promise<Answer> {
    const circumstances = { deadline, fetch: this.#fetch, requestId };
    if (this.#sessionKey !== undefined)
      return send(request, { ...circumstances, login: ['session-key', this.#sessionKey] });
    let mayBeDone = false;
    for (let isSecond = false; ; isSecond = true) {
      const { token, answer: refused } = await this.#session.login(deadline);
      const answer =
        token === undefined
          ? refused
          : await send(request, { ...circumstances, login: ['authorization', token] });
      mayBeDone ||= answer.mayBeDone;
      const isLast = isSecond || isStream(request.body);
      if (token === undefined || answer.message !== 'Invalid token' || isLast)
        return { ...answer, mayBeDone };
      this.#session.discard(token);
    }
  }

  at(path: string, query?: string): URL {
    const url = new URL(this.#url);
    url.pathname = `${url.pathname.replace(/\/$/, '')}/${path}`;
    if (query !== undefined) url.search = query;
    return url;
  }
}
