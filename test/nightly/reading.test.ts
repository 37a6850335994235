// Files that would take too long if they were read again from a beginning with every piece.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { read } from '../support/files.ts';

const QUARTER = 256 * 1024;

/** Microseconds of processor time in which books with titles of these lengths are read, in pieces of 64 KiB. */
async function timeOf(content: string, lengths: readonly number[]): Promise<number> {
  const before = process.cpuUsage();
  const { books } = await read(content);
  const { user, system } = process.cpuUsage(before);
  const found = books.map(({ title }) => title.length);
  assert.deepEqual(found, lengths);
  return user + system;
}

test('records of 15 MiB are read as fast as shorter ones, and a text of many tabs beside one of two lines', async () => {
  const [short, long] = [256, 15 * QUARTER];
  const row = (length: number) => `"${'ab""'.repeat(length)}",1\n`;
  const ofShort = await timeOf(`title,year\n${row(short).repeat(5 * 1024)}`, Array(5 * 1024).fill(3 * short));
  const ofLong = await timeOf(`title,year\n${row(long)}b,2\n`, [3 * long, 1]);
  const json = await timeOf(`[{"title":"${'y'.repeat(4 * long)}"},{"title":"b"}]`, [4 * long, 1]);
  const tabs = await timeOf(`title\tauthor\n"${'\t'.repeat(8 * QUARTER)}"\t"a\nb"\n`, [8 * QUARTER]);
  // If one were read again from its beginning with every piece, it would take a hundred times as long as a third of it in
  // short records.
  for (const time of [ofLong, json, tabs]) assert.ok(time < 36 * ofShort, `${time} and ${ofShort} µs`);
});
