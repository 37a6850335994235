// More work than a store can do. It is made slow for real, by a trigger that lingers over every new book, so
// that far more books are sent than it can take.

import assert from 'node:assert/strict';
import { Agent, request as httpRequest } from 'node:http';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { readEnvelope, type Target } from '../support/client.ts';
import { execute } from '../support/postgres.ts';
import { fileOf, STORES, startServiceProcess } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

/** Makes each new book take several milliseconds of the store's time. */
const SLOW_DOWN: Record<string, (dbUrl: string) => Promise<void>> = {
  SQLite: async (dbUrl) => {
    const db = new DatabaseSync(fileOf(dbUrl));
    db.exec(`
      create trigger slow before insert on books begin
        select max(n) from (
          with recursive number (n) as (select 1 union all select n + 1 from number where n < 40000)
          select n from number
        );
      end`);
    db.close();
  },
  PostgreSQL: async (dbUrl) => {
    await execute(
      dbUrl,
      `create function slow() returns trigger language plpgsql as
         $$ begin perform pg_sleep(0.04); return new; end $$;
       create trigger slow before insert on books for each row execute function slow()`,
    );
  },
};

describe('overload', { concurrency: 2, timeout: 120_000 }, () => {
  for (const store of STORES) {
    test(`rule 23: of more than can be stored in time, the rest is refused at once, on ${store.name}`, async (context) => {
      const dbUrl = await store.freshUrl();
      const service = await startServiceProcess(dbUrl);
      context.after(() => service.stop());
      const { token } = service.client;
      const known = await service.client.create({ title: 'known' });
      await SLOW_DOWN[store.name]?.(dbUrl);

      const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
      context.after(() => agent.destroy());
      const stored: number[] = []; // milliseconds to the answer, of each book that was stored
      const refused: number[] = [];
      let sending = true;
      const sender = async () => {
        while (sending) {
          const { status, retryAfter, milliseconds } = await create(service, token, agent);
          if (status === 201) {
            stored.push(milliseconds);
          } else {
            assert.equal(status, 503);
            assert.ok(retryAfter > 0);
            refused.push(milliseconds);
            await pause(retryAfter * 100);
          }
        }
      };
      const senders = Array.from({ length: 30 }, sender);
      await waitUntil(() => stored.length >= 60); // the store's pace is known
      senders.push(...Array.from({ length: 470 }, sender));
      await waitUntil(() => refused.length > 1000); // by now it knows what it is up against
      const before = (await service.client.list()).length;
      stored.length = 0;
      refused.length = 0;

      // Books go on being stored, reads going on beside them.
      await waitUntil(async () => {
        const { status, data } = await service.client.request('GET', `/book/${known.id}`);
        assert.deepEqual([status, data], [200, known]);
        return stored.length >= 100;
      });
      sending = false;
      await Promise.all(senders);
      assert.ok(
        median(refused) < median(stored) / 2,
        `refused in ${median(refused)} ms, stored in ${median(stored)}`,
      );

      // Hardly any work was done for callers who had been given up. (What SQLite burns is the machine's own time,
      // and how much of that there is depends on what else it does.)
      if (store.name === 'SQLite') return;
      const books = (await service.client.list()).length - before;
      assert.ok(stored.length > 0.7 * books, `${books} were stored, ${stored.length} answered so`);
    });
  }
});

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] as number;
}

interface Outcome {
  readonly status: number;
  readonly retryAfter: number;
  readonly milliseconds: number;
}

function create({ port }: Target, token: string, agent: Agent): Promise<Outcome> {
  const began = performance.now();
  return new Promise((resolve, reject) => {
    const options = { port, host: '127.0.0.1', agent, method: 'POST', path: '/book' };
    const request = httpRequest({ ...options, headers: { authorization: token } }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text) => {
        body += text;
      });
      response.on('end', () => {
        const { status } = readEnvelope(body, Number(response.statusCode));
        const retryAfter = Number(response.headers['retry-after']);
        resolve({ status, retryAfter, milliseconds: performance.now() - began });
      });
    });
    request.on('error', reject);
    request.end('{"title":"x"}');
  });
}
