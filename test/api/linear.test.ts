// No loop that reads a head or chunks goes over the same bytes again. test/nightly/linear.test.ts measures that they take a time in
// proportion to their length, expressions included.

import assert from 'node:assert/strict';
import { Session } from 'node:inspector/promises';
import { test } from 'node:test';
import { LONG } from '../support/long-http.ts';

const SOURCES = ['src/http/head.ts', 'src/http/chunks.ts'];

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
