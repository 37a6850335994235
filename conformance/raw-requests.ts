// Owns: requests that are not valid HTTP, byte by byte: no HTTP library would send them.

export const CHUNKED = 'Transfer-Encoding: chunked\r\n';

/**
 * Requests that are not valid HTTP, each with a name.
 * @param host a whole header line, `Host: books.test\r\n`; '' in a request that names none.
 */
export function unreadable(host: string): [string, string | Uint8Array][] {
  const post = (headers: string, body: string) => `POST /token HTTP/1.1\r\n${host}${headers}\r\n${body}`;
  const none = '0\r\n\r\n';
  // biome-ignore format: a line for each case would make a hundred lines
  return [
    ['a word', 'garbage\r\n\r\n'],
    ['bytes', new Uint8Array([0, 1, 2, 255, 254, 13, 10, 13, 10])],
    ['a TLS greeting', Buffer.from('16030100c8010000c40303', 'hex')],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['no version', 'GET /books\r\n\r\n'],
    ['bare LF for line ends', `GET /books HTTP/1.1\n${host.trimEnd()}\n\n`],
    ['chunks in HTTP/1.0', `POST /token HTTP/1.0\r\n${host}${CHUNKED}\r\n${none}`],
    ...each('the line', [
      'BREW /books HTTP/1.1', 'get /books HTTP/1.1', 'GET /books HTTP/0.9', 'GET /books HTTP/2.0', 'GET /books HTTP/3.0',
      'GET /books HTTP/1', 'GET /books http/1.1', 'GET /books HTTP/1.1 x', 'GET /books HTTP/1.2', 'GET /books XTTP/1.1',
      'GET\t/books\tHTTP/1.1', 'GET /bo oks HTTP/1.1', 'GET /bo\0oks HTTP/1.1', 'GET /b\u00fccher HTTP/1.1',
      'GET books HTTP/1.1', 'GET books.test:80 HTTP/1.1', 'GET /books HTTP/1.1\r\n X: y',
    ], (line) => `${line}\r\n${host}\r\n`),
    ...each('the header', [
      'X: y\nY: z', 'X: y\rY: z', 'X: y\r\n z', 'X : y', 'nothing', ': y', 'X: a\0b', 'X: a\x01b',
    ], (line) => `GET /books HTTP/1.1\r\n${host}${line}\r\n\r\n`),
    ...each('Content-Length', [
      '2\r\nContent-Length: 3', '2\r\nContent-Length: 2', '2\r\ncontent-length: 3', '2, 2', '2, 3', '2 3', '2.0', '0_2', '-2', '+2',
      '0x2', '', '\r\n 2', '18446744073709551616',
    ], (length) => post(`Content-Length: ${length}\r\n`, length.includes('3') ? '{} ' : '{}')),
    ...each('Transfer-Encoding', [
      ' gzip', ' chunked, gzip', ' gzip, chunked', ' gzip\r\nTransfer-Encoding: chunked', ' , chunked', ' chunked;x=1', ' "chunked"',
      ' \x0bchunked', ' xchunked', ' chunked\r\nTransfer-Encoding: chunked', ' chunked\r\nContent-Length: 5',
      ' identity\r\nContent-Length: 2', '\r\nContent-Length: 2',
    ], (coding) => post(`Transfer-Encoding:${coding}\r\n`, coding.endsWith('2') ? '{}' : none)),
    ['Content-Length, then Transfer-Encoding', post(`Content-Length: 5\r\n${CHUNKED}`, none)],
    ['a space before the colon of chunked', post('Transfer-Encoding : chunked\r\n', none)],
    ['chunks with bare LF', post(CHUNKED, '2\n{}\n0\n\n')],
    ...each('chunks', [
      'zz\r\n{}\r\n', '-2\r\n{}\r\n', '0x2\r\n{}\r\n', '\r\n{}\r\n', '10000000000000000\r\n{}\r\n', '0_2\r\n{}\r\n', '2 \r\n{}\r\n',
      '3\r\n{}\r\n', '1\r\n{}\r\n', '2\r\n{}\n', '2;a\nb\r\n{}\r\n', `2;${'x'.repeat(20_000)}\r\n{}\r\n`,
    ], (chunk) => post(CHUNKED, chunk + none)),
    ...each('the end of chunks', [
      '0\n\n', '0\r\nContent-Length: 9\r\n\r\n', '0\r\nX: y\r\n z\r\n\r\n',
    ], (end) => post(CHUNKED, `2\r\n{}\r\n${end}`)),
  ];
}

/** A request for each text, which is in its name. */
function each(
  what: string,
  texts: readonly string[],
  requestOf: (text: string) => string,
): [string, string][] {
  return texts.map((text) => [`${what} ${JSON.stringify(text.slice(0, 60))}`, requestOf(text)]);
}
