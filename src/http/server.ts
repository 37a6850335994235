// Owns: the HTTP server. It applies the given limits, and answers the requests that Node would answer by itself or not
// at all: those its parser cannot read, those that arrive too slowly, CONNECT, and methods of other protocols.
// Independent of paths and of what an answer says.

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Times } from '../times.ts';
import type { Answer } from './answer.ts';
import { Connection, type Handle } from './connection.ts';

// An `import` of node:http would also load parts that are not used here: 19 MiB, a sixth of all memory.
const { createServer, METHODS } = process.getBuiltinModule('node:http');

/** The methods of HTTP; Node's parser also accepts those of RTSP. */
const HTTP_METHODS: ReadonlySet<string | undefined> = new Set(METHODS);

/** Statuses of the answers to requests that cannot be read. */
export type UnreadableStatus = 400 | 408 | 431;

/**
 * The server and its connections. The caller makes it listen. Closing it also closes idle connections: those on which
 * nothing has arrived since the last call of `closeIdleConnections`. A proxy may be about to use the others.
 */
export class HttpServer {
  readonly server: Server;
  readonly #connections = new Map<Socket, Connection>();

  /**
   * @param headerLimit bytes of one request's line and headers.
   * @param handle answers a request; if it fails, the connection is destroyed.
   * @param refuse answers a request that cannot be read; this is the connection's last answer.
   * @param onFault called with the reason why `handle` failed.
   */
  constructor(
    headerLimit: number,
    times: Times['http'],
    handle: (...exchange: Parameters<Handle>) => Promise<void>,
    refuse: (status: UnreadableStatus, socket: Socket) => void,
    onFault: (error: unknown) => void,
  ) {
    const handleSafely: Handle = (request, response, before) =>
      handle(request, response, before).catch((error) => {
        onFault(error);
        response.destroy();
      });
    const server = createServer(
      {
        headersTimeout: times.headers,
        requestTimeout: times.wholeRequest,
        keepAliveTimeout: times.keepAlive,
        connectionsCheckingInterval: times.check,
        maxHeaderSize: headerLimit,
        requireHostHeader: false, // hasOneHost checks it
        optimizeEmptyRequests: true, // a request without a body emits no body events
      },
      (request, response) => {
        const connection = this.#connections.get(request.socket);
        // Node drops what follows such a request: its client must not wait for answers to it.
        if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false;
        if (isReadable(request)) connection?.take(request, response);
        else refuseLatest(400, request.socket);
      },
    );
    const refuseLatest = (status: UnreadableStatus, socket: Socket) => {
      this.#connections.get(socket)?.refuse(() => refuse(status, socket));
    };
    const refuseIfSlow = (socket: Socket) => {
      if (this.#connections.get(socket)?.isTooSlow(times.wholeRequest)) refuseLatest(408, socket);
    };
    this.server = server;
    // A client that has closed its side after a whole request still gets its answer.
    Object.assign(server, { httpAllowHalfOpen: true });
    const { closeIdleConnections } = server;
    server.closeIdleConnections = () => {
      // Only Node can see which connections have an incomplete request. But it also counts a connection as idle whose
      // answer is written and not yet sent, and it does not wait for a proxy that may be about to use a connection.
      const spared = [...this.#connections].filter(([socket, connection]) => {
        const isInUse = connection.isInUse();
        if (!isInUse && socket.bytesRead === 0) socket.destroy(); // Node would wait for its request
        return isInUse;
      });
      for (const [socket] of spared) socket.destroy = () => socket;
      closeIdleConnections.call(server);
      for (const [socket] of spared) Reflect.deleteProperty(socket, 'destroy');
    };
    // Node does not count a connection any more that has asked for a tunnel.
    server.closeAllConnections = () => {
      for (const socket of this.#connections.keys()) socket.destroy();
    };
    server.on('connection', (socket: Socket) => {
      this.#connections.set(socket, new Connection(socket, handleSafely, times));
      socket.once('close', () => this.#connections.delete(socket));
    });
    server.once('listening', () => {
      const check = setInterval(() => {
        Connection.cutStalled(this.#connections.values(), times);
        for (const socket of this.#connections.keys()) refuseIfSlow(socket);
      }, times.check).unref();
      server.once('close', () => clearInterval(check));
    });
    server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
      if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
      else if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
        this.#connections.get(socket)?.noteSlow();
        refuseIfSlow(socket);
      } else refuseLatest(error.code === 'HPE_HEADER_OVERFLOW' ? 431 : 400, socket);
    });
    server.on('connect', (_request: IncomingMessage, socket: Socket) => {
      socket.on('error', () => {}); // Node has taken its own listeners away; 'close' follows
      this.#connections.get(socket)?.keepAnswering();
      refuseLatest(400, socket);
    });
    // RFC 9110 section 10.1.1 leaves it to the server; an unknown expectation changes nothing.
    server.on('checkExpectation', (request, response) => {
      server.emit('request', request, response);
    });
  }

  /** Whether there is room for an answer until its client has read it; if so, it is taken. */
  takeRoom(response: ServerResponse, { body = '' }: Answer): boolean {
    // Other bodies are shared by all their answers, or produced while they are read.
    if (typeof body !== 'string') return true;
    const connection = this.#connections.get(response.req.socket);
    return connection === undefined || connection.takeRoom(response, Buffer.byteLength(body));
  }

  /**
   * Whether an answer is the last one of its connection, because the server stops and no request follows. The answer
   * must then announce that.
   */
  isLast(response: ServerResponse): boolean {
    return !this.server.listening && this.#connections.get(response.req.socket)?.endWith(response) === true;
  }
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
