// Owns: the licences of everything that the executable contains, word for word.
// Does not: pass on a library or a Node.js without the text of its licence.

import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROJECT } from '../src/project.ts';
import { version } from '../src/version.ts';

const ROOT = fileURLToPath(PROJECT);
const RULE = `\n${'-'.repeat(80)}\n\n`;

/**
 * The licences as one text.
 * @param paths of the files that the executable contains, in the project.
 * @throws Error if npm has not installed this Node.js, with its licences.
 */
export function licencesOf(paths: readonly string[]): string {
  const parts = [
    `book-catalogue ${version}: MIT\n\n${read('LICENSE')}`,
    read('src/demo/README.md'),
    `Node.js ${process.versions.node}\n\n${read(licenceOfNode())}`,
    ...librariesOf(paths).map((folder) => licencesOfLibrary(folder, paths)),
  ];
  return parts.map((text) => `${text}\n`).join(RULE);
}

function licencesOfLibrary(folder: string, paths: readonly string[]): string {
  const { name, version, license } = manifestOf(folder);
  const own = globSync('{LICENSE,LICENCE,license,NOTICE}*', { cwd: join(ROOT, folder) })
    .sort()
    .map((file) => read(join(folder, file)));
  // A library may have it in its repository alone.
  const ofRepository = `release/licences/${name}.txt`;
  if (own.length === 0 && existsSync(join(ROOT, ofRepository))) own.push(read(ofRepository));
  if (own.length === 0) {
    const [section] = /^#+ licen[cs]e$.*/ims.exec(read(join(folder, 'README.md'))) ?? [];
    if (section === undefined) throw new Error(`${folder} has no text of its licence.`);
    own.push(section);
  }
  // A file that a library has put together of others may have a file of their licences beside it.
  const others = paths
    .filter((path) => path.startsWith(`${folder}/`))
    .map((path) => `${path}.LICENSE.txt`)
    .filter((path) => existsSync(join(ROOT, path)))
    .map(read);
  return [`${name} ${version}: ${license}`, ...own, ...others].join('\n\n');
}

/** npm's package `node` gets the program, and Node.js's own file of licences, as a package for the platform. */
function licenceOfNode(): string {
  const { node } = process.versions;
  const files = globSync('node_modules/node/node_modules/node-*/LICENSE', { cwd: ROOT });
  const file = files.find((path) => manifestOf(join(path, '..')).version === node);
  if (file === undefined) throw new Error(`The licences of Node.js ${node} are missing: run npm ci.`);
  return file;
}

function librariesOf(paths: readonly string[]): string[] {
  const folders = paths.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? []);
  return [...new Set(folders)].sort();
}

function manifestOf(folder: string): { name: string; version: string; license: string } {
  return JSON.parse(read(join(folder, 'package.json')));
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8').trim();
}
