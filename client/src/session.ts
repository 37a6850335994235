// Owns: the token. One login for all calls that need one at the same moment, and a new one before it ends.

import { Deadline } from './deadline.ts';
import { type Answer, noAnswer, type Request, send } from './request.ts';

/** Milliseconds that a token lasts by the contract, for where nothing can be seen of it. */
const LIFETIME = 15 * 60 * 1000;

const SECOND = 1000;

/** The part of its life in which a token is used: a request takes its time to arrive. */
const USED_PART = 0.9;

/** How a login has ended. */
interface Login {
  readonly answer: Answer;
  /** Undefined when it has failed. */
  readonly token: string | undefined;
  /** On the clock that never steps. */
  readonly renewAt: number;
}

export class Session {
  readonly #request: Request;
  readonly #timeout: number;
  #current: Login | undefined;
  #next: Promise<Login> | undefined;
  /** Calls that wait for the next login. */
  #waiting = 0;
  #giveUp = new AbortController();

  /**
   * @param request the one that logs in.
   * @param timeout milliseconds that it may take.
   */
  constructor(request: Request, timeout: number) {
    this.#request = request;
    this.#timeout = timeout;
  }

  /**
   * A login whose token lasts for a while yet, or one that has just failed.
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

  /** The service accepts this token no longer. */
  discard(token: string): void {
    if (this.#current?.token === token) this.#current = undefined;
  }

  /** Belongs to all calls that wait for it, and ends when the last of them gives up. */
  async #logIn(): Promise<Login> {
    this.#giveUp = new AbortController();
    const { signal } = this.#giveUp;
    signal.addEventListener('abort', () => {
      this.#next = undefined;
    });
    const deadline = new Deadline(this.#timeout, signal);
    const began = performance.now();
    const answer = await send(this.#request, { deadline }).finally(() => deadline.close());
    const token = answer.status === 200 ? (answer.data as { token?: string } | undefined)?.token : undefined;
    const renewAt = token === undefined ? 0 : began + lifetimeOf(token, answer) * USED_PART;
    this.#current = { answer, token, renewAt };
    if (!signal.aborted) this.#next = undefined;
    return this.#current;
  }
}

/**
 * Milliseconds that a token lasts from when the service made it, by the service's own clock: this machine's
 * may be wrong.
 */
function lifetimeOf(token: string, { headers }: Answer): number {
  // In whole seconds, begun or over. A page of another origin does not see it.
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
