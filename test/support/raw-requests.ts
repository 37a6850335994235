// Owns: requests byte by byte.

import { once } from 'node:events';
import { connect } from 'node:net';

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

/** Sends a request on so many connections, which read the beginning of their answer and no more. @returns its status line. */
export function statusesOf(
  count: number,
  context: { after(work: () => unknown): void },
  port: number,
  request: string,
): Promise<string[]> {
  const statuses = Array.from({ length: count }, async () => {
    const socket = connect(port, '127.0.0.1');
    context.after(() => socket.destroy());
    socket.write(request);
    const [beginning] = await once(socket, 'data');
    socket.pause();
    return String(beginning).slice(0, 'HTTP/1.1 200'.length);
  });
  return Promise.all(statuses);
}
