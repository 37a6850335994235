// Owns: the HTTP server itself. Its limits and timeouts, and whatever Node would answer by itself, or not
// at all, turned into envelopes (rule 20): requests its parser cannot read, requests that come too
// slowly, CONNECT, methods of other protocols, connections that close while a client is still sending.

import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import {
  BAD_REQUEST,
  COMMON_HEADERS,
  type Envelope,
  HEADERS_TOO_LARGE,
  REQUEST_TIMEOUT,
} from './envelope.ts';

// Imported, node:http would also load the parts that nobody uses here: 19 MiB, a sixth of the whole.
const { createServer, METHODS } = createRequire(import.meta.url)('node:http') as typeof import('node:http');

/** The methods of HTTP; Node's parser knows those of RTSP, too. */
export const HTTP_METHODS: ReadonlySet<string> = new Set(METHODS);

// Milliseconds (rule 22).
const HEADERS_TIMEOUT = 15_000;
const WHOLE_REQUEST_TIMEOUT = 30_000;
const TIMEOUT_CHECK_INTERVAL = 1000;
/** A connection on which nothing moves, a list whose reader has stalled included. */
const STALL_TIMEOUT = 60_000;
/** Longer than the idle timeouts of common load balancers, so that they, not we, close first. */
const KEEP_ALIVE_TIMEOUT = 72_000;
/** What a client that is still sending has to read its last answer. */
const LINGER = 1000;

/** The last two exchanges of a connection; requests may be pipelined, answers go out in order. */
interface Exchanges {
  latest: ServerResponse;
  before: ServerResponse | undefined;
}

/**
 * Makes the server; listening is the caller's.
 * @param headerLimit bytes of one request's line and headers.
 * @param newRequestId for the answers that no route gives.
 */
export function createHttpServer(
  handle: RequestListener,
  headerLimit: number,
  newRequestId: () => string,
): Server {
  const exchanges = new WeakMap<Socket, Exchanges>();

  const server = createServer(
    {
      maxHeaderSize: headerLimit,
      requireHostHeader: false, // see hasOneHost
      headersTimeout: HEADERS_TIMEOUT,
      requestTimeout: WHOLE_REQUEST_TIMEOUT,
      connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT,
    },
    (request, response) => {
      const { socket } = request;
      const known = exchanges.get(socket);
      if (!HTTP_METHODS.has(request.method as string)) {
        refuseInTurn(socket, BAD_REQUEST);
        return;
      }
      if (known === undefined) {
        exchanges.set(socket, { latest: response, before: undefined });
      } else {
        known.before = known.latest;
        known.latest = response;
      }
      handle(request, response);
    },
  );
  server.setTimeout(STALL_TIMEOUT);
  // A client that has closed its side after a whole request still gets its answer.
  Object.assign(server, { httpAllowHalfOpen: true });

  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    // What Node does after the last answer of a connection.
    socket.destroySoon = () => closeGently(socket);
  });
  const { closeIdleConnections } = server;
  server.closeIdleConnections = () => {
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy(); // Node waits for their request
    // Node takes a connection for idle once its answer was handed over, whether or not it has been sent.
    const sending = [...sockets].filter((socket) => exchanges.get(socket)?.latest.writableFinished === false);
    for (const socket of sending) socket.destroy = () => socket;
    closeIdleConnections.call(server);
    for (const socket of sending) Reflect.deleteProperty(socket, 'destroy');
  };
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
    else refuseInTurn(socket, envelopeFor(error));
  });
  server.on('connect', (_request: IncomingMessage, socket: Socket) => refuseInTurn(socket, BAD_REQUEST));
  // RFC 9110 section 10.1.1 leaves it to the server; an expectation unknown to us changes nothing.
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    server.emit('request', request, response);
  });
  return server;

  /** Refuses what came last on a connection, once everything before it has been answered. */
  function refuseInTurn(socket: Socket, envelope: Envelope): void {
    const refuse = () => refuseConnection(socket, envelope, newRequestId());
    const known = exchanges.get(socket);
    if (known === undefined) refuse();
    else if (known.latest.req.complete) afterwards(known.latest, refuse);
    else if (known.latest.headersSent) afterwards(known.latest, () => closeGently(socket));
    else if (known.before !== undefined) afterwards(known.before, refuse);
    else refuse();
  }
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

function afterwards(response: ServerResponse, act: () => void): void {
  if (response.writableFinished) act();
  else response.once('close', act);
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
  socket.write(`HTTP/1.1 ${envelope.status} ${envelope.message}\r\n${head.join('')}\r\n${body}`);
  closeGently(socket);
}

/**
 * Ends a connection. Closing it while bytes are unread would reset it, and the last answer with it, so
 * they are dropped for a while (RFC 9112 section 9.6).
 */
function closeGently(socket: Socket): void {
  socket.end();
  socket.removeAllListeners('data');
  socket.on('data', () => {});
  socket.resume();
  setTimeout(() => socket.destroy(), LINGER).unref();
}
