// Owns: clients that change one catalogue together, over a network that loses answers, while the service is killed
// and its store fails; and the check that each of their changes took place exactly once.
// Does not: wait for times. A client repeats a creation until it gets a response.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { Answer } from '../../conformance/answers.ts';
import type { Book } from '../../conformance/service.ts';
import { Client, type Requester, type Target } from './client.ts';
import { passOn, startFront } from './front.ts';
import { Ledger } from './ledger.ts';
import { execute, PostgresServer } from './postgres.ts';
import { random } from './random.ts';
import type { ServiceProcess } from './service.ts';
import { killed, untilQuiet } from './sudden-death.ts';
import { waitUntil } from './wait.ts';

const CLIENTS = 8;

/** The share of the answers that are dropped, and as many end half way, and of as many the connection breaks before them. */
const LOST = 0.05;

/** Milliseconds: from the last byte of a request to a break of its connection, at most; of rest after a failed one, and between two lists. */
const BREAK = 5;
const REST = 5;
const REST_OF_LISTS = 100;

/** The service and its store, which fail now and then while the clients work. */
export interface Faulty {
  start(): Promise<ServiceProcess>;
  /** Of the store, as one server has it. */
  url(): string;
  /** Makes the store fail, and resolves when it is back. Absent if it cannot fail by itself. */
  failStore?(): Promise<void>;
}

/**
 * Runs so many writes through faults, and checks the stored books. There must be no books before.
 * @param life writes between two faults: at random, half as many to one and a half times as many.
 * @param progress called after each fault with the writes that are acknowledged.
 */
export async function retryThroughFaults(
  context: { after(work: () => void): void },
  faulty: Faulty,
  writes: number,
  life: number,
  progress: (writes: number) => void = () => {},
) {
  const ledger = new Ledger();
  const faults = { 'kills of the service': 0, 'faults of the store': 0 };
  const service = await Mortal.start(context, faulty.start);
  let isStopped = false;
  const repeat = async (rest: number, act: () => Promise<unknown>) => {
    while (!isStopped) if ((await act()) !== 'acknowledged' || rest > REST) await pause(rest);
  };
  const work = Promise.all([
    ...ledger.writers(service, CLIENTS).map((writer) => repeat(REST, () => writer.write())),
    repeat(REST, () => ledger.read(service)),
    repeat(REST_OF_LISTS, () => ledger.read(service, '/books')),
  ]);
  try {
    for (let fault = 1; ledger.acknowledged < writes; fault += 1) {
      const next = Math.min(writes, ledger.acknowledged + Math.ceil(life * (0.5 + random())));
      await waitUntil(() => ledger.acknowledged >= next, work);
      if (fault % 2 === 0 && faulty.failStore !== undefined) {
        await faulty.failStore();
        faults['faults of the store'] += 1;
      } else {
        await service.die();
        await service.live();
        faults['kills of the service'] += 1;
      }
      progress(ledger.acknowledged);
    }
    isStopped = true;
    await work;
    await service.die();
    await service.live();
    await untilQuiet(faulty.url());
    await ledger.reconcile(service.direct);
    const { unanswered, replays, unmet } = ledger;
    return {
      'writes without an answer': unanswered,
      replays,
      'conditions that were not met': unmet,
      ...faults,
    };
  } finally {
    isStopped = true;
    await service.die();
  }
}

/** A service that is killed and started again, behind a network that loses answers. */
export class Mortal implements Requester {
  readonly #start: () => Promise<ServiceProcess>;
  #service: ServiceProcess | undefined;
  #client: Client | undefined;

  private constructor(start: () => Promise<ServiceProcess>) {
    this.#start = start;
  }

  static async start(
    context: { after(work: () => void): void },
    start: () => Promise<ServiceProcess>,
  ): Promise<Mortal> {
    const mortal = new Mortal(start);
    const front = await startFront(context, (incoming, outgoing) => {
      if (mortal.#service === undefined) incoming.socket.destroy();
      else forwardOrLose(mortal.#service, incoming, outgoing);
    });
    await mortal.live();
    mortal.#client = new Client(front, mortal.direct.token); // which is valid in every life
    return mortal;
  }

  async live(): Promise<void> {
    this.#service = await this.#start();
  }

  async die(): Promise<void> {
    const service = this.#service;
    this.#service = undefined;
    if (service !== undefined) await killed(service);
  }

  get isAlive(): boolean {
    return this.#service !== undefined;
  }

  /** Past the network. */
  get direct(): Client {
    return (this.#service as ServiceProcess).client;
  }

  request(...request: Parameters<Requester['request']>): Promise<Answer> {
    return (this.#client as Client).request(...request);
  }

  list(): Promise<Book[]> {
    return (this.#client as Client).list();
  }
}

/** Forwards a request, and loses some of the answers: the service has the request by then. */
function forwardOrLose(service: Target, incoming: IncomingMessage, outgoing: ServerResponse): void {
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
    /** Of the server that accepts writes. */
    url: () => (isPromoted ? standby : primary).url(),
    remove: () => Promise.all([primary.remove(), standby.remove()]),
  };
}
