// Owns: power failures at random moments of some work, each with one of the states that it may leave on the disk, and the
// promises that must hold in all of them.

import { rmSync } from 'node:fs';
import fc from 'fast-check';
import { temporaryFolder } from '../../support/service.ts';
import { STORES_FOLDER } from '../../support/stores-folder.ts';
import type { Cut, Disk } from './disk.ts';
import { Recording, readRecording, writeState } from './recording.ts';
import { WORKS, type Work } from './works.ts';

const ANY = 2 ** 31 - 1;

export class PowerCuts {
  readonly folder: string;
  readonly property: fc.IAsyncProperty<unknown>;
  readonly #work: Work;
  readonly #disk: Disk;
  readonly #notes: unknown;
  readonly #states = temporaryFolder(STORES_FOLDER);

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

  /** Removes the recording. */
  end(): void {
    rmSync(this.folder, { recursive: true });
  }

  async #try(cut: Cut): Promise<void> {
    writeState(this.#disk.after(cut), this.#states);
    try {
      const found = await this.#work.examine(this.#states, this.#notes);
      this.#work.judge(found, this.#disk.saidBefore(cut), this.#notes);
    } catch (error) {
      const where = `${this.#disk.describe(cut)}\nThe recording is in ${this.folder}.`;
      throw new Error(`${(error as Error).message}\n${where}`, { cause: error });
    }
  }
}
