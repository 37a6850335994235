// One connection, without a network: the test is the client, and answers the requests.
// Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { type Duplex, duplexPair } from 'node:stream';
import { describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Answer } from '../../src/http/answer.ts';
import { readBody } from '../../src/http/body.ts';
import type { Request } from '../../src/http/request.ts';
import { roomForMore } from '../../src/http/room.ts';
import { HttpServer } from '../../src/http/server.ts';
import { TIMES } from '../../src/times.ts';
import '../support/random.ts';
import { settled, VirtualTime } from '../support/virtual-time.ts';

const MEBIBYTE = 1024 * 1024;

const GET = 'GET / HTTP/1.1\r\nhost: test\r\n\r\n';

/** Answers a request. */
function answer(request: Request | undefined, body: Answer['body'] = 'answer'): void {
  request?.answer({ status: 200, headers: [], body: body ?? '' }, '', () => {});
}

const times = {
  ...TIMES.http,
  ...{ headers: 15_000, wholeRequest: 30_000, keepAlive: 72_000, check: 1000 },
  ...{ reader: 60_000, readerWithoutRoom: 5000 },
};

/** A server whose clients connect without a network. */
class Server {
  /** The requests that it has got. */
  readonly got: Request[] = [];
  readonly refusals: number[] = [];
  onRequest: () => void = () => {};
  readonly http = new HttpServer(
    16 * 1024,
    times,
    async (request) => {
      this.got.push(request);
      this.onRequest();
    },
    (status) => {
      this.refusals.push(status);
      return { status, headers: [], body: 'refused' };
    },
    assert.ifError,
  );

  /** @returns the client's end, whose `socket` is the server's. */
  connect(): Duplex & { socket: Duplex & { bytesWritten: number }; isReset: boolean } {
    const [duplex, end] = duplexPair();
    const resetAndDestroy = () => {
      client.isReset = true;
      end.destroy();
    };
    const socket = Object.assign(end, { bytesRead: 0, bytesWritten: 0, resetAndDestroy });
    const client = Object.assign(duplex, { socket, isReset: false });
    this.http.server.emit('connection', socket);
    return client;
  }
}

describe('pipelined requests', () => {
  test('rule 22: a body is read no faster than the service takes it', async () => {
    const server = new Server();
    const client = server.connect();
    client.write(`POST / HTTP/1.1\r\nhost: test\r\ncontent-length: ${MEBIBYTE}\r\n\r\n`);
    let taken = 0;
    for (let sent = 0; sent < 64; sent += 1) client.write('x'.repeat(MEBIBYTE / 64), () => (taken += 1));
    await settled();
    await settled();
    assert.ok(taken < 32, `${taken} of 64 parts were taken`);
    const request = await nextOf(server, 0);
    assert.equal((await readBody(request, MEBIBYTE)).length, MEBIBYTE);
  });

  test('rule 22: of a body that nobody reads, little is kept, however short its chunks are', async () => {
    const server = new Server();
    const client = server.connect();
    client.write(
      `POST / HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n${'1\r\na\r\n'.repeat(2000)}`,
    );
    const request = await nextOf(server, 0);
    for (let turn = 0; turn < 200; turn += 1) await settled();
    assert.equal(client.socket.isPaused(), true);
    client.write('0\r\n\r\n');
    assert.equal((await readBody(request, MEBIBYTE)).length, 2000);
  });

  test('rule 20: the refusal of a tunnel fails if its client is gone, which ends only that connection', async () => {
    const server = new Server();
    const client = server.connect();
    const failed = new Promise<void>((resolve) => {
      client.socket._write = (_chunk, _encoding, done) => {
        process.nextTick(() => done(new Error('the client is gone')));
        resolve();
      };
    });
    client.write('CONNECT elsewhere.test:443 HTTP/1.1\r\nhost: test\r\n\r\n');
    await failed;
    for (let turn = 0; turn < 3; turn += 1) await settled();
    assert.equal(client.socket.destroyed, true);
  });

  test('rule 22: 64 MiB wait behind answers to the requests before them; a connection beyond is closed', async () => {
    const server = new Server();
    const connect = async () => {
      const client = server.connect();
      client.write(GET + 'x'.repeat(MEBIBYTE - GET.length));
      await settled();
      return client;
    };
    const clients = await Promise.all(Array.from({ length: 64 }, connect));
    const beyond = await connect();
    const other = server.connect();
    other.write(GET);
    await settled();
    assert.deepEqual(
      [...clients, other].filter(({ socket }) => socket.destroyed),
      [],
    );
    assert.equal(beyond.socket.destroyed, true);
    clients.pop()?.socket.destroy();
    await settled();
    clients.push(await connect());
    assert.equal(clients.at(-1)?.socket.destroyed, false);
    for (const { socket } of clients) socket.destroy();
  });

  test('rule 22: what waits also counts the memory of what came before it in the same packet', async () => {
    const server = new Server();
    server.onRequest = () => server.got.at(-1)?.takeBody({ take() {}, end() {} });
    const head = `POST / HTTP/1.1\r\nhost: test\r\ncontent-length: ${MEBIBYTE / 2}\r\n\r\n`;
    const connect = () => {
      const client = server.connect();
      client.write(head + 'x'.repeat(MEBIBYTE - head.length));
      return client;
    };
    const clients = Array.from({ length: 65 }, connect);
    await settled();
    assert.equal(clients.filter(({ socket }) => !socket.destroyed).length, 64);
    for (const { socket } of clients) socket.destroy();
  });

  describe('memory', () => {
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');

    /** Sends bytes that are in a separate memory. */
    function send(client: Duplex, text: string): WeakRef<ArrayBufferLike> {
      const bytes = Buffer.allocUnsafeSlow(text.length);
      bytes.write(text);
      client.write(bytes);
      return new WeakRef(bytes.buffer);
    }

    async function areKept(...memories: readonly WeakRef<object>[]): Promise<boolean[]> {
      for (let turn = 0; turn < 10; turn += 1) await settled();
      collect();
      return memories.map((memory) => memory.deref() !== undefined);
    }

    test('rule 22: a few bytes that wait keep no other memory', async () => {
      const server = new Server();
      const client = server.connect().resume();
      const memory = send(client, `${GET.slice(0, -4)}\r\nx: ${'x'.repeat(8000)}\r\n\r\n\r\n\r`);
      answer(await nextOf(server, 0));
      assert.deepEqual(await areKept(memory), [false]);
    });

    test('rule 22: nothing is kept of what follows the last request, nor of a connection that has ended', async () => {
      const server = new Server();
      const client = server.connect();
      const last = `${GET.slice(0, -2)}connection: close\r\n\r\n`;
      const memories = [send(client, last + 'x'.repeat(8000))];
      const silent = async function* () {
        yield 'x';
        await new Promise(() => {});
      };
      answer(await nextOf(server, 0), { chunks: silent(), close() {} });
      await settled();
      memories.push(send(client, 'x'.repeat(8000)));
      assert.deepEqual(await areKept(...memories), [false, false]);
      const connection = connectAndEnd(server);
      server.got.length = 0;
      assert.deepEqual(await areKept(connection), [false]);
      client.destroy();
    });

    function connectAndEnd(server: Server): WeakRef<object> {
      const { socket } = server.connect();
      socket.destroy();
      return new WeakRef(socket);
    }
  });

  test('rule 9: a client with many short requests also leaves every turn of the event loop to others', async () => {
    const time = new VirtualTime();
    await time.during(async () => {
      const server = new Server();
      server.onRequest = () => {
        time.now += 5; // more than such requests may take of a turn
      };
      for (const client of [server.connect(), server.connect()]) client.resume().write(GET.repeat(20));
      await settled();
      const turns: number[] = [];
      while (turns.length < 38) {
        for (const request of server.got.splice(0)) answer(request);
        await settled();
        await settled();
        assert.equal(server.got.length, 0, 'a request is read in the turn of the answer before it');
        time.pass();
        turns.push(server.got.length);
      }
      for (const request of server.got) answer(request);
      await settled();
      assert.equal(time.pending, 0);
      assert.deepEqual(turns, new Array(38).fill(1));
    });
  });

  test('rule 9: a client with many short chunks also leaves every turn of the event loop to others', async () => {
    const server = new Server();
    const client = server.connect().resume();
    client.write('POST / HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n');
    const request = await nextOf(server, 0);
    let [pieces, all] = [0, 0];
    request.takeBody({
      take() {
        pieces += 1;
      },
      end() {},
    });
    client.write('1\r\nx\r\n'.repeat(1000));
    assert.equal(client.socket.isPaused(), true, 'more is read although some waits');
    for (let turn = 0; turn < 10_000 && all < 1000; turn += 1) {
      await settled();
      assert.ok(pieces <= 64, `${pieces} chunks`);
      all += pieces;
      pieces = 0;
    }
    assert.equal(all, 1000);
  });

  for (const { what, isTaken, isExpecting, isLast } of [
    {
      what: 'without its body to a client that waits for 100',
      isTaken: false,
      isExpecting: true,
      isLast: true,
    },
    { what: 'without its body to another client', isTaken: false, isExpecting: false, isLast: false },
    { what: 'with its body to a client that waits for 100', isTaken: true, isExpecting: true, isLast: false },
  ]) {
    test(`rule 20: an answer ${what} is the last one: ${isLast}`, async () => {
      const server = new Server();
      const client = server.connect().setEncoding('latin1');
      const expect = isExpecting ? 'expect: x, 100-Continue\r\n' : '';
      client.write(`POST / HTTP/1.1\r\nhost: test\r\n${expect}content-length: ${GET.length}\r\n\r\n`);
      const request = await nextOf(server, 0);
      const body = isTaken ? readBody(request, MEBIBYTE) : undefined;
      if (!isTaken) answer(request);
      await settled();
      client.write(GET); // its body, or the next request of a client that has left the body out
      if (isTaken) answer(request, await body);
      client.write(GET);
      for (let turn = 0; turn < 5; turn += 1) await settled();
      assert.deepEqual(
        [/connection: close/.test(String(client.read())), server.got.length],
        [isLast, isLast ? 1 : 2],
      );
    });
  }

  test('rule H3: that a client leaves is noticed, also if an end of a line follows its request', async () => {
    const server = new Server();
    const client = server.connect();
    client.write(`${GET}\r\n`);
    const request = await nextOf(server, 0);
    await settled();
    const left = new Promise<void>((resolve) => request.onLeave(resolve));
    client.end();
    await left;
  });

  const POST = 'POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 6\r\n\r\n';
  for (const { what, sent, isLast } of [
    { what: 'an end of a line follows it', sent: [`${GET}\r\n`], isLast: true },
    { what: 'another request follows it', sent: [GET + GET], isLast: false },
    { what: 'another request has come behind its body', sent: [`${POST}abc`, 'def', GET], isLast: false },
  ]) {
    test(`rule 27: while the service stops, the answer to a request is the last one: ${isLast}, if ${what}`, async () => {
      const server = new Server();
      const client = server.connect().setEncoding('latin1');
      for (const packet of sent) {
        client.write(packet);
        await settled();
      }
      const request = await nextOf(server, 0);
      void server.http.close(1000, 1000);
      request.takeBody({ take: () => {}, end: () => answer(request) });
      await settled();
      assert.equal(/connection: close/.test(String(client.read())), isLast);
    });
  }
});

describe('slow clients', () => {
  /** Runs the seconds, and the reactions to each of them. */
  async function pass(time: VirtualTime, seconds: number): Promise<void> {
    for (const end = time.now + seconds * 1000; time.now < end; ) {
      time.pass(end - time.now);
      await settled();
    }
  }

  /** A client of a server that looks at its clients every second. */
  async function connectedTo(server: Server) {
    const client = server.connect();
    server.http.server.emit('listening');
    await settled();
    return client;
  }

  const HEAD = 'POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 2\r\n\r\n';
  for (const { what, sent, seconds, refusals } of [
    { what: 'the first request', sent: '', seconds: 15, refusals: [] },
    { what: 'the end of the headers', sent: 'GET / HTTP/1.1\r\nhost: te', seconds: 15, refusals: [408] },
    { what: 'the end of the body', sent: `${HEAD}{`, seconds: 30, refusals: [408] },
    { what: 'the next request', sent: GET, seconds: 72, refusals: [] },
  ]) {
    test(`rule 22: a client that sends no more before ${what} is cut off after ${seconds} s`, async () => {
      const time = new VirtualTime();
      await time.during(async () => {
        const server = new Server();
        const client = (await connectedTo(server)).resume();
        server.onRequest = () =>
          sent === GET ? answer(server.got[0]) : server.got[0]?.takeBody({ take() {}, end() {} });
        client.write(sent);
        await settled();
        await pass(time, seconds - 1);
        assert.deepEqual([client.readableEnded, server.refusals], [false, []]);
        await pass(time, 3);
        assert.deepEqual([client.readableEnded || client.destroyed, server.refusals], [true, refusals]);
      });
    });
  }

  test('rule 22: a client that sends nothing but halves of empty lines is cut off like one that sends nothing', async () => {
    const time = new VirtualTime();
    await time.during(async () => {
      const server = new Server();
      const client = (await connectedTo(server)).resume();
      for (let second = 1; second <= 17; second += 1) {
        assert.ok(second > 14 || !client.readableEnded);
        if (!client.destroyed) client.write(second % 2 === 1 ? '\r' : '\n');
        await pass(time, 1);
      }
      assert.deepEqual([client.readableEnded || client.destroyed, server.refusals], [true, []]);
    });
  });

  for (const { what, sent, isReset } of [
    { what: 'the answer that nobody reads', sent: 'whole', isReset: false },
    { what: 'half of its answer', sent: 'half', isReset: true },
  ]) {
    test(`rule 22: a body that does not end after ${what} ends the connection, by a reset: ${isReset}`, async () => {
      const time = new VirtualTime();
      await time.during(async () => {
        const server = new Server();
        const client = await connectedTo(server);
        client.write(`${HEAD}{`);
        await settled();
        const half = async function* () {
          yield 'x';
          await new Promise(() => {});
        };
        answer(server.got[0], sent === 'whole' ? 'x'.repeat(MEBIBYTE) : { chunks: half(), close() {} });
        await pass(time, 29);
        assert.deepEqual([client.socket.destroyed, client.isReset], [false, false]);
        await pass(time, 2);
        assert.equal(client.isReset, isReset);
        await pass(time, 62);
        assert.deepEqual([client.socket.destroyed, server.refusals], [true, []]);
      });
    });
  }

  test('rule 22: bytes that arrive behind others that wait count as well, within a second', async () => {
    const time = new VirtualTime();
    await time.during(async () => {
      const server = new Server();
      await connectedTo(server);
      const clients = Array.from({ length: 65 }, () => server.connect());
      for (const part of [GET, 'GET', 'x'.repeat(MEBIBYTE - 4)]) {
        for (const client of clients) client.write(part);
        await settled();
      }
      await pass(time, 1);
      assert.equal(clients.filter(({ socket }) => !socket.destroyed).length, 64);
      for (const { socket } of clients) socket.destroy();
    });
  });

  test('rule 22: the time of a request does not begin while the one before is answered', async () => {
    const time = new VirtualTime();
    await time.during(async () => {
      const server = new Server();
      const client = (await connectedTo(server)).resume();
      client.write(`${GET}GET / HTTP/1.1\r\n`);
      await pass(time, 100);
      answer(server.got[0]);
      await settled();
      await pass(time, 14);
      client.write('host: test\r\n\r\n');
      await settled();
      assert.deepEqual([server.got.length, server.refusals], [2, []]);
    });
  });

  test('rule 22: a client that reads none of 128 MiB of answers is cut off after 5 s if others find no room, else after a minute', async () => {
    const time = new VirtualTime();
    await time.during(async () => {
      const server = new Server();
      const [silent, other] = [await connectedTo(server), server.connect()];
      for (const client of [silent, other]) client.write(GET);
      await settled();
      const [first, second] = server.got as [Request, Request];
      assert.ok(first.takeRoom(answerOf(128 * MEBIBYTE)));
      answer(first, 'x'.repeat(MEBIBYTE));
      await pass(time, 59);
      silent.socket.bytesWritten += 1; // it has read something
      await pass(time, 59);
      assert.equal(silent.destroyed, false);
      assert.ok(second.takeRoom(answerOf(4096)), 'an answer that needs no room');
      assert.equal(second.takeRoom(answerOf(MEBIBYTE)), false);
      silent.socket.bytesWritten += 1;
      await pass(time, 5);
      assert.equal(silent.socket.destroyed, false);
      await pass(time, 2);
      assert.equal(silent.socket.destroyed, true);
      assert.ok(second.takeRoom(answerOf(128 * MEBIBYTE)), 'its room is free again');
      other.socket.destroy();
      await settled();
    });
  });

  test('rule 22: a body that several answers share takes its room once, until the last one has been read; after a wait for room, none is refused', async () => {
    const server = new Server();
    const clients = Array.from({ length: 5 }, () => server.connect());
    for (const client of clients) client.write(GET);
    await settled();
    const [one, two, three, four, five] = server.got as [Request, Request, Request, Request, Request];
    const shared = { ...answerOf(100 * MEBIBYTE), body: new Uint8Array(1) };
    assert.deepEqual([one.takeRoom(shared), two.takeRoom(shared)], [true, true]);
    assert.equal(three.takeRoom(answerOf(29 * MEBIBYTE)), false);
    assert.equal(three.takeRoom({ ...answerOf(29 * MEBIBYTE), waited: 0 }), true);
    let isFree = false;
    const free = roomForMore().then(() => {
      isFree = true;
    });
    for (const request of [one, three]) request.abandon();
    await settled();
    assert.deepEqual([isFree, four.takeRoom(answerOf(29 * MEBIBYTE))], [false, false]);
    two.abandon();
    await free;
    assert.equal(five.takeRoom(answerOf(128 * MEBIBYTE)), true);
    five.abandon();
    await settled();
  });
});

/** Of so many bytes. */
const answerOf = (length: number): Answer => ({ status: 200, headers: [], length });

async function nextOf({ got }: Server, index: number): Promise<Request> {
  for (let look = 0; look < 100 && got.length <= index; look += 1) await settled();
  return got[index] as Request;
}
