// Owns: a network between the service and its database that can be cut silently.

import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { atEnd } from './at-end.ts';

/** On this machine without a host. */
interface Endpoint {
  readonly port: number;
  readonly host?: string;
}

/** Forwards TCP connections. */
export class TcpProxy {
  /** Where new connections are forwarded to. */
  target: Endpoint;
  readonly port: number;
  readonly #server: Server;
  readonly #connections = new Set<{ readonly sockets: readonly Socket[]; lost: boolean }>();
  #cut = false;
  #last: string | undefined;
  /** Connections that the service has reset: the system delivers nothing of them any more. */
  resets = 0;

  private constructor(server: Server, target: Endpoint) {
    this.target = target;
    this.#server = server;
    this.port = (server.address() as { port: number }).port;
    server.on('connection', (client) => this.#pass(client));
  }

  /** It ends with the test. */
  static async start(target: Endpoint): Promise<TcpProxy> {
    const server = createServer({ noDelay: true }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const proxy = new TcpProxy(server, target);
    atEnd(() => proxy.stop());
    return proxy;
  }

  /** A proxy to a database, and the URL of the database through it. */
  static async to(dbUrl: string): Promise<{ proxy: TcpProxy; proxiedUrl: string }> {
    const url = new URL(dbUrl);
    const proxy = await TcpProxy.start({ host: url.hostname, port: Number(url.port || 5432) });
    url.host = `127.0.0.1:${proxy.port}`;
    return { proxy, proxiedUrl: url.href };
  }

  /** Drops every byte from now on, in both directions; connections are still accepted. */
  cut(): void {
    this.#cut = true;
    for (const connection of this.#connections) connection.lost = true;
  }

  /** Forwards new connections again; those that were cut stay cut. */
  restore(): void {
    this.#cut = false;
  }

  /** Drops the answers of the database from now on, on the connections that are open. */
  swallowAnswers(): void {
    for (const { sockets } of this.#connections) sockets[1]?.removeAllListeners('data').resume();
  }

  /** Drops the next statement that contains a text, and every later byte on its connection. */
  cutAt(text: string): void {
    this.#last = text;
  }

  /** Breaks every connection. */
  reset(): void {
    for (const { sockets } of this.#connections) for (const socket of sockets) socket.resetAndDestroy();
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.reset();
    await closed;
  }

  #pass(client: Socket): void {
    const database = connect({ host: '127.0.0.1', ...this.target, noDelay: true });
    const connection = { sockets: [client, database], lost: this.#cut };
    this.#connections.add(connection);
    for (const from of [client, database]) {
      const to = from === client ? database : client;
      from.on('data', (bytes) => {
        if (from === client && this.#last !== undefined && bytes.includes(this.#last)) {
          this.#last = undefined;
          connection.lost = true;
        }
        if (!connection.lost) to.write(bytes);
      });
      from.on('error', ({ code }: NodeJS.ErrnoException) => {
        if (from === client && code === 'ECONNRESET') this.resets += 1;
      });
      from.on('close', () => {
        if (from === database && connection.lost) return; // this gets lost as well
        this.#connections.delete(connection);
        to.destroy();
      });
    }
  }
}
