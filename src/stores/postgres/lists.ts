// Owns: the list of all books in PostgreSQL, as the server sends it.

import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import type { BookList } from '../../books/store.ts';
import type { Times } from '../../times.ts';
import type { Connections } from './connections.ts';
import { begin, isLimited, withTimeout } from './limits.ts';
import type { Release, Standby } from './standby.ts';
import { asJson } from './text.ts';

// Each book is followed by a line end, which is white space in JSON.
const LIST = asJson(',');

/** @param signal ends the wait for the first chunk. */
export async function listBooks(
  connections: Connections,
  standby: Standby | undefined,
  { postgres: { listLock, query }, standby: { firstChunk } }: Times,
  signal: AbortSignal,
): Promise<BookList> {
  const onStandby = await standby?.read((client, release) => {
    client.query(begin(listLock)).catch(() => {}); // if it fails, so does what follows
    const inTime = AbortSignal.any([signal, AbortSignal.timeout(firstChunk)]);
    return openList(client, true, release, query, inTime);
  });
  if (onStandby !== undefined) return onStandby;
  const client = await connections.takeForList();
  const release: Release = (isBroken) => client.release(isBroken);
  const needsLimit = !isLimited(client);
  if (needsLimit) client.query(begin(listLock)).catch(() => {});
  try {
    return await openList(client, needsLimit, release, query, signal);
  } catch (error) {
    release(true);
    throw connections.unavailable(error);
  }
}

/**
 * Resolves once the first rows have arrived. The list then releases the connection; if this rejects, the caller has to.
 * @param isBegun whether a transaction is open, which is ended with the list.
 * @param silence milliseconds after which a server that does not answer is given up.
 */
async function openList(
  client: pg.ClientBase,
  isBegun: boolean,
  release: Release,
  silence: number,
  signal: AbortSignal,
): Promise<BookList> {
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
    if (!rows.readableEnded) return release(true); // rows are still arriving: only this stops them
    if (!isBegun) return release(false);
    client.query(withTimeout('commit', [], silence)).then(
      () => release(false),
      () => release(true),
    );
  };
  await once(rows, 'readable', { signal });
  return { chunks: arriving(rows, silence), close };
}

/**
 * The rows as they arrive. In SQL every row begins with a comma, so that the first needs no special case. If the server stops answering while more rows are wanted, the list breaks off.
 * @param silence milliseconds that it may not answer.
 * @param isBeginning whether the comma of the first row is left out.
 */
export async function* arriving(
  rows: Readable,
  silence: number,
  isBeginning = true,
): AsyncGenerator<Buffer, void, void> {
  const chunks = rows[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>;
  let isFirst = isBeginning;
  for (;;) {
    const overdue = setTimeout(() => rows.destroy(new Error('the server stopped answering')), silence);
    const { done, value } = await chunks.next().finally(() => clearTimeout(overdue));
    if (done) return;
    yield isFirst ? value.subarray(1) : value;
    isFirst = false;
    await setImmediate(); // other work first: a full socket is read 32 times in a row, 2 MiB
  }
}
