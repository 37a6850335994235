// Owns: measuring the memory of a process at its start, and while many connections send requests, one behind the other, and
// read no answer. None has a token.

import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { type Build, type Builds, compare } from './builds.ts';
import { request, STANDING_BOOKS } from './operations.ts';
import { type Measured, settle, watchMemory } from './processes.ts';
import { mebibytes, progress } from './report.ts';
import type { ComparisonRow, MemoryRow } from './results.ts';

const CONNECTIONS = 1300;

/** Bytes that each of them sends. */
const BYTES = 200_000;

/** Seconds without growth after which the memory has reached its peak. */
const STEADY = 5;

/** Milliseconds between two looks, and bytes between them that count as growth. */
const LOOK = 1000;
const GROWTH = 1024 ** 2;

const MANY_HEADERS = Array.from({ length: 900 }, (_, position) => `a${position}: b\r\n`).join('');

const FLOODS = {
  short: request('GET', '/book/1', undefined, ''),
  headers: `GET / HTTP/1.1\r\nHost: x\r\n${MANY_HEADERS}\r\n`,
};

const FIGURES = {
  start: 'at the start',
  short: '1,300 clients that read no answer',
  headers: 'the same, with 900 headers a request',
};

export async function measureMemory({
  own,
  other,
}: Builds): Promise<{ memory: MemoryRow[]; comparisons: ComparisonRow[] }> {
  const row = await memoryOf(own);
  const rowOfOther = other && (await memoryOf(other));
  const names = ['start', 'short', 'headers'] as const;
  const comparisons = names.map((name) =>
    compare(
      { what: FIGURES[name], store: row.store, figure: 'MiB' },
      [row[name]],
      [rowOfOther?.[name] ?? Number.NaN],
    ),
  );
  return { memory: [row], comparisons: other ? comparisons : [] };
}

async function memoryOf(build: Build): Promise<MemoryRow> {
  const { name } = build.store;
  const { start, peak: short } = await flood(build, 'short');
  const { peak: headers } = await flood(build, 'headers');
  return { store: name, start, short, headers };
}

/** In a new process. */
async function flood(
  build: Build,
  kind: keyof typeof FLOODS,
): Promise<{ readonly start: number; readonly peak: number }> {
  progress(`${build.store.name}: memory beside ${CONNECTIONS} connections, ${kind}`);
  const service = await build.start();
  await build.store.addBooks(STANDING_BOOKS);
  await settle(service);
  const start = mebibytes(service.residentBytes());
  const bytes = Buffer.from(FLOODS[kind].repeat(Math.ceil(BYTES / FLOODS[kind].length)));
  const sockets = Array.from({ length: CONNECTIONS }, () => flooding(service.port, bytes));
  const peak = mebibytes(await peakOf(service));
  for (const socket of sockets) socket.destroy();
  await service.stop();
  return { start, peak };
}

/** The most memory that a server takes until it no longer grows. */
async function peakOf(server: Measured): Promise<number> {
  const watch = watchMemory(server);
  let most = 0;
  for (let steady = 0; steady < STEADY; ) {
    await pause(LOOK);
    const bytes = server.residentBytes();
    steady = bytes > most + GROWTH ? 0 : steady + 1;
    most = Math.max(most, bytes);
  }
  return watch.stop();
}

/** A connection that sends bytes and reads nothing. The service may close it. */
function flooding(port: number, bytes: Buffer): Socket {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.on('error', () => {});
  socket.pause();
  socket.write(bytes);
  return socket;
}
