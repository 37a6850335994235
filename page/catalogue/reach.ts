// Owns: whether the catalogue can be reached, why not, and asking again until it can. All calls of the page are sent here, since
// their answers may show a trouble.

import type { CatalogueError } from '../../client/src/book-catalogue.ts';
import { CATALOGUE } from '../texts/catalogue.ts';
import type { Send } from './upload.ts';

/** The texts say what each means. */
type State = keyof typeof CATALOGUE.troubles;

/** Milliseconds between two questions to a service that does not answer. */
const PROBE_PAUSE = 2000;

const PAGE_OF_BOOKS = /^GET .*\/books\?/;

/** What needs the search index, and what does not (rule F11). */
const SEARCH = /^GET .*\/(?:books|suggestions)\?/;
const ALL_BY_ID = /\?q=&sort=id&(?:limit|offset|cursor)=/;

export class Reach {
  /** Called with every change. */
  onChange: () => void = () => {};
  /** Called when the service has no answer to a search for now. */
  onNoAnswer: () => void = () => {};
  /** Sends a request that succeeds once the catalogue can be reached. */
  ask: () => void = () => {};
  #state: State = 'here';
  #probing: ReturnType<typeof setTimeout> | undefined;
  /** When the browser last said that it has no network, by `performance.now()`. */
  #offlineSince = 0;

  constructor() {
    addEventListener('offline', () => {
      this.#offlineSince = performance.now();
      this.#set('away');
    });
    addEventListener('online', () => this.#probe());
    addEventListener('focus', () => {
      if (this.#state !== 'locked') return;
      this.#set('away'); // a person is there, and has perhaps entered the password in another tab
      this.#probe();
    });
  }

  get isHere(): boolean {
    return this.#state === 'here';
  }

  /** Why the catalogue cannot be reached; '' if it can. */
  get trouble(): string {
    return CATALOGUE.troubles[this.#state];
  }

  /** Why a request got no answer. */
  get reason(): string {
    const isPassing = this.#state === 'here' || this.#state === 'busy' || this.#state === 'away';
    return isPassing ? CATALOGUE.again(this.trouble || CATALOGUE.troubles.away) : this.trouble;
  }

  /**
   * Sends a request, and notices the trouble that its answer shows. The service never redirects. A login page does, often to another
   * origin, whose answers a browser hides from the page.
   */
  async fetch(
    url: string | URL | Request,
    init: RequestInit = {},
    send: Send = (...sent) => fetch(...sent),
  ): Promise<Response> {
    // No work waits for its answer, and a proxy may break it off.
    const isInBackground = `${url}`.includes('/changes?');
    if (this.#state === 'locked') throw new TypeError('no answer'); // the browser would ask a person each time
    try {
      const answer = await send(url, { ...init, redirect: 'manual' });
      const request = `${init?.method} ${url}`;
      if (answer.status === 503 && SEARCH.test(request) && !ALL_BY_ID.test(request)) {
        this.onNoAnswer(); // the service may be making its index
        return answer;
      }
      const trouble = troubleIn(answer, request);
      if (trouble !== undefined && !isInBackground) this.#set(trouble);
      return answer;
    } catch (error) {
      if (init.signal?.reason?.name !== 'AbortError' && !isInBackground) this.#set('away');
      throw error;
    }
  }

  /**
   * The catalogue has answered. An answer to a call from before the network was lost does not show that it is back.
   * @param began when the call did, by `performance.now()`.
   */
  noticeAnswer(began: number): void {
    if (began >= this.#offlineSince) this.#set('here');
  }

  /** An answer in JSON also shows a trouble if it breaks off, is not the catalogue's, or refuses even a new session. */
  noticeFailure({ status = 0, isForeign }: CatalogueError, began: number): void {
    if (status === 401) {
      if (this.#state !== 'locked') this.#set(isForeign ? 'signed out' : 'altered');
    } else if (status >= 400 && status < 500 && !isForeign) {
      this.noticeAnswer(began);
    } else if (this.isHere && (status === 0 || isForeign) && status !== 413) {
      this.#set(status === 0 || status >= 500 ? 'away' : status < 400 ? 'altered' : 'forbidden');
    }
  }

  #set(state: State): void {
    if (state === this.#state) return;
    this.#state = state;
    this.onChange();
    if (state !== 'here') this.#probeSoon();
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
    if (this.isHere) return;
    if (this.#state === 'locked') void this.#tryLock();
    else this.ask();
    this.#probeSoon();
  }

  /** Finds out whether the proxy has ceased to ask for a password, without having the browser ask for it. */
  async #tryLock(): Promise<void> {
    const init = { method: 'HEAD', credentials: 'omit', redirect: 'manual' } as const;
    const answer = await fetch(new URL('books', location.href), init).catch(() => undefined);
    const isLocked = answer === undefined || troubleIn(answer, '') === 'locked';
    if (!isLocked && this.#state === 'locked') this.#set('away');
  }
}

/**
 * @param request its method and URL.
 * @returns the trouble that an answer shows; undefined if it seems to be the catalogue's, with success or not.
 */
function troubleIn({ type, status, headers }: Response, request: string): State | undefined {
  if (status === 503) return 'busy';
  if (/^(?:basic|digest|negotiate|ntlm)\b/i.test(headers.get('www-authenticate') ?? '')) return 'locked';
  if (headers.get('content-type')?.startsWith('application/json') === true) {
    const isCut = PAGE_OF_BOOKS.test(request) && !headers.has('link');
    return status === 200 && isCut ? 'altered' : undefined;
  }
  if (status === 413) return undefined; // a smaller request may arrive
  if (type === 'opaqueredirect' || status < 400 || status === 401 || status === 511) return 'signed out';
  return status < 500 ? 'forbidden' : 'away';
}
