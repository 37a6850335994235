// What users install, made of this clone: the single executable, and an installation without the tools of development.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { testTargets } from '../contract/keeping.ts';
import { EXECUTABLE } from '../contract/targets.ts';
import { Client } from '../support/client.ts';
import { pathTo } from '../support/repository.ts';
import { startCommand, temporaryFolder } from '../support/service.ts';

testTargets([EXECUTABLE], ({ level }) => level === 'core');

test('an installation without the tools of development, in a folder of any name, starts and stores a book', async () => {
  const folder = join(temporaryFolder(), 'Bücher & more');
  for (const path of [
    ...['client/src', 'conformance', 'docs/openapi', 'page', 'src', 'package.json', 'package-lock.json'],
  ])
    cpSync(pathTo(path), join(folder, path), { recursive: true });
  const PATH = `${dirname(process.execPath)}${delimiter}${process.env.PATH}`;
  const args = ['ci', '--omit=dev', '--prefer-offline', '--no-audit', '--no-fund'];
  await promisify(execFile)('npm', args, { cwd: folder, env: { ...process.env, PATH } });
  const command = [process.execPath, join(folder, 'src/main.js')];
  const service = await startCommand({ PORT: '0' }, { folder, command });
  const client = await Client.logIn(service, { username: 'admin', password: 'password' });
  const book = { title: 'Effi Briest', author: 'Theodor Fontane', year: 1895 };
  assert.deepEqual(await client.create(book), { id: 1, ...book });
  const page = await fetch(service.pageUrl);
  assert.match(await page.text(), /^<!doctype html>/);
});
