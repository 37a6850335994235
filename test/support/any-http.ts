// Owns: random requests, one character for each byte: two thirds are valid, others are changed in one or two places.

import fc from 'fast-check';
import { CASES, SMUGGLED } from './http-cases.ts';

const oneOf = fc.constantFrom;
const linesOf = (lines: readonly string[], most: number) =>
  fc.array(oneOf(...lines), { maxLength: most }).map((some) => some.map((line) => `${line}\r\n`).join(''));

// biome-ignore format: a line for each would make twenty
const HEADERS = [
  'X: y', 'X:', 'x-y:\tz ', 'X: \xe9', 'Prefer: a', 'prefer:b', 'Authorization:  a b ', 'If-Match: "a"', 'Origin: null', 'Keep-Alive: 5',
  'Expect: 100-continue', 'Connection: close', 'Connection: keep-alive', 'Connection: x, Close', 'X-Request-Id: a', 'TE: trailers',
];

const withLength = fc
  .tuple(oneOf(': ', ':', ':\t', ': 0'), fc.stringMatching(/^[ -~\r\n]{0,30}$/))
  .map(([colon, body]) => `Content-Length${colon}${body.length}\r\n\r\n${body}`);
const chunk = fc
  .tuple(oneOf('3', '03', '3;a', '3;a=b', '3;a="b;c"', '003;a;b=c'), fc.stringMatching(/^[ -~\r\n]{3}$/))
  .map(([size, data]) => `${size}\r\n${data}\r\n`);
const inChunks = fc
  .tuple(
    oneOf('Transfer-Encoding: chunked', 'transfer-encoding:Chunked ', 'TRANSFER-ENCODING: CHUNKED'),
    fc.array(chunk, { maxLength: 4 }).map((chunks) => chunks.join('')),
    oneOf('0', '00', '0;a'),
    linesOf(['X: y', 'Y:', 'Prefer: z'], 2),
  )
  .map(([line, chunks, zero, trailers]) => `${line}\r\n\r\n${chunks}${zero}\r\n${trailers}\r\n`);

const one = fc
  .tuple(
    oneOf('GET', 'POST', 'PUT', 'HEAD', 'DELETE', 'OPTIONS', 'PATCH'),
    oneOf('/', '/g?a=b#c', '/%41', 'http://h/g', 'https://h:1?x', '*', '//g'),
    oneOf(...['Host: test', 'hOST:h:80', 'Host:'].map((host) => `1.1\r\n${host}`), '1.0'),
    linesOf(HEADERS, 4),
    fc.oneof(oneOf('\r\n'), withLength, inChunks),
  )
  .map(([method, target, host, headers, body]) => `${method} ${target} HTTP/${host}\r\n${headers}${body}`);
const several = (least: number) =>
  fc.array(one, { minLength: least, maxLength: 3 }).map((requests) => requests.join(''));

// biome-ignore format: a line for each would make thirty
const PARTS = [
  '\0', '\t', '\n', '\r', '\r\n', '\r\n\r\n', ' ', ',', ':', ';', '0', '1', '5', 'f', '=', '"', '\\', '\x0b', '\x7f', '\x80', '\xa0', '\xff', '+', '-', '#', '@', '',
  'chunked', 'Content-Length: 5\r\n', 'Transfer-Encoding: chunked\r\n', 'Host: test\r\n', 'Upgrade: x\r\n', '0\r\n\r\n', '5\r\nhello\r\n', ' HTTP/1.0\r\n', ';a=b', SMUGGLED,
];
const byte = fc.nat(255).map((code) => String.fromCharCode(code));
const change = fc.record({
  at: fc.noBias(fc.nat(400)),
  removed: oneOf(0, 0, 1, 2, 30),
  put: fc.oneof(oneOf(...PARTS), byte, oneOf('')),
});
const changed = (texts: fc.Arbitrary<string>, least: number) =>
  fc.tuple(texts, fc.array(change, { minLength: least, maxLength: 2 })).map(([text, changes]) => {
    let result = text;
    for (const { at, removed, put } of changes) {
      const start = at % (result.length + 1);
      result = result.slice(0, start) + put + result.slice(start + removed);
    }
    return result;
  });

const written = CASES.map(([, text]) => text).filter(({ length }) => length < 800);

export const anyRequests = fc.oneof(
  { weight: 6, arbitrary: several(1) },
  { weight: 2, arbitrary: changed(several(2), 1) },
  { weight: 2, arbitrary: changed(oneOf(...written), 0) },
);
