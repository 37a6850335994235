// Owns: the HTTP server: its connections, when they are looked at, and their end.
// Independent of paths and of what an answer says.

import { createServer, type Server } from 'node:net';
import type { Times } from '../times.ts';
import type { Answer } from './answer.ts';
import { Connection, type Listener } from './connection.ts';
import type { UnreadableStatus } from './head.ts';
import type { Request } from './request.ts';

/** The server and its connections. The caller makes it listen. */
export class HttpServer {
  readonly server: Server;
  readonly #connections = new Set<Connection>();
  readonly #listener: Listener;

  /**
   * @param headerLimit bytes of one request's line and headers.
   * @param handle answers a request; if it fails, the connection is destroyed.
   * @param refuse makes the answer to a request that cannot be read. It is the connection's last one.
   * @param onFault called with the reason why `handle` failed.
   */
  constructor(
    headerLimit: number,
    times: Times['http'],
    handle: (request: Request) => Promise<void>,
    refuse: (status: UnreadableStatus) => Answer,
    onFault: (error: unknown) => void,
  ) {
    this.#listener = {
      times,
      headerLimit,
      keepAliveLines: `connection: keep-alive\r\nkeep-alive: timeout=${Math.floor(times.keepAlive / 1000)}\r\n`,
      isStopping: false,
      begin(request) {
        handle(request).catch((error) => {
          onFault(error);
          request.abandon();
        });
      },
      refuse,
    };
    this.server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      const connection = new Connection(socket, this.#listener);
      this.#connections.add(connection);
      socket.once('close', () => this.#connections.delete(connection));
    });
    this.server.once('listening', () => {
      const check = setInterval(() => {
        const now = performance.now();
        for (const connection of this.#connections) connection.endIfSlow(now);
      }, times.check).unref();
      this.server.once('close', () => clearInterval(check));
    });
  }

  /**
   * Stops accepting connections, and resolves when all have ended.
   * @param lastRequest milliseconds that a connection has for another request.
   * @param grace milliseconds for all answers, after which the rest is cut.
   */
  async close(lastRequest: number, grace: number): Promise<void> {
    this.#listener.isStopping = true;
    const closed = new Promise((resolve) => this.server.close(resolve));
    // In the next turn of the event loop, which first reads what arrived while other connections were served.
    const idle = setInterval(
      () => setImmediate(() => this.#end((connection) => !connection.isInUse)),
      lastRequest,
    );
    const overdue = setTimeout(() => this.#end(() => true), grace);
    await closed;
    clearInterval(idle);
    clearTimeout(overdue);
  }

  #end(isChosen: (connection: Connection) => boolean): void {
    for (const connection of this.#connections) if (isChosen(connection)) connection.socket.destroy();
  }
}
