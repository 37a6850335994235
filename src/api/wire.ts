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
/** What a client has to take the next part of an answer, one mebibyte at most. */
const READER_TIMEOUT = 60_000;
const READER_CHECK_INTERVAL = 5000;
/** Longer than the idle timeouts of common load balancers, so that they, not we, close first. */
const KEEP_ALIVE_TIMEOUT = 72_000;
/** What a client that is still sending has to read its last answer. */
const LINGER = 1000;

/** Requests of one connection at a time: one read brings hundreds, and each answer may have a mebibyte. */
const SIDE_BY_SIDE = 32;

/** What a connection has asked; requests may be pipelined, answers go out in order. */
interface Exchanges {
  latest: ServerResponse;
  before: ServerResponse | undefined;
  /** Requests begun since everything before them was answered. */
  begun: number;
  /** Requests not begun yet. */
  readonly waiting: [IncomingMessage, ServerResponse][];
}

const exchanges = new WeakMap<Socket, Exchanges>();

/** Connections whose last answer is known: what Node's parser has already read behind it is not carried out. */
const ending = new WeakSet<Socket>();

/** How much a connection had sent when it last went on, and when that was. */
interface Progress {
  readonly bytes: number;
  readonly at: number;
}

/**
 * Makes the server; listening is the caller's.
 * @param headerLimit bytes of one request's line and headers.
 * @param newRequestId for the answers that no route gives.
 * @param onRefusal hears of each of those.
 */
export function createHttpServer(
  handle: RequestListener,
  headerLimit: number,
  newRequestId: () => string,
  onRefusal: (status: number, requestId: string) => void,
): Server {
  const server = createServer(
    {
      maxHeaderSize: headerLimit,
      requireHostHeader: false, // hasOneHost sees to it
      headersTimeout: HEADERS_TIMEOUT,
      requestTimeout: WHOLE_REQUEST_TIMEOUT,
      connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT,
    },
    (request, response) => {
      const { socket } = request;
      if (ending.has(socket)) return;
      if (!isHttp1(request) || !hasKnownCoding(request) || !hasOneHost(request)) {
        refuseInTurn(socket, BAD_REQUEST);
        return;
      }
      const known = exchanges.get(socket);
      if (known === undefined) {
        exchanges.set(socket, { latest: response, before: undefined, begun: 1, waiting: [] });
        handle(request, response);
        return;
      }
      const { latest } = known;
      known.before = latest;
      known.latest = response;
      if (latest.writableFinished) known.begun = 0;
      if (known.begun < SIDE_BY_SIDE) {
        known.begun += 1;
        handle(request, response);
        return;
      }
      if (known.waiting.length === 0) {
        process.nextTick(() => socket.pause()); // Node goes on reading behind each request
        afterwards(latest, () => beginWaiting(socket, known));
      }
      known.waiting.push([request, response]);
    },
  );
  // A client that has closed its side after a whole request still gets its answer.
  Object.assign(server, { httpAllowHalfOpen: true });

  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    // What Node does after the last answer of a connection.
    socket.destroySoon = () => closeGently(socket);
  });
  server.once('listening', () => {
    const readers = new WeakMap<Socket, Progress>();
    const check = setInterval(() => cutStalledReaders(sockets, readers), READER_CHECK_INTERVAL).unref();
    server.once('close', () => clearInterval(check));
  });
  const { closeIdleConnections } = server;
  /** Bytes read from each connection when idle ones were last closed. */
  let readBefore = new Map<Socket, number>();
  // Idle is who has been silent since the last call, too: a proxy may be about to use what was idle for a moment.
  server.closeIdleConnections = () => {
    const readBy = readBefore;
    readBefore = new Map([...sockets].map((socket) => [socket, socket.bytesRead]));
    const spared: Socket[] = [];
    for (const socket of sockets) {
      // Node takes a connection for idle once its answer was handed over, whether or not it has been sent.
      const isSending = exchanges.get(socket)?.latest.writableFinished === false;
      if (isSending || readBy.get(socket) !== socket.bytesRead) spared.push(socket);
      else if (socket.bytesRead === 0) socket.destroy(); // Node waits for its request
    }
    for (const socket of spared) socket.destroy = () => socket;
    closeIdleConnections.call(server);
    for (const socket of spared) Reflect.deleteProperty(socket, 'destroy');
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

  /** Once everything before them has been answered. */
  function beginWaiting(socket: Socket, known: Exchanges): void {
    if (socket.destroyed) return;
    const next = known.waiting.splice(0, SIDE_BY_SIDE);
    known.begun = next.length;
    for (const [request, response] of next) handle(request, response);
    const [, last] = next.at(-1) as [IncomingMessage, ServerResponse];
    if (known.waiting.length > 0) afterwards(last, () => beginWaiting(socket, known));
    else socket.resume();
  }

  /** Refuses what came last on a connection, once everything before it has been answered. */
  function refuseInTurn(socket: Socket, envelope: Envelope): void {
    if (ending.has(socket)) return;
    ending.add(socket);
    const refuse = () => {
      const requestId = newRequestId();
      refuseConnection(socket, envelope, requestId);
      onRefusal(envelope.status, requestId);
    };
    const known = exchanges.get(socket);
    if (known === undefined) refuse();
    else if (known.latest.req.complete) afterwards(known.latest, refuse);
    else if (known.latest.headersSent) afterwards(known.latest, () => closeGently(socket));
    else if (known.before !== undefined) afterwards(known.before, refuse);
    else refuse();
  }
}

/**
 * While the server stops: tells a client that its connection ends with this answer, once nothing that it has
 * asked for comes behind it. May be called for each answer.
 */
export function announceEnd(server: Server, response: ServerResponse): void {
  if (server.listening) return;
  const { socket } = response.req;
  if (exchanges.get(socket)?.latest === response) {
    ending.add(socket);
    response.setHeader('connection', 'close');
  } else {
    response.removeHeader('connection'); // the framework has set it
  }
}

/** Whether a request names its host as HTTP/1.1 demands: once, and once only (RFC 9112 section 3.2). */
function hasOneHost(request: IncomingMessage): boolean {
  let hosts = 0;
  for (let position = 0; position < request.rawHeaders.length; position += 2) {
    const name = request.rawHeaders[position] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts === 1 || (hosts === 0 && request.httpVersion === '1.0');
}

/** Node's parser knows the methods of RTSP, too, and takes HTTP/0.9 and HTTP/2.0 for versions of HTTP/1. */
function isHttp1(request: IncomingMessage): boolean {
  return HTTP_METHODS.has(request.method as string) && request.httpVersionMajor === 1;
}

/**
 * Whether a body is coded in chunks or not at all. Node reads the chunks of other codings, and of HTTP/1.0,
 * which has none; a proxy in front may see such a request's end elsewhere (RFC 9112 section 6.1).
 */
function hasKnownCoding(request: IncomingMessage): boolean {
  const coding = request.headers['transfer-encoding'];
  return coding === undefined || (coding.toLowerCase() === 'chunked' && request.httpVersionMinor === 1);
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

/**
 * Ends the connections whose clients do not take what they asked for: until then its text is kept, and a
 * list's snapshot with it. A part that is being taken byte by byte is not taken, so there is a least pace.
 */
function cutStalledReaders(sockets: Iterable<Socket>, readers: WeakMap<Socket, Progress>): void {
  const now = performance.now();
  for (const socket of sockets) {
    if (socket.writableLength === 0) {
      readers.delete(socket);
      continue;
    }
    // The next part is written once the system has taken the one before.
    const { bytesWritten: bytes } = socket;
    const last = readers.get(socket);
    if (last?.bytes !== bytes) readers.set(socket, { bytes, at: now });
    else if (now - last.at >= READER_TIMEOUT) socket.destroy();
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
