// Owns: requests byte by byte, including those that no HTTP library would send, for tests of the service and of a proxy
// in front of it.

import { CHUNKED } from '../../conformance/raw-requests.ts';

export const HOST = 'Host: books.test\r\n';

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

/**
 * Requests that two programs might parse differently: one reads the smuggled request as part of the body, the other as
 * the next request.
 */
export function ambiguous(host: string, authorization: string, smuggled: string): [string, string][] {
  const length = (count: number) => `Content-Length: ${count}\r\n`;
  const post = (headers: string, body: string) =>
    `POST /book HTTP/1.1\r\n${host}${authorization}${headers}\r\n${body}`;
  const whole = `2\r\n{}\r\n0\r\n\r\n${smuggled}`;
  const name = 'Transfer-Encoding';
  const chunked = [
    ...[`${name}: chunked`, `${name}:chunked`, `${name}: Chunked `, `${name}:\tchunked`, `${name} : chunked`],
    ...[` ${name}: chunked`, `X: y\n${name}: chunked`, `X: y\r${name}: chunked`, `${name}:\r\n chunked`],
    ...[`${name}: gzip, chunked`, `${name}: chunked, identity`, `${name}: identity\r\n${name}: chunked`],
    ...[`${name}: chunked\r\n${name}: x`, `${name}: "chunked"`, `${name}: \x0bchunked`, `${name}: xchunked`],
    ...['Transfer_Encoding: chunked', `${name}: chunked\x00`, `${name}: chunk`, `${name};: chunked`],
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
