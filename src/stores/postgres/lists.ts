// Owns: the list of all books in PostgreSQL, as the server sends it.

import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { BookList } from '../../books/store.ts';
import type { Times } from '../../times.ts';
import type { Connections } from './connections.ts';
import { queryOn } from './query.ts';
import { type Barrier, beginSnapshot, type Connection, textParts } from './snapshot.ts';
import type { Standby } from './standby.ts';
import { jsonOf } from './text.ts';

/**
 * @param isDistributed whether several servers keep the books.
 * @param signal ends the wait for the first chunk.
 */
export async function listBooks(
  connections: Connections,
  standby: Standby | undefined,
  isDistributed: boolean,
  { postgres, standby: { firstChunk } }: Times,
  signal: AbortSignal,
): Promise<BookList> {
  const onStandby = await standby?.read((client, release) => {
    const inTime = AbortSignal.any([signal, AbortSignal.timeout(firstChunk)]);
    return openList({ client, release }, undefined, postgres, inTime);
  });
  if (onStandby !== undefined) return onStandby;
  const taken = await connections.take('lists');
  try {
    const barrier = isDistributed ? { connect: () => connections.take('barriers'), signal } : undefined;
    return await openList(taken, barrier, postgres, signal);
  } catch (error) {
    taken.release(true);
    throw connections.unavailable(error);
  }
}

/** Resolves once the first rows have arrived. The list then releases the connection; if this rejects, the caller has to. */
async function openList(
  { client, release }: Connection,
  barrier: Barrier | undefined,
  times: Times['postgres'],
  signal: AbortSignal,
): Promise<BookList> {
  let part: Readable | undefined;
  const breakOff = (error: Error) => part?.destroy(error);
  client.on('error', breakOff);
  let state: 'arriving' | 'whole' | 'closed' = 'arriving';
  async function* arriving() {
    for await (part of textParts(client, barrier !== undefined, (range) => jsonOf(',', range))) {
      part.on('error', () => {}); // the reader gets it; it may also occur when there is no reader any more
      yield* chunksOf(part, times.query);
    }
    state = 'whole';
  }
  const close = () => {
    const isWhole = state === 'whole';
    if (state === 'closed') return;
    state = 'closed';
    client.off('error', breakOff);
    if (!isWhole) return release(true); // rows are still arriving: only this stops them
    const query = queryOn(client, times.query);
    query('commit').then(
      () => release(false),
      () => release(true),
    );
  };
  const chunks = arriving();
  const beginning = async () => {
    await beginSnapshot(client, times.listLock, times, barrier);
    return chunks.next();
  };
  try {
    const first = await Promise.race([beginning(), ended(signal)]);
    const all = async function* () {
      if (first.done) return;
      yield first.value.subarray(1); // in SQL every row begins with a comma, so that the first needs no special case
      yield* chunks;
    };
    return { chunks: all(), close };
  } catch (error) {
    client.off('error', breakOff);
    throw error;
  }
}

/** Rejects when the signal ends what waits. */
async function ended(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) await once(signal, 'abort');
  throw signal.reason;
}

/**
 * The rows as they arrive. If the server stops answering while more rows are wanted, the list breaks off.
 * @param silence milliseconds that it may not answer.
 */
async function* chunksOf(rows: Readable, silence: number): AsyncGenerator<Buffer, void, void> {
  const chunks = rows[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>;
  for (;;) {
    const overdue = setTimeout(() => rows.destroy(new Error('the server stopped answering')), silence);
    const { done, value } = await chunks.next().finally(() => clearTimeout(overdue));
    if (done) return;
    yield value;
    await setImmediate(); // other work first: a full socket is read 32 times in a row, 2 MiB
  }
}
