// Owns: requests byte by byte, including those that no HTTP library would send, for tests of the service and of a proxy
// in front of it.

export const HOST = 'Host: books.test\r\n';
export const CHUNKED = 'Transfer-Encoding: chunked\r\n';

interface Parts {
  /** Without it there is no Authorization header. */
  readonly token?: string;
  /** More header lines, each with its line end. */
  readonly headers?: string;
  /** Announced by Content-Length unless it is empty. */
  readonly body?: string;
}

/** The bytes of a request. */
export function compose(
  method: string,
  path: string,
  { token, headers = '', body = '' }: Parts = {},
): string {
  const authorization = token === undefined ? '' : `Authorization: ${token}\r\n`;
  const length = body === '' ? '' : `Content-Length: ${Buffer.byteLength(body)}\r\n`;
  return `${method} ${path} HTTP/1.1\r\n${HOST}${authorization}${headers}${length}\r\n${body}`;
}

/** Requests that are not valid HTTP, each with a name. */
export function unreadable(host: string): [string, string | Uint8Array][] {
  const get = (headers: string) => `GET /books HTTP/1.1\r\n${host}${headers}\r\n`;
  const post = (headers: string, body: string) => `POST /token HTTP/1.1\r\n${host}${headers}\r\n${body}`;
  const chunks = (body: string) => post(CHUNKED, body);
  return [
    ['a word', 'garbage\r\n\r\n'],
    ['bytes', new Uint8Array([0, 1, 2, 255, 254, 13, 10, 13, 10])],
    ['a TLS greeting', Buffer.from('16030100c8010000c40303', 'hex')],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['an unknown method', `BREW /books HTTP/1.1\r\n${host}\r\n`],
    ['a method in lower case', `get /books HTTP/1.1\r\n${host}\r\n`],
    ['an old version', `GET /books HTTP/0.9\r\n${host}\r\n`],
    ['HTTP/2.0 as text', `GET /books HTTP/2.0\r\n${host}\r\n`],
    ['HTTP/3.0 as text', `GET /books HTTP/3.0\r\n${host}\r\n`],
    ['a version without a dot', `GET /books HTTP/1\r\n${host}\r\n`],
    ['a version in lower case', `GET /books http/1.1\r\n${host}\r\n`],
    ['words behind the version', `GET /books HTTP/1.1 x\r\n${host}\r\n`],
    ['no version', 'GET /books\r\n\r\n'],
    ['an unknown version', `GET /books HTTP/1.2\r\n${host}\r\n`],
    ['another protocol', `GET /books XTTP/1.1\r\n${host}\r\n`],
    ['tabs for spaces', `GET\t/books\tHTTP/1.1\r\n${host}\r\n`],
    ['a space in the path', `GET /bo oks HTTP/1.1\r\n${host}\r\n`],
    ['a NUL in the path', `GET /bo\0oks HTTP/1.1\r\n${host}\r\n`],
    ['raw UTF-8 in the path', `GET /b\u00fccher HTTP/1.1\r\n${host}\r\n`],
    ['a path without its slash', `GET books HTTP/1.1\r\n${host}\r\n`],
    ['a port for a target', `GET books.test:80 HTTP/1.1\r\n${host}\r\n`],
    ['bare LF for line ends', 'GET /books HTTP/1.1\nHost: books.test\n\n'],
    ['one bare LF', get('X: y\nY: z\r\n')],
    ['a bare CR', get('X: y\rY: z\r\n')],
    ['a folded header', get('X: y\r\n z\r\n')],
    ['a space before the first header', `GET /books HTTP/1.1\r\n X: y\r\n${host}\r\n`],
    ['a space before the colon', get('X : y\r\n')],
    ['a header without a colon', get('nothing\r\n')],
    ['a header without a name', get(': y\r\n')],
    ['a NUL in a header', get('X: a\0b\r\n')],
    ['a control character in a header', get('X: a\x01b\r\n')],
    ['Content-Length, then Transfer-Encoding', post(`Content-Length: 5\r\n${CHUNKED}`, '0\r\n\r\n')],
    ['Transfer-Encoding, then Content-Length', post(`${CHUNKED}Content-Length: 5\r\n`, '0\r\n\r\n')],
    ['two lengths', post('Content-Length: 2\r\nContent-Length: 3\r\n', '{} ')],
    ['one length twice', post('Content-Length: 2\r\nContent-Length: 2\r\n', '{}')],
    ['a length and one in another case', post('Content-Length: 2\r\ncontent-length: 3\r\n', '{} ')],
    ['a list of one length', post('Content-Length: 2, 2\r\n', '{}')],
    ['a length with a fraction', post('Content-Length: 2.0\r\n', '{}')],
    ['a length with an underscore', post('Content-Length: 0_2\r\n', '{}')],
    ['two numbers for a length', post('Content-Length: 2 3\r\n', '{} ')],
    ['a folded length', post('Content-Length:\r\n 2\r\n', '{}')],
    ['a list of lengths', post('Content-Length: 2, 3\r\n', '{} ')],
    ['a negative length', post('Content-Length: -2\r\n', '{}')],
    ['a length with a sign', post('Content-Length: +2\r\n', '{}')],
    ['a hexadecimal length', post('Content-Length: 0x2\r\n', '{}')],
    ['an empty length', post('Content-Length:\r\n', '{}')],
    ['a length beyond 64 bits', post('Content-Length: 18446744073709551616\r\n', '{}')],
    ['a coding that does not end in chunked', post('Transfer-Encoding: gzip\r\n', '{}')],
    ['a coding after chunked', post('Transfer-Encoding: chunked, gzip\r\n', '0\r\n\r\n')],
    ['a coding before chunked', post('Transfer-Encoding: gzip, chunked\r\n', '0\r\n\r\n')],
    ['two codings, each in a line', post(`Transfer-Encoding: gzip\r\n${CHUNKED}`, '0\r\n\r\n')],
    ['nothing before chunked', post('Transfer-Encoding: , chunked\r\n', '0\r\n\r\n')],
    ['chunked with a parameter', post('Transfer-Encoding: chunked;x=1\r\n', '0\r\n\r\n')],
    ['chunked in quotes', post('Transfer-Encoding: "chunked"\r\n', '0\r\n\r\n')],
    ['a control character before chunked', post('Transfer-Encoding: \x0bchunked\r\n', '0\r\n\r\n')],
    ['a coding of nothing', post('Transfer-Encoding:\r\nContent-Length: 2\r\n', '{}')],
    ['identity beside a length', post('Transfer-Encoding: identity\r\nContent-Length: 2\r\n', '{}')],
    ['chunks in HTTP/1.0', `POST /token HTTP/1.0\r\n${host}${CHUNKED}\r\n0\r\n\r\n`],
    ['chunked twice', post(CHUNKED + CHUNKED, '0\r\n\r\n')],
    ['a coding almost named chunked', post('Transfer-Encoding: xchunked\r\n', '0\r\n\r\n')],
    ['a space before the colon of chunked', post('Transfer-Encoding : chunked\r\n', '0\r\n\r\n')],
    ['a chunk size that is not a number', chunks('zz\r\n{}\r\n0\r\n\r\n')],
    ['a negative chunk size', chunks('-2\r\n{}\r\n0\r\n\r\n')],
    ['a chunk size with a prefix', chunks('0x2\r\n{}\r\n0\r\n\r\n')],
    ['no chunk size', chunks('\r\n{}\r\n0\r\n\r\n')],
    ['a chunk size beyond 64 bits', chunks('10000000000000000\r\n{}\r\n0\r\n\r\n')],
    ['a chunk size with an underscore', chunks('0_2\r\n{}\r\n0\r\n\r\n')],
    ['a space behind a chunk size', chunks('2 \r\n{}\r\n0\r\n\r\n')],
    ['a chunk shorter than its size', chunks('3\r\n{}\r\n0\r\n\r\n')],
    ['a bare LF behind a chunk', chunks('2\r\n{}\n0\r\n\r\n')],
    ['a bare LF behind the last chunk', chunks('2\r\n{}\r\n0\n\n')],
    ['a length in a trailer', chunks('2\r\n{}\r\n0\r\nContent-Length: 9\r\n\r\n')],
    ['a folded trailer', chunks('2\r\n{}\r\n0\r\nX: y\r\n z\r\n\r\n')],
    ['a chunk longer than its size', chunks('1\r\n{}\r\n0\r\n\r\n')],
    ['a chunk with bare LF', chunks('2\n{}\n0\n\n')],
    ['a line end in a chunk extension', chunks('2;a\nb\r\n{}\r\n0\r\n\r\n')],
    ['an endless chunk extension', chunks(`2;${'x'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`)],
  ];
}

/**
 * Requests that two programs might parse differently: one reads the smuggled request as part of the body, the other as
 * the next request.
 */
export function ambiguous(host: string, authorization: string, smuggled: string): [string, string][] {
  const length = (count: number) => `Content-Length: ${count}\r\n`;
  const post = (headers: string, body: string) =>
    `POST /book HTTP/1.1\r\n${host}${authorization}${headers}\r\n${body}`;
  const whole = `2\r\n{}\r\n0\r\n\r\n${smuggled}`;
  const chunked = [
    'Transfer-Encoding: chunked',
    'Transfer-Encoding:chunked',
    'Transfer-Encoding: Chunked ',
    'Transfer-Encoding:\tchunked',
    'Transfer-Encoding : chunked',
    ' Transfer-Encoding: chunked',
    'X: y\nTransfer-Encoding: chunked',
    'X: y\rTransfer-Encoding: chunked',
    'Transfer-Encoding:\r\n chunked',
    'Transfer-Encoding: gzip, chunked',
    'Transfer-Encoding: chunked, identity',
    'Transfer-Encoding: identity\r\nTransfer-Encoding: chunked',
    'Transfer-Encoding: chunked\r\nTransfer-Encoding: x',
    'Transfer-Encoding: "chunked"',
    'Transfer-Encoding: \x0bchunked',
    'Transfer-Encoding: xchunked',
    'Transfer_Encoding: chunked',
    'Transfer-Encoding: chunked\x00',
    'Transfer-Encoding: chunk',
    'Transfer-Encoding;: chunked',
  ];
  return [
    ...chunked.flatMap((line): [string, string][] => [
      [`${line} and a length after it`, post(`${line}\r\n${length(whole.length)}`, whole)],
      [`${line} and a length before it`, post(`${length(whole.length)}${line}\r\n`, whole)],
      [`${line} and a length too short`, post(`${length(4)}${line}\r\n`, `5c\r\n${whole}`)],
      [`${line} alone`, post(`${line}\r\n`, whole.slice(0, -smuggled.length))],
      [`${line} for GET`, `GET /books HTTP/1.1\r\n${host}${line}\r\n\r\n0\r\n\r\n`],
    ]),
    ['two lengths, the short one first', post(length(2) + length(2 + smuggled.length), `{}${smuggled}`)],
    ['two lengths, the long one first', post(length(2 + smuggled.length) + length(2), `{}${smuggled}`)],
    ['a list of lengths', post(`Content-Length: 2, ${2 + smuggled.length}\r\n`, `{}${smuggled}`)],
    ['a length with a sign', post('Content-Length: +2\r\n', `{}${smuggled}`)],
    ['a length with a space', post(`Content-Length : ${smuggled.length}\r\n`, smuggled)],
    ['a length in another notation', post('Content-Length: 0x2\r\n', `{}${smuggled}`)],
    ['a folded length', post(`Content-Length:\r\n ${smuggled.length}\r\n`, smuggled)],
    ['a length behind a bare LF', post(`X: y\nContent-Length: ${smuggled.length}\r\n`, smuggled)],
    [
      'a removal for a body of GET',
      `GET /books HTTP/1.1\r\n${host}${length(smuggled.length)}\r\n${smuggled}`,
    ],
    ['a removal in a chunk extension', post(CHUNKED, `2;\n${smuggled}\r\n{}\r\n0\r\n\r\n`)],
    ['a removal in a chunk', post(CHUNKED, `${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`)],
    ['a removal in a trailer', post(CHUNKED, `2\r\n{}\r\n0\r\nX: y\n${smuggled}\r\n\r\n`)],
    [
      'an upgrade with a body',
      post(`Connection: Upgrade\r\nUpgrade: h2c\r\n${length(smuggled.length)}`, smuggled),
    ],
    ['an expectation with a body', post(`Expect: 100-continue\r\n${length(smuggled.length)}`, smuggled)],
    ['two hosts', `POST /book HTTP/1.1\r\n${host}${host}${length(smuggled.length)}\r\n${smuggled}`],
    ['HTTP/1.0 in chunks', `POST /book HTTP/1.0\r\n${host}${authorization}${CHUNKED}\r\n${whole}`],
  ];
}
