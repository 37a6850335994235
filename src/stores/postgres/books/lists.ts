// Owns: the list of all books in PostgreSQL, as the server sends it.

import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import type { BookList } from '../../../books/store.ts';
import { type Connections, LIST_LOCK_TIMEOUT, QUERY_TIMEOUT } from '../server/connections.ts';
import { begin, isLimited, limitLocks, withTimeout } from '../server/limits.ts';
import type { Standby } from '../standby/standby.ts';
import { asJson } from './text.ts';

// Each book is followed by a line end, which is white space in JSON.
const LIST = asJson(',');

/** @param signal ends the wait for the first chunk. */
export async function listBooks(
  connections: Connections,
  standby: Standby | undefined,
  signal: AbortSignal,
): Promise<BookList> {
  const settings = limitLocks(LIST_LOCK_TIMEOUT);
  const onStandby = await standby?.read('list', settings, (client) => openList(client, true, signal));
  if (onStandby !== undefined) return onStandby;
  const client = await connections.takeForList();
  const needsLimit = !isLimited(client);
  if (needsLimit) client.query(begin(LIST_LOCK_TIMEOUT)).catch(() => {}); // if it fails, so does what follows
  try {
    return await openList(client, needsLimit, signal);
  } catch (error) {
    client.release(true);
    throw connections.unavailable(error);
  }
}

/**
 * Resolves once the first rows have arrived. The list then releases the connection; if this rejects, the caller has to.
 * @param isBegun whether a transaction is open, which is ended with the list.
 */
async function openList(client: pg.PoolClient, isBegun: boolean, signal: AbortSignal): Promise<BookList> {
  const rows = client.query(copyTo(LIST));
  // The reader gets an error; it may also occur when there is no reader any more.
  rows.on('error', () => {});
  const onClientError = (error: Error) => rows.destroy(error);
  client.on('error', onClientError);

  let open = true;
  const close = () => {
    if (!open) return;
    open = false;
    client.off('error', onClientError);
    if (!rows.readableEnded) return client.release(true); // rows are still arriving: only this stops them
    if (!isBegun) return client.release();
    client.query(withTimeout('commit', [], QUERY_TIMEOUT)).then(
      () => client.release(),
      () => client.release(true),
    );
  };
  await once(rows, 'readable', { signal });
  return { chunks: arriving(rows), close };
}

/**
 * The rows as they arrive. In SQL every row begins with a comma, so that the first needs no special case. If the server stops answering while more rows are wanted, the list breaks off.
 * @param isBeginning whether the comma of the first row is left out.
 */
export async function* arriving(rows: Readable, isBeginning = true): AsyncGenerator<Buffer, void, void> {
  const chunks = rows[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>;
  let isFirst = isBeginning;
  for (;;) {
    const silence = setTimeout(() => rows.destroy(new Error('the server stopped answering')), QUERY_TIMEOUT);
    const { done, value } = await chunks.next().finally(() => clearTimeout(silence));
    if (done) return;
    yield isFirst ? value.subarray(1) : value;
    isFirst = false;
    await setImmediate(); // other work first: a full socket is read 32 times in a row, 2 MiB
  }
}
