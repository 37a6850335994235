// Owns: one request as the gate and the handlers see it.

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';

export class Exchange {
  readonly request: IncomingMessage;
  /** Identifies the request in the log. */
  readonly id: string;
  /** The path as it was sent, without a query. */
  readonly path: string;
  readonly #before: ServerResponse | undefined;

  /** @param before the answer that goes out before this one's; undefined if that has been sent. */
  constructor(request: IncomingMessage, id: string, path: string, before: ServerResponse | undefined) {
    this.request = request;
    this.id = id;
    this.path = path;
    this.#before = before;
  }

  /** Waits until all earlier requests on the same connection have been answered. */
  async turn(): Promise<void> {
    if (this.#before !== undefined && !this.#before.closed) await once(this.#before, 'close');
  }
}
