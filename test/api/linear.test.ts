// A head and chunks take a time in proportion to their length, whatever they are: no expression that reads them may read a text in
// more and more ways, and no loop goes over the same bytes again. test/nightly/linear.test.ts measures it.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { test } from 'node:test';
import { Chunks } from '../../src/http/chunks.ts';
import { readHead } from '../../src/http/head.ts';
import { isAmbiguous } from '../support/ambiguity.ts';
import { CASES } from '../support/http-cases.ts';
import { LONG } from '../support/long-http.ts';
import { pathTo } from '../support/repository.ts';

const SOURCES = ['src/http/head.ts', 'src/http/chunks.ts'];

test('a search for ambiguous expressions finds them', () => {
  const ambiguous = [
    /^(?:a+)+$/,
    /^(?:a|a)*b/,
    /a*a*b/,
    /^(?:aa|aaa)*$/,
    /^(?:a?b?)*$/,
    /[\t ]+$/,
    /^(?:a{1,2})*$/,
    /^.*,.*,/,
  ];
  const others = [
    /^(?:a|ab)*c/,
    /^[\t ]*x[\t ]*$/,
    /^[ab]{3}a*/,
    /(?:^|,) *close *(?:,|$)/,
    /^(?:a{1,3}){1,3}$/,
    /^a*(?:ba*)*$/,
  ];
  assert.deepEqual([...ambiguous, ...others].filter(isAmbiguous), ambiguous);
});

test('no expression that reads heads and chunks is ambiguous', (context) => {
  const used = new Set<string>();
  const { exec } = RegExp.prototype;
  context.mock.method(RegExp.prototype, 'exec', function (this: RegExp, text: string) {
    used.add(String(this));
    return exec.call(this, text);
  });
  for (const [, text] of CASES) {
    const bytes = Buffer.from(text, 'latin1');
    const head = readHead(bytes, 1024);
    readHead(bytes, 1024, Math.min(bytes.length, 20)); // the first bytes came before
    if (typeof head === 'object') new Chunks(1024).read(bytes.subarray(head.length), () => {});
  }
  context.mock.restoreAll();
  const sources = SOURCES.map((file) => readFileSync(pathTo(file), 'utf8')).join('');
  const uses = sources.match(/(?:\b[A-Z_]+|\/\^.*?\/i?)\.(?:test|exec)\(/g);
  assert.equal(used.size, new Set(uses).size, 'all of them are used');
  for (const expression of used) {
    const [, source = '', flags] = /^\/(.*)\/(\w*)$/s.exec(expression) ?? [];
    assert.ok(!isAmbiguous(new RegExp(source, flags)), expression);
  }
});

test('no loop that reads heads and chunks goes over the same bytes again', async () => {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  /** How often parts of the code ran, all in all, since the last call. */
  const steps = async () => {
    const { result } = await session.post('Profiler.takePreciseCoverage');
    const scripts = result.filter(({ url }) => SOURCES.some((file) => url.endsWith(file)));
    const ranges = scripts.flatMap(({ functions }) => functions.flatMap(({ ranges }) => ranges));
    return ranges.reduce((sum, { count }) => sum + count, 0);
  };
  for (const { name, make, read } of LONG) {
    const [short, long] = [make(2000), make(4000)];
    await steps();
    read(short);
    const once = await steps();
    read(long);
    const twice = await steps();
    assert.ok(twice <= 2 * once, `${name}: ${once} steps, then ${twice}`);
  }
  session.disconnect();
});
