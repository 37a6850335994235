// Owns: the map of a folder: each of its programs, with the first clause of what the program owns.
// Does not: map a program that does not start with what it owns.

import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const PROJECT = fileURLToPath(new URL('..', import.meta.url));

/** The text after `Owns:` up to the end of its first clause. A colon after the name of a command does not end it. */
const OWNED = /^\/\/ Owns: ((?:[^\n]|\n\/\/ )*?)(?:[.;]|(?<!`):)(?=\s)/m;

/** The column at which the descriptions start. */
const INDENT = 30;

/** @returns the map of a folder of the project, as a block of code. */
export function mapOf(folder: string): string {
  const files = globSync(`${folder}/**/*.{ts,js}`, { cwd: PROJECT });
  const folders = Map.groupBy(files.toSorted(), dirname);
  const lines = [...folders]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, paths]) => `${relative(dirname(folder), name)}/\n${paths.map(lineOf).join('')}`);
  return `\`\`\`\n${lines.join('')}\`\`\``;
}

function lineOf(path: string): string {
  const [, owned] = OWNED.exec(readFileSync(`${PROJECT}/${path}`, 'utf8')) ?? [];
  if (owned === undefined) throw new Error(`${path} does not start with what it owns.`);
  return `  ${basename(path).padEnd(INDENT - 2)}${owned.replaceAll('\n// ', ' ')}\n`;
}
