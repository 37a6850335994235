// Owns: clients that write, read and list all the time while the store fails, and what they were told:
// every answer in time, nothing acknowledged lost, nothing there twice.

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from './client.ts';
import { Ledger, type Outcome } from './ledger.ts';
import { waitUntil } from './wait.ts';

/** Milliseconds in which every answer is there (rule 23), and what a slow machine may add. */
const LIMIT = 5000 + 500;

const WRITERS = 8;

export class Load {
  readonly #client: Client;
  readonly #ledger = new Ledger();
  readonly #clients: Promise<unknown>;
  #stopped = false;
  /** Writes that were answered with success, and those that were 503. */
  acknowledged = 0;
  unavailable = 0;
  /** Milliseconds of the slowest answer. */
  slowest = 0;

  private constructor(client: Client) {
    this.#client = client;
    const writers = Array.from({ length: WRITERS }, () => this.#write());
    this.#clients = Promise.all([...writers, this.#read('/books'), this.#read('/book/1')]);
    this.#clients.catch(() => {}); // heard by `stop`
  }

  /** Resolves once the clients are at work, at most until the test ends. There must be no books yet. */
  static async start(context: TestContext, client: Client): Promise<Load> {
    const load = new Load(client);
    context.after(() => {
      load.#stopped = true;
    });
    await load.moreWrites(100);
    return load;
  }

  /** @returns milliseconds until as many writes more have been acknowledged. */
  async moreWrites(count: number): Promise<number> {
    const began = performance.now();
    const target = this.acknowledged + count;
    await waitUntil(() => this.acknowledged >= target || this.#stopped);
    return Math.round(performance.now() - began);
  }

  /** Ends the clients and compares what they were told with what is there. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#clients;
    this.#ledger.reconcile(await this.#client.list());
  }

  async #write(): Promise<void> {
    const writer = this.#ledger.writer(this.#client);
    while (!this.#stopped) {
      const outcome: Outcome = await this.#timed(() => writer.write());
      assert.notEqual(outcome, 'gone');
      if (outcome === 'acknowledged') this.acknowledged += 1;
      else {
        this.unavailable += 1;
        await pause(10);
      }
    }
  }

  async #read(path: string): Promise<void> {
    while (!this.#stopped) {
      // A list that breaks half way breaks the connection (rule 13).
      const request = () => this.#client.request('GET', path).catch(() => undefined);
      const answer = await this.#timed(request);
      if (answer?.status === 503) assert.ok(Number(answer.headers.get('retry-after')) > 0);
      else assert.ok(answer === undefined || answer.status === 200 || answer.status === 404);
      await pause(10);
    }
  }

  async #timed<Value>(request: () => Promise<Value>): Promise<Value> {
    const began = performance.now();
    const value = await request();
    const milliseconds = Math.round(performance.now() - began);
    this.slowest = Math.max(this.slowest, milliseconds);
    if (milliseconds >= LIMIT) {
      this.#stopped = true;
      assert.fail(`answered after ${milliseconds} ms`);
    }
    return value;
  }
}
