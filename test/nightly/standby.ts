// Owns: a service that reads from a standby, as its tests see it: how its reads ended, and when it uses the standby.

import assert from 'node:assert/strict';
import type { Answer } from '../../conformance/answers.ts';
import { Client } from '../support/client.ts';
import { type CommandHere, startHere } from '../support/command.ts';
import { operationsOf } from '../support/operations.ts';
import { execute, type PostgresServer } from '../support/postgres.ts';
import { ENVIRONMENT } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

export type Operation = 'list' | 'search';

export const OPERATIONS: readonly Operation[] = ['list', 'search'];

/** Tells how many books a search could not see yet. */
export const UNINDEXED = 'x-unindexed-books';

/** Books that `fill` writes. */
export const FILLED = 5000;

/** A service with a standby, in this process. */
export class Service {
  readonly #service: CommandHere;
  /** The URL of its metrics. */
  readonly #metrics: string;
  readonly client: Client;

  private constructor(service: CommandHere, client: Client) {
    this.#service = service;
    this.#metrics = `${operationsOf(service).url}/metrics`;
    this.client = client;
  }

  static async start(DB_URL: string, DB_READ_URL: string): Promise<Service> {
    const service = await startHere({
      ...ENVIRONMENT,
      LOG_LEVEL: 'info',
      ADMIN_PORT: '0',
      DB_URL,
      DB_READ_URL,
    });
    return new Service(service, await Client.logIn(service));
  }

  get target(): CommandHere {
    return this.#service;
  }

  /** How many lists or searches had this outcome. */
  async reads(operation: Operation, outcome: 'standby' | 'away' | 'late' | 'failed'): Promise<number> {
    return await this.#metric(
      `book_catalogue_postgres_standby_reads_total{operation="${operation}",outcome="${outcome}"}`,
    );
  }

  /** Reads one sample: reading all of them strictly, as test/operations does, would be most of the work here. */
  async #metric(sample: string): Promise<number> {
    const text = await (await fetch(this.#metrics)).text();
    const line = text.split('\n').find((line) => line.startsWith(`${sample} `));
    assert.ok(line !== undefined, sample);
    return Number(line.slice(sample.length));
  }

  /** The answer to a search, or to a list, once all books are in the index: a search waits a second for it (rule F11). */
  async find(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    for (;;) {
      const answer = await this.client.request('GET', path, { headers });
      if (answer.headers.get(UNINDEXED) === null) return answer;
    }
  }

  async isUsable(): Promise<boolean> {
    return (await this.#metric('book_catalogue_postgres_standby_usable')) === 1;
  }

  async untilUsable(): Promise<void> {
    await waitUntil(() => this.isUsable());
  }

  /** Reads until the standby has answered once more. */
  async untilReads(operation: Operation): Promise<void> {
    const before = await this.reads(operation, 'standby');
    await waitUntil(async () => {
      const { status } = await this.client.request('GET', operation === 'list' ? '/books' : '/books?q=a');
      assert.equal(status, 200);
      return (await this.reads(operation, 'standby')) > before;
    });
  }

  async stop(): Promise<void> {
    await this.#service.stop();
  }
}

export function urlOf(...ports: readonly number[]): string {
  return `postgres://postgres:password@${ports.map((port) => `127.0.0.1:${port}`)}/postgres`;
}

export async function set(server: PostgresServer, setting: string): Promise<void> {
  await execute(server.url(), `alter system set ${setting}`);
  await execute(server.url(), 'select pg_reload_conf()');
}

/** Writes so much that the log is far ahead of that of other servers. */
export async function fill(server: PostgresServer): Promise<void> {
  await execute(
    server.url(),
    `insert into books (title, author, year) select repeat('foreign ', 100), '', n from generate_series(1, ${FILLED}) n`,
  );
}
