// Is the manual page complete, and without faults for the programs that show it? Needs man-db and mandoc.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { runCommand } from '../support/command.ts';
import { pathTo } from '../support/repository.ts';

test('the manual page: mandoc finds no fault in it, and man shows every command with its options, and every variable', async () => {
  const printed = async (...args: string[]) => (await runCommand(args, {})).stdout;
  const page = await printed('man');
  assert.doesNotMatch(page, /[^\\]--/); // options have minus signs, not hyphens
  const outcome = (program: string, args: readonly string[]) => {
    const env = { PATH: process.env.PATH, LC_ALL: 'C.UTF-8', MANWIDTH: '80' };
    const { status, stdout, stderr } = spawnSync(program, args, { input: page, env, encoding: 'utf8' });
    assert.deepEqual({ status, stderr }, { status: 0, stderr: '' });
    return stdout;
  };
  assert.equal(outcome('mandoc', ['-T', 'lint']), '');
  const [header, ...sections] = outcome('man', ['--warnings=w', '-l', '-']).split(/^(?=[A-Z])/m);
  assert.match(header ?? '', /^BOOK-CATALOGUE\(1\) /);
  const section = (name: string) => sections.find((text) => text.startsWith(`${name}\n`)) ?? '';
  for (const name of [
    ...['NAME', 'SYNOPSIS', 'DESCRIPTION', 'FILES', 'EXIT STATUS', 'DEBIAN PACKAGE', 'SEE ALSO'],
  ])
    assert.notEqual(section(name), '', name);

  const commands = section('COMMANDS')
    .split(/^ {3}(?=[a-z])/m)
    .slice(1);
  const completion = readFileSync(pathTo('deploy/completion/book-catalogue.bash'), 'utf8');
  const options = [...completion.matchAll(/^ +([a-z]+)\) words='(.*)' ;;$/gm)];
  const found = commands.map((command) => command.split('\n')[0]);
  assert.deepEqual(
    found,
    options.map(([, name]) => name),
  );
  for (const [index, [, name = '', words = '']] of options.entries()) {
    assert.match(commands[index] ?? '', new RegExp(`^${name}\n {7}book-catalogue ${name}\\b`));
    for (const option of words.split(' ').filter((word) => word !== '--help'))
      assert.match(commands[index] ?? '', new RegExp(`^ {7}(--\\S+, )*${option}(?![\\w-])`, 'm'), name);
  }
  const variables = [...(await printed('config')).matchAll(/^([A-Z_]+)=/gm)].map(([, name]) => name);
  assert.ok(variables.includes('DB_URL'));
  for (const name of variables) assert.match(section('ENVIRONMENT'), new RegExp(`^ {7}${name}\\b`, 'm'));
});
