// Owns: clients that write, read and list all the time while the store fails, or services behind a proxy are replaced,
// and the check that their answers are linearizable, together with the stored books.

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Requester } from './client.ts';
import { Ledger } from './ledger.ts';
import { waitUntil } from './wait.ts';

const WRITERS = 6;

/** Milliseconds that a client rests between two requests, so that a load leaves processor time to others. */
const REST = 5;
const REST_OF_LISTS = 100;

type Services = readonly [Requester, ...Requester[]];

export class Load {
  readonly #services: Services;
  readonly #writers: number;
  readonly #ledger = new Ledger();
  /** The writers that have been answered with 503 of late. */
  readonly #refused = new Set<number>();
  readonly #work: Promise<unknown>;
  #isStopped = false;
  /** Writes that were answered with 503. */
  unavailable = 0;

  private constructor(services: Services, writers: number) {
    this.#services = services;
    this.#writers = writers;
    const writing = Array.from({ length: writers }, (_, position) => this.#write(position));
    const readers = services.flatMap((service) => [
      this.#repeat(REST_OF_LISTS, () => this.#ledger.read(service, '/books')),
      this.#repeat(REST, () => this.#ledger.read(service)),
    ]);
    this.#work = Promise.all([...writing, ...readers]);
    this.#work.catch(() => {
      this.#isStopped = true; // `stop` throws the reason
    });
  }

  /**
   * Starts the clients, which stop when the test ends if not before. There must be no books yet.
   * @param services all of one catalogue.
   */
  static start(context: TestContext, ...services: Services): Promise<Load> {
    return Load.startMany(context, WRITERS, ...services);
  }

  /** @param writers how many clients write. */
  static async startMany(context: TestContext, writers: number, ...services: Services): Promise<Load> {
    const load = new Load(services, writers);
    context.after(() => {
      load.#isStopped = true;
    });
    await load.moreWrites(50);
    return load;
  }

  /** Resolves once so many more writes have been acknowledged. */
  async moreWrites(count: number): Promise<void> {
    const target = this.#ledger.acknowledged + count;
    await this.#until(() => this.#ledger.acknowledged >= target);
  }

  /** Resolves once every writer has been answered with 503 since this call. */
  async allRefused(): Promise<void> {
    this.#refused.clear();
    await this.#until(() => this.#refused.size === this.#writers);
  }

  /** Stops the clients and compares the stored books with the answers that they got. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#work;
    await this.#ledger.reconcile(this.#services[0]);
  }

  /** Rejects when a client gets an answer that it must not get. */
  async #until(holds: () => boolean): Promise<void> {
    await Promise.race([waitUntil(() => holds() || this.#isStopped), this.#work]);
  }

  /** A list that breaks half way breaks the connection (rule 13). */
  async #repeat(rest: number, act: () => Promise<unknown>): Promise<void> {
    for (; !this.#isStopped; await pause(rest)) await act();
  }

  /** Each writer reads what it has written from another one of the services, if there are several. */
  async #write(position: number): Promise<void> {
    const [here, there] = [position, position + 1].map((at) => this.#services[at % this.#services.length]);
    const writer = this.#ledger.writer(here as Requester);
    await this.#repeat(REST, async () => {
      const outcome = await writer.write();
      assert.notEqual(outcome, 'gone');
      if (outcome === 'unavailable') {
        this.unavailable += 1;
        this.#refused.add(position);
      } else if (there !== here) await this.#ledger.read(there as Requester, writer.latest);
    });
  }
}
