// Owns: who is logged in: the client with the account's name and password, in memory only, until nobody has touched the
// page for half an hour. Work that finds nobody logged in waits for a login, and is then carried out.
// Does not: store anything. A reload of the page asks for the password again.

import { BookCatalogue, CatalogueError, WrongCredentials } from '../../client/src/book-catalogue.ts';
import { find, refocus } from '../elements/dom.ts';
import { counted } from '../elements/text.ts';

/** Whether the service answers: `busy` is a 503, as at its start; `away` is no answer. */
export type Reach = 'here' | 'busy' | 'away';

/** Milliseconds without a key or a pointer after which the password is forgotten. */
const IDLE = 30 * 60 * 1000;

/** Milliseconds that a call may take, with its retries. */
const TIMEOUT = 10_000;

/** Milliseconds between two questions to a service that does not answer. */
const PROBE_PAUSE = 2000;

/** Answers whose times are kept, for their median. */
const TIMES = 21;

const dialog = find<HTMLDialogElement>('#login');
const form = find<HTMLFormElement>('form', dialog);
const username = find<HTMLInputElement>('#username');
const password = find<HTMLInputElement>('#password');
const complaint = find('#login-complaint');

export class Session {
  /** Called with every change. */
  onReach: (reach: Reach) => void = () => {};
  #reach: Reach = 'here';
  #catalogue: BookCatalogue | undefined;
  #login: Promise<BookCatalogue> | undefined;
  #reason = '';
  /** The page is being left: no answer will arrive. */
  #isLeaving = false;
  #idle: ReturnType<typeof setTimeout> | undefined;
  #probing: ReturnType<typeof setTimeout> | undefined;
  /** When the browser last said that it has no network, by `performance.now()`. */
  #offlineSince = 0;
  /** Seconds of the latest `Retry-After`. */
  #retryAfter = 0;
  readonly #times: number[] = [];
  readonly #filledIn = this.#fillIn();

  constructor() {
    dialog.addEventListener('close', () => {
      if (this.#login !== undefined && !dialog.open) dialog.showModal(); // a browser without `closedby`
    });
    addEventListener('pagehide', () => {
      this.#isLeaving = true;
    });
    addEventListener('pageshow', () => {
      this.#isLeaving = false;
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

  /** Milliseconds of the median of the latest answers. */
  get answerTime(): number {
    return this.#times.toSorted((one, other) => one - other)[this.#times.length >> 1] ?? 0;
  }

  /**
   * Carries out work with the service, after a login if one is needed.
   * @throws as the work does, but never WrongCredentials: the work is then carried out after another login.
   */
  async call<Result>(work: (catalogue: BookCatalogue) => Promise<Result>): Promise<Result> {
    for (;;) {
      const catalogue = this.#catalogue ?? (await this.#logIn());
      try {
        return await work(catalogue);
      } catch (error) {
        if (!(error instanceof WrongCredentials)) throw error;
        if (this.#catalogue === catalogue)
          this.#forget('The password has changed. Log in again: nothing is lost.');
      }
    }
  }

  #forget(reason: string): void {
    this.#catalogue = undefined;
    this.#reason = reason;
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
      // The service does not answer: the login will say so.
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
    return 'The catalogue does not answer. Try again in a moment.';
  }

  /** Sends a request, and notices whether and how fast the service answers. */
  async #fetch(url: string | URL | Request, init?: RequestInit): Promise<Response> {
    const began = performance.now();
    try {
      const answer = await fetch(url, { ...init, keepalive: this.#isLeaving }); // it outlives the page
      this.#retryAfter = Number(answer.headers.get('retry-after'));
      // The answer to a request from before the network went does not show that it is back.
      if (began >= this.#offlineSince)
        this.#setReach(answer.status === 503 ? 'busy' : isOfService(answer) ? 'here' : 'away');
      this.#times.push(performance.now() - began);
      if (this.#times.length > TIMES) this.#times.shift();
      return answer;
    } catch (error) {
      if (init?.signal?.reason?.name !== 'AbortError') this.#setReach('away');
      throw error;
    }
  }

  #setReach(reach: Reach): void {
    if (reach === this.#reach) return;
    this.#reach = reach;
    this.onReach(reach);
    if (reach !== 'here') this.#probeSoon();
  }

  /** However often the service changes between busy and away, it is asked once at a time. */
  #probeSoon(): void {
    this.#probing ??= setTimeout(() => {
      this.#probing = undefined;
      this.#probe();
    }, PROBE_PAUSE);
  }

  /** Finds out whether the service answers again, even if nobody wants anything of it. */
  #probe(): void {
    if (this.#reach === 'here') return;
    void this.#catalogue?.page({ sort: 'id', limit: 1 }).catch(() => {});
    this.#probeSoon();
  }
}

/** Whether the service has answered, and no proxy in its place. */
function isOfService({ status, headers }: Response): boolean {
  return (
    status !== 502 && status !== 504 && headers.get('content-type')?.startsWith('application/json') === true
  );
}
