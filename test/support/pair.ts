// Owns: two services as one client. Each request goes to the other one of them, and after an acknowledged write the
// other one is asked whether it knows of it.

import type { Answer } from '../../conformance/answers.ts';
import type { Book, RequestOptions } from '../../conformance/service.ts';
import type { Client, Requester } from './client.ts';

export class Pair implements Requester {
  readonly #clients: readonly [Client, Client];
  #requests = 0;
  /** Reads that did not show a write that was acknowledged before they began, as sentences. */
  readonly stale: string[] = [];

  constructor(one: Client, other: Client) {
    this.#clients = [one, other];
  }

  /** A write must be of a book that no other client changes. */
  async request(method: string, path: string, options?: RequestOptions): Promise<Answer> {
    this.#requests += 1;
    const [here, there] = this.#requests % 2 === 0 ? this.#clients : this.#clients.toReversed();
    const answer = await (here as Client).request(method, path, options);
    if (method !== 'GET' && answer.status < 300) {
      const at = method === 'POST' ? `/book/${answer.data.id}` : path;
      const read = await (there as Client).request('GET', at);
      const isShown =
        method === 'DELETE' ? read.status === 404 : JSON.stringify(read.data) === JSON.stringify(answer.data);
      if (!isShown && read.status !== 503) this.stale.push(`after ${method} ${at}, GET was ${read.status}`);
    }
    return answer;
  }

  list(): Promise<Book[]> {
    return this.#clients[0].list();
  }
}
