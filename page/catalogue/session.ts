// Owns: the login: the client with the account's name and password, in memory only, until half an hour without a key or a pointer.
// Work without a login waits for one, and is then carried out.
// Does not: store the password. A reload of the page asks for it again.

import { BookCatalogue, CatalogueError, WrongCredentials } from '../../client/src/book-catalogue.ts';
import { readEnvelope } from '../../client/src/request.ts';
import { find, refocus } from '../elements/dom.ts';
import { counted } from '../elements/text.ts';
import { ALTERED } from './refusal.ts';
import { type Answered, type Send, type Sent, upload } from './upload.ts';

/**
 * Why the catalogue cannot be reached, in words. Most reasons are a proxy: one with its own passwords (`locked`), with
 * a login page (`signed out`; also that of a hotel's network), that forbids something, or that changes requests or answers.
 */
const TROUBLES = {
  here: '',
  busy: 'The catalogue is busy or not ready yet.',
  away: 'The catalogue does not answer.',
  locked:
    'A proxy in front of the catalogue asks for its own password with each request, in the place of this page’s login. Tell the operator: docs/proxy.md has the way out.',
  'signed out':
    'A login page in front of the catalogue answers in its place. Open this address in another tab, log in there, and come back.',
  forbidden: 'A proxy in front of the catalogue forbids a request of this page. Tell the operator.',
  altered: ALTERED,
} as const;

export type Reach = keyof typeof TROUBLES;

/** Milliseconds without a key or a pointer after which the password is forgotten. */
const IDLE = 30 * 60 * 1000;

/** Milliseconds that a call may take, with its retries. */
const TIMEOUT = 10_000;

/** Milliseconds between two questions to a service that does not answer. */
const PROBE_PAUSE = 2000;

const dialog = find<HTMLDialogElement>('#login');
const form = find<HTMLFormElement>('form', dialog);
const username = find<HTMLInputElement>('#username');
const password = find<HTMLInputElement>('#password');
const complaint = find('#login-complaint');

export class Session {
  /** Called with every change. */
  onReach: (reach: Reach) => void = () => {};
  /** Called when the login has ended. */
  onForget: () => void = () => {};
  #reach: Reach = 'here';
  #catalogue: BookCatalogue | undefined;
  /** Of the latest login of the client. */
  #token = '';
  #login: Promise<BookCatalogue> | undefined;
  #reason = '';
  #idle: ReturnType<typeof setTimeout> | undefined;
  #probing: ReturnType<typeof setTimeout> | undefined;
  /** When the browser last said that it has no network, by `performance.now()`. */
  #offlineSince = 0;
  /** Seconds of the latest `Retry-After`. */
  #retryAfter = 0;
  /** Calls that are not answered, and longer work. */
  #calls = 0;
  readonly #filledIn = this.#fillIn();

  constructor() {
    dialog.addEventListener('close', () => {
      if (this.#login !== undefined && !dialog.open) dialog.showModal(); // a browser without `closedby`
    });
    addEventListener('offline', () => {
      this.#offlineSince = performance.now();
      this.#setReach('away');
    });
    addEventListener('online', () => this.#probe());
    for (const event of ['keydown', 'pointerdown'])
      addEventListener(event, () => this.#touch(), { passive: true, capture: true }); // also those of input methods
    find('#login-insecure').hidden = isSecureContext;
  }

  get reach(): Reach {
    return this.#reach;
  }

  /** Why the catalogue cannot be reached; '' if it can. */
  get trouble(): string {
    return TROUBLES[this.#reach];
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
          this.#noticeAnswer(began);
          return result;
        } catch (error) {
          if (!(error instanceof WrongCredentials)) {
            if (error instanceof CatalogueError) this.#noticeFailure(error, began);
            throw error;
          }
          if (this.#catalogue === catalogue)
            this.#forget('The password has changed. Log in again: nothing is lost.');
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
    return this.call(async (catalogue) => {
      await catalogue.logIn({ signal: request.signal });
      const answer = await this.#send(request);
      if (answer.message !== 'Invalid token') return answer;
      await catalogue.page({ sort: 'id', limit: 1 }); // the same answer makes the client log in again
      return this.#send(request);
    });
  }

  async #send({ method, path, file, onSent = () => {}, signal }: Sent): Promise<Answered> {
    const init = { method, headers: { authorization: this.#token }, body: file ?? null };
    let status: number | undefined;
    let text = '';
    try {
      const url = new URL(path, location.href);
      const answer = await (file === undefined
        ? this.#fetch(url, { ...init, signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT)]) })
        : this.#fetch(url, { ...init, signal }, (...sent) => upload(...sent, onSent)));
      text = await answer.text();
      status = answer.status;
    } catch (cause) {
      signal.throwIfAborted();
      throw new CatalogueError('no answer', { cause });
    }
    const envelope = readEnvelope(text);
    if (envelope !== undefined && status < 500) return { status, ...envelope };
    throw new CatalogueError(envelope?.message ?? `${status}`, { status, isForeign: envelope === undefined });
  }

  #forget(reason: string): void {
    this.#catalogue = undefined;
    this.#reason = reason;
    this.onForget();
    find('#login-built-in').hidden = true; // it may not be true any more
  }

  #touch(): void {
    if (this.#catalogue === undefined) return;
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => {
      this.#forget(
        'You were logged out after 30 minutes without activity. Log in again to continue: your changes are kept.',
      );
      void this.#logIn();
    }, IDLE);
  }

  /** Asks a person to log in, once for all work that waits. */
  #logIn(): Promise<BookCatalogue> {
    this.#login ??= this.#ask().finally(() => {
      this.#login = undefined;
    });
    return this.#login;
  }

  /** Fills in the built-in pair, if it logs in. */
  async #fillIn(): Promise<void> {
    try {
      const login = await (await fetch('login.json')).json();
      if (login.username === undefined) return;
      username.value = login.username;
      password.value = login.password;
      find('#login-built-in').hidden = false;
    } catch {
      // The service does not answer: the login shows it.
    }
  }

  async #ask(): Promise<BookCatalogue> {
    find('#login-reason').textContent = this.#reason;
    complaint.textContent = '';
    await this.#filledIn; // before it is shown, so that nothing moves
    dialog.showModal();
    (username.value === '' ? username : password.value === '' ? password : find('button', form)).focus();
    for (;;) {
      await new Promise<void>((resolve) => {
        form.onsubmit = (event) => {
          event.preventDefault();
          resolve();
        };
      });
      const button = find<HTMLButtonElement>('button', form);
      button.ariaDisabled = 'true';
      const catalogue = new BookCatalogue(new URL('.', location.href), {
        username: username.value,
        password: password.value,
        timeout: TIMEOUT,
        fetch: (url, init) => this.#fetch(url, init),
      });
      try {
        await catalogue.logIn();
        password.value = ''; // the client has it; the field is in the page
        dialog.close();
        refocus(); // at once: the person may still be typing
        this.#catalogue = catalogue;
        this.#touch();
        return catalogue;
      } catch (error) {
        complaint.textContent = this.#explain(error);
        password.select();
      } finally {
        button.ariaDisabled = null;
      }
    }
  }

  #explain(error: unknown): string {
    if (error instanceof WrongCredentials) return 'The name or the password is wrong.';
    if (error instanceof CatalogueError && error.status === 429)
      return `There were too many wrong passwords. Try again in ${counted(this.#retryAfter, 'second')}.`;
    if (error instanceof CatalogueError && error.status === 403 && !error.isForeign)
      return 'The proxy in front of the catalogue changes the header Host, so no one can log in here.';
    const isPassing = this.#reach === 'here' || this.#reach === 'busy' || this.#reach === 'away';
    return isPassing ? `${this.trouble || TROUBLES.away} Try again in a moment.` : this.trouble;
  }

  /**
   * Sends a request, and notices the trouble that its answer shows. The service never redirects. A login page does, often to another
   * origin, whose answers a browser hides from the page.
   */
  async #fetch(
    url: string | URL | Request,
    init: RequestInit = {},
    send: Send = (...sent) => fetch(...sent),
  ): Promise<Response> {
    // No work waits for its answer, and a proxy may break it off.
    const isInBackground = `${url}`.includes('/changes?');
    try {
      const credentials = this.#reach === 'locked' ? 'omit' : 'same-origin'; // it would ask for them each time
      const answer = await send(url, { ...init, redirect: 'manual', credentials });
      if (answer.status === 200 && `${url}`.endsWith('/token'))
        this.#token = (readEnvelope(await answer.clone().text())?.data as { token?: string })?.token ?? '';
      this.#retryAfter = Number(answer.headers.get('retry-after'));
      const trouble = troubleIn(answer, `${init?.method} ${url}`);
      if (trouble !== undefined && !isInBackground) this.#setReach(trouble);
      return answer;
    } catch (error) {
      if (init.signal?.reason?.name !== 'AbortError' && !isInBackground) this.#setReach('away');
      throw error;
    }
  }

  /** While a browser asks a person for the password of a proxy, calls seem to get no answer. */
  async #findLock(): Promise<void> {
    const init = { method: 'HEAD', credentials: 'omit', redirect: 'manual' } as const; // then it does not ask
    const answer = await fetch(new URL('books', location.href), init).catch(() => undefined);
    if (answer !== undefined && troubleIn(answer, '') === 'locked') this.#setReach('locked');
  }

  /** The answer to a call from before the network was lost does not show that it is back. */
  #noticeAnswer(began: number): void {
    if (began >= this.#offlineSince) this.#setReach('here');
  }

  /** An answer in JSON also shows a trouble if it breaks off, is not the catalogue's, or refuses even a new token. */
  #noticeFailure({ status = 0, isForeign }: CatalogueError, began: number): void {
    if (status === 401) {
      if (this.#reach !== 'locked') this.#setReach(isForeign ? 'signed out' : 'altered');
    } else if (status >= 400 && status < 500 && !isForeign) {
      this.#noticeAnswer(began);
    } else if (this.#reach === 'here' && (status === 0 || isForeign) && status !== 413) {
      this.#setReach(status === 0 || status >= 500 ? 'away' : status < 400 ? 'altered' : 'forbidden');
    }
  }

  #setReach(reach: Reach): void {
    if (reach === this.#reach) return;
    this.#reach = reach;
    this.onReach(reach);
    if (reach !== 'here') this.#probeSoon();
  }

  /** One probe at a time, however often the service changes between busy and away. */
  #probeSoon(): void {
    this.#probing ??= setTimeout(() => {
      this.#probing = undefined;
      this.#probe();
    }, PROBE_PAUSE);
  }

  /** Finds out whether the service answers again, even if no work needs it. */
  #probe(): void {
    if (this.#reach === 'here') return;
    if (this.#reach === 'away') void this.#findLock();
    if (this.#catalogue !== undefined)
      void this.call((catalogue) => catalogue.page({ sort: 'id', limit: 1 })).catch(() => {});
    this.#probeSoon();
  }
}

/**
 * @param request its method and URL.
 * @returns the trouble that an answer shows; undefined if it seems to be the catalogue's, with success or not.
 */
function troubleIn({ type, status, headers }: Response, request: string): Reach | undefined {
  if (status === 503) return 'busy';
  if (/^(?:basic|digest|negotiate|ntlm)\b/i.test(headers.get('www-authenticate') ?? '')) return 'locked';
  if (headers.get('content-type')?.startsWith('application/json') === true) {
    const isCut = /^GET .*\/books\?/.test(request) && !headers.has('link');
    return status === 200 && isCut ? 'altered' : undefined;
  }
  if (status === 413) return undefined; // a smaller request may arrive
  if (type === 'opaqueredirect' || status < 400 || status === 401 || status === 511) return 'signed out';
  return status < 500 ? 'forbidden' : 'away';
}
