// Overload: more work than a store can do in time. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { Agent, request as httpRequest } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { readEnvelope } from '../support/client.ts';
import { operationsOf } from '../support/operations.ts';
import { execute } from '../support/postgres.ts';
import { scrape, sumOf } from '../support/prometheus.ts';
import { POSTGRES, type ServiceProcess, SQLITE, STORES, startServiceProcess } from '../support/service.ts';
import { holdWrites } from '../support/sql.ts';
import { waitUntil } from '../support/wait.ts';

/** Clients that create one book after the other, and retry soon after a refusal. */
class Flood {
  readonly #service: ServiceProcess;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
  readonly #clients: Promise<void>[] = [];
  #stopped = false;
  stored = 0;
  refused = 0;

  constructor(service: ServiceProcess) {
    this.#service = service;
  }

  add(clients: number): void {
    for (let added = 0; added < clients; added += 1) this.#clients.push(this.#create());
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#clients);
    this.#agent.destroy();
  }

  async #create(): Promise<void> {
    while (!this.#stopped) {
      const { status, retryAfter } = await this.#ask();
      if (status === 201) {
        this.stored += 1;
      } else {
        assert.equal(status, 503);
        assert.ok(retryAfter > 0);
        this.refused += 1;
        await pause(retryAfter * 100);
      }
    }
  }

  #ask(): Promise<{ status: number; retryAfter: number }> {
    const { port, client } = this.#service;
    return new Promise((resolve, reject) => {
      const options = { port, host: '127.0.0.1', agent: this.#agent, method: 'POST', path: '/book' };
      const headers = { authorization: client.token };
      const request = httpRequest({ ...options, headers }, async (response) => {
        const body = (await response.toArray()).join('');
        const { status } = readEnvelope(body, Number(response.statusCode));
        resolve({ status, retryAfter: Number(response.headers['retry-after']) });
      });
      request.on('error', reject);
      request.end('{"title":"x"}');
    });
  }
}

/** Fails unless calls were refused on arrival; test/orders/overload.test.ts says which, exactly. The others were accepted and then took too long. */
async function assertRefusedAtOnce(context: TestContext, service: ServiceProcess): Promise<void> {
  const { atOnce, tooLate } = await refusals(service);
  context.diagnostic(`${atOnce} refused at once, ${tooLate} too late`);
  assert.ok(atOnce > 0, `${atOnce} refused at once, ${tooLate} too late`);
}

/** Fails if an acknowledged book is missing, or if more books are stored than were acknowledged or refused too late. */
async function assertNothingInVain(service: ServiceProcess, { stored }: Flood): Promise<void> {
  const books = (await service.client.list()).length;
  const { tooLate } = await refusals(service);
  assert.ok(books >= stored && books <= stored + tooLate, `${books} books stored, ${stored} acknowledged`);
}

async function refusals(service: ServiceProcess): Promise<{ atOnce: number; tooLate: number }> {
  const metrics = await scrape(operationsOf(service).url);
  const count = (reason: string) => sumOf(metrics, 'book_catalogue_store_errors_total', { reason });
  return { atOnce: count('overload'), tooLate: count('late') + count('failure') };
}

describe('overload', { concurrency: true }, () => {
  if (STORES.includes(SQLITE)) {
    test('rule 23: while nothing can be stored, calls that would be too late are refused at once, on SQLite', async (context) => {
      const service = await startServiceProcess(await SQLITE.freshUrl());
      context.after(() => service.stop());
      const release = await holdWrites(service.dbUrl);
      const flood = new Flood(service);
      flood.add(300);
      await waitUntil(() => flood.refused >= 2000);
      await assertRefusedAtOnce(context, service);
      assert.equal(flood.stored, 0);
      await release();
      await waitUntil(() => flood.stored > 0);
      await flood.stop();
      await assertNothingInVain(service, flood);
    });
  }

  if (STORES.includes(POSTGRES)) {
    test('rule 23: calls beyond what can be stored in time are refused at once, on PostgreSQL', async (context) => {
      const service = await startServiceProcess(await POSTGRES.freshUrl());
      context.after(() => service.stop());
      await execute(
        service.dbUrl,
        `create function slow() returns trigger language plpgsql as
           $$ begin perform pg_sleep(0.04); return new; end $$;
         create trigger slow before insert on books for each row execute function slow()`,
      );
      const flood = new Flood(service);
      flood.add(30);
      await waitUntil(() => flood.stored >= 30); // the store's pace is known
      flood.add(300);
      await waitUntil(() => flood.refused >= 2000);
      // Books are still stored, and reads still succeed.
      const before = flood.stored;
      await waitUntil(async () => {
        assert.equal((await service.client.request('GET', '/book/1')).status, 200);
        return flood.stored >= before + 30;
      });
      await assertRefusedAtOnce(context, service);
      await flood.stop();
      await assertNothingInVain(service, flood);
    });
  }

  for (const store of STORES) {
    test(`rule 22: requests for large books at the same moment take bounded memory, on ${store.name}`, async (context) => {
      // A heap that has room for the answers that rule 22 allows (128 MiB), not for those of a full batch.
      const NODE_OPTIONS = '--max-old-space-size=220';
      const service = await startServiceProcess(await store.freshUrl(), { NODE_OPTIONS });
      context.after(() => service.stop());
      const { client, port } = service;
      const title = '€'.repeat(340_000); // about 1 MiB as UTF-8
      const ids: number[] = [];
      while (ids.length < 40) ids.push((await client.create({ title })).id);
      const headers = { authorization: client.token };
      const change = JSON.stringify({ year: 1 });
      for (const [method, body, more] of [
        ['GET', undefined, {}],
        ['PUT', change, {}],
        ['PUT', change, { 'if-match': '*' }],
      ] as const) {
        const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
        const statuses = await Promise.all(
          Array.from({ length: 500 }, (_, count) => {
            const options = {
              port,
              host: '127.0.0.1',
              agent,
              method,
              path: `/book/${ids[count % ids.length]}`,
            };
            return new Promise<number | undefined>((resolve, reject) => {
              const request = httpRequest({ ...options, headers: { ...headers, ...more } }, (response) => {
                response.resume().on('end', () => resolve(response.statusCode));
                response.on('error', reject);
              });
              request.on('error', reject).end(body);
            });
          }),
        );
        agent.destroy();
        assert.deepEqual(new Set(statuses).difference(new Set([200, 503])), new Set());
        assert.ok(statuses.includes(200));
      }
      assert.equal((await client.request('GET', `/book/${ids[0]}`)).status, 200);
    });
  }
});
