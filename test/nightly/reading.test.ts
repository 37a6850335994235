// Files that would take too long, or too much memory, if they were not read in pieces.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { correct } from '../../src/files/correcting.ts';
import type { RefusedRecord } from '../../src/files/rows.ts';
import { asRefused } from '../../src/files/writing.ts';
import { inShort, read } from '../support/files.ts';

const MEBIBYTE = 1024 * 1024;

/** Microseconds of processor time in which these are read, in pieces of 64 KiB. */
async function timeOf(content: string, lengths: readonly number[]): Promise<number> {
  const before = process.cpuUsage();
  const { books } = await read(content);
  const { user, system } = process.cpuUsage(before);
  assert.deepEqual(
    books.map(({ title }) => title.length),
    lengths,
  );
  return user + system;
}

test('a rejected record of JSON may have a million spaces: its time does not grow with the square of them', async () => {
  const { reading, refused } = await read(`[{"title":1${' '.repeat(1_000_000)}}]`);
  const [record] = refused as [RefusedRecord];
  assert.match(asRefused(record, reading), /^\{"title":1 {1000000},"refused":"title: is not a string"\}$/);
  assert.equal((await correct(record, '2', reading)).line, 1);
});

test('a quote that is never closed ends the reading after 16 MiB, not at the end of the file', async () => {
  for (const [beginning, line] of [
    ['title,year\na,1\n"b', 3],
    ['[{"title":"a"},\n{"title":"', 2],
  ] as const) {
    const outcome = await read(`${beginning}${'x,1\n'.repeat((17 * MEBIBYTE) / 4)}"`);
    assert.equal(inShort(outcome).length, 1);
    assert.match(
      outcome.fault ?? '',
      new RegExp(`^The record that begins in line ${line} has more than 16 MiB`),
    );
  }
});

test('records of 15 MiB are read as fast as shorter ones', async () => {
  const [short, long] = [256, (15 * MEBIBYTE) / 4];
  const row = (length: number) => `"${'ab""'.repeat(length)}",1\n`;
  const ofShort = await timeOf(`title,year\n${row(short).repeat(5 * 1024)}`, Array(5 * 1024).fill(3 * short));
  const ofLong = await timeOf(`title,year\n${row(long)}b,2\n`, [3 * long, 1]);
  const json = await timeOf(`[{"title":"${'y'.repeat(4 * long)}"},{"title":"b"}]`, [4 * long, 1]);
  // If it were read again from its beginning with every piece, one would take a hundred times as long as a third of it
  // in short records.
  for (const time of [ofLong, json]) assert.ok(time < 36 * ofShort, `${time} and ${ofShort} µs`);
});

test('a text of many tabs beside one of two lines', async () => {
  const tabs = '\t'.repeat(2 * MEBIBYTE);
  const { books } = await read(`title\tauthor\n"${tabs}"\t"a\nb"\n`);
  assert.deepEqual([books[0]?.title, books[0]?.author], [tabs, 'a\nb']);
});
