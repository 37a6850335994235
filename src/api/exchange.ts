// Owns: one request as the gate and the handlers see it.

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';

export class Exchange {
  readonly request: IncomingMessage;
  /** The name of the request in the log. */
  readonly id: string;
  /** The path as it was sent, without a query. */
  readonly path: string;
  readonly #before: ServerResponse | undefined;

  /** @param before the answer that goes out before this one's, if it has not gone out. */
  constructor(request: IncomingMessage, id: string, path: string, before: ServerResponse | undefined) {
    this.request = request;
    this.id = id;
    this.path = path;
    this.#before = before;
  }

  /** Waits until everything that was asked before on the same connection has been answered. */
  async turn(): Promise<void> {
    if (this.#before !== undefined && !this.#before.closed) await once(this.#before, 'close');
  }
}
