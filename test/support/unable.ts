// Owns: an application that cannot sign tokens (rule 19), which nothing from outside can bring about.

import { BlockList } from 'node:net';
import { buildApp } from '../../src/api/app.ts';
import { RequestCounts } from '../../src/api/request-counts.ts';
import type { CheckCredentials } from '../../src/auth/credentials.ts';
import { Tokens } from '../../src/auth/tokens.ts';
import { Catalogue } from '../../src/books/catalogue.ts';
import type { BookStore } from '../../src/books/store.ts';
import { createLog } from '../../src/log/log.ts';
import { TIMES } from '../../src/times.ts';
import type { Target } from './client.ts';
import { SECRET } from './service.ts';

class Unable extends Tokens {
  override issue(): string {
    throw new Error('the signer is out of order');
  }
}

/** Starts it in this process on a real socket; the caller closes the store and the log. */
export async function startUnableApp(
  store: BookStore,
  checkCredentials: CheckCredentials,
  log = createLog('silent', process.stderr, TIMES.log),
): Promise<Target & { stop(): Promise<void> }> {
  const {
    service: { server },
  } = buildApp({
    catalogue: new Catalogue(store, TIMES.books),
    tokens: new Unable(SECRET, TIMES.auth),
    checkCredentials,
    takeTurn: () => ({ kind: 'answer', delay: 0 }),
    trustedProxies: new BlockList(),
    config: {
      ...{ find: true, requireIfMatch: false, corsOrigins: [] },
      ...{ bodyLimit: 1024, bulkLimit: 1024, headerLimit: 16_384 },
    },
    docsPort: undefined,
    knownLogin: undefined,
    onlyThisMachine: false,
    log,
    requests: new RequestCounts(),
    times: TIMES,
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    async stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}
