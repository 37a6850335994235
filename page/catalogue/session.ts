// Owns: the session (rules S1 to S4): its key, which all tabs share, its renewal while somebody is active, and its end. Work without
// a session waits for a login, and is then carried out.
// Does not: have the password, or the cookie, which no script can read.

import { BookCatalogue, CatalogueError, WrongCredentials } from '../../client/src/book-catalogue.ts';
import { readEnvelope } from '../../client/src/request.ts';
import { keep, kept } from '../elements/storage.ts';
import { CATALOGUE } from '../texts/catalogue.ts';
import { askToLogIn } from './login.ts';
import { Reach } from './reach.ts';
import { type Answered, type Sent, upload } from './upload.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** Milliseconds without a key or a pointer after which the session ends (rule S2). */
const IDLE = 30 * MINUTE;

/** Milliseconds between two renewals. */
const RENEWAL = MINUTE;

/** Milliseconds that a call may take, with its retries. */
const TIMEOUT = 10 * SECOND;

const NAME = 'session';

const RENEW: Sent = { method: 'PUT', path: 'session' };

/** What a tab tells the others: a session with so many seconds left, or without a key that a person has logged out. */
type Told = { readonly key: string; readonly seconds: number };

export class Session {
  readonly reach = new Reach();
  /** Called when the session has ended. */
  onEnd: () => void = () => {};
  /** Called when a person has logged out, here or in another tab. */
  onLogOut: () => void = () => {};
  #catalogue: BookCatalogue | undefined;
  #key = '';
  #login: Promise<BookCatalogue> | undefined;
  /** Ends the login: there is a session, started here or in another tab. */
  #started: () => void = () => {};
  #reason = '';
  #ending: ReturnType<typeof setTimeout> | undefined;
  #renewing: ReturnType<typeof setTimeout> | undefined;
  /** By `performance.now()`. */
  #renewedAt = Number.NEGATIVE_INFINITY;
  /** Calls that are not answered, and longer work. */
  #calls = 0;
  readonly #tabs = new BroadcastChannel(new URL('.', location.href).pathname);

  constructor() {
    for (const event of ['keydown', 'pointerdown'])
      addEventListener(event, () => this.#touch(), { passive: true, capture: true }); // also those of input methods
    this.#tabs.addEventListener('message', ({ data }) => this.#hear(data));
    this.reach.ask = () => {
      if (this.#catalogue === undefined) return;
      void this.call((catalogue) => catalogue.page({ sort: 'id', limit: 1 })).catch(() => {});
    };
    const key = kept('localStorage', NAME);
    if (key === '') return;
    this.#begin(key);
    this.#touch();
  }

  /** Names the session; '' without one. */
  get id(): string {
    return this.#key.split('.', 1)[0] ?? '';
  }

  /** Whether no work of the page is under way. */
  get isIdle(): boolean {
    return this.#calls === 0;
  }

  /** Carries out work of several calls. */
  async during<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#calls += 1;
    try {
      return await work();
    } finally {
      this.#calls -= 1;
    }
  }

  /** The client, after a login if one is needed. */
  async client(): Promise<BookCatalogue> {
    return this.#catalogue ?? (await this.#logIn());
  }

  /**
   * Carries out work with the service, after a login if one is needed.
   * @throws as the work does, but never WrongCredentials: the work is then carried out after another login.
   */
  call<Result>(work: (catalogue: BookCatalogue) => Promise<Result>): Promise<Result> {
    return this.during(async () => {
      for (;;) {
        const catalogue = await this.client();
        const began = performance.now();
        try {
          const result = await work(catalogue);
          this.reach.noticeAnswer(began);
          return result;
        } catch (error) {
          if (!(error instanceof WrongCredentials)) {
            if (error instanceof CatalogueError) this.reach.noticeFailure(error, began);
            throw error;
          }
          if (this.#catalogue === catalogue) this.#end(CATALOGUE.ended);
        }
      }
    });
  }

  /**
   * Sends a request that the client has no method for.
   * @returns any answer of the service below 500.
   * @throws CatalogueError; the reason of the signal.
   */
  send(request: Sent): Promise<Answered> {
    return this.call(async () => {
      const answer = await this.#send(request);
      if (answer.message === 'Session expired') throw new WrongCredentials(answer.message);
      return answer;
    });
  }

  /** The key of links in the page (rule X3). @throws as `send`. */
  async linkKey(): Promise<string> {
    const { status, message, data } = await this.send(RENEW);
    if (status !== 200) throw new CatalogueError(message, { status });
    return (data as { readonly linkKey: string }).linkKey;
  }

  /** Ends the session in all tabs, also if the service does not answer: the cookie is worth nothing without the key. */
  async logOut(): Promise<void> {
    this.#tell({ key: '', seconds: 0 });
    this.#end(CATALOGUE.loggedOut);
    const init = { method: 'DELETE', keepalive: true, signal: AbortSignal.timeout(SECOND) };
    await fetch(new URL('session', location.href), init).catch(() => {}); // a later answer would remove the next cookie
    this.#leave();
  }

  async #send({ method, path, body, onSent = () => {}, signal }: Sent, key = this.#key): Promise<Answered> {
    const isFile = body instanceof File;
    const init = { method, headers: { 'session-key': key }, body: body ?? null };
    let answer: Response | undefined;
    let text = '';
    try {
      const url = new URL(path, location.href);
      const signals = [AbortSignal.timeout(TIMEOUT), ...(signal === undefined ? [] : [signal])];
      answer = await (isFile
        ? this.reach.fetch(url, { ...init, signal: signal ?? null }, (...sent) => upload(...sent, onSent))
        : this.reach.fetch(url, { ...init, signal: AbortSignal.any(signals) }));
      text = await answer.text();
    } catch (cause) {
      signal?.throwIfAborted();
      throw new CatalogueError('no answer', { cause });
    }
    const { status, headers } = answer;
    const envelope = readEnvelope(text);
    if (envelope !== undefined && status < 500)
      return { status, ...envelope, retryAfter: Number(headers.get('retry-after')) };
    throw new CatalogueError(envelope?.message ?? `${status}`, { status, isForeign: envelope === undefined });
  }

  /** Asks a person to log in, once for all work that waits. */
  #logIn(): Promise<BookCatalogue> {
    this.#login ??= this.#ask().finally(() => {
      this.#login = undefined;
    });
    return this.#login;
  }

  async #ask(): Promise<BookCatalogue> {
    const door = {
      logIn: (body: string) => this.#start(body).catch(() => undefined),
      reason: () => this.reach.reason,
      isOpen: () => this.#catalogue !== undefined,
    };
    while (this.#catalogue === undefined) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#started = resolve;
      await askToLogIn(door, this.#reason, promise);
    }
    return this.#catalogue;
  }

  /** @returns the answer to the login; if that has succeeded, the one that shows whether the browser has its cookie. */
  async #start(body: string): Promise<Answered> {
    const answer = await this.#send({ method: 'POST', path: 'session', body });
    if (answer.status !== 200) return answer;
    const { key } = answer.data as { readonly key: string };
    const renewed = await this.#send(RENEW, key);
    if (renewed.status === 200) {
      this.#begin(key);
      this.#noteRenewal(renewed);
    }
    return renewed;
  }

  #begin(key: string): void {
    this.#key = key;
    keep('localStorage', NAME, key);
    this.#catalogue = new BookCatalogue(new URL('.', location.href), {
      sessionKey: key,
      timeout: TIMEOUT,
      fetch: (url, init) => this.reach.fetch(url, init),
    });
    this.#started();
  }

  /** A person is active. */
  #touch(): void {
    if (this.#catalogue === undefined) return;
    const pause = Math.max(0, this.#renewedAt + RENEWAL - performance.now());
    this.#renewing ??= setTimeout(() => void this.#renew(), pause);
  }

  async #renew(): Promise<void> {
    const key = this.#key;
    const answer = await this.#send(RENEW).catch(() => undefined); // the next touch tries again
    this.#renewing = undefined;
    if (key !== this.#key) return; // it has ended meanwhile
    if (answer?.status === 200) this.#noteRenewal(answer);
    else if (answer?.status === 401) this.#askAgain(CATALOGUE.ended);
  }

  #noteRenewal({ data }: Answered): void {
    const { seconds } = data as { readonly seconds: number };
    this.#endIn(seconds);
    this.#tell({ key: this.#key, seconds });
  }

  #endIn(seconds: number): void {
    this.#renewedAt = performance.now();
    clearTimeout(this.#ending);
    this.#ending = setTimeout(() => {
      this.#askAgain(seconds * SECOND < IDLE ? CATALOGUE.longEnded : CATALOGUE.unused);
    }, seconds * SECOND);
  }

  #tell(told: Told): void {
    this.#tabs.postMessage(told);
  }

  /** Another tab has started or renewed the session, or has ended it. */
  #hear({ key, seconds }: Told): void {
    if (key === '') {
      this.#leave();
      return;
    }
    if (key !== this.#key || this.#catalogue === undefined) this.#begin(key);
    this.#endIn(seconds);
  }

  /** A person has logged out. Everything that the page has read goes, unless a text is not stored yet. */
  #leave(): void {
    if (this.#catalogue !== undefined) this.#end(CATALOGUE.loggedOut);
    this.onLogOut();
    const hasTexts = !dispatchEvent(new Event('beforeunload', { cancelable: true }));
    if (hasTexts) void this.#logIn();
    else location.reload();
  }

  #askAgain(reason: string): void {
    if (this.#catalogue === undefined) return;
    this.#end(reason);
    void this.#logIn();
  }

  #end(reason: string): void {
    clearTimeout(this.#ending);
    clearTimeout(this.#renewing);
    this.#renewing = undefined;
    this.#catalogue = undefined;
    this.#reason = reason;
    if (kept('localStorage', NAME) === this.#key) keep('localStorage', NAME, '');
    this.#key = '';
    this.onEnd();
    const key = kept('localStorage', NAME);
    if (key !== '') this.#begin(key); // of a login in another tab
  }
}
