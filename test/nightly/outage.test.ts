// PostgreSQL becomes unavailable in different ways and comes back, while clients write all the time. How long an answer
// may take is tested in test/release/answers.test.ts; an answer that is lost, in test/stores/postgres.test.ts.

import { describe, test } from 'node:test';
import { Load } from '../support/load.ts';
import { execute, freshDatabase, PostgresServer, waitingIn } from '../support/postgres.ts';
import { TcpProxy } from '../support/proxy.ts';
import { startTestService } from '../support/service.ts';
import { holdIndex } from '../support/sql.ts';
import { timesWith } from '../support/times.ts';
import { waitUntil } from '../support/wait.ts';

/** The most connections of one process, and how many are terminated. */
const CONNECTIONS = 18;
const TERMINATED = 20;

/** What happens to a server, or to the network in front of it. */
const OUTAGES: Readonly<
  Record<string, (load: Load, server: PostgresServer, proxy: TcpProxy) => Promise<void>>
> = {
  'the server is stopped and comes back': async (load, server) => {
    await server.stop();
    await load.allRefused();
    await server.startAgain();
  },
  'the server crashes three times': async (load, server) => {
    for (let crash = 1; crash <= 3; crash += 1) {
      await server.kill('SIGQUIT');
      await server.startAgain();
      await load.moreWrites(20);
    }
  },
  'connections are terminated one by one': async (load, server) => {
    const terminate = `select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'book-catalogue' order by random() limit 1`;
    for (let terminated = 0; terminated < TERMINATED; ) {
      terminated += (await execute(server.url(), terminate)).length;
      await load.moreWrites(1);
    }
  },
  'the network is cut silently and restored': async (load, _, proxy) => {
    proxy.cut();
    await load.allRefused(); // every statement that was in progress has been given up
    proxy.restore();
  },
};

describe('outages', { concurrency: 2 }, () => {
  for (const [what, happens] of Object.entries(OUTAGES)) {
    test(`rule 23: ${what}: nothing is lost or stored twice, and connections are idle afterwards`, async (context) => {
      const server = await PostgresServer.start();
      const { proxy, proxiedUrl } = await TcpProxy.to(server.url());
      const service = await startTestService(proxiedUrl);
      const load = await Load.start(context, service.client);
      await happens(load, server, proxy);
      await load.moreWrites(50);
      await load.stop(); // compares the books with the answers
      const sessions = "select state from pg_stat_activity where application_name = 'book-catalogue'";
      await waitUntil(async () => {
        const connections = await execute<{ state: string }>(server.url(), sessions);
        return connections.length <= CONNECTIONS && connections.every(({ state }) => state === 'idle');
      });
    });
  }

  test('rule F11: the first index continues after its server was silent in the midst of it', async () => {
    const dbUrl = await freshDatabase();
    await (await startTestService(dbUrl)).stop();
    const incomplete = 'update book_index_state set is_complete = false';
    await execute(dbUrl, `insert into books (title) values ('Here'); ${incomplete}`);
    const letGo = await holdIndex(dbUrl);
    const { proxy, proxiedUrl } = await TcpProxy.to(dbUrl);
    const times = timesWith({ postgres: { indexStep: 2000 } });
    const { client } = await startTestService(proxiedUrl, {}, undefined, times);
    await waitUntil(async () => (await waitingIn(dbUrl)).length > 0);
    proxy.cut();
    await letGo();
    proxy.restore(); // the connection of the index stays cut
    await waitUntil(async () => {
      const { status, data } = await client.request('GET', '/books?q=here');
      return status === 200 && (data as readonly unknown[]).length === 1;
    });
  });
});
