// Whatever bytes arrive from outside, what is promised of their reader holds: for the inputs in corpus/, which execute all
// code that fuzzing has reached, and for random changes of them. `npm run fuzz` finds such inputs, and tries many more.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { randomSequence } from '../support/random.ts';
import { scaled } from '../support/scale.ts';
import { corpusOf } from './corpus.ts';
import { mutated } from './mutation.ts';
import { Input } from './reader.ts';
import { READERS } from './readers.ts';

describe('what is promised holds for any bytes', () => {
  for (const [number, [name, reader]] of Object.entries(READERS).entries()) {
    test(name, async () => {
      const corpus = corpusOf(name, reader);
      const random = randomSequence(number);
      const changed = Array.from({ length: scaled(2000) }, () => mutated(random, corpus, reader.words));
      for (const input of [...corpus, ...changed]) {
        const again = `npm run fuzz -- --only ${name} --input ${input.toString('base64url')}`;
        await assert.doesNotReject(async () => reader.check(new Input(input)), again);
      }
    });
  }
});
