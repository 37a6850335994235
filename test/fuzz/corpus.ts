// Owns: the inputs that are kept in the repository: those that together execute all code of a reader that fuzzing has
// reached, and its seeds. One line of a file is one input, as a string of JSON with one character for each byte.

import { existsSync, readFileSync } from 'node:fs';
import { pathTo } from '../support/repository.ts';
import type { Reader } from './reader.ts';

export function corpusPath(name: string): string {
  return pathTo(`test/fuzz/corpus/${name}.txt`);
}

/** The seeds of a reader, and what `npm run fuzz -- --keep` has found. */
export function corpusOf(name: string, { seeds }: Reader): Buffer[] {
  const path = corpusPath(name);
  const lines = existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n') : [];
  const inputs: string[] = [...seeds, ...lines.map((line) => JSON.parse(line))];
  return inputs.map((input) => Buffer.from(input, 'latin1'));
}

export function corpusText(inputs: readonly Buffer[]): string {
  return inputs.map((input) => `${JSON.stringify(input.toString('latin1'))}\n`).join('');
}
