// Do bash, zsh and fish complete commands and options with the script of `completion`? Needs zsh and fish.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { runCommand } from '../support/command.ts';
import { endOf, temporaryFolder } from '../support/service.ts';

/** The command line up to the cursor, and what a shell must offer. */
const CASES = [
  { line: ['book-catalogue', 'ex'], offered: ['export'] },
  { line: ['book-catalogue', 're'], offered: ['ready', 'restore'] },
  { line: ['book-catalogue', 'copy', '--o'], offered: ['--overwrite'] },
  { line: ['book-catalogue', 'export', '--year-'], offered: ['--year-gte', '--year-lte'] },
  { line: ['book-catalogue', 'import', 'boo'], offered: ['books.csv'] },
] as const;

/** Programs that load a script and print what is offered for a command line. In fish, the shell itself does both. */
const SHELLS = {
  bash: (script: string, line: readonly string[]) => `
    source ${script}
    COMP_WORDS=(${line.join(' ')}); COMP_CWORD=${line.length - 1}
    $(complete -p book-catalogue | sed 's/.*-F \\([^ ]*\\).*/\\1/')
    ((\${#COMPREPLY[@]} > 0)) || compgen -f -- "\${COMP_WORDS[COMP_CWORD]}"
    printf '%s\\n' "\${COMPREPLY[@]}"`,
  // The functions of the line editor are not there without a terminal.
  zsh: (script: string, line: readonly string[]) => `
    compdef() { function_of_command=$1 }
    PREFIX=${line.at(-1)}; words=(${line.join(' ')}); CURRENT=${line.length}
    offer() { for word; do [[ $word == $PREFIX* ]] && print -- $word; done }
    compadd() { shift; offer $@ }
    _files() { offer * }
    source ${script}
    $function_of_command; true`,
  fish: (script: string, line: readonly string[]) => `
    source ${script}
    complete -C '${line.join(' ')}' | string replace -r '\\t.*' ''`,
};

describe('completion', () => {
  const folder = temporaryFolder();

  before(() => writeFileSync(join(folder, 'books.csv'), ''));

  for (const [shell, program] of Object.entries(SHELLS)) {
    test(`${shell} completes commands, options and files`, async () => {
      const { code, stdout } = await runCommand(['completion', shell], {});
      assert.equal(code, 0);
      const script = join(folder, `completion.${shell}`);
      writeFileSync(script, stdout);
      for (const { line, offered } of CASES) {
        const child = spawn(shell, ['-c', program(script, line)], {
          cwd: folder,
          env: { PATH: process.env.PATH, HOME: folder },
          stdio: ['ignore', 'pipe', 'pipe'],
        });
        const ended = await endOf(child);
        const words = ended.stdout.split('\n').filter((word) => word !== '');
        assert.deepEqual(words.toSorted(), [...offered], `${line.join(' ')}: ${ended.stderr}`);
      }
    });
  }
});
