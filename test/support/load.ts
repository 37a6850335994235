// Owns: clients that write, read and list all the time while the store fails, or services behind a proxy are replaced,
// and the check that their answers are linearizable, together with the stored books.

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Requester } from './client.ts';
import { Ledger, type Outcome } from './ledger.ts';
import { waitUntil } from './wait.ts';

const WRITERS = 6;

/** Milliseconds that a client rests between two requests, so that a load leaves processor time to others. */
const REST = 5;
const REST_OF_LISTS = 100;

export class Load {
  readonly #services: readonly [Requester, ...Requester[]];
  readonly #ledger = new Ledger();
  /** How often each writer was answered with 503. */
  readonly #refusals = Array.from({ length: WRITERS }, () => 0);
  readonly #work: Promise<unknown>;
  #stopped = false;
  /** Writes that were acknowledged, and those that were 503. */
  acknowledged = 0;
  unavailable = 0;

  private constructor(services: readonly [Requester, ...Requester[]]) {
    this.#services = services;
    const writers = this.#refusals.map((_, position) => this.#write(position));
    const readers = services.flatMap((service) => [
      this.#read(service, '/books', REST_OF_LISTS),
      this.#read(service, undefined, REST),
    ]);
    this.#work = Promise.all([...writers, ...readers]);
    this.#work.catch(() => {
      this.#stopped = true; // `stop` throws the reason
    });
  }

  /**
   * Starts the clients, which stop when the test ends if not before. There must be no books yet.
   * @param services all of one catalogue.
   */
  static async start(context: TestContext, ...services: readonly [Requester, ...Requester[]]): Promise<Load> {
    const load = new Load(services);
    context.after(() => {
      load.#stopped = true;
    });
    await load.moreWrites(50);
    return load;
  }

  /** Resolves once so many more writes have been acknowledged. */
  async moreWrites(count: number): Promise<void> {
    const target = this.acknowledged + count;
    await this.#until(() => this.acknowledged >= target);
  }

  /** Resolves once every writer has been answered with 503 since this call. */
  async allRefused(): Promise<void> {
    const before = [...this.#refusals];
    const isRefused = (refusals: number, position: number) => refusals > (before[position] as number);
    await this.#until(() => this.#refusals.every(isRefused));
  }

  /** Stops the clients and compares the stored books with the answers that they got. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#work;
    this.#ledger.reconcile(await this.#services[0].list());
  }

  /** Rejects when a client gets an answer that it must not get. */
  async #until(holds: () => boolean): Promise<void> {
    await Promise.race([waitUntil(() => holds() || this.#stopped), this.#work]);
  }

  async #write(position: number): Promise<void> {
    const services = this.#services;
    const here = services[position % services.length] as Requester;
    const there = services[(position + 1) % services.length] as Requester;
    const writer = this.#ledger.writer(here);
    while (!this.#stopped) {
      const outcome: Outcome = await writer.write();
      assert.notEqual(outcome, 'gone');
      if (outcome === 'acknowledged') {
        this.acknowledged += 1;
        if (there !== here) await this.#ledger.read(there, writer.latest);
      } else {
        this.unavailable += 1;
        this.#refusals[position] = (this.#refusals[position] as number) + 1;
      }
      await pause(REST);
    }
  }

  /** A list that breaks half way breaks the connection (rule 13). */
  async #read(service: Requester, path: string | undefined, rest: number): Promise<void> {
    while (!this.#stopped) {
      await this.#ledger.read(service, path);
      await pause(rest);
    }
  }
}
