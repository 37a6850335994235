// Owns: a thread that works on the file, as seen by the rest of the process. It is restarted when it dies, on the same
// file only: SQLite would create an empty one in its place.

import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { type StoreFault, StoreUnavailable } from '../../books/store.ts';
import { threadProgram } from '../../project.ts';
import type { Times } from '../../times.ts';
import { OpenFile } from './file.ts';

/** A call; the thread answers under its ticket. */
export type Ticketed<Request> = Request & { readonly ticket: number };

/** The messages of a thread: `ready` once, then one outcome for each call. */
export type ThreadMessage<Answer> =
  | { readonly kind: 'ready' }
  | { readonly kind: 'done'; readonly ticket: number; readonly answer: Answer }
  | {
      readonly kind: 'failed';
      readonly ticket: number;
      readonly reason: string;
      readonly fault?: StoreFault;
    };

/** What a thread gets as its `workerData`. */
export interface ThreadData {
  /** Of the file. */
  readonly path: string;
  readonly times: Times;
  /** Of the thread that searches: whether it gets the long searches, and leaves the index to the other one. */
  readonly isLong?: boolean;
}

export class StoreThread<Request extends object, Answer> {
  readonly #script: string;
  readonly #data: ThreadData;
  /** Undefined until it has been opened. */
  #file: OpenFile | undefined;
  readonly #waiting = new Map<number, PromiseWithResolvers<Answer>>();
  #thread: Worker | undefined;
  #lastTicket = 0;
  #starts = 0;

  /**
   * @param script of the thread, as a path in the project.
   * @param file if it is open already: then the thread may start with its first call.
   */
  constructor(script: string, data: ThreadData, file?: OpenFile) {
    this.#script = script;
    this.#data = data;
    this.#file = file;
  }

  get restarts(): number {
    return Math.max(0, this.#starts - 1);
  }

  /** Resolves once the thread is ready; rejects with the reason. */
  start(): Promise<void> {
    const ready = Promise.withResolvers<void>();
    this.#starts += 1;
    const cache = getCompileCacheDir();
    const { program, eval: isText } = threadProgram(this.#script);
    const thread = new Worker(program, {
      eval: isText,
      workerData: this.#data,
      // Without the compile cache of this process, the thread takes 10 MiB to translate one file for itself. The
      // folder is the one that was set; in it, Node has created the cache for its version.
      env: cache === undefined ? {} : { NODE_COMPILE_CACHE: dirname(cache) },
    });
    let reason = 'its thread has ended';
    thread.on('message', (message: ThreadMessage<Answer>) => {
      if (message.kind === 'ready') {
        this.#file ??= new OpenFile(this.#data.path);
        ready.resolve();
      } else {
        this.#settle(message);
      }
    });
    thread.on('error', (error) => {
      reason = (error as Error).message;
    });
    thread.on('exit', () => {
      this.#thread = undefined;
      ready.reject(new Error(reason));
      for (const ticket of [...this.#waiting.keys()]) this.#settle({ kind: 'failed', ticket, reason });
    });
    this.#thread = thread;
    return ready.promise;
  }

  /** @throws StoreUnavailable */
  async call(request: Request): Promise<Answer> {
    if (this.#thread === undefined) {
      try {
        this.#file?.assertInPlace();
        this.start().catch(() => {}); // the waiting calls get the error
      } catch (error) {
        throw new StoreUnavailable(error); // also if the system makes no thread
      }
    }
    this.#lastTicket += 1;
    const ticket = this.#lastTicket;
    const outcome = Promise.withResolvers<Answer>();
    this.#waiting.set(ticket, outcome);
    this.#thread?.postMessage({ ...request, ticket });
    return outcome.promise;
  }

  /** Lets the thread finish its calls, then ends it. */
  async close(): Promise<void> {
    if (this.#thread === undefined) return;
    const ended = Promise.withResolvers<void>();
    this.#thread.once('exit', () => ended.resolve());
    this.#thread.postMessage('close');
    await ended.promise;
  }

  #settle(message: Exclude<ThreadMessage<Answer>, { kind: 'ready' }>): void {
    const outcome = this.#waiting.get(message.ticket);
    this.#waiting.delete(message.ticket);
    if (message.kind === 'done') outcome?.resolve(message.answer);
    else outcome?.reject(new StoreUnavailable(message.reason, message.fault));
  }
}
