// Owns: what Node's HTTP server would answer by itself, turned into envelopes (rule 20): requests its
// parser cannot read, requests that come too slowly, CONNECT, unknown expectations.

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import {
  BAD_REQUEST,
  COMMON_HEADERS,
  type Envelope,
  HEADERS_TOO_LARGE,
  REQUEST_TIMEOUT,
} from './envelope.ts';

/** Milliseconds a refused client has to read its answer and stop sending before it is cut off. */
const LINGER = 1000;

/** @param newRequestId for answers that no route gives. */
export function answerWireErrors(server: Server, newRequestId: () => string): void {
  // The response each connection is at, or was last.
  const responses = new WeakMap<Socket, ServerResponse>();
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    responses.set(request.socket, response);
  });

  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const refuse = () => refuseConnection(socket, envelopeFor(error), newRequestId());
    const response = responses.get(socket);
    const isNextRequest = response === undefined || response.req.complete;
    if (isNextRequest && response !== undefined && !response.writableFinished) {
      response.once('close', refuse); // pipelined behind one that is still being answered
    } else if (isNextRequest || !response.headersSent) {
      refuse();
    } else {
      socket.destroy(); // the rest of a body whose request was answered already
    }
  });

  server.on('connect', (_request: IncomingMessage, socket: Socket) => {
    refuseConnection(socket, BAD_REQUEST, newRequestId());
  });

  // RFC 9110 section 10.1.1 leaves it to the server; an expectation unknown to us changes nothing.
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    server.emit('request', request, response);
  });
}

/** Whether a request names its host as HTTP/1.1 demands: once, and once only (RFC 9112 section 3.2). */
export function hasOneHost(request: IncomingMessage): boolean {
  let hosts = 0;
  for (let position = 0; position < request.rawHeaders.length; position += 2) {
    const name = request.rawHeaders[position] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts === 1 || (hosts === 0 && request.httpVersion === '1.0');
}

function envelopeFor(error: NodeJS.ErrnoException): Envelope {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW':
      return HEADERS_TOO_LARGE;
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return REQUEST_TIMEOUT;
    default:
      return BAD_REQUEST;
  }
}

/** Answers outside of any response and ends the connection. */
function refuseConnection(socket: Socket, envelope: Envelope, requestId: string): void {
  const body = JSON.stringify(envelope);
  const headers = {
    ...COMMON_HEADERS,
    'x-request-id': requestId,
    date: new Date().toUTCString(),
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  };
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${envelope.status} ${envelope.message}\r\n${head.join('')}\r\n${body}`);

  // Closing while bytes are unread would reset the connection, and the answer with it: drop them instead.
  socket.removeAllListeners('data');
  socket.on('data', () => {});
  socket.resume();
  setTimeout(() => socket.destroy(), LINGER).unref();
}
