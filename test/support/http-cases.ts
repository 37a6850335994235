// Owns: requests that two readers of HTTP may read differently, byte by byte (one character for each), each with a name.
// Does not: say what they mean.

import { unreadable } from '../../conformance/raw-requests.ts';

export type Case = readonly [name: string, bytes: string];

/** Bytes of a request line and headers for which the longest ones are made. */
export const HEADER_LIMIT = 1024;

const HOST = 'Host: test\r\n';
const TE = 'Transfer-Encoding: chunked\r\n';
const CHUNKS = '5\r\nhello\r\n0\r\n\r\n';

/** A request that must not be seen where another one is expected. */
export const SMUGGLED = `GET /smuggled HTTP/1.1\r\n${HOST}\r\n`;

const withLine = (line: string) => `${line}\r\n${HOST}\r\n`;
const get = (headers: string, version = '1.1', host = HOST) =>
  `GET /g HTTP/${version}\r\n${host}${headers}\r\n`;
const post = (headers: string, body: string) => `POST /p HTTP/1.1\r\n${HOST}${headers}\r\n${body}`;
const chunked = (body: string) => post(TE, body);

/** A case for each text. */
function casesOf(what: string, texts: readonly string[], bytes: (text: string) => string): Case[] {
  const short = (text: string) =>
    text.length > 60 ? `${text.slice(0, 30)}…${text.slice(-12)}, ${text.length} bytes` : text;
  return texts.map((text) => [`${what} ${JSON.stringify(short(text))}`, bytes(text)]);
}

// biome-ignore format: a line for each would make hundreds
const CODINGS = [
  'Transfer-Encoding : chunked', 'Transfer-Encoding:\tchunked', 'Transfer-Encoding:chunked',
  'Transfer-Encoding: \x0bchunked', 'Transfer-Encoding: chunked\x0b', 'Transfer-Encoding: chunked ',
  'Transfer-Encoding: chunked\t', 'Transfer-Encoding: chunked \t ', 'Transfer-Encoding:   chunked', 'Transfer-Encoding: CHUNKED',
  'transfer-encoding: chunKed', 'TRANSFER-ENCODING: chunked', 'Transfer_Encoding: chunked', 'TransferEncoding: chunked',
  'Transfer-Encoding: "chunked"', "Transfer-Encoding: 'chunked'", 'Transfer-Encoding: chunked, chunked',
  'Transfer-Encoding: chunked,', 'Transfer-Encoding: ,chunked', 'Transfer-Encoding: , ,chunked', 'Transfer-Encoding: identity',
  'Transfer-Encoding: identity, chunked', 'Transfer-Encoding: chunked, identity', 'Transfer-Encoding: x', 'Transfer-Encoding:',
  'Transfer-Encoding: gzip, chunked', 'Transfer-Encoding: gzip,chunked', 'Transfer-Encoding: trailers, chunked',
  'Transfer-Encoding: xchunked', 'Transfer-Encoding: chunkedx', 'Transfer-Encoding: chu nked', 'Transfer-Encoding: chunk',
  'Transfer-Encoding: chunked\0', 'Transfer-Encoding:\0chunked', 'Transfer-Encoding: chunked;q=1', 'Transfer-Encoding: x chunked',
  ' Transfer-Encoding: chunked', 'X: y\r\n Transfer-Encoding: chunked', 'X: y\r\n\tTransfer-Encoding: chunked',
  'X: y\nTransfer-Encoding: chunked', 'X: y\rTransfer-Encoding: chunked', 'X:\r\nTransfer-Encoding: chunked',
  'Transfer-Encoding\r\n: chunked', 'Transfer-Encoding:\r\n chunked', 'Transfer-Encoding: chunked\r\n x', 'Transfer-Encoding: ch\xbanked',
  'Transfer-Encoding: chunke\xe4', 'Transfer-\xc8ncoding: chunked', '\xa0Transfer-Encoding: chunked', '\xef\xbb\xbfTransfer-Encoding: chunked',
  'Transfer-Encoding: chunked\xa0', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity', 'Transfer-Encoding\0: chunked',
  'Transfer-Encoding: identity\r\nTransfer-Encoding: chunked', 'Transfer-Encoding:\r\nTransfer-Encoding: chunked',
  'Transfer-Encoding: chunked\r\nTransfer-Encoding:', 'Transfer-Encoding: chunked\r\nX: y\r\nTransfer-Encoding: chunked',
  'Content-Encoding: chunked', 'TE: chunked', 'Transfer-Encoding: chunked\r\nTE: trailers', 'Transfer-Encodin: chunked',
];

// biome-ignore format: a line for each would make hundreds
const LENGTHS = [
  '5', '05', '+5', '-5', '-0', ' 5', '5 ', '\t5\t', '5\x0b', '\x0c5', '5\0', '\x005', '0x5', '5,5', '5, 5', ', 5', '5,', '5;5', '5.0', '5e0', '"5"', '', ' ',
  '5 5', '\u0665', '\xb2', '\xa05', '5\xa0', '00000000000000000005', '000000000000000000005', '18446744073709551615', '18446744073709551616', '18446744073709551621',
  '9223372036854775807', '4294967301', '9007199254740993', '99999999999999999999', '9'.repeat(300), '5\r\n 0', '5\r\n\t', '5\n6', '5\r6', 'five', 'Infinity', 'NaN',
  '1_0', '0b101', '0o5', '5n', '5=', '5\r\nContent-Length:5', '5\r\nContent-Length:6', '5\r\ncontent-length:0', '\r\nContent-Length:5', '5\r\nContent-Length:',
  '5\r\nContent-Length :6', '5\r\nContent_Length:6', '5\r\n\tContent-Length:6', '6\r\nX: y', '4', '0',
];

// biome-ignore format: a line for each would make hundreds
const SIZES = [
  '5', '05', '0000000000005', '00000000000005', '0000000000000005', '00000000000000005', '5 ', ' 5', '5\t', '\t5', '+5', '-5', '0x5', '5x', '5;', '5;a', '5;a=b',
  '5;a="b"', '5;a="b;c"', '5;a="b\r\nc"', '5;a="b', '5;a="', '5;a="\\""', '5;a="\\"', '5;a=b;c', '5;a=b;c="d";e', '5 ;a', '5; a', '5;a ', '5;a =b', '5;a= b', '5;=b', '5;a=', '5;a=;b',
  '5;a=""', '5;a="b"c', '5;a=b"c"', '5;a="b";', '5;\xe9', '5;a=\xe9', '5;a="\xe9"', '5;a\0', '5;a\n', '5;a\r', '5\n', '5\r', '', '5;a=b\x7f', 'fffffffffffffffff', 'ffffffffffffffff', 'fffffffffffff',
  '10000000000005', '10000000000000005', '100000000000000005', '5,5', '5.0', '5h', '\x0b5', '5\x0b', '5;;a', '5;a=b=c', '5;a(b)', '5;"a"', '5;a="\t"', "5;a='b'", '5;a="\x01"', '5;a="\x7f"', '5;a="\\\x01"', '5;a/b', '\uff15',
  `5;${'a'.repeat(16_382)}`, `5;${'a'.repeat(16_383)}`, `5;${'a'.repeat(16_384)}`, `5;${'a'.repeat(17_000)}`, `5;a="${'b'.repeat(16_390)}"`, `${'0'.repeat(20_000)}5`,
];

// biome-ignore format: a line for each would make hundreds
const AFTER_A_CHUNK = [
  '\r\n0\r\n\r\n', 'xx0\r\n\r\n', '0\r\n\r\n', '\n0\r\n\r\n', '\r0\r\n\r\n', '\r\r\n0\r\n\r\n', ' \r\n0\r\n\r\n', '\r\n\r\n0\r\n\r\n', '\r\n0\n\n', '\r\n0\r\n\n', '\r\n0\n\r\n', '\r\n0\r\r\n', '\r\n0\r\n\r\r\n',
  '\r\n00\r\n\r\n', `\r\n${'0'.repeat(13)}\r\n\r\n`, `\r\n${'0'.repeat(14)}\r\n\r\n`, `\r\n${'0'.repeat(19)}\r\n\r\n`, '\r\n-0\r\n\r\n', '\r\n0;a=b\r\n\r\n', '\r\n0 \r\n\r\n', '\r\n0x\r\n\r\n', '\r\n1\r\nx\r\n0\r\n\r\n',
  '\r\nA\r\n0123456789\r\n0\r\n\r\n', '\r\na;b\r\n0123456789\r\n0\r\n\r\n', '\r\n0\r\nX: y\r\n\r\n', '\r\n0\r\nX: y\n\r\n', '\r\n0\r\nX: y\r\r\n\r\n', '\r\n0\r\nX : y\r\n\r\n', '\r\n0\r\n X: y\r\n\r\n', '\r\n0\r\nX: y\r\n z\r\n\r\n', '\r\n0\r\nX:\r\n\tz\r\n\r\n', '\r\n0\r\n: y\r\n\r\n',
  '\r\n0\r\nX\r\n\r\n', '\r\n0\r\nX: y\0\r\n\r\n', '\r\n0\r\nX: y\x7f\r\n\r\n', '\r\n0\r\nX: \xe9\r\n\r\n', '\r\n0\r\nX:\r\n\r\n', '\r\n0\r\nX: y\r\nY: z\r\n\r\n', '\r\n0\r\nContent-Length: 5\r\n\r\n', '\r\n0\r\ncontent-length:0\r\n\r\n', '\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n',
  '\r\n0\r\nTransfer-Encoding: x\r\n\r\n', '\r\n0\r\nHost: other\r\n\r\n', '\r\n0\r\nConnection: close\r\n\r\n', '\r\n0\r\nConnection: x\r\n\r\n', '\r\n0\r\nUpgrade: x\r\n\r\n', '\r\n0\r\nExpect: 100-continue\r\n\r\n', '\r\n0\r\nAuthorization: a\r\n\r\n', '\r\n0\r\nHosts: x\r\n\r\n',
  '\r\n0\r\n\r\n\r\n', '\r\n0\r\n\r', '\r\n0\r\n', '\r\n0', '\r\n', '\r', '', `\r\n0\r\n${SMUGGLED}`, `\r\n0\r\n\r\n${SMUGGLED}`, `\r\n0\r\nX: ${'y'.repeat(980)}\r\n\r\n`, `\r\n0\r\nX: ${'y'.repeat(1016)}\r\n\r\n`, `\r\n0\r\nX: ${'y'.repeat(1017)}\r\n\r\n`, `\r\n0\r\nX: ${'y'.repeat(1018)}\r\n\r\n`,
  `\r\n0\r\nX: ${'y'.repeat(1100)}\r\n\r\n`, `\r\n0\r\nX: ${'y'.repeat(5000)}\r\n\r\n`, `\r\n0\r\n${'X: y\r\n'.repeat(100)}\r\n`, `\r\n0\r\n${'X: y\r\n'.repeat(300)}\r\n`, `\r\n0\r\n${'X: y\r\n'.repeat(900)}\r\n`, `${'\r\n1\r\nx'.repeat(100)}\r\n0\r\n\r\n`, `${'\r\n1\r\nx'.repeat(100)}\r\nz\r\n\r\n`, `${`\r\n1;${'a'.repeat(2000)}\r\nx`.repeat(9)}\r\n0\r\n\r\n`,
];

// biome-ignore format: a line for each would make hundreds
const REQUEST_LINES = [
  'GET  /g HTTP/1.1', 'GET /g  HTTP/1.1', 'GET /g HTTP/1.1 ', ' GET /g HTTP/1.1', 'GET\t/g HTTP/1.1', 'GET /g\tHTTP/1.1', 'GET /g HTTP/1.1\t', 'GET /g HTTP/1.1 x', 'GET /g x HTTP/1.1', 'GET /g HTTP/1.1 HTTP/1.1', 'GET /g HTTP/1.10', 'GET /g HTTP/01.1', 'GET /g HTTP/1.01', 'GET /g HTTP/1,1',
  'GET /g HTTP/11', 'GET /g HTTP/1.', 'GET /g HTTP/1', 'GET /g HTTP/', 'GET /g HTTP', 'GET /g ', 'GET /g HTTP/ 1.1', 'GET /g HTTP /1.1', 'GET /g http/1.1', 'GET /g Http/1.1', 'GET /g ICE/1.1', 'GET /g ICE/1.0', 'SOURCE /g ICE/1.0', 'GET /g RTSP/1.0', 'DESCRIBE /g RTSP/1.0', 'GET /g HTTP/\xb2.1', 'GET /g', 'GET ', 'GET',
  'get /g HTTP/1.1', 'GeT /g HTTP/1.1', 'G\xc9T /g HTTP/1.1', 'GET\x0b/g HTTP/1.1', 'GET /g\x0bHTTP/1.1', 'GET /g\x0cx HTTP/1.1', 'GET /g\xa0HTTP/1.1', 'GET /\xe9 HTTP/1.1', 'GET /\x7f HTTP/1.1', 'GET /\x01 HTTP/1.1', 'GET /\0 HTTP/1.1', 'GET /g\r HTTP/1.1', 'GET /g\n HTTP/1.1', 'GET /g\r\n HTTP/1.1', 'GET g HTTP/1.1', 'GET * HTTP/1.1',
  'OPTIONS * HTTP/1.1', 'OPTIONS *x HTTP/1.1', 'GET *x HTTP/1.1', 'GET */x HTTP/1.1', 'GET ? HTTP/1.1', 'GET # HTTP/1.1', 'GET http:// HTTP/1.1', 'GET http:///g HTTP/1.1', 'GET http:/g HTTP/1.1', 'GET http:g HTTP/1.1', 'GET http://h HTTP/1.1', 'GET http://h/ HTTP/1.1', 'GET http://h?x HTTP/1.1', 'GET http://?x HTTP/1.1', 'GET http://h#x HTTP/1.1', 'GET http://u@h/ HTTP/1.1',
  'GET http://u:p@h/ HTTP/1.1', 'GET http://u@v@h/ HTTP/1.1', 'GET http://@h/ HTTP/1.1', 'GET http://[::1]:80/ HTTP/1.1', 'GET http://[::1/ HTTP/1.1', 'GET http://h:x/ HTTP/1.1', 'GET http://h:/ HTTP/1.1', 'GET ftp://h/ HTTP/1.1', 'GET x://h/ HTTP/1.1', 'GET ws://h/ HTTP/1.1', 'GET HTTP://H/ HTTP/1.1', 'GET https://h/ HTTP/1.1', 'GET httpx://h/ HTTP/1.1', 'GET http://h%/ HTTP/1.1', 'GET http://h%41/ HTTP/1.1', 'GET http://h\\x/ HTTP/1.1',
  'GET http://h_/ HTTP/1.1', 'GET http://h~/ HTTP/1.1', "GET http://h!$&'()*+,;=/ HTTP/1.1", 'GET http://h"/ HTTP/1.1', 'GET //h/g HTTP/1.1', 'GET /g#f HTTP/1.1', 'GET /g#f#f HTTP/1.1', 'GET /g?#? HTTP/1.1', 'GET /"<>\\^`{|} HTTP/1.1', 'GET /%zz HTTP/1.1', 'GET /../g HTTP/1.1', 'GET /g?http://h/ HTTP/1.1', 'CONNECT h:80 HTTP/1.1', 'CONNECT /g HTTP/1.1', 'CONNECT http://h/ HTTP/1.1', 'GET h:80 HTTP/1.1', 'GET h HTTP/1.1',
  'PRI * HTTP/1.1', 'PRI * HTTP/2.0', 'DESCRIBE /g HTTP/1.1', 'PLAY /g HTTP/1.1', 'ANNOUNCE /g HTTP/1.1', 'FLUSH /g HTTP/1.1', 'SOURCE /g HTTP/1.1', 'QUERY /g HTTP/1.1', 'M-SEARCH /g HTTP/1.1', 'PATCH /g HTTP/1.1', 'TRACE /g HTTP/1.1', 'UPDATE /g HTTP/1.1', 'GET /g HTTP/1.0', 'GET /g HTTP/0.9', 'GET /g HTTP/2.0', 'GET /g HTTP/1.2', 'GET /g HTTP/1.9', 'GET /g HTTP/3.0', 'GET /g HTTP/1.1x', 'GET /g XHTTP/1.1', 'GETX /g HTTP/1.1',
  'GE /g HTTP/1.1', 'POST\0 /g HTTP/1.1', 'GET:/g HTTP/1.1', 'GET-/g HTTP/1.1', '- /g HTTP/1.1', ': /g HTTP/1.1', 'Host: /g', `GET /${'x'.repeat(1000)} HTTP/1.1`, `GET /${'x'.repeat(1010)} HTTP/1.1`, `GET /${'x'.repeat(1024)} HTTP/1.1`, `GET /${'x'.repeat(6000)} HTTP/1.1`, `${'G'.repeat(6000)} / HTTP/1.1`, `GET / ${'H'.repeat(6000)}`,
];

// biome-ignore format: a line for each would make hundreds
const HEADER_LINES = [
  'X:y', 'X: y', 'X:\ty', 'X: y ', 'X:  y\t ', 'X:', 'X: ', 'X::', 'X : y', ' X: y', '\tX: y', 'X\t: y', ': y', ':', 'X', 'X y', 'X=y', 'X: \0', 'X: \x01', 'X: \x08', 'X: \n', 'X: \x0b', 'X: \x0c', 'X: \x1f', 'X: \x7f', 'X: \x80', 'X: \x85', 'X: \xff', 'X: \xe2\x80\xa8', '\x80: y', 'X\0: y', 'X\x0b: y', '\x7f: y', 'X\xa0: y', '\xef\xbb\xbfX: y',
  ...'()/@[]{}",;<=>?\\\r\n'.split('').map((sign) => `X${sign}: y`), "!#$%&'*+-.^_`|~9: y", 'X: y\r\n z', 'X: y\r\n\tz', 'X: y\r\n \r\n z', 'X: y\rz', 'X: y\nZ: z', 'X: y\n', 'X: y\r', 'X: y\r\r', 'X:\r\n y', 'X: y\r\n\r', 'X: y\r\n\n', 'X: y\n\nZ: z', 'X: y\n\r\nZ: z', 'X: y\n\r', 'X: y\r\n\rZ: z',
  `X: ${'y'.repeat(1000)}`, `X: ${'y'.repeat(1008)}`, `X: ${'y'.repeat(1016)}`, `X: ${'y'.repeat(1030)}`, `X: ${'y'.repeat(6000)}`, `${'X'.repeat(1006)}: y`, `${'X'.repeat(1030)}: y`, `X:${' '.repeat(3000)}y`, `X:${' '.repeat(6000)}y`, `X:${' '.repeat(6000)}`, `X: y${' '.repeat(1000)}`, `X: y${' '.repeat(1030)}`,
  'a:\r\n'.repeat(900).slice(0, -2), 'a:\r\n'.repeat(999).slice(0, -2), 'a:\r\n'.repeat(1000).slice(0, -2), 'a:\r\n'.repeat(1500).slice(0, -2), 'Host: other', 'Host: test', 'host: test', 'HOST:', 'Host : test', 'X-Host: other', 'Hos: t', 'Connection: close', 'Connection: keep-alive, close', 'Connection: close, keep-alive', 'Connection: Close', 'Connection: x, close', 'Connection: close,', 'Connection:\tclose\t',
  'Connection: close\r\nConnection: keep-alive', 'Connection: keep-alive\r\nConnection: close', 'Connection: closed', 'Connection: xclose', 'Connection: close x', 'Connection: close;x', 'Connection: clos', 'Connection: close\xa0', 'Connection: upgrade', 'Connection: host', 'Connection: content-length', 'Upgrade: websocket', 'Upgrade:', 'Upgrade: h2c', 'Connection: upgrade\r\nUpgrade: websocket', 'Connection: Upgrade, close\r\nUpgrade: x', 'Connection: keep-alive', 'Connection: Keep-Alive, x', 'Connection: keep-alivex', 'Connection: keep-alive\r\nUpgrade: x', 'Connection: keep-alive, close\r\nX: y', 'Connection:', 'Connection: ,close', 'Connection: , ,', 'Connection: "close"',
  'Expect: 100-continue', 'Expect: x', 'Expect:', 'Expect: 100-Continue ', 'Expect: 100-continue, x', 'Expect: 100-continue\r\nExpect: x', 'Keep-Alive: timeout=1', 'Proxy-Connection: close', 'Proxy-Connection: keep-alive', 'Content-Length: 0', 'Content-Length: 0\r\nExpect: 100-continue', 'Authorization: a\r\nAuthorization: b', 'Prefer: a\r\nPrefer: b', 'If-Match: a\r\nif-match: b', 'IF-NONE-MATCH: a', 'iDEMPOTENCY-kEY: a', 'Prefer:\r\nPrefer: b', 'Prefer: a\r\nPrefer:', 'X-Forwarded-For: a\r\nX-Forwarded-For: b', 'Cookie: a\r\nCookie: b', 'Set-Cookie: a\r\nSet-Cookie: b',
  'Authorization: \xe9', 'Authorization:  a b  ', 'Authorization: \xa0a\xa0', 'Origin:\r\nOrigin:', 'Origin: a\r\nOrigin: b', 'X-Request-Id: a\r\nX-Request-Id: b', 'Sec-Fetch-Site: a\r\nSec-Fetch-Site: b', 'Access-Control-Request-Method: a\r\nAccess-Control-Request-Method: b', 'Accept-Encoding: a\r\nAccept-Encoding: b', 'Content-Encoding: a\r\nContent-Encoding: b', '__proto__: x', 'constructor: x', 'hasOwnProperty: x', 'toString: x', 'X_Forwarded_For: a',
];

// biome-ignore format: a line for each would make hundreds
const HOSTS = [
  'test', '', ' ', 'te st', 'test/', 'test?', 'test#', 'test@x', 'u@test', '[::1]', '[::1]:80', '[::1', '::1', '[v1.x]', '[]', '[fe80::1%25eth0]', '127.0.0.1', 'test:80', 'test:', 'test:x', 'test:80:80', ':80', 'test,other', 'test, other', 'test\\', '\xe9', '\xc3\xbc', 'test%', 'test%41', 'test\t', 'test;', 'test!', 'te_st', 'te~st', 'te"st', '"test"', '<test>', 'te^st', 'te|st', 'te`st', '{test}', 'http://test', 'TEST', 'test.',
];

const BEFORE = [
  ...['\r\n', '\r\n\r\n', '\n', '\r', '\n\n', ' ', '\t', '\0', '\r\r\n', '\n\r\n', '\r\n\n', '\r\n '],
  ...['\xef\xbb\xbf', '\xff'],
];

/** Ways in which readers have differed, or might. */
export const CASES: readonly Case[] = [
  ...unreadable(HOST).map(
    ([name, bytes]): Case => [name, Buffer.from(bytes as Uint8Array).toString('latin1')],
  ),
  ['CL.TE', post(`Content-Length: ${SMUGGLED.length + 5}\r\n${TE}`, `0\r\n\r\n${SMUGGLED}`)],
  ['TE.CL', post(`${TE}Content-Length: 4\r\n`, `5c\r\n${SMUGGLED}`)],
  ['CL.0', post('', SMUGGLED)],
  ['0.CL', get('Content-Length: 40\r\n') + SMUGGLED],
  ['a body of GET', `${get('Content-Length: 5\r\n')}hello`],
  ['chunks of GET', get(TE) + CHUNKS],
  ['a body of HTTP/1.0', `POST /p HTTP/1.0\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nhello`],
  ['no length in HTTP/1.0', 'POST /p HTTP/1.0\r\nConnection: keep-alive\r\n\r\nhello'],
  ['chunks of HTTP/1.0', `POST /p HTTP/1.0\r\n${TE}Connection: keep-alive\r\n\r\n${CHUNKS}`],
  ['a body that ends early', post('Content-Length: 500\r\n', 'hello')],
  ['a body behind Expect', post('Expect: 100-continue\r\nContent-Length: 5\r\n', 'hello')],
  ['chunks behind Expect', post(`Expect: 100-continue\r\n${TE}`, CHUNKS)],
  ['a body behind Upgrade', post('Connection: upgrade\r\nUpgrade: x\r\nContent-Length: 5\r\n', 'hello')],
  ['chunks behind Upgrade', post(`Connection: upgrade\r\nUpgrade: x\r\n${TE}`, CHUNKS)],
  ['chunks behind close', post(`Connection: close\r\n${TE}`, CHUNKS)],
  ['three requests', get('') + post('Content-Length: 5\r\n', 'hello') + chunked(CHUNKS)],
  ['an end of a line behind a body', `${post('Content-Length: 5\r\n', 'hello')}\r\n`],
  ['no Host', get('', '1.1', '')],
  ['no Host in HTTP/1.0', get('', '1.0', '')],
  ['Host beside a URL', `GET http://other/ HTTP/1.1\r\n${HOST}\r\n`],
  ['no Host beside a URL', 'GET http://other/ HTTP/1.1\r\n\r\n'],
  ['LF at the end of the headers', `GET /g HTTP/1.1\r\n${HOST}\n`],
  ['LF behind the request line', `GET /g HTTP/1.1\nX: y\r\n${HOST}\r\n`],
  ['only LF', 'GET /g HTTP/1.1\nHost: test\n\n'],
  ['only CR', 'GET /g HTTP/1.1\rHost: test\r\r'],
  ['CR CR LF', `GET /g HTTP/1.1\r\n${HOST}\r\r\n`],
  ['LF CR LF', 'GET /g HTTP/1.1\r\nHost: test\n\r\n'],
  ['nothing', ''],
  ...casesOf('alone:', CODINGS, (line) => post(`${line}\r\n`, CHUNKS)),
  ...casesOf('behind a length:', CODINGS, (line) =>
    post(`Content-Length: 5\r\n${line}\r\n`, `0\r\n\r\n${SMUGGLED}`),
  ),
  ...casesOf('before a length:', CODINGS, (line) =>
    post(`${line}\r\nContent-Length: 5\r\n`, `0\r\n\r\n${SMUGGLED}`),
  ),
  ...casesOf('a length of', LENGTHS, (value) => post(`Content-Length:${value}\r\n`, 'hello')),
  ...casesOf(
    'a line for a length:',
    ['Content-Length : 5', 'content-length: 5', 'Content_Length: 5'],
    (line) => post(`${line}\r\n`, 'hello'),
  ),
  ...casesOf('a chunk size of', SIZES, (size) => chunked(`${size}\r\nhello\r\n0\r\n\r\n`)),
  ...casesOf('behind a chunk:', AFTER_A_CHUNK, (rest) => chunked(`5\r\nhello${rest}`)),
  ...casesOf('before a request:', BEFORE, (start) => start + get('')),
  ...casesOf('between requests:', BEFORE, (start) => get('') + start + get('')),
  ...casesOf('a request line:', REQUEST_LINES, withLine),
  ...casesOf('a header:', HEADER_LINES, (line) => get(`${line}\r\n`)),
  ...casesOf('a header of HTTP/1.0:', HEADER_LINES, (line) => get(`${line}\r\n`, '1.0', '')),
  ...casesOf('Host', HOSTS, (host) => get('', '1.1', `Host: ${host}\r\n`)),
  ...casesOf('Host in HTTP/1.0', HOSTS, (host) => get('', '1.0', `Host: ${host}\r\n`)),
];
