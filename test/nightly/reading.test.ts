// Files that would take too long, or too much memory, if they were not read in pieces.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { correct } from '../../src/files/correcting.ts';
import { readBooks } from '../../src/files/reading.ts';
import type { ReadBatch, ReadBook, Reading, ReadingOptions, RefusedRecord } from '../../src/files/rows.ts';
import { asRefused } from '../../src/files/writing.ts';
import '../support/random.ts';

type Content = string | Buffer;
type Options = Partial<ReadingOptions>;

interface Outcome {
  readonly reading: Reading;
  readonly batches: readonly ReadBatch[];
  readonly books: readonly ReadBook[];
  readonly refused: readonly RefusedRecord[];
  /** The error message with which the reading broke off. */
  readonly fault: string | undefined;
}

async function* piecesOf(bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Buffer> {
  let at = 0;
  for (let index = 0; at < bytes.length; index += 1) {
    const size = sizes[index % sizes.length] as number;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

async function read(
  content: Content,
  options: Options = {},
  sizes: readonly number[] = [65_536],
): Promise<Outcome> {
  const bytes = Buffer.from(content as string);
  const reading = await readBooks(piecesOf(bytes, sizes), { name: '-', columns: {}, ...options });
  const batches: ReadBatch[] = [];
  let fault: string | undefined;
  try {
    for await (const batch of reading.batches) batches.push(batch);
  } catch (error) {
    fault = (error as Error).message;
  }
  const books = batches.flatMap((batch) => batch.books);
  const refused = batches.flatMap((batch) => batch.refused);
  return { reading, batches, books, refused, fault };
}

describe('rejected rows', () => {
  test('of JSON may have a million spaces: the time for one grows with its length, not with the square of it', async () => {
    const { reading, refused } = await read(`[{"title":1${' '.repeat(1_000_000)}}]`);
    const [record] = refused as [RefusedRecord];
    assert.match(asRefused(record, reading), /^\{"title":1 {1000000},"refused":"title: is not a string"\}$/);
    assert.deepEqual((await correct(record, '2', reading)).line, 1);
  });
});

describe('hostile files', () => {
  const MEBIBYTE = 1024 * 1024;

  test('a quote that is never closed ends the reading after 16 MiB, not at the end of the file', async () => {
    const content = Buffer.concat([
      Buffer.from('title,year\na,1\n"b'),
      Buffer.alloc(17 * MEBIBYTE, 'x,1\n'),
      Buffer.from('"'),
    ]);
    const { reading, books, fault } = await read(content);
    assert.equal(reading.format, 'csv');
    assert.equal(books.length, 1);
    assert.match(fault ?? '', /^The record that begins in line 3 has more than 16 MiB/);
    const json = Buffer.concat([
      Buffer.from('[{"title":"a"},\n{"title":"'),
      Buffer.alloc(17 * MEBIBYTE, 'x'),
    ]);
    const array = await read(json);
    assert.equal(array.books.length, 1);
    assert.match(array.fault ?? '', /^The record that begins in line 2 has more than 16 MiB/);
  });

  test('records of 15 MiB are read as fast as shorter ones', async (context) => {
    const timeOf = async (content: string, check: (outcome: Outcome) => void) => {
      const bytes = Buffer.from(content);
      const before = process.cpuUsage();
      const outcome = await read(bytes);
      const { user, system } = process.cpuUsage(before);
      check(outcome);
      return user + system;
    };
    const ofShort = await timeOf(
      `title,year\n${`"${'ab""'.repeat(256)}",1\n`.repeat(5 * 1024)}`,
      ({ books }) => {
        assert.equal(books.length, 5 * 1024);
      },
    );
    const ofLong = await timeOf(
      `title,year\n"${'ab""'.repeat((15 / 4) * MEBIBYTE)}",1\nb,2\n`,
      ({ books }) => {
        assert.deepEqual(
          books.map(({ title, line }) => [title.length, line]),
          [
            [(15 / 4) * 3 * MEBIBYTE, 2],
            [1, 3],
          ],
        );
      },
    );
    const json = await timeOf(`[{"title":"${'y'.repeat(15 * MEBIBYTE)}"},{"title":"b"}]`, ({ books }) => {
      assert.deepEqual(
        books.map(({ title }) => title.length),
        [15 * MEBIBYTE, 1],
      );
    });
    // If it were read again from its beginning with every piece, one would take a hundred times as long as a third of
    // it in short records.
    context.diagnostic(`${ofShort} µs; three times as much in one record takes ${ofLong} and ${json} µs`);
    for (const time of [ofLong, json]) assert.ok(time < 36 * ofShort, `${time} and ${ofShort} µs`);
  });

  test('a text of many tabs beside one of two lines', async () => {
    const tabs = '\t'.repeat(2 * MEBIBYTE);
    const { books } = await read(`title\tauthor\n"${tabs}"\t"a\nb"\n`);
    assert.deepEqual([books[0]?.title, books[0]?.author], [tabs, 'a\nb']);
  });
});
