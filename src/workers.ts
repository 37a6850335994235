// Owns: several processes that serve one port and one store. The first process serves nothing itself: it starts the
// workers, replaces a worker that dies, and stops all of them. Each worker is a complete service. The system
// distributes the connections among them. (If Node's cluster did, a connection on its way to a worker that dies would
// be neither answered nor closed.)

import cluster, { type Worker } from 'node:cluster';
import { setTimeout as pause } from 'node:timers/promises';
import { LoginGuard, type LoginTurn, type TakeTurn } from './auth/login-guard.ts';
import type { Config } from './config.ts';
import type { Log } from './log/log.ts';
import { metric } from './metrics/descriptions.ts';
import { measureProcess, type ProcessMeasurement } from './metrics/process.ts';
import { type Metric, mergeMetrics } from './metrics/prometheus.ts';
import { OperatorError } from './operator-error.ts';
import { IS_EXECUTABLE } from './project.ts';
import { type PortUse, type Service, startService } from './service.ts';
import { buildMetric, loginMetric } from './service-metrics.ts';
import type { Times } from './times.ts';
import { within } from './within.ts';

/** The questions of the first process to a worker, and the types of their answers. */
interface Answers {
  readonly storeAnswers: boolean;
  readonly metrics: readonly Metric[];
}
type Question = keyof Answers;

/** A message of the first process to a worker. */
type Order =
  | {
      readonly kind: 'serve';
      readonly config: Config;
      readonly docsPort: number | undefined;
      readonly times: Times;
      readonly use: PortUse;
    }
  | { readonly kind: 'stop' }
  | { readonly kind: 'turn'; readonly ticket: number; readonly turn: LoginTurn }
  | { readonly kind: 'ask'; readonly ticket: number; readonly question: Question };

/** What a worker serves. */
type Facts = Pick<Service, 'url' | 'pageUrl' | 'store'>;

/**
 * A message of a worker: one of the first two in answer to `serve`, then one for each login, which asks for its turn,
 * and one for each question.
 */
type Report =
  | { readonly kind: 'serving'; readonly facts: Facts }
  | { readonly kind: 'refused'; readonly reason: string }
  | {
      readonly kind: 'login';
      readonly ticket: number;
      readonly address: string;
      readonly succeeded: boolean;
    }
  | { readonly kind: 'answer'; readonly ticket: number; readonly answer: Answers[Question] | undefined };

export const isWorker = cluster.isWorker;

/**
 * Starts as many workers as the configuration says. The first one prepares the store for the others.
 * @param docsPort as for `startService`.
 * @throws OperatorError as `startService` does; no worker is left then.
 */
export async function startWorkers(
  config: Config,
  log: Log,
  docsPort: number | undefined,
  times: Times,
): Promise<Service> {
  const pool = new WorkerPool(config, log, docsPort, times);
  try {
    return await pool.start();
  } catch (error) {
    await pool.close();
    throw error;
  }
}

/** The workers, from the side of the first process. */
class WorkerPool {
  /** Of the workers that start next. */
  #config: Config;
  readonly #log: Log;
  readonly #docsPort: number | undefined;
  readonly #times: Times;
  readonly #workers = new Set<Worker>();
  /** The workers that serve, by number; a replacement keeps the number of the worker it replaces. */
  readonly #serving = new Map<number, Worker>();
  readonly #asked = new Map<number, (answer: Answers[Question] | undefined) => void>();
  /** One for all workers: an address has no more login attempts at several workers than at one. */
  readonly #guard: LoginGuard;
  readonly #measurement: ProcessMeasurement;
  #lastTicket = 0;
  #isStopping = false;

  constructor(config: Config, log: Log, docsPort: number | undefined, times: Times) {
    this.#config = config;
    this.#log = log;
    this.#docsPort = docsPort;
    this.#times = times;
    this.#guard = new LoginGuard(times.auth);
    this.#measurement = measureProcess(times.metrics);
  }

  async start(): Promise<Service> {
    const facts = await this.#startWorker(1, 'first');
    this.#config = configOfOthers(this.#config, facts);
    const others = Array.from({ length: this.#config.workers - 1 }, (_, index) => index + 2);
    await Promise.all(others.map((number) => this.#startWorker(number, 'another')));
    return {
      ...facts,
      storeAnswers: () => this.#storeAnswers(),
      metrics: () => this.#metrics(),
      close: () => this.close(),
    };
  }

  async close(): Promise<void> {
    this.#isStopping = true;
    const overdue = setTimeout(() => {
      for (const worker of this.#workers) worker.process.kill('SIGKILL');
    }, this.#times.workers.lastResort);
    await Promise.all(
      [...this.#workers].map(async (worker) => {
        const ended = new Promise((resolve) => worker.once('exit', resolve));
        sendOrder(worker, { kind: 'stop' });
        await ended;
      }),
    );
    clearTimeout(overdue);
    this.#measurement.stop();
  }

  async #startWorker(number: number, use: PortUse): Promise<Facts> {
    const worker = fork();
    this.#workers.add(worker);
    // Where the system lacks threads, Node.js may hang before it runs any program.
    const hung = setTimeout(() => worker.process.kill('SIGKILL'), this.#times.workers.boot);
    for (const event of ['online', 'exit']) worker.once(event, () => clearTimeout(hung));
    const started = Promise.withResolvers<Facts>();
    worker.once('exit', () => {
      this.#workers.delete(worker);
      started.reject(new OperatorError('A worker exited before it could serve.'));
    });
    worker.on('message', (report: Report) => this.#onReport(worker, report, started));
    sendOrder(worker, {
      kind: 'serve',
      config: this.#config,
      docsPort: this.#docsPort,
      times: this.#times,
      use,
    });
    const facts = await started.promise;
    this.#serving.set(number, worker);
    const { pid } = worker.process;
    this.#log.info({ pid }, 'a worker is serving');
    worker.once('exit', (code: number, signal: string | null) => {
      this.#serving.delete(number);
      if (this.#isStopping) return;
      this.#log.error({ pid, code, signal }, 'a worker exited: starting a replacement');
      void this.#replace(number);
    });
    return facts;
  }

  #onReport(worker: Worker, report: Report, started: PromiseWithResolvers<Facts>): void {
    switch (report.kind) {
      case 'serving':
        started.resolve(report.facts);
        break;
      case 'refused':
        started.reject(new OperatorError(report.reason));
        break;
      case 'login': {
        const turn = this.#guard.takeTurn(report.address, report.succeeded);
        sendOrder(worker, { kind: 'turn', ticket: report.ticket, turn });
        break;
      }
      case 'answer':
        this.#asked.get(report.ticket)?.(report.answer);
    }
  }

  async #replace(number: number): Promise<void> {
    while (!this.#isStopping) {
      try {
        await this.#startWorker(number, 'another');
        return;
      } catch (error) {
        this.#log.error({ reason: (error as Error).message }, 'a worker could not be replaced: retrying');
        await pause(this.#times.workers.retryPause);
      }
    }
  }

  /** @returns undefined if the worker fails to answer, or does not answer in time. */
  async #ask<Asked extends Question>(worker: Worker, question: Asked): Promise<Answers[Asked] | undefined> {
    this.#lastTicket += 1;
    const ticket = this.#lastTicket;
    const { promise, resolve } = Promise.withResolvers<Answers[Asked] | undefined>();
    this.#asked.set(ticket, resolve as (answer: Answers[Question] | undefined) => void);
    sendOrder(worker, { kind: 'ask', ticket, question });
    const answer = await within(this.#times.workers.answer, promise);
    this.#asked.delete(ticket);
    return answer;
  }

  /** Whether the store answers at least one worker. */
  async #storeAnswers(): Promise<boolean> {
    const answers = [...this.#serving.values()].map(async (worker) => {
      if (!(await this.#ask(worker, 'storeAnswers'))) throw new Error('no answer to this worker');
    });
    return Promise.any(answers).then(
      () => true,
      () => false,
    );
  }

  async #metrics(): Promise<Metric[]> {
    const own = [
      buildMetric(),
      loginMetric(this.#guard.outcomes),
      metric('log_lines_lost_total', this.#log.linesLost()),
      ...(await this.#measurement.metrics()),
    ];
    const answers = [...this.#serving].map(async ([number, worker]) => {
      return [String(number), (await this.#ask(worker, 'metrics')) ?? []] as const;
    });
    return mergeMetrics(new Map<string, readonly Metric[]>([['0', own], ...(await Promise.all(answers))]));
  }
}

/** @throws OperatorError if the system makes no process. */
function fork(): Worker {
  // By default, cluster would hand on the path of the program, which the single executable takes for a command.
  if (IS_EXECUTABLE) cluster.setupPrimary({ exec: 'serve', args: [] });
  const worker = cluster.fork();
  worker.on('error', () => {}); // the worker has gone, and 'exit' follows; or there was never a process
  if (worker.process.pid === undefined)
    throw new OperatorError('The system could not start a worker: allow more processes or open files.');
  return worker;
}

/** The configuration of all workers but the first: they serve what it serves. The system may have chosen its ports. */
function configOfOthers(config: Config, { url, pageUrl }: Facts): Config {
  const { page } = config;
  return {
    ...config,
    port: config.port || portOf(url),
    page: page && pageUrl !== undefined ? { port: page.port || portOf(pageUrl), required: true } : undefined,
  };
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}

/**
 * Serves as one of several workers until it is ordered to stop.
 * @param makeLog makes the log that the configuration asks for.
 * @param stop resolves when this process alone is asked to end.
 */
export async function serveAsWorker(makeLog: (config: Config) => Log, stop: Promise<unknown>): Promise<void> {
  const self = cluster.worker as Worker;
  const stopOrdered = Promise.withResolvers<void>();
  const serveOrdered = Promise.withResolvers<Extract<Order, { kind: 'serve' }>>();
  const turns = new Map<number, (turn: LoginTurn) => void>();
  self.on('message', (order: Order) => {
    switch (order.kind) {
      case 'serve':
        serveOrdered.resolve(order);
        break;
      case 'stop':
        stopOrdered.resolve();
        break;
      case 'turn':
        turns.get(order.ticket)?.(order.turn);
        turns.delete(order.ticket);
    }
  });
  let lastTicket = 0;
  const takeTurn: TakeTurn = (address, succeeded) => {
    lastTicket += 1;
    const ticket = lastTicket;
    void report(self, { kind: 'login', ticket, address, succeeded });
    return new Promise((resolve) => turns.set(ticket, resolve));
  };
  const { config, docsPort, times, use } = await serveOrdered.promise;
  const log = makeLog(config);
  let service: Service;
  try {
    service = await startService(config, log, docsPort, times, {
      port: use,
      takeTurn,
      metrics: () => [], // the first process counts the logins
    });
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    await report(self, { kind: 'refused', reason: error.message });
    return;
  }
  const answer = async (question: Question) => {
    try {
      return await service[question]();
    } catch (error) {
      log.error({ err: error }, 'the operations listener failed to answer');
      return undefined;
    }
  };
  self.on('message', async (order: Order) => {
    if (order.kind !== 'ask') return;
    const { ticket, question } = order;
    await report(self, { kind: 'answer', ticket, answer: await answer(question) });
  });
  const { url, pageUrl, store } = service;
  await report(self, { kind: 'serving', facts: { url, pageUrl, store } });
  await Promise.race([stop, stopOrdered.promise]);
  await service.close();
}

function sendOrder(worker: Worker, order: Order): void {
  worker.send(order, () => {}); // a worker that has gone gets nothing; its 'exit' reports that
}

function report(self: Worker, answer: Report): Promise<void> {
  return new Promise((resolve) => self.send(answer, () => resolve()));
}
