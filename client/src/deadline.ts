// Owns: the end of a call: its timeout, and the signal of its caller.

import { CatalogueError } from './errors.ts';

export class Deadline {
  readonly #controller = new AbortController();
  readonly #callers: AbortSignal | undefined;
  readonly #giveUp = () => this.#controller.abort(this.#callers?.reason);
  readonly #milliseconds: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #end = 0;

  /**
   * @param milliseconds for the call, including all its attempts and waits.
   * @param signal of the caller.
   * @throws the signal's reason when it is already aborted.
   */
  constructor(milliseconds: number, signal?: AbortSignal) {
    signal?.throwIfAborted();
    this.#milliseconds = milliseconds;
    this.#callers = signal;
    signal?.addEventListener('abort', this.#giveUp);
    this.start();
  }

  /** Aborted when the call must end. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether the caller ended the call. */
  get isGivenUp(): boolean {
    return this.#callers?.aborted === true;
  }

  /** Whether the timeout ended the call. */
  get isOver(): boolean {
    return this.signal.aborted && !this.isGivenUp;
  }

  /** Milliseconds. */
  get remaining(): number {
    return this.#end - performance.now();
  }

  /** Milliseconds since the start. */
  get spent(): number {
    return this.#milliseconds - this.remaining;
  }

  /** The message of the error after the timeout. */
  get message(): string {
    return `no answer within ${this.#milliseconds} ms`;
  }

  /** Starts the timeout, or starts it again. */
  start(): void {
    this.stop();
    this.#end = performance.now() + this.#milliseconds;
    this.#timer = setTimeout(
      () => this.#controller.abort(new CatalogueError(this.message)),
      this.#milliseconds,
    );
  }

  /** Stops the timeout. */
  stop(): void {
    clearTimeout(this.#timer);
  }

  /** Waits for a promise that other calls share, and that continues after this call has ended. */
  wait<Value>(promise: Promise<Value>): Promise<Value> {
    const { signal } = this;
    return new Promise((resolve, reject) => {
      const leave = () => reject(signal.reason);
      signal.addEventListener('abort', leave);
      promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
    });
  }

  /** Resolves after the pause, or as soon as the call must end. */
  pause(milliseconds: number): Promise<void> {
    const { signal } = this;
    return new Promise((resolve) => {
      const goOn = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', goOn);
        resolve();
      };
      const timer = setTimeout(goOn, milliseconds);
      signal.addEventListener('abort', goOn);
    });
  }

  /** Call it when the call has ended: releases the timer and the caller's signal. */
  close(): void {
    this.stop();
    this.#callers?.removeEventListener('abort', this.#giveUp);
  }
}
