// Owns: one request as the gate and the handlers see it.

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Path } from '../http/path.ts';

export class Exchange {
  readonly request: IncomingMessage;
  /** Identifies the request in the log. */
  readonly id: string;
  readonly path: Path;
  readonly #before: ServerResponse | undefined;

  /** @param before the answer that goes out before this one's; undefined if that has been sent. */
  constructor(request: IncomingMessage, id: string, path: Path, before: ServerResponse | undefined) {
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
