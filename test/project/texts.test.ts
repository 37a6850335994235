// Where the texts of the page are: in page/texts alone, so that a translation finds all of them, and none that is not used.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { pathTo } from '../support/repository.ts';

const read = (file: string) => readFileSync(pathTo(file), 'utf8');
const files = globSync('page/**/*.ts', { cwd: pathTo('') });
const isTable = (file: string) => file.startsWith('page/texts/');
const programs = files.filter((file) => !isTable(file)).map(withoutComments);
const index = read('page/index.html').replace(/<!--[\s\S]*?-->/g, '');

/** Names of keys and of data of a drag, as browsers have them. */
const OF_BROWSERS = /^(?:Enter|Escape|Tab|Insert|Delete|Backspace|Dead|Unidentified|Files)$/;

function withoutComments(file: string): string {
  return read(file).replace(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*/g, '');
}

test('no program of the page has a text outside of page/texts', () => {
  const literals = programs.flatMap((program) => [
    ...program.matchAll(/(?<compared>=== )?(['`])(?<text>(?:(?!\2)[^\\\n]|\\.)*)\2/g),
  ]);
  // What is compared with a message of the service is no text of the page.
  const texts = literals.flatMap(({ groups }) => (groups?.compared ? [] : [groups?.text ?? '']));
  assert.ok(texts.length > 1000, `${texts.length}`);
  const found = texts.filter((text) => /^[A-Z“](?:[a-z].* |[a-z]+$)/.test(text) && !OF_BROWSERS.test(text));
  assert.deepEqual(found, []);
});

test('index.html has names of texts, keys, and the name that a library replaces', () => {
  const shown = index.replaceAll('Book catalogue', '').replace(/<kbd[^>]*>[^<]*<\/kbd>/g, '');
  const between = [...shown.matchAll(/>([^<]*)</g)].map(([, text = '']) => text);
  const attributes = [...shown.matchAll(/ (?:aria-label|placeholder|title|alt)="([^"]*)"/g)];
  const texts = [...between, ...attributes.map(([, text = '']) => text)];
  assert.ok(attributes.length > 10);
  assert.deepEqual(
    texts.filter((text) => /\p{L}/u.test(text.replace(/\{\{\w+\}\}/g, ''))),
    [],
  );
});

test('every text of page/texts is used', () => {
  const all = [...programs, ...index.matchAll(/\{\{\w+\}\}/g)].join('\n');
  const unused = files.filter(isTable).flatMap((file) => {
    const [, table = ''] = /^export const ([A-Z]+) = \{$/m.exec(read(file)) ?? [];
    const names = table === '' ? [] : [...read(file).matchAll(/^ {2}(\w+):/gm)].map(([, name]) => name);
    const use = (name = '') => (table === 'PAGE' ? `\\{\\{${name}\\}\\}` : `\\b${table}\\.${name}\\b`);
    return names.filter((name) => !new RegExp(use(name)).test(all));
  });
  assert.deepEqual(unused, []);
});
