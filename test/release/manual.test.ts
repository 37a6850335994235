// Is the manual page complete, and without faults for the programs that show it? Needs man-db and mandoc.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { before, describe, test } from 'node:test';
import { runCommand } from '../support/command.ts';

const SECTIONS = [
  ...['NAME', 'SYNOPSIS', 'DESCRIPTION', 'COMMANDS', 'ENVIRONMENT', 'FILES', 'EXIT STATUS'],
  ...['DEBIAN PACKAGE', 'SEE ALSO'],
];

describe('the manual page', () => {
  let page: string;

  before(async () => {
    const { code, stdout, stderr } = await runCommand(['man'], {});
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    page = stdout;
  });

  test('mandoc finds no fault in it, and options have minus signs instead of hyphens', () => {
    assert.doesNotMatch(page, /[^\\]--/);
    const { status, stdout, stderr } = spawnSync('mandoc', ['-T', 'lint'], { input: page, encoding: 'utf8' });
    assert.deepEqual({ status, stdout, stderr }, { status: 0, stdout: '', stderr: '' });
  });

  test('man shows every command with its options, and every variable, without a warning', async () => {
    const { status, stdout, stderr } = spawnSync('man', ['--warnings=w', '-l', '-'], {
      input: page,
      env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8', MANWIDTH: '80' },
      encoding: 'utf8',
    });
    assert.deepEqual({ status, stderr }, { status: 0, stderr: '' });
    const [header, ...sections] = stdout.split(/^(?=[A-Z])/m);
    assert.match(header ?? '', /^BOOK-CATALOGUE\(1\) /);
    assert.deepEqual(
      sections.map((section) => section.split('\n')[0]),
      SECTIONS,
    );

    const commands = (sections[SECTIONS.indexOf('COMMANDS')] ?? '').split(/^ {3}(?=[a-z])/m).slice(1);
    const { stdout: script } = await runCommand(['completion', 'bash'], {});
    const options = [...script.matchAll(/^ +([a-z]+)\) words='(.*)' ;;$/gm)];
    assert.deepEqual(
      commands.map((command) => command.split('\n')[0]),
      options.map(([, name]) => name),
    );
    for (const [index, [, name = '', words = '']] of options.entries()) {
      assert.match(commands[index] ?? '', new RegExp(`^${name}\n {7}book-catalogue ${name}\\b`));
      for (const option of words.split(' ').filter((word) => word !== '--help'))
        assert.match(commands[index] ?? '', new RegExp(`^ {7}(--\\S+, )*${option}(?![\\w-])`, 'm'), name);
    }

    const environment = sections[SECTIONS.indexOf('ENVIRONMENT')] ?? '';
    const { stdout: configuration } = await runCommand(['config'], {});
    const variables = [...configuration.matchAll(/^([A-Z_]+)=/gm)].map(([, name]) => name);
    assert.ok(variables.includes('DB_URL'));
    for (const name of variables) assert.match(environment, new RegExp(`^ {7}${name}\\b`, 'm'));
  });
});
