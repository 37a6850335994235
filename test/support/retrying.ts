// Owns: clients that change one catalogue together, over a network that loses answers, while the service is killed
// and its store fails; and the check that each of their changes took place exactly once.
// Does not: wait for times. A client repeats its request until it gets a response.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { Answer } from '../../conformance/answers.ts';
import type { Book, RequestOptions } from '../../conformance/service.ts';
import { created, createdAll } from '../../conformance/words.ts';
import { bare, Client, type Target } from './client.ts';
import { passOn, startFront } from './front.ts';
import { History } from './history.ts';
import { execute, PostgresServer } from './postgres.ts';
import { random, randomSequence } from './random.ts';
import type { ServiceProcess } from './service.ts';
import { killAll } from './sudden-death.ts';
import { waitUntil } from './wait.ts';

const CLIENTS = 8;
/** Books in which all clients count. */
const COUNTERS = 3;
/** The most books of one array. */
const MOST_BOOKS = 8;

/** Shares of the operations; the others count. Of the creations, this share is sent twice at the same moment. */
const CREATIONS = 0.4;
const ARRAYS = 0.2;
const TWICE = 0.2;

/** The share of the answers that are dropped, and as many end half way, and of as many the connection breaks before them. */
const LOST = 0.05;

/** Of so many creations, one is repeated at the end. */
const REPEATED_AT_THE_END = 10;

/** Milliseconds: from the last byte of a request to a break of its connection, at most; and of rest after a failed one. */
const BREAK = 5;
const REST = 5;

/** The service and its store, which fail now and then while the clients work. */
export interface Faulty {
  start(): Promise<ServiceProcess>;
  /** Makes the store fail, and resolves when it is back. Absent if it cannot fail by itself. */
  failStore?(): Promise<void>;
}

/**
 * Runs so many operations through faults, and checks the stored books. There must be no books before.
 * @param life operations between two faults: at random, half as many to one and a half times as many.
 * @param progress called after each fault with the operations that are done.
 */
export async function retryThroughFaults(
  context: { after(work: () => void): void },
  faulty: Faulty,
  operations: number,
  life: number,
  progress: (operations: number) => void = () => {},
): Promise<Work['figures']> {
  let service: ServiceProcess;
  const front = await startFront(context, (...exchange) => forwardOrLose(service, ...exchange));
  const work = new Work(operations);
  const start = async () => {
    service = await faulty.start();
    work.client.resolve(new Client(front, service.client.token));
    return service;
  };
  const restart = async () => {
    const closed = once(service.process, 'close');
    work.client = Promise.withResolvers();
    killAll(service);
    await closed;
    return await start();
  };
  service = await start();
  const clients = work.run();
  try {
    for (let fault = 1; work.done < operations; fault += 1) {
      const next = Math.min(operations, work.done + Math.ceil(life * (0.5 + random())));
      await waitUntil(() => work.done >= next, clients);
      if (fault % 2 === 0 && faulty.failStore !== undefined) {
        await faulty.failStore();
        work.figures['faults of the store'] += 1;
      } else {
        await restart();
        work.figures['kills of the service'] += 1;
      }
      progress(work.done);
    }
    await clients;
    await work.repeatSome();
    await restart(); // no request is in progress any more
    work.check(await service.client.list());
    return work.figures;
  } finally {
    work.isStopped = true;
    if (service.process.signalCode === null) killAll(service);
  }
}

/** Forwards a request, and loses some of the answers: the service has the request by then. */
export function forwardOrLose(service: Target, incoming: IncomingMessage, outgoing: ServerResponse): void {
  const lose = () => incoming.socket.destroy();
  const choice = random();
  if (choice < LOST)
    passOn(service, incoming, outgoing, (answered) => {
      answered.resume();
      lose();
    });
  else if (choice < 2 * LOST) {
    passOn(service, incoming, outgoing, (answered) => {
      outgoing.writeHead(answered.statusCode as number, answered.headers);
      answered.once('data', (bytes: Buffer) => {
        outgoing.write(bytes.subarray(0, bytes.length / 2), lose);
      });
      answered.on('end', lose); // an answer without a body
    });
  } else {
    passOn(service, incoming, outgoing);
    if (choice < 3 * LOST) incoming.on('end', () => void pause(random() * BREAK).then(lose));
  }
}

/** The clients' work, and the books that must come of it. */
class Work {
  /** What the clients went through. */
  readonly figures = {
    'requests without an answer': 0,
    'answers with 503': 0,
    'answers with 412': 0,
    replays: 0,
    'kills of the service': 0,
    'faults of the store': 0,
  };
  /** Operations that have taken place. */
  done = 0;
  isStopped = false;
  /** Pending while the service is down. */
  client = Promise.withResolvers<Client>();
  readonly #operations: number;
  #begun = 0;
  readonly #books = new Map<number, Book>();
  /** Each sends an acknowledged creation again. */
  readonly #repeats: (() => Promise<void>)[] = [];
  /** Of the counters. */
  #history = new History();
  /** By id of a counter, the steps of each client. */
  readonly #steps = new Map<number, number[]>();

  constructor(operations: number) {
    this.#operations = operations;
  }

  async run(): Promise<void> {
    const none = Array.from({ length: CLIENTS }, () => 0);
    for (let number = 0; number < COUNTERS; number += 1) {
      const body = { title: `counter ${number}`, author: none.join(' ') };
      for (const id of await this.#create(`counter-${number}`, body, 1)) this.#steps.set(id, [...none]);
    }
    this.#history = new History([...this.#books.values()]);
    await Promise.all(none.map((_, position) => this.#runClient(position)));
  }

  async #runClient(position: number): Promise<void> {
    const draw = randomSequence(position + 1);
    while (this.#begun < this.#operations) {
      this.#begun += 1;
      const name = `${position}-${this.#begun}`;
      const times = draw() < TWICE ? 2 : 1;
      const choice = draw();
      if (choice < CREATIONS) {
        await this.#create(name, { title: name, year: this.#begun }, times);
      } else if (choice < CREATIONS + ARRAYS) {
        const length = Math.floor(draw() * (MOST_BOOKS + 1));
        const books = Array.from({ length }, (_, year) => ({ title: name, author: 'array', year }));
        await this.#create(name, books, times);
      } else {
        const ids = [...this.#steps.keys()];
        await this.#count(ids[Math.floor(draw() * COUNTERS)] as number, position);
      }
      this.done += 1;
    }
  }

  /** @param times how often it is sent at the same moment. @returns the ids. */
  async #create(
    key: string,
    body: Partial<Book> | readonly Partial<Book>[],
    times: number,
  ): Promise<number[]> {
    const path = Array.isArray(body) ? '/books' : '/book';
    const options = { body, headers: { 'idempotency-key': key } };
    const sent = Array.from({ length: times }, () => this.#untilAnswered('POST', path, options));
    const [answer, other = answer] = (await Promise.all(sent)) as [Answer, Answer?];
    assert.deepEqual(bare(other), bare(answer));
    const replays = [answer, other].map(({ headers }) => headers.get('idempotent-replayed'));
    if (times > 1) assert.ok(replays.includes('true'), `${key} was carried out twice`);
    this.#repeats.push(async () => {
      const again = await this.#untilAnswered('POST', path, options);
      assert.deepEqual(bare(again), bare(answer));
      assert.equal(again.headers.get('idempotent-replayed'), 'true');
    });
    const ids: number[] = [answer.data].flat().map((one) => one?.id ?? one);
    const books = [body].flat().map((fields, position) => {
      return { id: ids[position] as number, title: '', author: '', year: 0, ...fields };
    });
    assert.deepEqual(bare(answer), Array.isArray(body) ? createdAll(ids) : created(books[0] as Book));
    assert.equal(ids.length, books.length);
    for (const book of books) {
      assert.ok(!this.#books.has(book.id), `id ${book.id} was given twice`);
      this.#books.set(book.id, book);
    }
    return ids;
  }

  /**
   * Counts one step in a book that others also change. Its author has the steps of each client, and its year their sum. A
   * client whose answer is lost finds its step among them, or repeats it: if the lost request were carried out after
   * that, its tag would be an old one.
   */
  async #count(id: number, position: number): Promise<void> {
    const steps = this.#steps.get(id) as number[];
    const before = steps[position] as number;
    const path = `/book/${id}`;
    for (;;) {
      const { status, data, headers } = await this.#untilAnswered('GET', path);
      assert.equal(status, 200);
      const counts: number[] = data.author.split(' ').map(Number);
      if (counts[position] === before + 1) break;
      assert.equal(counts[position], before, `book ${id} has a step twice`);
      counts[position] = before + 1;
      const change = { author: counts.join(' '), year: data.year + 1 };
      const tag = headers.get('etag') as string;
      const answer = await this.#ask('PUT', path, { body: change, headers: { 'if-match': tag } });
      if (answer?.status === 200) break;
      if (answer !== undefined) assert.equal(answer.status, 412, answer.message);
    }
    steps[position] = before + 1;
  }

  async #untilAnswered(method: string, path: string, options?: RequestOptions): Promise<Answer> {
    for (;;) {
      const answer = await this.#ask(method, path, options);
      if (answer !== undefined) return answer;
    }
  }

  /** @returns undefined if the request may have been carried out or not: it has no answer, or 503. */
  async #ask(method: string, path: string, options?: RequestOptions): Promise<Answer | undefined> {
    const service = await this.client.promise;
    const client = path.startsWith('/book/') ? this.#history.of(service) : service;
    if (this.isStopped) throw new Error('stopped');
    try {
      const answer = await client.request(method, path, options);
      if (answer.headers.get('idempotent-replayed') === 'true') this.figures.replays += 1;
      if (answer.status === 412) this.figures['answers with 412'] += 1;
      if (answer.status !== 503) return answer;
      this.figures['answers with 503'] += 1;
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      this.figures['requests without an answer'] += 1;
    }
    await pause(REST);
    return undefined;
  }

  /** Repeats creations that were acknowledged long ago. */
  async repeatSome(): Promise<void> {
    for (let at = 0; at < this.#repeats.length; at += REPEATED_AT_THE_END) await this.#repeats[at]?.();
  }

  /** Every book is one of these, as it must be now, and none of these is missing. */
  check(listed: readonly Book[]): void {
    this.#history.settle(listed.filter(({ id }) => this.#steps.has(id)));
    for (const [id, steps] of this.#steps) {
      const year = steps.reduce((total, count) => total + count, 0);
      this.#books.set(id, { ...(this.#books.get(id) as Book), author: steps.join(' '), year });
    }
    const expected = [...this.#books.values()].toSorted((one, other) => one.id - other.id);
    assert.deepEqual(listed, expected);
  }
}

/** PostgreSQL on a primary and its synchronous standby. First the standby takes over; then it crashes, each time. */
export async function startFailingPostgres() {
  const { primary, standby } = await PostgresServer.startPair(['synchronous_standby_names=*']);
  const hosts = [primary, standby].map(({ port }) => `127.0.0.1:${port}`);
  let isPromoted = false;
  return {
    dbUrl: `postgres://postgres:password@${hosts.join()}/postgres`,
    async failStore() {
      if (isPromoted) {
        await standby.kill('SIGQUIT');
        await standby.startAgain();
      } else {
        await primary.kill('SIGKILL');
        await execute(standby.url(), 'select pg_promote()');
        isPromoted = true;
      }
    },
    remove: () => Promise.all([primary.remove(), standby.remove()]),
  };
}
