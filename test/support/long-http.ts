// Owns: heads and chunks of any length, in the ways that might take more time than their length; and reading them.

import { Chunks } from '../../src/http/chunks.ts';
import { type Head, readHead, type UnreadableStatus } from '../../src/http/head.ts';

type Outcome = Head | UnreadableStatus | boolean | undefined;

export interface Long {
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

export const LONG: readonly Long[] = [
  ...longsOf(HEADS, (bytes) => readHead(bytes, 2 ** 22)),
  ...longsOf(CHUNKS, (bytes) => {
    const chunks = new Chunks(2 ** 22);
    for (let at = 0, read = 1; read > 0 && chunks.status === undefined && !chunks.isWhole; at += read)
      read = chunks.read(bytes.subarray(at), () => {});
    return chunks.status ?? chunks.isWhole;
  }),
];
