// Owns: a server between a client and the service, as a proxy is: it records every request, and forwards it, loses it,
// or answers in place of the service.

import { once } from 'node:events';
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import { pipeline } from 'node:stream';
import type { Target } from './client.ts';

export interface Front extends Target {
  /** Method and path of every request so far. */
  readonly seen: string[];
}

/** @param listener forwards each request, or answers in place of the service. */
export async function startFront(
  context: { after(work: () => void): void },
  listener: RequestListener,
): Promise<Front> {
  const seen: string[] = [];
  const server = createServer((incoming, outgoing) => {
    seen.push(`${incoming.method} ${incoming.url}`);
    listener(incoming, outgoing);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as { port: number };
  return { url: `http://127.0.0.1:${port}`, port, seen };
}

/** @param give forwards the answer by default, and may do something else with it. */
export function passOn(
  { url }: Target,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  give = (answered: IncomingMessage) => {
    outgoing.writeHead(answered.statusCode as number, answered.headers);
    pipeline(answered, outgoing, () => {}); // an answer that breaks off breaks the client's connection
  },
): void {
  const { method, headers } = incoming;
  const onward = httpRequest(`${url}${incoming.url}`, { method, headers });
  onward.on('response', give);
  onward.on('error', () => incoming.socket.destroy());
  outgoing.on('close', () => onward.destroy()); // a client that leaves early ends the request
  incoming.pipe(onward);
}

/** Answers in place of the service. */
export function answer(outgoing: ServerResponse, status: number, data: unknown, message = ''): void {
  outgoing.writeHead(status).end(JSON.stringify({ status, message, data }));
}
