// Owns: the HTTP server. It applies the given limits, and answers the requests that Node would answer by itself or not
// at all: those its parser cannot read, those that arrive too slowly, and methods of other protocols.
// Independent of paths and of what an answer says.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createListener, type Server } from 'node:net';
import type { Times } from '../times.ts';
import type { Answer } from './answer.ts';
import { Connection } from './connection.ts';

// An `import` of node:http would also load parts that are not used here: 19 MiB, a sixth of all memory.
const { createServer, METHODS } = process.getBuiltinModule('node:http');

/** The methods of HTTP; Node's parser also accepts those of RTSP. */
const HTTP_METHODS: ReadonlySet<string | undefined> = new Set(METHODS);

/** Statuses of the answers to requests that cannot be read. */
export type UnreadableStatus = 400 | 408 | 431;

/** The server and its connections. The caller makes it listen. */
export class HttpServer {
  readonly server: Server;
  readonly #connections = new Set<Connection>();

  /**
   * @param headerLimit bytes of one request's line and headers.
   * @param handle answers a request; if it fails, the connection is destroyed.
   * @param refuse answers a request that cannot be read; this is the connection's last answer.
   * @param onFault called with the reason why `handle` failed.
   */
  constructor(
    headerLimit: number,
    times: Times['http'],
    handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
    refuse: (status: UnreadableStatus, connection: Connection) => void,
    onFault: (error: unknown) => void,
  ) {
    // It gets its connections from the listener below. Its limits of time would begin to count when the listener listens.
    const http = createServer(
      {
        keepAliveTimeout: times.keepAlive, // which answers announce
        maxHeaderSize: headerLimit,
        requireHostHeader: false, // hasOneHost checks it
        optimizeEmptyRequests: true, // a request without a body emits no body events
      },
      (request, response) => {
        const connection = connectionOf(request);
        connection.begin(request, response);
        // Node drops what follows such a request: its client must not wait for answers to it.
        if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false;
        if (!isReadable(request)) return connection.refuse(() => refuse(400, connection));
        handle(request, response).catch((error) => {
          onFault(error);
          response.destroy();
        });
      },
    );
    http.on('clientError', ({ code }: NodeJS.ErrnoException, duplex) => {
      const connection = duplex as unknown as Connection;
      connection.refuse(() => refuse(code === 'HPE_HEADER_OVERFLOW' ? 431 : 400, connection));
    });
    http.on('connect', (_request, duplex) => {
      const connection = duplex as unknown as Connection;
      connection.refuse(() => refuse(400, connection));
    });
    // RFC 9110 section 10.1.1 leaves it to the server; an unknown expectation changes nothing.
    http.on('checkExpectation', (request, response) => {
      http.emit('request', request, response);
    });
    this.server = createListener({ allowHalfOpen: true, noDelay: true }, (socket) => {
      const connection = new Connection(socket, times);
      this.#connections.add(connection);
      connection.once('close', () => this.#connections.delete(connection));
      http.emit('connection', connection);
    });
    this.server.once('listening', () => {
      const check = setInterval(() => {
        const now = performance.now();
        for (const connection of this.#connections) {
          if (connection.isTooSlow(now)) connection.refuse(() => refuse(408, connection));
        }
      }, times.check).unref();
      this.server.once('close', () => clearInterval(check));
    });
  }

  /** Whether there is room for an answer until its client has read it; if so, it is taken. */
  takeRoom(response: ServerResponse, { length = 0, body, waited }: Answer): boolean {
    return connectionOf(response.req).takeRoom(response, length, body, waited !== undefined);
  }

  /**
   * Whether an answer is the last one of its connection, because the server stops and no request follows. The answer
   * must then announce that.
   */
  isLast(response: ServerResponse): boolean {
    return !this.server.listening && connectionOf(response.req).endWithAnswer();
  }

  /**
   * Stops accepting connections, and resolves when all have ended.
   * @param lastRequest milliseconds that a connection has for another request.
   * @param grace milliseconds for all answers, after which the rest is cut.
   */
  async close(lastRequest: number, grace: number): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    for (const connection of this.#connections) connection.isInUse();
    // In the next turn of the event loop, which first reads what arrived while other connections were served.
    const idle = setInterval(
      () => setImmediate(() => this.#end((connection) => !connection.isInUse())),
      lastRequest,
    );
    const overdue = setTimeout(() => this.#end(() => true), grace);
    await closed;
    clearInterval(idle);
    clearTimeout(overdue);
  }

  #end(isChosen: (connection: Connection) => boolean): void {
    for (const connection of this.#connections) if (isChosen(connection)) connection.destroy();
  }
}

function connectionOf({ socket }: IncomingMessage): Connection {
  return socket as unknown as Connection;
}

function isReadable(request: IncomingMessage): boolean {
  return isHttp1(request) && hasKnownCoding(request) && hasOneHost(request);
}

/** Whether a request has exactly one Host, as HTTP/1.1 demands (RFC 9112 section 3.2). */
function hasOneHost({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  let hosts = 0;
  for (let position = 0; position < rawHeaders.length; position += 2) {
    const name = rawHeaders[position] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts === 1 || (hosts === 0 && httpVersion === '1.0');
}

/** Node's parser also accepts the methods of RTSP, and HTTP/0.9 and HTTP/2.0 as versions of HTTP/1. */
function isHttp1({ method, httpVersionMajor }: IncomingMessage): boolean {
  return HTTP_METHODS.has(method) && httpVersionMajor === 1;
}

/**
 * Whether a request has no transfer coding, or only `chunked`. Node also reads chunks together with other codings, and
 * in HTTP/1.0, which has no chunks; a proxy may see the end of such a request elsewhere (RFC 9112 section 6.1).
 */
function hasKnownCoding({ headers, httpVersionMinor }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding'];
  return coding === undefined || (coding.toLowerCase() === 'chunked' && httpVersionMinor === 1);
}
