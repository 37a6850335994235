// Owns: the token. One login for all calls that need one at the same moment, and a new one before the token expires.

import { Deadline } from './deadline.ts';
import { type Answer, noAnswer, type Request, send } from './request.ts';

/** Milliseconds that a token lasts by the contract (A6), for when its own lifetime cannot be read. */
const LIFETIME = 15 * 60 * 1000;

const SECOND = 1000;

/** The part of its lifetime in which a token is used: a request takes time to arrive. */
const USED_PART = 0.9;

/** The result of a login. */
interface Login {
  readonly answer: Answer;
  /** Undefined when the login has failed. */
  readonly token: string | undefined;
  /** Milliseconds, on the clock of `performance.now()`. */
  readonly renewAt: number;
}

export class Session {
  readonly #request: Request;
  readonly #timeout: number;
  readonly #fetch: typeof fetch;
  #current: Login | undefined;
  #next: Promise<Login> | undefined;
  /** Calls that wait for the next login. */
  #waiting = 0;
  #giveUp = new AbortController();

  /**
   * @param request the login.
   * @param timeout milliseconds that it may take.
   * @param fetch sends it.
   */
  constructor(request: Request, { timeout, fetch }: { timeout: number; fetch: typeof globalThis.fetch }) {
    this.#request = request;
    this.#timeout = timeout;
    this.#fetch = fetch;
  }

  /**
   * A login whose token is still valid for a while, or one that has just failed.
   * @throws the reason of the caller's signal, and nothing else.
   */
  async login(deadline: Deadline): Promise<Pick<Login, 'answer' | 'token'>> {
    if (this.#current !== undefined && performance.now() < this.#current.renewAt) return this.#current;
    this.#next ??= this.#logIn();
    this.#waiting += 1;
    try {
      return await deadline.wait(this.#next);
    } catch (cause) {
      if (deadline.isGivenUp) throw cause;
      return { answer: noAnswer(deadline.message, cause), token: undefined };
    } finally {
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#giveUp.abort();
    }
  }

  /** Call it when the service no longer accepts this token. */
  discard(token: string): void {
    if (this.#current?.token === token) this.#current = undefined;
  }

  /** Shared by all calls that wait for it; ends when the last of them gives up. */
  async #logIn(): Promise<Login> {
    this.#giveUp = new AbortController();
    const { signal } = this.#giveUp;
    signal.addEventListener('abort', () => {
      this.#next = undefined;
    });
    const deadline = new Deadline(this.#timeout, signal);
    const began = performance.now();
    const circumstances = { deadline, fetch: this.#fetch };
    const answer = await send(this.#request, circumstances).finally(() => deadline.close());
    const token = answer.status === 200 ? (answer.data as { token?: string } | undefined)?.token : undefined;
    const renewAt = token === undefined ? 0 : began + lifetimeOf(token, answer) * USED_PART;
    this.#current = { answer, token, renewAt };
    if (!signal.aborted) this.#next = undefined;
    return this.#current;
  }
}

/**
 * Milliseconds from the creation of a token to its end, by the service's clock: that of this machine may be wrong.
 */
function lifetimeOf(token: string, { headers }: Answer): number {
  // In whole seconds, rounded up or down. A page of another origin cannot read it.
  const made = Date.parse(headers?.get('date') ?? '');
  const lifetime = expiryOf(token) - made - SECOND;
  return lifetime > 0 ? lifetime : LIFETIME;
}

/** Milliseconds since 1970; NaN when it cannot be read. */
function expiryOf(token: string): number {
  try {
    const [, payload = ''] = token.split('.');
    return JSON.parse(atob(payload.replaceAll('-', '+').replaceAll('_', '/'))).exp * 1000;
  } catch {
    return Number.NaN;
  }
}
