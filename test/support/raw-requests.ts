// Owns: requests byte by byte.

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
