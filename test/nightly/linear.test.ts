// Heads and chunks of any length take a time in proportion to it, in each way in which an expression or a loop might take more.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Chunks } from '../../src/http/chunks.ts';
import { type Head, readHead, type UnreadableStatus } from '../../src/http/head.ts';

type Outcome = Head | UnreadableStatus | boolean | undefined;

interface Long {
  readonly name: string;
  make(length: number): Buffer;
  /** @returns what is read, or whether chunks end. */
  read(bytes: Buffer): Outcome;
}

const START = 'GET / HTTP/1.1\r\nHost: a\r\n';

/** What comes before, again and again, and behind. */
const HEADS: readonly (readonly [string, string, string, string])[] = [
  ['a method that does not end', '', 'G', ''],
  ['a target that does not end', 'GET /', 'x', ''],
  ['a version that does not end', 'GET / ', 'H', ''],
  ['a target', 'GET /', 'x', ' HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['a host in a target', 'GET http://', 'x', ' HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['a host in a target, with a wrong sign', 'GET http://', 'x', '" HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['a name', START, 'X', ': y\r\n\r\n'],
  ['a name that does not end', START, 'X', ''],
  ['a value', `${START}X: `, 'y', '\r\n\r\n'],
  ['a value that does not end', `${START}X: `, 'y', ''],
  ['a value with a wrong sign', `${START}X: `, 'y', '\0\r\n\r\n'],
  ['blanks before a value', `${START}Prefer:`, ' ', 'x\r\n\r\n'],
  ['blanks behind a value', `${START}Prefer: x`, '\t', '\r\n\r\n'],
  ['blanks in a value', `${START}Prefer: x`, ' ', 'x\r\n\r\n'],
  ['blanks in a value, with a wrong sign', `${START}Prefer: `, ' ', '\0\r\n\r\n'],
  ['lines', START, 'a:\r\n', '\r\n'],
  ['lines that do not end', START, 'a:\r\n', ''],
  ['lines before a wrong one', START, 'a:\r\n', 'a\r\n\r\n'],
  ['values of one header', START, 'Prefer: a\r\n', '\r\n'],
  ['values of Connection', START, 'Connection: a\r\n', '\r\n'],
  ['a host', 'GET / HTTP/1.1\r\nHost: ', 'a', '\r\n\r\n'],
  ['a host with a wrong sign', 'GET / HTTP/1.1\r\nHost: ', 'a', '@\r\n\r\n'],
  ['an address', 'GET / HTTP/1.1\r\nHost: [', ':', '\r\n\r\n'],
  ['a port', 'GET / HTTP/1.1\r\nHost: a:', '1', ':\r\n\r\n'],
  ['blanks behind chunked', `${START}Transfer-Encoding: chunked`, ' ', 'x\r\n\r\n'],
  ['blanks before chunked', `${START}Transfer-Encoding:`, ' ', 'x\r\n\r\n'],
  ['a length', `${START}Content-Length: `, '1', '\r\n\r\n'],
  ['commas in Connection', `${START}Connection: `, ', ', 'x\r\n\r\n'],
  ['blanks in Connection', `${START}Connection: ,`, ' ', 'x\r\n\r\n'],
  ['blanks before close', `${START}Connection: x,`, '\t', 'close x\r\n\r\n'],
  ['blanks behind close', `${START}Connection: close`, '\t', 'x\r\n\r\n'],
  ['almost close', `${START}Connection: `, ', close', 'x\r\n\r\n'],
  ['blanks before keep-alive', 'GET / HTTP/1.0\r\nConnection: x,', '\t', 'keep-alive x\r\n\r\n'],
  ['blanks behind keep-alive', 'GET / HTTP/1.0\r\nConnection: keep-alive', ' ', 'x\r\n\r\n'],
  ['blanks before 100-continue', `${START}Expect: x,`, ' ', '100-continue x\r\n\r\n'],
  ['blanks behind 100-continue', `${START}Expect: 100-continue`, '\t', 'x\r\n\r\n'],
];

const CHUNKS: readonly (readonly [string, string, string, string])[] = [
  ['chunks', '', '1\r\na\r\n', '0\r\n\r\n'],
  ['a chunk', 'ffffff\r\n', 'a', ''],
  ['digits', '', '0', '\r\n'],
  ['an extension', '1;', 'a', '\r\na\r\n'],
  ['extensions', '1', ';a=b', '\r\na\r\n'],
  ['extensions that do not end', '1', ';a=b', ''],
  ['quotation marks', '1', ';a="b"', '\r\na\r\n'],
  ['a quotation mark that does not end', '1;a="', 'b;', '\r\na\r\n'],
  ['trailers', '0\r\n', 'a:\r\n', '\r\n'],
  ['a trailer', '0\r\na: ', 'a', '\r\n\r\n'],
  ['a trailer with a wrong sign', '0\r\na: ', 'a', '\0\r\n\r\n'],
  ['a trailer without a colon', '0\r\n', 'a', '\r\n\r\n'],
];

const longsOf = (texts: typeof HEADS, read: (bytes: Buffer) => Outcome): Long[] =>
  texts.map(([name, before, again, behind]) => ({
    name,
    make: (length) => Buffer.from(before + again.repeat(Math.ceil(length / again.length)) + behind, 'latin1'),
    read,
  }));

const LONG: readonly Long[] = [
  ...longsOf(HEADS, (bytes) => readHead(bytes, 2 ** 22)),
  ...longsOf(CHUNKS, (bytes) => {
    const chunks = new Chunks(2 ** 22);
    for (let at = 0, read = 1; read > 0 && chunks.status === undefined && !chunks.isWhole; at += read)
      read = chunks.read(bytes.subarray(at), () => {});
    return chunks.status ?? chunks.isWhole;
  }),
];

test('rule 22: a head or chunks of 1 MiB take no more time for a byte than of 64 KiB, and do not fail', () => {
  for (const { name, make, read } of LONG) {
    const [short, long] = [make(2 ** 16), make(2 ** 20)];
    // In proportion, sixteen times the bytes take sixteen times as long, else 256 times.
    expectAtMost(
      64,
      () => read(long),
      () => read(short),
      name,
    );
  }
});

test('rule 22: a head of 1 MiB whose lines come one by one takes little more time than one that comes at once', () => {
  const beginning = Buffer.from(`GET / HTTP/1.1\r\nHost: a\r\nX: ${'y'.repeat(2 ** 20)}\r\n`);
  const head = Buffer.concat([beginning, Buffer.from(`${'a:\r\n'.repeat(900)}\r\n`)]);
  const readBy = (step: number) => {
    let [end, seen] = [beginning.length, 0];
    while (readHead(head.subarray(0, end), 2 ** 22, seen) === undefined) [end, seen] = [end + step, end];
    assert.ok(end >= head.length);
  };
  expectAtMost(
    10,
    () => readBy('a:\r\n'.length),
    () => readBy(head.length),
    'lines',
  );
});

/** @throws unless one takes at most so many times as long as the other: at best, and not if the machine is busy. */
function expectAtMost(factor: number, one: () => void, other: () => void, what: string): void {
  let [longer, shorter] = [millisecondsOf(one), millisecondsOf(other)];
  for (let round = 0; round < 50 && longer > factor * Math.max(shorter, 0.02); round += 1) {
    longer = Math.min(longer, millisecondsOf(one));
    shorter = Math.min(shorter, millisecondsOf(other));
  }
  assert.ok(longer <= factor * Math.max(shorter, 0.02), `${what}: ${longer} ms and ${shorter} ms`);
}

function millisecondsOf(work: () => void): number {
  const began = performance.now();
  work();
  return performance.now() - began;
}
