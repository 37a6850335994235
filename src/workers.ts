// Owns: several processes that serve one port and one store. The first process serves nothing itself: it starts the
// workers, replaces a worker that dies, and stops all of them. Each worker is a complete service. All accept from the same
// queues of the system, so that no connection is on its way to a worker that dies.

import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import type { Config } from './config.ts';
import type { Log } from './log/log.ts';
import { measureProcess } from './metrics/process.ts';
import { type Metric, mergeMetrics } from './metrics/prometheus.ts';
import { OperatorError } from './operator-error.ts';
import { IS_EXECUTABLE } from './project.ts';
import { type Service, startService } from './service.ts';
import type { Times } from './times.ts';
import { within } from './within.ts';

type Facts = Pick<Service, 'url' | 'pageUrl' | 'store'>;

/** The first message to a worker: the arguments of `startService`. */
type Start = readonly [config: Config, docsPort: number | undefined, mustExist: boolean];

/** What the first process asks a worker that serves. */
type Question = 'storeAnswers' | 'metrics';

/** Any later message to a worker. */
type Order = 'stop' | { readonly question: Question; readonly ticket: number };

/** A message of a worker: one of the first two in answer to its start, then one for each question. */
type Report =
  | { readonly serving: Facts }
  | { readonly refused: string }
  | { readonly ticket: number; readonly answer: unknown };

export const isWorker = cluster.isWorker;

/**
 * Starts as many workers as the configuration says. The first one prepares the store for the others.
 * @param docsPort as for `startService`.
 * @param stop ends the start.
 * @returns undefined if it was stopped before a worker served.
 * @throws OperatorError as `startService` does. Workers that are left end with this process.
 */
export async function startWorkers(
  config: Config,
  log: Log,
  docsPort: number | undefined,
  times: Times,
  stop: Promise<undefined>,
): Promise<Service | undefined> {
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  // By default, cluster would hand on the path of the program, which the single executable takes for a command.
  if (IS_EXECUTABLE) cluster.setupPrimary({ exec: 'serve', args: [] });
  /** Those that serve, by number; a replacement keeps the number of the worker it replaces. */
  const serving = new Map<number, Worker>();
  const asked = new Map<number, (answer: unknown) => void>();
  const measurement = measureProcess(log, times.metrics);
  let lastTicket = 0;
  let isStopping = false;

  async function start(number: number, mustExist: boolean): Promise<Facts> {
    const worker = cluster.fork();
    worker.on('error', () => {}); // it has gone, and 'exit' follows; or there was never a process
    if (worker.process.pid === undefined)
      throw new OperatorError('The system could not start a worker: allow more processes or open files.');
    const { promise, resolve, reject } = Promise.withResolvers<Facts>();
    worker.once('exit', () => reject(new OperatorError('A worker exited before it could serve.')));
    worker.on('message', (report: Report) => {
      if ('serving' in report) resolve(report.serving);
      else if ('refused' in report) reject(new OperatorError(report.refused));
      else asked.get(report.ticket)?.(report.answer);
    });
    send(worker, [config, docsPort, mustExist]);
    const facts = await promise;
    serving.set(number, worker);
    const { pid } = worker.process;
    log.info({ pid }, 'a worker is serving');
    worker.once('exit', (code: number, signal: string | null) => {
      serving.delete(number);
      if (isStopping) return;
      log.error({ pid, code, signal }, 'a worker exited: starting a replacement');
      void replace(number);
    });
    return facts;
  }

  async function replace(number: number): Promise<void> {
    while (!isStopping) {
      try {
        return void (await start(number, true));
      } catch (error) {
        log.error({ reason: (error as Error).message }, 'a worker could not be replaced: retrying');
        await pause(times.workers.retryPause);
      }
    }
  }

  /** @returns undefined if the worker fails to answer, or takes too long. */
  async function ask<Answer>(worker: Worker, question: Question): Promise<Answer | undefined> {
    lastTicket += 1;
    const ticket = lastTicket;
    const { promise, resolve } = Promise.withResolvers<unknown>();
    asked.set(ticket, resolve);
    send(worker, { question, ticket });
    const answer = await within(times.workers.answer, promise);
    asked.delete(ticket);
    return answer as Answer | undefined;
  }

  const facts = await Promise.race([start(1, false), stop]);
  if (facts === undefined) return undefined;
  if (facts.pageUrl === undefined) config = { ...config, page: undefined };
  const others = Array.from({ length: config.workers - 1 }, (_, index) => start(index + 2, true));
  await Promise.race([Promise.all(others), stop]);
  return {
    ...facts,
    /** Whether the store answers one worker at least. */
    async storeAnswers() {
      const answers = [...serving.values()].map(async (worker) => {
        if (!(await ask<boolean>(worker, 'storeAnswers'))) throw new Error('no answer to this worker');
        return true;
      });
      return await Promise.any(answers).catch(() => false);
    },
    async metrics() {
      const own = await measurement.metrics();
      const answers = [...serving].map(async ([number, worker]) => {
        return [String(number), (await ask<Metric[]>(worker, 'metrics')) ?? []] as const;
      });
      return mergeMetrics(new Map([['0', own], ...(await Promise.all(answers))]));
    },
    async close() {
      isStopping = true;
      const all = Object.values(cluster.workers ?? {}) as Worker[];
      const workers = all.filter((worker) => worker.isConnected()); // the others have gone, or never began
      for (const worker of workers) send(worker, 'stop');
      const overdue = setTimeout(() => {
        for (const worker of workers) worker.process.kill('SIGKILL');
      }, times.workers.lastResort);
      await Promise.all(workers.map((worker) => once(worker, 'exit')));
      clearTimeout(overdue);
      measurement.stop();
    },
  };
}

/**
 * Serves as one of several workers until the first process or `stop` ends it. If that process dies, cluster ends this one.
 * @param makeLog makes the log that the configuration asks for.
 * @param stop resolves when this process alone is asked to end.
 */
export async function serveAsWorker(
  makeLog: (config: Config) => Log,
  stop: Promise<unknown>,
  times: Times,
): Promise<void> {
  const start = Promise.withResolvers<Start>();
  const stopOrdered = Promise.withResolvers<void>();
  let service: Service;
  process.on('message', async (message: Start | Order) => {
    if (message === 'stop') return stopOrdered.resolve(); // perhaps before it serves
    if (!('question' in message)) return start.resolve(message);
    const { question, ticket } = message;
    const answer = await service[question]().catch((error: unknown) => {
      log.error({ err: error }, 'the operations listener failed to answer');
    });
    await report({ ticket, answer });
  });
  const [config, docsPort, mustExist] = await start.promise;
  const log = makeLog(config);
  try {
    service = await startService(config, log, docsPort, times, mustExist);
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    return await report({ refused: error.message });
  }
  const { url, pageUrl, store } = service;
  await report({ serving: { url, pageUrl, store } });
  await Promise.race([stop, stopOrdered.promise]);
  await service.close();
}

/** A worker that has gone gets nothing; its 'exit' reports that. */
function send(worker: Worker, message: Start | Order): void {
  worker.send(message, () => {});
}

function report(message: Report): Promise<void> {
  return new Promise((resolve) => process.send?.(message, undefined, {}, () => resolve()));
}
