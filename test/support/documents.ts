// Owns: the code blocks of the documents, which tests run as they are written there.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { pathTo } from './repository.ts';

export interface Block {
  /** `sh`, `sql` and so on; '' if none is named. */
  readonly language: string;
  readonly text: string;
}

/** All code blocks of a document, in their order. */
export function blocksOf(path: string): readonly Block[] {
  const fences = /^( *)```(\w*)\n(.*?)^\1```$/gms;
  return [...readFileSync(pathTo(path), 'utf8').matchAll(fences)].map(
    ([, indent = '', language = '', text = '']) => ({
      language,
      text: text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    }),
  );
}

/** The one code block of a document that has this text. */
export function blockOf(path: string, part: string): string {
  const found = blocksOf(path).filter(({ text }) => text.includes(part));
  assert.equal(found.length, 1, `${path}: ${part}`);
  return found[0]?.text as string;
}
