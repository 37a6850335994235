// Owns: one search, sent again and again: how long it takes beside a read, and whether its answer stays the same.

import { Agent, get, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';
import { TOKEN } from './operations.ts';
import type { FoundRow } from './results.ts';
import type { Search } from './searches.ts';

// Times that a search is measured in one round, and milliseconds after which it is not measured more often.
const FEWEST = 5;
const MOST = 30;
const SEARCH_TIME = 500;

/** Sends a request, and waits for the answer. */
export type Ask = (path: string, headers?: OutgoingHttpHeaders) => Promise<Response>;

interface Response {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** One call that is measured, again and again. */
export interface Kind {
  readonly search: string;
  readonly matches?: number;
  /** Whether the service ever refused it, because it took too long. */
  isRefused?: boolean;
  readonly once: () => Promise<unknown>;
}

/** One connection, for one request after the other. */
export function connectionTo(port: number): Ask {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  return (path, headers = {}) => {
    return new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port, path, agent, headers: { authorization: TOKEN, ...headers } };
      get(options, (response) => {
        const { statusCode: status = 0, headers } = response;
        text(response).then((body) => resolve({ status, headers, body }), reject);
      }).on('error', reject);
    });
  };
}

/** A search, whose answer is checked now, and has to be the same each time, unless it takes too long. */
export async function kindOf(ask: Ask, { name, path, isCounted }: Search): Promise<Kind> {
  const counted = { prefer: 'count=exact' };
  const { status, headers, body } = await ask(path, counted);
  const total = headers['x-total-count'];
  if (status === 200) {
    const isEmpty = (JSON.parse(body) as { data: unknown[] }).data.length === 0;
    if (isEmpty !== (name === 'none'))
      throw new Error(`${name}: ${isEmpty ? 'nothing' : 'something'} is found`);
    if (headers['x-unindexed-books'] !== undefined) throw new Error(`${name}: the index is not complete`);
  }
  const kind: Kind = {
    search: name,
    ...(total !== undefined && { matches: Number(total) }),
    async once() {
      const answer = await ask(path, isCounted ? counted : {});
      if (answer.status === 503) kind.isRefused = true;
      else if (answer.status !== 200 || (status === 200 && answer.body !== body)) {
        throw new Error(
          `${name}: ${answer.status}, and not the answer of before: ${answer.body.slice(0, 200)}`,
        );
      }
    },
  };
  return kind;
}

/** Measures one call in turn with a read. */
export async function measureOne(
  once: () => Promise<unknown>,
  read: () => Promise<unknown>,
): Promise<Omit<FoundRow, 'search' | 'store' | 'matches'>> {
  const times: number[] = [];
  const reads: number[] = [];
  const end = performance.now() + SEARCH_TIME;
  await once(); // warm
  while (times.length < FEWEST || (times.length < MOST && performance.now() < end)) {
    reads.push(await timeOf(read));
    times.push(await timeOf(once));
  }
  const median = percentile(times, 0.5);
  return { median, p95: percentile(times, 0.95), ratio: median / percentile(reads, 0.5) };
}

async function timeOf(call: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await call();
  return performance.now() - began;
}

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length * share)] as number;
}

/** The cursor after a page. */
export async function cursorOf(ask: Ask, { path }: Search): Promise<string> {
  const { headers } = await ask(path);
  const [, cursor] = /[?&]cursor=([^&>]+)/.exec(String(headers.link)) ?? [];
  if (cursor === undefined) throw new Error(`${path} has no next page`);
  return cursor;
}
