// Owns: our own load client, for machines without wrk: a process that applies one load after the other. It only counts: it
// finds where an answer ends by its Content-Length and looks at the first digit of its status.

import { connect } from 'node:net';
import { createHistogram, performance } from 'node:perf_hooks';
import { CONNECTIONS, type Load, type LoadResult } from './load.ts';

process.on('message', async (load: Load) => process.send?.(await apply(load)));

async function apply({ port, requests, seconds, connections = CONNECTIONS }: Load): Promise<LoadResult> {
  const bytes = requests.map((request) => Buffer.from(request));
  const latency = createHistogram();
  const result = { requests: 0, refused: 0, failed: 0 };
  const began = performance.now();
  const end = began + seconds * 1000;
  let position = 0;

  await Promise.all(Array.from({ length: connections }, run));
  return {
    ...result,
    seconds: (performance.now() - began) / 1000,
    p50: latency.percentile(50) / 1e6,
    p99: latency.percentile(99) / 1e6,
    slowest: latency.max / 1e6,
  };

  function run(): Promise<void> {
    return new Promise((resolve) => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true });
      let received = '';
      let sent = 0;
      let isAnswered = false;
      const send = () => {
        sent = performance.now();
        isAnswered = false;
        socket.write(bytes[position % bytes.length] as Buffer);
        position += 1;
      };
      socket.setEncoding('latin1');
      socket.on('connect', send);
      socket.on('data', (text: unknown) => {
        received += text;
        const head = received.indexOf('\r\n\r\n');
        if (head === -1) return;
        const length = Number(/content-length: (\d+)/i.exec(received)?.[1]);
        if (received.length < head + 4 + length) return;
        const now = performance.now();
        latency.record(Math.max(1, Math.round((now - sent) * 1e6)));
        result.requests += 1;
        if ((received[9] as string) >= '4') result.refused += 1;
        isAnswered = true;
        const isLast = /^connection: close/im.test(received.slice(0, head));
        received = '';
        if (now >= end) socket.destroy();
        else if (!isLast) send();
      });
      socket.on('error', () => {
        result.failed += 1;
      });
      // The answer to an unreadable request, for example, is the last one of its connection.
      socket.on('close', () => resolve(isAnswered && performance.now() < end ? run() : undefined));
    });
  }
}
