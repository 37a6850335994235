// Documentation and code agree, both ways: rules and tests, messages, endpoints, variables, files, links, versions.

import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { before, describe, test } from 'node:test';
import { describeFigures } from '../../bench/document.ts';
import { titleOf } from '../../conformance/rule.ts';
import { RULES } from '../../conformance/rules.ts';
import { generatedTexts } from '../../docs/generate.ts';
import { PAGES } from '../../site/pages.ts';
import { request } from '../support/client.ts';
import { type CommandHere, runCommand, startHere } from '../support/command.ts';
import { operationsOf } from '../support/operations.ts';
import { pathTo } from '../support/repository.ts';
import { ENVIRONMENT, SQLITE } from '../support/service.ts';

/** Folders whose tests do not count: they need packages of Debian. */
const BY_NAME_ONLY = /^test\/(browser|release)\//;

const read = (path: string) => readFileSync(pathTo(path), 'utf8');
const contract = read('docs/contract.md');

test('every rule of the contract is named by a test of a push or a night, and tests name no other', () => {
  const rules = new Set(matches(contract, /^(?:- \*\*(?=[A-Z]\d+\*\*))?([A-Z]?\d+)(?:\. |\*\*)/gm));
  const files = paths('test/*/*.test.ts');
  const named = files.filter((file) => !BY_NAME_ONLY.test(file)).flatMap(rulesNamedIn);
  const always = new Set([...RULES.map(titleOf).flatMap(rulesNamedBy), ...named]);
  assert.deepEqual([...always].toSorted(), [...rules].toSorted());
  for (const rule of files.flatMap(rulesNamedIn)) assert.ok(rules.has(rule), rule);
});

describe('the contract and the README', () => {
  let service: CommandHere;

  before(async () => {
    service = await startHere({ ...ENVIRONMENT, LOG_LEVEL: 'info', DB_URL: await SQLITE.freshUrl() });
  });

  test('list every message of the description with its status, and no other', async () => {
    const description = await fetch(`${operationsOf(service).url}/openapi.json`);
    const described = new Set<string>();
    JSON.parse(await description.text(), (_key, value) => {
      if (typeof value?.status === 'number' && typeof value.message === 'string') {
        described.add(`${value.status} ${value.message}`);
      }
      return value;
    });
    const rows = [...contract.matchAll(/^\| (\d+) \| `([^`]+)` \|/gm)];
    const documented = rows.map(([, status, message]) => `${status} ${message}`);
    assert.ok(documented.includes('404 Book not found'));
    // In the description, an example stands for the part that differs.
    const examples = documented.map((text) => text.replace('<name>', 'yaer').replace('<position>', '3'));
    assert.deepEqual([...described].toSorted(), examples.toSorted());
  });

  test('list the same endpoints, and each exists', async () => {
    const endpoints = matches(read('README.md'), /^\| `([A-Z]+ \/\S+)` \|/gm);
    const inContract = matches(contract, /^(?:###|\|) `([A-Z]+ \/[^\s`]+)`/gm);
    assert.deepEqual(inContract.toSorted(), endpoints.toSorted());
    assert.equal(endpoints.length, 13);
    for (const endpoint of endpoints) {
      const [method = '', path = ''] = endpoint.split(' ');
      const { message } = await request(service, method, path.replace(/<.*?>/, '1'));
      assert.match(message, /^(Authorization token required|Invalid request payload)$/, endpoint);
    }
  });
});

test('rule 25: docs/configuration.md, help and configuration have the same variables', async () => {
  const DB_URL = await SQLITE.freshUrl();
  const page = read('docs/configuration.md');
  const documented = [...matches(page, /^\| `([A-Z_]+)`/gm), ...matches(page, /`([A-Z_]+_FILE)`/g)];
  const { stdout } = await runCommand(['config'], { DB_URL });
  const names = matches(stdout, /^([A-Z_]+)=/gm);
  const ofFiles = new Set(matches(contract, /`([A-Z_]+_FILE)`/g));
  assert.deepEqual(documented.toSorted(), [...names, ...ofFiles].toSorted());

  const help = await runCommand(['--help'], {});
  for (const name of documented) assert.match(help.stdout, new RegExp(`\\b${name}\\b`));

  // No other variable can come from a file.
  const others = names.map((name) => `${name}_FILE`).filter((name) => !ofFiles.has(name));
  const env = Object.fromEntries(others.map((name) => [name, '/none']));
  const set = await runCommand(['config'], { DB_URL, ...env });
  assert.equal(set.stdout, stdout);
  for (const name of others) assert.match(set.stderr, new RegExp(`^${name} is ignored: `, 'm'));
  for (const name of ofFiles) {
    const { code, stderr } = await runCommand(['config'], { [name]: '/none' });
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`\\b${name}\\b`));
  }
});

test('every link of the documentation leads to a file and to a heading of it', () => {
  for (const file of markdown()) {
    const text = read(file);
    const targets = matches(text, /\]\((?![a-z]+:)([^)]+)\)/g);
    for (const target of [...targets, ...matches(text, /^\[[^\]]+\]: (?![a-z]+:)(\S+)/gm)]) {
      const [path = '', anchor] = target.split('#');
      const destination = path === '' ? file : join(dirname(file), path);
      assert.ok(existsSync(pathTo(destination)), `${file} links to ${target}, which is missing`);
      const isThere = anchor === undefined || anchorsOf(read(destination)).has(anchor);
      assert.ok(isThere, `${file} links to ${target}, a heading that is missing`);
    }
  }
});

test('every document is a page of the site', () => {
  const documents = ['README.md', 'CHANGELOG.md', 'client/README.md', ...paths('{deploy,docs}/**/*.md')];
  assert.deepEqual(PAGES.toSorted(), documents.toSorted());
});

test('what the documents have from the code is up to date: npm run docs writes it', async () => {
  for (const [path, text] of await generatedTexts()) assert.equal(read(path), text, path);
});

test('no document runs the service with npx, which would run a package of that name from the registry elsewhere', () => {
  for (const file of [...markdown(), ...paths('src/**/*.ts'), ...paths('deploy/**/*.*')]) {
    assert.doesNotMatch(read(file), /\bnpx (?:-\S+ )*book-catalogue\b/, file);
  }
});

test('docs/monitoring.md explains every message of the log, and no other', () => {
  const [table = ''] = /^\| `msg`, level .*?\n\n/ms.exec(read('docs/monitoring.md')) ?? [];
  const rows = table.split('\n').slice(2);
  const explained = rows.flatMap((row) => matches(row.split(' | ')[0] ?? '', /`([^`]+)`/g));
  const logged = paths('src/**/*.ts').flatMap((file) =>
    matches(read(file), /(?:[lL]og\.(?:info|warn|error)\([^;]*?|faultLog\(log, |message = )'([^']+)'/g),
  );
  assert.ok(logged.length > 10);
  assert.deepEqual(explained.toSorted(), [...new Set(logged)].toSorted());
});

test('bench/figures.md has the figures of bench/results.json', () => {
  assert.ok(read('bench/figures.md').includes(describeFigures()));
});

test('the version is the same everywhere', () => {
  const { version } = JSON.parse(read('package.json'));
  assert.equal(JSON.parse(read('client/package.json')).version, version);
  assert.equal(JSON.parse(read('conformance/package.json')).version, version);
  assert.match(read('CHANGELOG.md'), new RegExp(`^## ${version} \\(\\d{4}-\\d\\d-\\d\\d\\)$`, 'm'));
  const packed = markdown().flatMap((file) => matches(read(file), /book-catalogue-client-(\d\S*?)\.tgz/g));
  assert.ok(packed.length > 0);
  for (const found of packed) assert.equal(found, version);
});

/** The rules that are named at the beginning of the titles in a file. */
function rulesNamedIn(file: string): string[] {
  return matches(read(file), /(?:test|describe)\(\s*['"`]([^'"`]*)['"`]/g).flatMap(rulesNamedBy);
}

/** The rules at the beginning of a title. */
function rulesNamedBy(title: string): string[] {
  const [names = ''] = title.split(':', 1);
  const numbered = /\brules?\b/.test(names) ? matches(names, /\b(\d+)\b/g) : [];
  return [...matches(names, /\b([A-Z]\d+)\b/g), ...numbered];
}

/** Every Markdown file of the project. */
function markdown(): string[] {
  const folders = '{bench,client,conformance,deploy,docs,endurance,page,src,test}';
  const files = paths('*.md', `${folders}/**/*.md`, 'site/*.md');
  assert.ok(files.includes('CHANGELOG.md') && files.includes('client/README.md'));
  return files;
}

function paths(...patterns: string[]): string[] {
  return globSync(patterns, { cwd: pathTo('') }).map((path) => path.replaceAll('\\', '/'));
}

/** The anchors that GitHub makes from the headings. */
function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const heading of matches(text.replace(/^```.*?^```$/gms, ''), /^#{1,6} (.+)$/gm)) {
    const words = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const slug = words.replaceAll(/[^\p{L}\p{N}\p{Pc} -]/gu, '').replaceAll(' ', '-');
    let anchor = slug;
    for (let count = 1; anchors.has(anchor); count += 1) anchor = `${slug}-${count}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** The first group of every match. */
function matches(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, group]) => group as string);
}
