// Clients that use HTTP as none should: they pipeline thousands of requests, disconnect half way, ask for tunnels, or send no
// whole request; and the limits of the wire that variables set. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CHUNKED } from '../../conformance/raw-requests.ts';
import { expectBodyLimit, expectHeaderLimit } from '../../conformance/wire.ts';
import { beHonest } from '../support/attackers.ts';
import {
  assertRefusal,
  Client,
  Connection,
  exchange,
  parseAnswers,
  readEnvelope,
} from '../support/client.ts';
import { type CommandHere, startHere } from '../support/command.ts';
import { operationsOf } from '../support/operations.ts';
import { scrape, sumOf } from '../support/prometheus.ts';
import { compose } from '../support/raw-requests.ts';
import { ENVIRONMENT, SQLITE, startTestService } from '../support/service.ts';
import { verifiedAt } from '../support/verified.ts';
import { waitUntil } from '../support/wait.ts';

describe('hostile clients', () => {
  let service: CommandHere;
  let client: Client;
  /** Id of a large book. */
  let large: number;

  before(async () => {
    service = await start();
    client = await Client.logIn(service);
    ({ id: large } = await client.create({ title: 'x'.repeat(1_000_000) }));
  });
  after(() => service.stop());

  test('rules 9 and 20: any number of requests on one connection are all answered, in order', async () => {
    const { id } = await client.create({});
    const head = `Host: books.test\r\nAuthorization: ${client.token}\r\n`;
    const count = 500;
    const requests = Array.from({ length: count }, (_, number) => {
      const named = `${head}X-Request-Id: ${number}\r\n`;
      if (number % 3 === 0) return `GET /book/${id} HTTP/1.1\r\n${named}\r\n`;
      const body = `{"year":${number}${' '.repeat(number % 50 === 1 ? 100_000 : 0)}}`;
      return `PUT /book/${id} HTTP/1.1\r\n${named}Content-Length: ${body.length}\r\n\r\n${body}`;
    });
    const connection = new Connection(service);
    connection.socket.end(requests.join(''));
    assert.equal(await connection.closed, undefined);
    const answers = parseAnswers(connection.received);
    assert.equal(answers.length, count);
    answers.forEach(({ status, headers, body }, number) => {
      assert.equal(headers['x-request-id'], String(number));
      const { data } = readEnvelope(body, 200);
      assert.equal(status, 200);
      if (number % 3 !== 0) assert.equal(data.year, number);
    });
    assert.equal((await client.request('DELETE', `/book/${id}`)).status, 200);
  });

  test('rule 23: clients that disconnect in the middle of a request leave nothing behind', async () => {
    const openConnections = async () =>
      sumOf(await scrape(operationsOf(service).url), 'book_catalogue_http_connections');
    const before = await openConnections();
    const { token } = client;
    const beginnings = [
      'GET /bo',
      compose('GET', '/books', { token }),
      compose('GET', `/book/${large}`, { token }).repeat(5),
      `${compose('POST', '/book', { token, headers: 'Content-Length: 100000\r\n' })}{"title":"left"}`,
      `${compose('POST', '/book', { token, headers: CHUNKED })}10\r\n{"title":"left"}\r\n`,
    ];
    for (const beginning of beginnings) {
      for (const leave of ['resetAndDestroy', 'destroy'] as const) {
        const leaving = Array.from({ length: 5 }, () => new Connection(service));
        for (const connection of leaving) {
          connection.socket.pause();
          await connection.send(beginning);
          connection.socket[leave]();
          await connection.closed;
        }
      }
    }
    await waitUntil(async () => (await openConnections()) <= before);
    await beHonest({ client });
    const books = await client.list();
    assert.ok(books.every(({ title }) => title !== 'left'));
  });

  test('rules 20 and 27: a client that asks for a tunnel disturbs neither others, nor its earlier answers, nor a stop', async (context) => {
    const own = await start();
    context.after(() => own.stop());
    const client = await Client.logIn(own);
    const tunnel = compose('CONNECT', 'elsewhere.test:443');
    for (const target of [own, operationsOf(own)]) {
      const connection = new Connection(target);
      await connection.send(tunnel);
      await connection.answers(1);
      connection.socket.resetAndDestroy();
    }
    for (let made = 0; made < 12; made += 1) await client.create({ title: 'x'.repeat(1_000_000) }); // more than sockets hold
    const open = (request: string) => {
      const connection = new Connection(own);
      context.after(() => connection.socket.destroy());
      connection.socket.pause();
      connection.socket.write(request);
      return connection;
    };
    const list = open(compose('GET', '/books', client) + tunnel);
    await waitUntil(
      async () => sumOf(await scrape(operationsOf(own).url), 'book_catalogue_sqlite_open_lists') === 1,
    );
    await beHonest({ client });
    list.socket.resume();
    const [all, refusal] = await list.answers(2);
    assert.equal(readEnvelope(all?.body ?? '', 200).data.length, 12);
    assert.equal(refusal?.status, 400);
    const reader = open(compose('GET', '/book/1', client).repeat(12) + tunnel);
    await beHonest({ client });
    const ended = own.stop();
    reader.socket.resume();
    assert.equal((await ended).code, 0);
  });

  test('rule 11: a DELETE that is not whole, or not HTTP, removes nothing', async () => {
    const { id } = await client.create({ title: 'kept' });
    const { token } = client;
    const remove = compose('DELETE', `/book/${id}`, { token, headers: CHUNKED });
    assertRefusal((await exchange(service, `${remove}zz\r\n`))[0], 400, 'Bad request');
    const leaving = new Connection(service);
    await leaving.send(`${remove}1\r\n `);
    leaving.socket.destroy();
    await beHonest({ client });
    assert.equal((await client.request('GET', `/book/${id}`)).status, 200);
    const [answer] = await exchange(service, `${remove}1\r\n \r\n0\r\n\r\n`);
    assert.equal(answer?.status, 200);
  });

  test('rule 20: requests that reach no route are logged with the ids of their answers', async () => {
    for (const [bytes, status] of [
      ['garbage\r\n\r\n', 400],
      [compose('GET', '/', { headers: `X: ${'x'.repeat(20_000)}\r\n` }), 431],
      [compose('CONNECT', 'elsewhere.test:443'), 400],
      ['DESCRIBE / RTSP/1.0\r\nHost: books.test\r\n\r\n', 400],
    ] as const) {
      const [answer] = await exchange(service, bytes);
      assert.equal(answer?.status, status);
      const reqId = answer?.headers['x-request-id'];
      const lines = () => service.log.filter((line) => line.includes(`"reqId":"${reqId}"`));
      await waitUntil(() => lines().length > 0);
      const entry = JSON.parse(lines()[0] ?? '');
      assert.deepEqual([entry.level, entry.msg, entry.status], ['info', 'request', status]);
    }
  });
});

describe('limits of the wire', () => {
  for (const [size, bodyLimit, headerLimit] of [
    ['smaller', 1000, 2048],
    ['larger', 1_500_000, 100_000],
  ] as const) {
    test(`rule 22: a ${size} BODY_LIMIT and HEADER_LIMIT are the limits`, async (context) => {
      const env = { BODY_LIMIT: String(bodyLimit), HEADER_LIMIT: String(headerLimit) };
      const limited = await startTestService(await SQLITE.freshUrl(), env);
      context.after(() => limited.stop());
      const verified = verifiedAt(limited);
      context.after(() => verified.close());
      await verified.logIn();
      await expectBodyLimit(verified, bodyLimit);
      await expectHeaderLimit(verified, headerLimit);
    });
  }
});

async function start(): Promise<CommandHere> {
  return startHere({ ...ENVIRONMENT, DB_URL: await SQLITE.freshUrl(), ADMIN_PORT: '0', LOG_LEVEL: 'info' });
}
