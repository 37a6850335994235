// Owns: fuzzing with coverage. An input that makes the code do something new, or more often than before, is kept, and
// changed further.
//
// libFuzzer does the same for Node.js (Jazzer.js), with 78 packages and a binary that many systems cannot load. V8 counts
// blocks by itself, at half the speed.

import type { Coverage } from './coverage.ts';
import { mutated, type Random } from './mutation.ts';
import { Input, type Reader } from './reader.ts';

/** Inputs between two looks at what has been executed: a look takes as long as many inputs. */
const BATCH = 2000;

/** Bytes of the shorter one of two inputs whose times are compared, and how many times as long the other one is. */
const SHORT = 4096;
const GROWTH = 16;

/** Times as long, for GROWTH times as many bytes: the square of that would be 256. */
const STEEP = 80;

/** Milliseconds: systems count processor time in steps of as many. */
const STEP = 4;

/** How many parts are repeated: every second one is one of these characters, the others are parts of inputs. */
const PARTS = 200;
const CHARACTERS = ' \n"\\[{,\'%*0.';

/** A part of an input that takes too long if it is repeated. */
export interface Steep {
  readonly growth: number;
  readonly before: Buffer;
  readonly part: Buffer;
  readonly after: Buffer;
}

/** An input that the reader reads wrongly. */
export class WrongInput extends Error {
  readonly input: Buffer;

  constructor(input: Buffer, cause: unknown) {
    super('', { cause });
    this.input = input;
  }
}

export class Fuzzing {
  readonly #reader: Reader;
  readonly #coverage: Coverage;
  readonly #random: Random;
  /** Blocks, each with the orders of magnitude of how often one input has executed it. */
  readonly #seen = new Set<number>();
  readonly #covered = new Set<number>();
  #kept: Buffer[] = [];

  /** @param coverage that has been started before the reader was loaded. */
  constructor(reader: Reader, coverage: Coverage, random: Random) {
    this.#reader = reader;
    this.#coverage = coverage;
    this.#random = random;
  }

  /** The inputs that showed something new. */
  get kept(): readonly Buffer[] {
    return this.#kept;
  }

  /** The number of blocks that have been executed. */
  get covered(): number {
    return this.#covered.size;
  }

  /** @throws WrongInput */
  async begin(inputs: readonly Buffer[]): Promise<void> {
    this.#coverage.take(); // what loading has executed
    for (const input of inputs) await this.#look(input);
    if (this.#kept.length === 0) throw new Error('No coverage is counted.');
  }

  /**
   * Tries a batch of new inputs.
   * @returns how many.
   * @throws WrongInput
   */
  async batch(): Promise<number> {
    const { words } = this.#reader;
    const inputs = Array.from({ length: BATCH }, () => mutated(this.#random, this.#kept, words));
    await this.#search(inputs);
    // If there is nothing new in the sum, one input alone may still do something more often than any before.
    await this.#look(inputs[Math.floor(this.#random() * BATCH)] as Buffer);
    return BATCH;
  }

  /** The shortest inputs that together execute all blocks. */
  async smallest(): Promise<readonly Buffer[]> {
    const blocksOf = new Map<Buffer, ReadonlySet<number>>();
    this.#coverage.take();
    for (const input of this.#kept) {
      await this.#run(input);
      blocksOf.set(input, new Set(this.#coverage.take().keys()));
    }
    const missing = new Set([...blocksOf.values()].flatMap((blocks) => [...blocks]));
    const gain = (input: Buffer) => blocksOf.get(input)?.intersection(missing).size ?? 0;
    const chosen: Buffer[] = [];
    const byLength = this.#kept.toSorted((one, other) => one.length - other.length);
    while (missing.size > 0) {
      const best = byLength.reduce((first, next) => (gain(next) > gain(first) ? next : first));
      for (const block of blocksOf.get(best) ?? []) missing.delete(block);
      chosen.push(best);
    }
    return chosen;
  }

  /**
   * Repeats parts of inputs very often, and looks for a time that grows much faster than the length.
   * @returns the steepest growth that is found; undefined if none is too steep.
   */
  async steepest(): Promise<Steep | undefined> {
    let steepest: Steep | undefined;
    for (let times = 0; times < PARTS; times += 1) {
      const below = (end: number) => Math.floor(this.#random() * end);
      const input = this.#kept[below(this.#kept.length)] as Buffer;
      if (input.length === 0) continue;
      const start = below(input.length);
      const isPart = times % 2 === 0;
      const end = isPart ? start + 1 + below(input.length - start) : start;
      const part = isPart
        ? input.subarray(start, end)
        : Buffer.from(CHARACTERS.charAt(below(CHARACTERS.length)));
      const [before, after] = [input.subarray(0, start), input.subarray(end)];
      const grown = (length: number) => Buffer.concat([before, Buffer.alloc(length, part), after]);
      let growth = Number.POSITIVE_INFINITY;
      // The least of three counts: garbage of others may have been collected.
      for (let again = 0; again < 3 && growth > STEEP; again += 1) {
        const few = await this.#processorTime(grown(SHORT));
        growth = Math.min(growth, (await this.#processorTime(grown(SHORT * GROWTH))) / Math.max(few, STEP));
      }
      if (growth > (steepest?.growth ?? STEEP)) steepest = { growth, before, part, after };
    }
    return steepest;
  }

  /** @returns milliseconds. */
  async #processorTime(input: Buffer): Promise<number> {
    const before = process.threadCpuUsage();
    try {
      await this.#reader.check(new Input(input));
    } catch {
      // it is too long for the reader
    }
    const { user, system } = process.threadCpuUsage(before); // microseconds
    return (user + system) / 1000;
  }

  /** Finds inputs that execute new blocks, by halves. */
  async #search(inputs: readonly Buffer[]): Promise<void> {
    for (const input of inputs) await this.#run(input);
    const blocks = [...this.#coverage.take().keys()];
    if (blocks.every((block) => this.#covered.has(block))) return;
    const middle = inputs.length >> 1;
    if (middle > 0) {
      await this.#search(inputs.slice(0, middle));
      await this.#search(inputs.slice(middle));
    } else {
      await this.#look(inputs[0] as Buffer);
    }
    // Some blocks are executed only once: a token that has been seen before is found in a cache.
    for (const block of blocks) this.#covered.add(block);
  }

  async #look(input: Buffer): Promise<void> {
    await this.#run(input);
    let isNew = false;
    for (const [block, count] of this.#coverage.take()) {
      const feature = block * 64 + Math.floor(Math.log2(count));
      isNew ||= !this.#seen.has(feature);
      this.#seen.add(feature);
      this.#covered.add(block);
    }
    if (isNew) this.#kept.push(input);
  }

  async #run(input: Buffer): Promise<void> {
    try {
      const checked = this.#reader.check(new Input(input));
      if (checked !== undefined) await checked;
    } catch (error) {
      throw await shortened(new WrongInput(input, error), this.#reader);
    }
  }
}

/** Leaves out parts of an input as long as the reader still reads it wrongly. */
async function shortened(wrong: WrongInput, { check }: Reader): Promise<WrongInput> {
  let shortest = wrong;
  for (let length = wrong.input.length; length >= 1; length = Math.floor(length / 2)) {
    for (let at = 0; at + length <= shortest.input.length; ) {
      const { input } = shortest;
      const shorter = Buffer.concat([input.subarray(0, at), input.subarray(at + length)]);
      try {
        await check(new Input(shorter));
        at += 1;
      } catch (error) {
        shortest = new WrongInput(shorter, error);
      }
    }
  }
  return shortest;
}
