// Owns: power failures at random moments of some work, each with one of the states that it may leave on the disk, and the
// promises that must hold in all of them.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { startServiceProcess, temporaryFolder } from '../../support/service.ts';
import { STORES_FOLDER } from '../../support/stores-folder.ts';
import { type Found, fieldsOf } from './books.ts';
import type { Cut, Disk, State } from './disk.ts';
import { Recording, readRecording, writeState } from './recording.ts';
import { STORE, type Work } from './work.ts';
import { WORKS } from './works.ts';

/** One state of so many is also served by the real service, in a separate process. */
const SERVED = 5000;

const ANY = 2 ** 31 - 1;

/** What the project's code found in a state, or what failed. */
interface Examined {
  readonly found?: unknown;
  readonly error?: unknown;
}

export class PowerCuts {
  readonly folder: string;
  readonly property: fc.IAsyncProperty<unknown>;
  readonly #work: Work;
  readonly #disk: Disk;
  readonly #notes: unknown;
  readonly #states = temporaryFolder(STORES_FOLDER);
  /** By the digest of the state. */
  readonly #examined = new Map<string, Examined>();
  /** Equal findings are one object. */
  readonly #found = new Map<string, unknown>();
  /** How many states the real service has served. */
  served = 0;

  /** @param folder of a recording that has ended. */
  constructor(name: string, folder: string) {
    this.folder = folder;
    this.#work = WORKS[name] as Work;
    ({ disk: this.#disk, notes: this.#notes } = readRecording(folder));
    const number = fc.noBias(fc.nat(ANY));
    const moment = fc.noBias(fc.nat(this.#disk.moments.length - 1));
    const cut = fc.record({ moment, journal: number, seed: number });
    this.property = fc.asyncProperty(cut, (one) => this.#try(one));
  }

  /** Records work of this name. */
  static async during(name: string, variant: number): Promise<PowerCuts> {
    const recording = new Recording();
    recording.end(await (WORKS[name] as Work).record(recording, variant));
    return new PowerCuts(name, recording.folder);
  }

  /** How many different states there were. */
  get different(): number {
    return this.#examined.size;
  }

  /** @param isKept whether the recording stays. */
  end(isKept = false): void {
    if (!isKept) rmSync(this.folder, { recursive: true });
  }

  async #try(cut: Cut): Promise<void> {
    const state = this.#disk.after(cut);
    const digest = digestOf(state);
    const examined = this.#examined.get(digest) ?? (await this.#examine(state));
    this.#examined.set(digest, examined);
    try {
      if (examined.error !== undefined) throw examined.error;
      this.#work.judge(examined.found, this.#disk.saidBefore(cut), this.#notes);
      if (cut.seed % SERVED === 0) await this.#serve(state, this.#work.booksOf(examined.found));
    } catch (error) {
      const where = `${this.#disk.describe(cut)}\nThe recording is in ${this.folder}.`;
      throw new Error(`${(error as Error).message}\n${where}`, { cause: error });
    }
  }

  async #examine(state: State): Promise<Examined> {
    writeState(state, this.#states);
    try {
      const found = await this.#work.examine(this.#states, this.#notes);
      const text = JSON.stringify(found);
      const known = this.#found.get(text) ?? found;
      this.#found.set(text, known);
      return { found: known };
    } catch (error) {
      return { error };
    }
  }

  /** The real service must find the same books, and take others. */
  async #serve(state: State, books: Found['books']): Promise<void> {
    this.served += 1;
    writeState(state, this.#states);
    const { client, stop } = await startServiceProcess(`sqlite:${join(this.#states, STORE)}`);
    try {
      const listed = await client.list();
      assert.deepEqual(
        listed,
        books.map(([id, book, version]) => ({ id, ...fieldsOf(book, version) })),
      );
      const created = await client.create({ title: 'after the power failure' });
      assert.deepEqual(await client.list(), [...listed, created]);
    } finally {
      await stop();
    }
  }
}

function digestOf(state: State): string {
  const hash = createHash('sha1');
  for (const [path, bytes] of state) hash.update(`${path} ${bytes.length} `).update(bytes);
  return hash.digest('base64');
}
