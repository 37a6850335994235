// Owns: telling quickly, in fixed memory, that a book is certainly none of many: a Bloom filter.

import { randomInt } from 'node:crypto';
import type { BookFields } from '../books/book.ts';

/** Two hashes of a book. Seeded anew each time: nobody can write a file whose rows all collide. */
export class BookHash {
  readonly #placeSeed = randomInt(2 ** 32) | 0;
  readonly #keySeed = randomInt(2 ** 32) | 0;
  place = 0;
  key = 0;

  of({ title, author, year }: BookFields): void {
    let place = this.#placeSeed;
    let key = this.#keySeed;
    for (let index = 0; index < title.length; index += 1) {
      const code = title.charCodeAt(index);
      place = Math.imul((place << 5) ^ (place >>> 27) ^ code, 0x9e3779b1);
      key = Math.imul((key << 7) ^ (key >>> 25) ^ code, 0x85ebca6b);
    }
    place = Math.imul(place ^ 0x10000, 0x9e3779b1); // no UTF-16 code unit, so that it parts title and author
    key = Math.imul(key ^ 0x10000, 0x85ebca6b);
    for (let index = 0; index < author.length; index += 1) {
      const code = author.charCodeAt(index);
      place = Math.imul((place << 5) ^ (place >>> 27) ^ code, 0x9e3779b1);
      key = Math.imul((key << 7) ^ (key >>> 25) ^ code, 0x85ebca6b);
    }
    const high = Math.floor(year / 2 ** 32); // a year has up to 54 bits
    this.place = mix(Math.imul(place ^ year, 0x9e3779b1) ^ high);
    this.key = mix(Math.imul(key ^ year, 0x85ebca6b) ^ high);
  }
}

/** Every bit of the result hangs on every bit of the value. */
function mix(value: number): number {
  const half = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d);
  const whole = Math.imul(half ^ (half >>> 12), 0x297a2d39);
  return (whole ^ (whole >>> 15)) >>> 0;
}

/** Words of 32 bits in a block: half a line of the processor's cache, so that a look is one access to memory. */
const BLOCK_WORDS = 8;

/** Odd numbers at random, one for each word of a block. */
const MULTIPLIERS = [
  0x6c8e9cf5, 0xb5297a4d, 0x1b56c4e9, 0xd2a98b27, 0x7feb352d, 0x846ca68b, 0x3c79ac49, 0xe7037ed1,
] as const;

/** A Bloom filter in blocks: a book sets one bit in each word of its block. */
export class BookFilter {
  readonly #words: Uint32Array;
  readonly #blocks: number;

  /** @param size bytes. */
  constructor(size: number) {
    this.#blocks = Math.ceil(size / (BLOCK_WORDS * 4));
    this.#words = new Uint32Array(this.#blocks * BLOCK_WORDS);
  }

  /** @returns whether it was certainly not in it before. */
  add({ place, key }: BookHash): boolean {
    const block = (place % this.#blocks) * BLOCK_WORDS;
    let isNew = false;
    for (let index = 0; index < BLOCK_WORDS; index += 1) {
      const bit = 1 << (Math.imul(key, MULTIPLIERS[index] as number) >>> 27);
      const word = this.#words[block + index] as number;
      if ((word & bit) === 0) {
        isNew = true;
        this.#words[block + index] = word | bit;
      }
    }
    return isNew;
  }

  /** @returns false when it is certainly not in it. */
  has({ place, key }: BookHash): boolean {
    const block = (place % this.#blocks) * BLOCK_WORDS;
    for (let index = 0; index < BLOCK_WORDS; index += 1) {
      const bit = 1 << (Math.imul(key, MULTIPLIERS[index] as number) >>> 27);
      if (((this.#words[block + index] as number) & bit) === 0) return false;
    }
    return true;
  }
}
