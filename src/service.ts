// Owns: the order of opening (store, then the ports) and of closing (ports, requests, store).

import { BlockList, connect, isIPv6, type Server } from 'node:net';
import { promisify } from 'node:util';
import { buildApp } from './api/app.ts';
import { RequestCounts } from './api/request-counts.ts';
import { credentialCheck, knownLogin } from './auth/credentials.ts';
import { LoginGuard, type TakeTurn } from './auth/login-guard.ts';
import { Tokens } from './auth/tokens.ts';
import { Catalogue } from './books/catalogue.ts';
import type { Config } from './config.ts';
import { type ListenAddress, listen, PortRefused, portTaken } from './listen.ts';
import type { Log } from './log/log.ts';
import { metric } from './metrics/descriptions.ts';
import { measureProcess } from './metrics/process.ts';
import type { Metric } from './metrics/prometheus.ts';
import { buildMetric, loginMetric, serviceMetrics } from './service-metrics.ts';
import { describeStore, readDbUrl } from './stores/open.ts';
import { TIMES, type Times } from './times.ts';
import { within } from './within.ts';

/** How a service uses its port: alone, or as one of several processes, the first of which checks that no other program
 * has the port. */
export type PortUse = 'alone' | 'first' | 'another';

/** How this process serves together with others. */
export interface Deployment {
  readonly port: PortUse;
  /** Asks the process that counts the failed logins of all of them (rule 29). */
  readonly takeTurn: TakeTurn;
  /** Metrics that are counted outside the service. */
  metrics(): Metric[];
}

/** Where the books are, and how many there were at the start. */
export interface StoreFound {
  /** The whole path of a file, or the URL without the account. */
  readonly place: string;
  readonly isNew: boolean;
  /** At most one more than COUNTED; undefined if they could not be counted. */
  readonly books: number | undefined;
}

/** More books than that are not counted at the start. */
export const COUNTED = 10_000;

export interface Service {
  /** `http://host:port` as a client on this machine would write it. */
  readonly url: string;
  /** The URL of the librarians' page, if there is one. */
  readonly pageUrl: string | undefined;
  readonly store: StoreFound;
  /** Whether books can be read at this moment; resolves within 5 s. */
  storeAnswers(): Promise<boolean>;
  metrics(): Promise<Metric[]>;
  /** Stops accepting connections, finishes requests in progress, closes the store. May be called once. */
  close(): Promise<void>;
}

/**
 * Starts serving.
 * @param docsPort port of the page that calls the service from a browser, if there is one.
 * @throws OperatorError if the store or the port cannot be opened; nothing is left open then.
 */
export async function startService(
  config: Config,
  log: Log,
  docsPort?: number,
  times: Times = TIMES,
  deployment = singleProcess(times),
): Promise<Service> {
  const storeAt = await readDbUrl(config.dbUrl, 'DB_URL', config.readUrl);
  const store = await storeAt.open({
    mustExist: deployment.port === 'another',
    find: config.find,
    times,
    onLongWait: () =>
      log.warn('the start waits: other programs use the table of books, and it must be changed'),
  });
  const catalogue = new Catalogue(store, times.books);
  const requests = new RequestCounts();
  const app = buildApp({
    catalogue,
    tokens: new Tokens(config.signingSecret, times.auth, config.previousSigningSecret),
    checkCredentials: credentialCheck(config.username, config.password),
    takeTurn: deployment.takeTurn,
    trustedProxies: blockList(config.trustedProxies),
    config,
    docsPort,
    knownLogin: knownLogin(config),
    onlyThisMachine: config.builtInCredentials,
    log,
    requests,
    times,
  });
  let url: string;
  let pageUrl: string | undefined;
  const found = {
    place: storeAt.file ?? describeStore(config.dbUrl),
    isNew: store.isNew,
    books: await store.countUpTo(COUNTED + 1).catch(() => undefined),
  };
  try {
    const page = await openPage(app.page.server, config, deployment.port, times.service);
    url = await open(app.service.server, config, 'PORT', config.port, deployment.port, times.service);
    if (page instanceof PortRefused) log.warn(`${page.message} The service runs without the page.`);
    else pageUrl = page;
  } catch (error) {
    app.page.server.close();
    await store.close();
    throw error;
  }
  const served = [app.service, ...(pageUrl === undefined ? [] : [app.page])];

  const measurement = measureProcess(times.metrics);
  return {
    url,
    pageUrl,
    store: found,
    async metrics() {
      const counts = served.map(({ server }) => promisify(server.getConnections.bind(server))());
      const connections = (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
      return [
        buildMetric(),
        ...serviceMetrics({ requests, connections, batches: catalogue.batches }),
        ...store.metrics(),
        ...deployment.metrics(),
        metric('log_lines_lost_total', log.linesLost()),
        ...(await measurement.metrics()),
      ];
    },
    // Directly: a call through the catalogue waits for its batch, which depends on the load and not only on the store.
    storeAnswers: () =>
      store.find([1], performance.now() + times.service.answer).then(
        () => true,
        () => false,
      ),
    async close() {
      const { lastRequest, grace } = times.service;
      await Promise.all(served.map((http) => http.close(lastRequest, grace)));
      // If a disk hangs, so would the exit: the command ends the process then.
      await (store.holdsProcess ? store.close() : within(times.service.storeGrace, store.close()));
      measurement.stop();
    },
  };
}

function singleProcess({ auth }: Times): Deployment {
  const guard = new LoginGuard(auth);
  return {
    port: 'alone',
    takeTurn: (address, succeeded) => guard.takeTurn(address, succeeded),
    metrics: () => [loginMetric(guard.outcomes)],
  };
}

/**
 * @param variable the name of the variable that sets the port.
 * @returns as `listen`.
 * @throws as `listen`.
 */
async function open(
  server: Server,
  { host }: Config,
  variable: string,
  port: number,
  use: PortUse,
  times: Times['service'],
): Promise<string> {
  const place = { port, host, shared: use !== 'alone', variables: { port: variable, host: 'HOST' } };
  if (use === 'first') await assertPortFree(place, times);
  return await listen(server, place);
}

/** @returns undefined if there is no page; the reason if its default port cannot be opened. */
async function openPage(
  server: Server,
  config: Config,
  use: PortUse,
  times: Times['service'],
): Promise<string | PortRefused | undefined> {
  if (config.page === undefined) return undefined;
  try {
    return await open(server, config, 'PAGE_PORT', config.page.port, use, times);
  } catch (error) {
    if (config.page.required || !(error instanceof PortRefused)) throw error;
    return error;
  }
}

/** Refuses a port on which a process answers: if that one shares the port, the system would also let us listen there.
 * (Listening unshared for a moment would reset every client that connects in that moment.) */
async function assertPortFree(place: ListenAddress, { probe: timeout }: Times['service']): Promise<void> {
  const probe = connect({ port: place.port, host: place.host ?? 'localhost', timeout });
  const answered = await new Promise((resolve) => {
    probe.once('connect', () => resolve(true));
    probe.once('timeout', () => resolve(false));
    probe.once('error', () => resolve(false)); // nobody listens there, or listening will report the error
  });
  probe.destroy();
  if (answered) throw portTaken(place);
}

/** @param networks addresses, or networks such as 10.0.0.0/8. */
function blockList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', prefix] = network.split('/');
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    if (prefix === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(prefix), family);
  }
  return list;
}
