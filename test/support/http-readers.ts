// Owns: what two readers of HTTP see in the same bytes: that of the service, and that of Node.js.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { duplexPair } from 'node:stream';
import type { RequestHeaders } from '../../src/http/head.ts';
import type { Request } from '../../src/http/request.ts';
import { HttpServer } from '../../src/http/server.ts';
import { TIMES } from '../../src/times.ts';
import { HEADER_LIMIT } from './http-cases.ts';
import { ServerSocket } from './server-socket.ts';
import { settled } from './virtual-time.ts';

export interface Seen {
  readonly method: string;
  readonly target: string;
  /** Those that the service reads. */
  readonly headers: object;
  readonly body: string;
}

/** The requests that arrived as a whole, and the status with which the next one is refused. */
export interface Outcome {
  readonly requests: Seen[];
  readonly refusal: number | undefined;
}

/** @param isEarly whether each request is answered before its body has arrived, as 401 and 404 are; it is then seen without. */
export async function readByService(pieces: readonly Buffer[], isEarly = false): Promise<Outcome> {
  const requests: Seen[] = [];
  let refusal: number | undefined;
  const answer = (request: Request) => request.answer({ status: 204, headers: [] }, '', () => {});
  const { server } = new HttpServer(
    HEADER_LIMIT,
    TIMES.http,
    async (request) => {
      const { method, target, headers } = request;
      const see = (body: string) => requests.push({ method, target, headers: sent(headers), body });
      if (isEarly) {
        see('');
        answer(request);
        return;
      }
      const parts: Buffer[] = [];
      request.takeBody({
        take: (bytes) => parts.push(bytes),
        end(isWhole) {
          if (isWhole) see(Buffer.concat(parts).toString('latin1'));
          if (isWhole) answer(request);
        },
      });
    },
    (status) => {
      refusal = status;
      return { status, headers: [] };
    },
    assert.ifError,
  );
  const socket = new ServerSocket(Number.POSITIVE_INFINITY);
  server.emit('connection', socket as unknown as Socket);
  for (const piece of [...pieces, null]) socket.send(piece);
  for (let turn = 0; turn < 10_000 && !socket.destroyed; turn += 1) await settled();
  assert.ok(socket.destroyed, 'the connection ends');
  return { requests, refusal };
}

const KEPT: readonly (keyof RequestHeaders)[] = [
  ...(['host', 'authorization', 'x-request-id', 'origin', 'sec-fetch-site', 'prefer', 'if-match'] as const),
  ...(['access-control-request-method', 'x-forwarded-for', 'if-none-match', 'idempotency-key'] as const),
  ...(['accept-encoding', 'content-encoding'] as const),
];

/** The headers that the service reads. */
function sent(headers: RequestHeaders): object {
  return Object.fromEntries(
    KEPT.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])),
  );
}

interface Reading {
  readonly requests: (Seen | undefined)[];
  refusal: number | undefined;
}

const readings = new WeakMap<object, Reading>();

// As version 1.0.0 of the service had it.
const nodes = createServer({ requireHostHeader: false, maxHeaderSize: HEADER_LIMIT }, (request) => {
  const { method = '', url: target = '', socket } = request;
  const { requests } = readings.get(socket) as Reading;
  const position = requests.push(undefined) - 1;
  const [, host = request.headers.host] = /^https?:\/\/([^/?]+)/i.exec(target) ?? []; // which Node.js leaves to its user
  const headers = sent({ ...request.headers, host } as RequestHeaders);
  const parts: Buffer[] = [];
  request.on('error', () => {});
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => {
    requests[position] = { method, target, headers, body: Buffer.concat(parts).toString('latin1') };
  });
});
nodes.on('checkExpectation', (request, response) => nodes.emit('request', request, response));
nodes.on('connect', () => {});
nodes.on('clientError', (error: NodeJS.ErrnoException, socket: object) => {
  // What follows the last request of a connection is an error for it, but for nobody else.
  if (error.code !== 'HPE_CLOSED_CONNECTION') (readings.get(socket) as Reading).refusal = 400;
});

export async function readByNode(bytes: Buffer): Promise<Outcome> {
  const [client, end] = duplexPair();
  const reading: Reading = { requests: [], refusal: undefined };
  readings.set(end, reading);
  nodes.emit('connection', end as unknown as Socket);
  for (const stream of [client, end]) stream.on('error', () => {});
  client.resume();
  client.end(bytes);
  for (let turn = 0; turn < 6; turn += 1) await settled();
  client.destroy();
  end.destroy();
  const whole = reading.requests.indexOf(undefined);
  const requests = reading.requests.slice(0, whole === -1 ? undefined : whole) as Seen[];
  return { requests, refusal: reading.refusal };
}
