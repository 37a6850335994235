// Owns: running imports: of a file, and of what is written to the standard input.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { runCommand } from './command.ts';
import { temporaryFolder } from './service.ts';

export function folderWith(files: Readonly<Record<string, string | Uint8Array>>): string {
  const folder = temporaryFolder();
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return folder;
}

/** CSV of so many rows, which are all new. */
export function manyRows(count: number): string {
  const rows = Array.from(
    { length: count },
    (_, index) => `"A book of number ${index}",somebody,${index + 1}\n`,
  );
  return `title,author,year\n${rows.join('')}`;
}

/** Runs an import; checks the store that its output names, and removes it from the output. */
export async function importing(url: string, folder: string, ...args: string[]) {
  const ended = await runCommand(['import', ...args], { DB_URL: url }, folder);
  const { host, pathname } = new URL(url);
  const store = url.startsWith('sqlite:') ? url : `postgres://${host}${pathname}`;
  const stderr = ended.stderr.replace(/; into (.+)$/m, (_, named: string) => {
    assert.equal(named, store);
    return '';
  });
  return { ...ended, stderr };
}

/** Starts an import of what is written to its standard input. */
export function startImport(url: string, ...args: string[]) {
  const stdin = new PassThrough();
  const ended = runCommand(['import', '-', ...args], { DB_URL: url }, undefined, undefined, stdin);
  return { stdin, ended };
}
