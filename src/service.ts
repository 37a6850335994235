// Owns: the order of opening (store, then the port) and of closing (port, requests, store).

import { type AddressInfo, connect, type Server as NetServer } from 'node:net';
import type { Logger } from 'pino';
import { buildApp } from './api/app.ts';
import { credentialCheck } from './auth/credentials.ts';
import { LoginGuard, type TakeTurn } from './auth/login-guard.ts';
import { Tokens } from './auth/tokens.ts';
import { Catalogue } from './books/catalogue.ts';
import { type Config, StartupRefusal } from './config.ts';
import { openStore } from './stores/open.ts';

/** Milliseconds that requests under way have to finish; with the store's closing, within 10 s. */
const GRACE = 6000;

/** Milliseconds that a connection has to bring a last request. Closed while that is on its way, it would lose it,
 * and no proxy may send what is not idempotent again. */
const LAST_REQUEST = 500;

/** Milliseconds in which whoever serves a port of this machine answers. */
const PROBE_TIMEOUT = 1000;

/** How a service has its port: for itself, or as one of several processes, of which the first sees to it that
 * nobody else is there. */
export type PortUse = 'alone' | 'first' | 'another';

/** How a process serves together with others. */
export interface Company {
  readonly port: PortUse;
  /** Asks whoever counts failed logins for all of them (rule 29). */
  readonly takeTurn: TakeTurn;
}

export interface Service {
  /** `http://host:port` as a client on this machine would write it. */
  readonly url: string;
  /** Stops accepting, finishes what is under way, closes the store. May be called once. */
  close(): Promise<void>;
}

/**
 * Starts serving.
 * @throws StartupRefusal when the store or the port cannot be had; nothing is left open then.
 */
export async function startService(config: Config, log: Logger, company = alone()): Promise<Service> {
  const store = await openStore(config.dbUrl, company.port === 'another');
  const app = buildApp({
    catalogue: new Catalogue(store),
    tokens: new Tokens(config.signingSecret),
    checkCredentials: credentialCheck(config.username, config.password),
    takeTurn: company.takeTurn,
    trustedProxies: config.trustedProxies,
    log,
    bodyLimit: config.bodyLimit,
    headerLimit: config.headerLimit,
  });
  await app.ready();
  try {
    if (company.port === 'first') await beAlone(config);
    await listen(app.server, config, company.port !== 'alone');
  } catch (error) {
    await store.close();
    throw refusalToListen(error as NodeJS.ErrnoException, config);
  }

  return {
    url: urlOf(app.server.address() as AddressInfo),
    async close() {
      const closed = new Promise((resolve) => app.server.close(resolve));
      // In a turn of its own, since what has arrived while others were served is read first.
      const idle = setInterval(() => setImmediate(() => app.server.closeIdleConnections()), LAST_REQUEST);
      const overdue = setTimeout(() => app.server.closeAllConnections(), GRACE);
      await app.close();
      await closed;
      clearInterval(idle);
      clearTimeout(overdue);
      await store.close();
    },
  };
}

function alone(): Company {
  const guard = new LoginGuard();
  return { port: 'alone', takeTurn: (address, succeeded) => guard.takeTurn(address, succeeded) };
}

/** Refuses a port where somebody answers: where it is shared, the system would let us in without a word.
 * (To listen there unshared for a moment would reset whoever connects in that moment.) */
async function beAlone({ port, host = 'localhost' }: Config): Promise<void> {
  const probe = connect({ port, host, timeout: PROBE_TIMEOUT });
  const answered = await new Promise((resolve) => {
    probe.once('connect', () => resolve(true));
    probe.once('timeout', () => resolve(false));
    probe.once('error', () => resolve(false)); // nobody is there, or listening will say what is wrong
  });
  probe.destroy();
  if (answered) throw Object.assign(new Error(), { code: 'EADDRINUSE' });
}

/** @param shared the system deals connections out among all who listen there like this. */
function listen(server: NetServer, { port, host }: Config, shared: boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, ...(host !== undefined && { host }), exclusive: true, reusePort: shared }, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function refusalToListen(error: NodeJS.ErrnoException, { port, host }: Config): StartupRefusal {
  switch (error.code) {
    case 'EADDRINUSE':
      return new StartupRefusal(`PORT ${port} is taken by another process: stop it or choose another port.`);
    case 'EACCES':
      return new StartupRefusal(`PORT ${port} may not be opened by this user: choose one above 1023.`);
    case 'ENOTSUP':
      return new StartupRefusal('WORKERS must be 1 on this system, where processes cannot share a port.');
    default:
      return new StartupRefusal(`HOST ${host} cannot be listened on: ${error.message}.`);
  }
}

function urlOf({ address, family, port }: AddressInfo): string {
  const isEverywhere = address === '::' || address === '0.0.0.0';
  const host = isEverywhere ? 'localhost' : family === 'IPv6' ? `[${address}]` : address;
  return `http://${host}:${port}`;
}
