// Owns: a pooler in front of several PostgreSQL servers, in transaction mode: each transaction of a connection reaches the
// next server.

import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import pg from 'pg';
import type { PostgresServer } from './postgres.ts';

/** In the protocol: no TLS; logged in, and ready; the end of a transaction. */
const NO_TLS = 'N';
const WELCOME = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49]);
const DONE = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);

const TLS_REQUEST = 80_877_103;

export class Pooler {
  readonly port: number;
  readonly #server: Server;
  readonly #servers: readonly PostgresServer[];
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server, servers: readonly PostgresServer[]) {
    this.port = (server.address() as { port: number }).port;
    this.#server = server;
    this.#servers = servers;
    server.on('connection', (client) => {
      this.#serve(client).catch(() => client.destroy()); // the client has gone
    });
  }

  static async start(servers: readonly PostgresServer[]): Promise<Pooler> {
    const server = createServer({ noDelay: true }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new Pooler(server, servers);
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async #serve(client: Socket): Promise<void> {
    this.#sockets.add(client);
    client.on('error', () => {});
    const [first] = (await once(client, 'data')) as [Buffer];
    if (first.readInt32BE(4) === TLS_REQUEST) {
      client.write(NO_TLS);
      await once(client, 'data');
    }
    const hosts = await Promise.all(this.#servers.map(connectTo));
    let turn = 0;
    for (const host of hosts) {
      this.#sockets.add(host);
      host.on('error', () => {});
      let end = Buffer.alloc(0);
      host.on('data', (bytes: Buffer) => {
        client.write(bytes);
        end = Buffer.concat([end, bytes]).subarray(-DONE.length);
        if (end.equals(DONE)) turn += 1;
      });
    }
    client.on('data', (bytes: Buffer) => hosts[turn % hosts.length]?.write(bytes));
    client.on('close', () => {
      for (const host of hosts) host.destroy();
    });
    client.write(WELCOME);
  }
}

/** The socket of a connection that is logged in; the driver has nothing to do with it any more. */
async function connectTo(server: PostgresServer): Promise<Socket> {
  const client = new pg.Client({ connectionString: server.url() });
  client.on('error', () => {});
  await client.connect();
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
  stream.removeAllListeners('data');
  return stream;
}
