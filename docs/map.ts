// Owns: the map of docs/architecture.md: every file of the product with the first clause of what it owns. As a program it
// writes the map into that page.
// Refuses: a file that does not begin with what it owns.

import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Folders whose every program is on the map, in this order. */
const BUILDINGS = ['src', 'page', 'conformance', 'client/src'];

const PROJECT = new URL('../', import.meta.url);
const PAGE = new URL('docs/architecture.md', PROJECT);

/** The map, in the block of code that follows its heading. */
const MAP = /(?<=^### Map\n\n```\n).*?(?=^```$)/ms;

/** The text after `Owns:` as far as its first clause (the name of a command is none), over as many lines of comment as it fills. */
const OWNED = /^\/\/ Owns: ((?:[^\n]|\n\/\/ )*?)(?:[.;]|(?<!`):)(?=\s)/m;

/** The column at which the descriptions begin. */
const INDENT = 30;

/** @returns the page with a new map. */
export function pageWithMap(): string {
  return readFileSync(PAGE, 'utf8').replace(MAP, () => BUILDINGS.map(mapOf).join('\n'));
}

function mapOf(building: string): string {
  const files = globSync(`${building}/**/*.{ts,js}`, { cwd: fileURLToPath(PROJECT) });
  const rooms = Map.groupBy(files.toSorted(), dirname);
  return [...rooms]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([room, paths]) => `${room}/\n${paths.map(lineOf).join('')}`)
    .join('');
}

function lineOf(path: string): string {
  const [, owned] = OWNED.exec(readFileSync(new URL(path, PROJECT), 'utf8')) ?? [];
  if (owned === undefined) throw new Error(`${path} does not begin with what it owns.`);
  return `  ${basename(path).padEnd(INDENT - 2)}${owned.replaceAll('\n// ', ' ')}\n`;
}

if (import.meta.main) writeFileSync(PAGE, pageWithMap());
