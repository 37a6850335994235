// Documentation and code say the same, both ways: rules and tests, messages, endpoints, variables.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdir, readFile, stat } from 'node:fs/promises';
import { test } from 'node:test';
import { request } from '../support/client.ts';
import { REPOSITORY } from '../support/repository.ts';
import { SQLITE, spawnService, startTestService } from '../support/service.ts';

const read = (path: string) => readFile(new URL(path, REPOSITORY), 'utf8');

test('every rule of the contract is named by a test, and tests name no other', async () => {
  const contract = await read('docs/contract.md');
  const lettered = matches(contract, /^- \*\*([A-Z]\d)\*\*/gm);
  const numbered = matches(contract, /^(\d+)\. /gm);
  const rules = new Set([...lettered, ...numbered]);

  const named = new Set<string>();
  const files = (await readdir(new URL('.', import.meta.url))).filter((name) => name.endsWith('.test.ts'));
  for (const file of files) {
    const source = await read(`test/${file}`);
    for (const title of matches(source, /(?:test|describe)\(\s*['"`]([^'"`]*)['"`]/g)) {
      const [names = ''] = title.split(':', 1);
      for (const rule of matches(names, /\b([A-Z]\d)\b/g)) named.add(rule);
      if (/\brules?\b/.test(names)) for (const rule of matches(names, /\b(\d+)\b/g)) named.add(rule);
    }
  }
  assert.deepEqual([...named].toSorted(), [...rules].toSorted());
});

test('every message is in the contract, and the contract has no other', async () => {
  const documented = matches(await read('docs/contract.md'), /^\| \d+ \| `([^`]+)` \|/gm);
  const spoken = matches(
    await read('src/api/envelope.ts'),
    /(?:message: |failure\(\d+, |"message":)['"]([^'"]+)['"]/g,
  );
  assert.deepEqual(spoken.toSorted(), documented.toSorted());
});

test('every endpoint of the README is there, as the contract has it', async () => {
  const endpoints = matches(await read('README.md'), /^\| `([A-Z]+ \/\S+)` \|/gm);
  assert.deepEqual(matches(await read('docs/contract.md'), /^### `([A-Z]+ \/\S+)`/gm), endpoints);
  assert.equal(endpoints.length, 6);
  const service = await startTestService(await SQLITE.freshUrl());
  try {
    for (const endpoint of endpoints) {
      const [method = '', path = ''] = endpoint.split(' ');
      const { message } = await request(service, method, path.replace('<id>', '1'));
      assert.ok(
        /^(Authorization token required|Invalid request payload)$/.test(message),
        `${endpoint}: ${message}`,
      );
    }
  } finally {
    await service.stop();
  }
});

test('what the documentation points at is there', async () => {
  for (const path of [
    'README.md',
    'CONTRIBUTING.md',
    'docs/',
    'bench/README.md',
    'client/README.md',
    'endurance/README.md',
  ]) {
    const folder = new URL(path, REPOSITORY);
    const files = path.endsWith('/') ? (await readdir(folder)).map((name) => `${path}${name}`) : [path];
    for (const file of files) {
      for (const target of matches(await read(file), /\]\((?!https?:)([^)#]+)/g)) {
        const url = new URL(target, new URL(file, REPOSITORY));
        await assert.doesNotReject(stat(url), `${file} points at ${target}`);
      }
    }
  }
});

test('rule 25: README, help and configuration have the same variables', async () => {
  const table = (await read('README.md')).split('\n').filter((line) => /^\| `[A-Z_]+`/.test(line));
  const documented = table.flatMap((line) => matches(line.split(' | ')[0] as string, /`([A-Z_]+)`/g));
  const inCode = matches(await read('src/config.ts'), /(?:readText|readWholeNumber)\(env, '([A-Z_]+)'/g);
  const secrets = matches(await read('src/config.ts'), /readSecret\(env, readFile, '([A-Z_]+)'/g);
  const configured = new Set([...inCode, ...secrets, ...secrets.map((name) => `${name}_FILE`)]);
  assert.deepEqual(documented.toSorted(), [...configured].toSorted());

  const help = spawnService({}, ['--help']);
  let text = '';
  help.stdout?.on('data', (chunk) => {
    text += chunk;
  });
  await once(help, 'close');
  for (const name of documented) assert.match(text, new RegExp(`\\b${name}\\b`));
});

/** The first group of every match. */
function matches(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, group]) => group as string);
}
