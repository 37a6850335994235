// Owns: `npm run build:site`: the site of the documents, in site/dist, unless the one there is of the same files.
// It installs the generator first if site/node_modules is missing or old.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { globSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PAGES } from './pages.ts';

const SITE = import.meta.dirname;
const PROJECT = join(SITE, '..');
const DIGEST = join(SITE, 'dist/digest');

/** The files that decide what the site is. */
const SOURCES = [
  ...['package.json', 'src/version.ts', 'page/colours.css'],
  ...PAGES,
  'docs/pictures/*.{png,svg}',
  ...['site/*.{json,ts}', 'site/.vitepress/*.ts', 'site/.vitepress/theme/*'],
];

const digest = digestOf(globSync(SOURCES, { cwd: PROJECT }).sort());
if (read(DIGEST) !== digest) {
  if (timeOf('node_modules/.package-lock.json') < timeOf('package-lock.json'))
    execFileSync('npm', ['ci', '--ignore-scripts'], { cwd: SITE, stdio: 'inherit' });
  rmSync(join(SITE, 'dist'), { recursive: true, force: true });
  const { build } = await import('vitepress');
  await build(SITE);
  writeFileSync(DIGEST, digest);
}

function digestOf(paths: readonly string[]): string {
  const hash = createHash('sha256');
  for (const path of paths)
    hash
      .update(`${path}\0`)
      .update(readFileSync(join(PROJECT, path)))
      .update('\0');
  return hash.digest('hex');
}

/** @returns undefined if there is no such file. */
function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** When a file was last changed, in milliseconds since 1970; 0 if there is no such file. */
function timeOf(path: string): number {
  return statSync(join(SITE, path), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
