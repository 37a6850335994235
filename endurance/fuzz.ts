// Owns: fuzzing as a command: many more inputs for each reader than a run of the tests tries, led by coverage.

import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { corpusOf, corpusPath, corpusText } from '../test/fuzz/corpus.ts';
import { Coverage } from '../test/fuzz/coverage.ts';
import { Fuzzing, WrongInput } from '../test/fuzz/fuzzing.ts';
import { Input } from '../test/fuzz/reader.ts';
import { sequenceOf } from '../test/support/random.ts';

const HELP = `Usage: npm run fuzz -- [options]

Gives random inputs to each part of the project that reads bytes from outside. An input that makes the code do something
new is changed further. An input that is read wrongly is shortened and printed, with the options that repeat it; the exit
code is then 1.

  --runs <n>      inputs of each reader (1000000)
  --only <text>   only readers whose names contain this text
  --seed <n>      of the random choices (random)
  --input <text>  repeats the one input that was printed, with --only
  --keep          writes the inputs that together execute all code into test/fuzz/corpus
  --help          print this
`;

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '1000000' },
    only: { type: 'string', default: '' },
    seed: { type: 'string' },
    input: { type: 'string' },
    keep: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const coverage = new Coverage();
coverage.start();
// Only code that is loaded from here on is counted.
const { READERS } = await import('../test/fuzz/readers.ts');
process.exitCode = values.help ? help() : await run();

function help(): number {
  process.stdout.write(`${HELP}\nReaders: ${Object.keys(READERS).join(', ')}\n`);
  return 0;
}

async function run(): Promise<number> {
  const chosen = Object.entries(READERS).filter(([name]) => name.includes(values.only));
  const runs = Number(values.runs);
  if (chosen.length === 0 || !(runs > 0) || (values.input !== undefined && chosen.length > 1)) {
    process.stderr.write('There is nothing to run with these options. --help explains them.\n');
    return 2;
  }
  if (values.input !== undefined) {
    await chosen[0]?.[1].check(new Input(Buffer.from(values.input, 'base64url')));
    process.stdout.write('This input is read as it should be.\n');
    return 0;
  }
  const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 32));
  for (const [name, reader] of chosen) {
    const began = performance.now();
    const fuzzing = new Fuzzing(reader, coverage, sequenceOf(seed));
    let tried = 0;
    try {
      await fuzzing.begin(corpusOf(name, reader));
      while (tried < runs) {
        tried += await fuzzing.batch();
        if (process.stderr.isTTY) process.stderr.write(`\r${name}: ${tried} inputs `);
      }
    } catch (error) {
      if (!(error instanceof WrongInput)) throw error;
      const again = `npm run fuzz -- --only ${name} --input ${error.input.toString('base64url')}`;
      process.stderr.write(
        `${name}: wrong after ${tried} inputs, seed ${seed}: ${JSON.stringify(error.input.toString('latin1'))}\n\n` +
          `${error.cause instanceof Error ? error.cause.stack : error.cause}\n\nTo repeat it: ${again}\n`,
      );
      return 1;
    }
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
    const steep = await fuzzing.steepest();
    if (steep !== undefined) {
      const [before, part, after] = [steep.before, steep.part, steep.after].map((text) =>
        JSON.stringify(text.toString('latin1')),
      );
      process.stderr.write(
        `${name}: sixteen times as many ${part} between ${before} and ${after} take ` +
          `${steep.growth.toFixed(0)} times as long, seed ${seed}\n`,
      );
      return 1;
    }
    const seconds = ((performance.now() - began) / 1000).toFixed(0);
    process.stdout.write(
      `${name}: ${tried} inputs, ${seconds} s, ${fuzzing.covered} blocks, ${fuzzing.kept.length} inputs kept, seed ${seed}\n`,
    );
    if (values.keep) writeFileSync(corpusPath(name), corpusText(await fuzzing.smallest()));
  }
  return 0;
}
