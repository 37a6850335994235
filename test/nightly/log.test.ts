// What the log has once a second at most, and what it has of requests that are slow or find no room.

import assert from 'node:assert/strict';
import { renameSync } from 'node:fs';
import { describe, type TestContext, test } from 'node:test';
import { Client, Connection, request } from '../support/client.ts';
import { startHere } from '../support/command.ts';
import { inTime } from '../support/in-time.ts';
import { ENVIRONMENT, fileOf, type RunningService, SQLITE, startTestService } from '../support/service.ts';
import { executeOn, holdWrites } from '../support/sql.ts';
import { waitUntil } from '../support/wait.ts';

type Line = Readonly<Record<string, unknown>>;

/** Milliseconds after which a request is slow, and between two lines about slow requests, or about the same fault. */
const SECOND = 1000;

/** Milliseconds within which a write that waits for a lock must begin. */
const WRITE_TIMEOUT = 3000;

/** Milliseconds within which a request must be complete. */
const WHOLE_REQUEST_TIMEOUT = 30_000;

describe('the log of requests', { concurrency: 4 }, () => {
  for (const level of ['info', 'warn'] as const) {
    test(`at LOG_LEVEL=${level}, slow requests are marked, once a second however many there are`, async (context) => {
      await inTime(WRITE_TIMEOUT, async (startClock) => {
        const { service, lines } = await start(context, level);
        const unlock = await holdWrites(service.dbUrl);
        const head = `Host: x\r\nAuthorization: ${service.client.token}\r\n`;
        startClock();
        const connections = Array.from({ length: 20 }, () => new Connection(service));
        await Promise.all(
          connections.map(async (connection) => {
            context.after(() => connection.socket.destroy());
            await connection.send(
              `GET /nowhere HTTP/1.1\r\n${head}\r\nPOST /book HTTP/1.1\r\n${head}Content-Length: 2\r\n\r\n{}`,
            );
            await connection.answers(1); // so the second one has started
          }),
        );
        const began = performance.now();
        await waitUntil(() => performance.now() - began > SECOND);
        await unlock();
        for (const connection of connections) {
          const [, answer] = await connection.answers(2);
          assert.equal(answer?.status, 201);
        }
        await service.stop(); // so that its lines are complete

        const posted = lines.filter(({ path }) => path === '/book');
        const slow = posted.filter(({ msg }) => msg === 'slow request');
        assert.ok(slow.length > 0);
        assert.ok(areApart(slow));
        for (const { milliseconds, method, status, level } of slow) {
          assert.deepEqual([level, method, status], ['warn', 'POST', 201]);
          assert.ok(Number(milliseconds) >= SECOND);
        }
        assert.equal(posted.length, level === 'info' ? connections.length : slow.length);
      });
    });
  }
});

describe('the log of faults', { concurrency: 4 }, () => {
  test('rule 23: a failing store is logged once a second, with the number of affected requests', async (context) => {
    const { service, lines } = await start(context, 'warn');
    await executeOn(service.dbUrl, 'drop table books');
    const faults = () => lines.filter(({ msg }) => msg === 'the store is unavailable');
    let sent = 0;
    await waitUntil(async () => {
      const { status } = await service.client.request('GET', '/book/1');
      assert.equal(status, 503);
      sent += 1;
      return faults().length === 3;
    });
    for (const { level, reason } of faults()) assert.deepEqual([level, typeof reason], ['error', 'string']);
    assert.ok(areApart(faults()));
    const counted = () => faults().reduce((sum, { requests }) => sum + Number(requests), 0);
    await waitUntil(() => counted() === sent);
    assert.ok(lines.every(({ msg }) => msg !== 'request')); // those are at `info`

    // Another reason in the same second gets its own line.
    renameSync(fileOf(service.dbUrl), `${fileOf(service.dbUrl)}.away`);
    await service.client.request('GET', '/book/1');
    await service.client.request('GET', '/books');
    await waitUntil(() => counted() === sent + 2);
    assert.equal(new Set(faults().map(({ reason }) => reason)).size, 2);
  });

  test('rule 27: a line about a fault that is still due when the service ends does no harm', async (context) => {
    const dbUrl = await SQLITE.freshUrl();
    const service = await startHere({ ...ENVIRONMENT, DB_URL: dbUrl, LOG_LEVEL: 'info' });
    context.after(() => service.stop());
    const client = await Client.logIn(service);
    await executeOn(dbUrl, 'drop table books');
    const began = performance.now();
    // The line about the second one is due a second after the first.
    for (const path of ['/book/1', '/book/2']) assert.equal((await client.request('GET', path)).status, 503);
    assert.equal((await service.stop()).code, 0);
    await waitUntil(() => performance.now() - began > 1.2 * SECOND);
  });

  test('rules 22 and 23: a body for which there is no room is logged', async (context) => {
    await inTime(WHOLE_REQUEST_TIMEOUT, async (startClock) => {
      const mebibyte = 1024 * 1024;
      const { service, lines } = await start(context, 'error', { BODY_LIMIT: String(128 * mebibyte) });
      startClock();
      const large = new Connection(service);
      const { token } = await Client.logIn(service);
      const head = `POST /book HTTP/1.1\r\nHost: x\r\nAuthorization: ${token}\r\n`;
      await large.send(`${head}Content-Length: ${128 * mebibyte}\r\n\r\n`);
      await large.send(Buffer.alloc(128 * mebibyte - 1000)); // all the room there is, except 1,000 bytes
      let isCut = false;
      void large.closed.then(() => {
        isCut = true;
      });
      const body = ' '.repeat(70_000);
      let answer = await request(service, 'POST', '/book', { body, token });
      await waitUntil(async () => {
        if (answer.status !== 503) answer = await request(service, 'POST', '/book', { body, token });
        return isCut || answer.status === 503;
      });
      large.socket.destroy(); // otherwise the end of the service would wait for the rest
      assert.equal(answer.status, 503);
      await service.stop(); // so that its lines are complete
      const [{ time: _, ...line } = {}, ...others] = lines;
      const reqId = answer.headers.get('x-request-id');
      const reason = 'the memory for request bodies is used up';
      assert.deepEqual(line, {
        level: 'error',
        reqId,
        reason,
        requests: 1,
        msg: 'a request body was refused',
      });
      assert.equal(others.length, 0);
    });
  });
});

/** Starts a service in this process and keeps its log lines. */
async function start(
  context: TestContext,
  LOG_LEVEL: string,
  env: Record<string, string> = {},
): Promise<{ service: RunningService; lines: Line[] }> {
  const lines: Line[] = [];
  const write = (line: string) => lines.push(JSON.parse(line));
  const service = await startTestService(await SQLITE.freshUrl(), { LOG_LEVEL, ...env }, { write });
  context.after(() => service.stop());
  return { service, lines };
}

/** Whether each line came at least a second after the previous one. */
function areApart(lines: readonly Line[]): boolean {
  const times = lines.map(({ time }) => Date.parse(String(time)));
  const rounding = 5; // milliseconds between the clock of the lines and that of the timers
  return times.every(
    (time, position) => position === 0 || time - Number(times[position - 1]) >= SECOND - rounding,
  );
}
