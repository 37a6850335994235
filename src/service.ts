// Owns: the order of opening (store, then the ports) and of closing (ports, requests, store); the metrics of the service, whose
// numbers are kept where they arise and read when the metrics are requested.
// Does not: have metrics with secrets, or with labels whose values a client can make up.

import { BlockList, isIPv6 } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { buildApp } from './api/app.ts';
import { RequestCounts } from './api/request-counts.ts';
import { credentialCheck } from './auth/credentials.ts';
import { LoginGuard } from './auth/login-guard.ts';
import { Sessions } from './auth/sessions.ts';
import { Tokens } from './auth/tokens.ts';
import type { BatchFigures } from './books/batches.ts';
import { Catalogue } from './books/catalogue.ts';
import type { Config } from './config.ts';
import type { Counts } from './counts.ts';
import { roomForMore } from './http/room.ts';
import { Imports } from './import/imports.ts';
import { listen, listenIfFree, PortRefused } from './listen.ts';
import type { Log } from './log/log.ts';
import { type MetricName, metric } from './metrics/descriptions.ts';
import { measureProcess } from './metrics/process.ts';
import type { Metric } from './metrics/prometheus.ts';
import { describeStore, readDbUrl } from './stores/open.ts';
import type { Times } from './times.ts';
import { within } from './within.ts';

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
 * @param docsPort port of the page that calls the service from a browser, if there is one.
 * @param mustExist whether the store must be there already.
 * @throws OperatorError if the store or the port cannot be opened; nothing is left open then.
 */
export async function startService(
  config: Config,
  log: Log,
  docsPort: number | undefined,
  times: Times,
  mustExist = false,
): Promise<Service> {
  const storeAt = await readDbUrl(config.dbUrl, 'DB_URL', config.readUrl);
  const store = await storeAt.open({
    mustExist,
    find: config.find,
    history: config.history === 'forever' ? Number.POSITIVE_INFINITY : (config.history ?? 0),
    times,
    onSyncFailed: endAfterFailedSync,
  });
  const catalogue = new Catalogue(store, times.books, roomForMore);
  const imports = new Imports({
    changes: store.log,
    dbUrl: config.dbUrl,
    limit: config.importLimit,
    folder: process.env.TMPDIR || (storeAt.file === undefined ? tmpdir() : dirname(storeAt.file)),
    most: storeAt.file === undefined ? 2 : 1,
    hasHistory: config.history !== undefined,
    log,
    times,
  });
  const requests = new RequestCounts();
  const guard = new LoginGuard(times.auth);
  const app = buildApp({
    catalogue,
    imports,
    tokens: new Tokens(config.signingSecret, times.auth, config.previousSigningSecret),
    sessions: new Sessions(config.signingSecret, config, times.auth, config.previousSigningSecret),
    checkCredentials: credentialCheck(config.username, config.password),
    guard,
    trustedProxies: blockList(config.trustedProxies),
    config,
    docsPort,
    log,
    requests,
    times,
  });
  const found = {
    place: storeAt.file ?? describeStore(config.dbUrl),
    isNew: store.isNew,
    books: await store.books.countUpTo(COUNTED + 1).catch(() => undefined),
  };
  if (config.history !== undefined) await catalogue.continueAll().catch(() => {}); // requests report it
  let url: string;
  let page: string | PortRefused | undefined;
  try {
    const { page: wanted, port, host } = config;
    page = wanted && (await listenIfFree(wanted.required, app.page.server, wanted.port, host, 'PAGE_PORT'));
    url = await listen(app.service.server, port, host, 'PORT');
  } catch (error) {
    app.page.server.close();
    catalogue.close(); // undos that it continues
    await store.close();
    throw error;
  }
  if (page instanceof PortRefused) log.warn(`${page.message} The service runs without the page.`);
  const pageUrl = page instanceof PortRefused ? undefined : page;
  const served = [app.service, ...(pageUrl === undefined ? [] : [app.page])];

  const measurement = measureProcess(log, times.metrics);
  return {
    url,
    pageUrl,
    store: found,
    async metrics() {
      const counts = served.map(({ server }) => promisify(server.getConnections.bind(server))());
      const connections = (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
      const ofBatches = (name: MetricName, read: (figures: BatchFigures) => Counts) => {
        const all = Object.entries(catalogue.batches);
        return metric(
          name,
          Object.fromEntries(all.map(([operation, figures]) => [operation, read(figures)])),
        );
      };
      return [
        metric('http_requests_total', requests.answers),
        metric('http_request_duration_seconds', requests.durations),
        metric('http_connections', connections),
        ofBatches('batch_size', ({ sizes }) => sizes ?? {}),
        ofBatches('batch_duration_seconds', ({ durations }) => durations),
        ofBatches('batches_in_flight', ({ inFlight }) => inFlight),
        ofBatches('waiting_calls', ({ waiting }) => waiting),
        metric('waiting_followers', catalogue.followers.count),
        metric('import_files', imports.room.files),
        metric('import_bytes', imports.room.bytes),
        metric('store_errors_total', requests.storeFaults),
        metric('logins_total', guard.outcomes),
        ...Object.entries(store.counts()).map(([name, counts]) => metric(name as MetricName, counts)),
        ...(await measurement.metrics()),
      ];
    },
    // Directly: a call through the catalogue waits for its batch, which depends on the load and not only on the store.
    storeAnswers: () =>
      store.books.find([1], performance.now() + times.service.answer).then(
        () => true,
        () => false,
      ),
    async close() {
      const { lastRequest, grace } = times.service;
      catalogue.close();
      const imported = imports.close();
      await Promise.all(served.map((http) => http.close(lastRequest, grace)));
      await within(times.imports.grace, imported);
      // If a disk hangs, so would the exit: the command ends the process then.
      await (store.holdsProcess ? store.close() : within(times.service.storeGrace, store.close()));
      measurement.stop();
    },
  };
}

/** The exit code after a failed sync: EX_IOERR of sysexits.h. */
const DISK_FAILED = 74;

/** Ends the process without an answer to the writes in progress: they are in the file or not. */
function endAfterFailedSync(reason: string): never {
  process.stderr.write(
    `A disk did not write the store (${reason}): the process ends, since no later write would be safe. Check the disk, then start again.\n`,
  );
  process.exit(DISK_FAILED);
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
