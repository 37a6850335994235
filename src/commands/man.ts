// Owns: `man`: prints the manual page, which `npm run docs` makes.

import { readProjectFile } from '../project.ts';
import type { CommandContext } from './command.ts';

export const HELP = `Usage: book-catalogue man

Prints the manual page in roff. To read it:

  book-catalogue man | man -l -
`;

export async function run({ stdout }: CommandContext): Promise<number> {
  stdout.write(await readProjectFile('deploy/book-catalogue.1'));
  return 0;
}
