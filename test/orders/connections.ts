// Owns: every order of packets, answers, reads, leaving, the passing of time and a stop on connections that share their rooms and
// turns (rules 9, 20 to 22 and 27). What may happen when is worked out from the requests as they were made up, not as they are read.

import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import fc from 'fast-check';
import type { Answer } from '../../src/http/answer.ts';
import { BodyTooLarge, NoRoomForBody, readBody } from '../../src/http/body.ts';
import type { Request } from '../../src/http/request.ts';
import { BODIES, lacksAnswerRoom, Share, takeAnswerRoom, WAITING } from '../../src/http/room.ts';
import { HttpServer } from '../../src/http/server.ts';
import { TIMES } from '../../src/times.ts';
import { ServerSocket } from '../support/server-socket.ts';
import { readAnswers } from './answers.ts';
import { Order } from './order.ts';
import { often, requestOf, type Sent, specs } from './requests.ts';

const MEBIBYTE = 1024 * 1024;
const SECOND = 1000;
/** Of a stop. */
const LAST_REQUEST = 500;
const GRACE = 5000;
/** Within which a connection ends after its client and its handlers have done the last thing. */
const LONGEST = 180 * SECOND;

const times = {
  ...{ headers: 15 * SECOND, wholeRequest: 30 * SECOND, keepAlive: 72 * SECOND, check: SECOND },
  ...{ reader: 60 * SECOND, readerWithoutRoom: 5 * SECOND, linger: SECOND },
} satisfies typeof TIMES.http | object;

const clients = fc.record({
  requests: fc.array(specs, { minLength: 1, maxLength: 4 }),
  cuts: fc.array(fc.nat(400), { maxLength: 6 }),
  /** Milliseconds before a packet, by turns. */
  delays: fc.array(fc.constantFrom(0, 0, 0, 10 * SECOND, 20 * SECOND, 70 * SECOND), {
    minLength: 1,
    maxLength: 3,
  }),
  reads: often('at once', 'in parts', 'after sending', 'never'),
  ends: often('half-closes', 'half-closes early', 'stays', 'stays early', 'resets', 'resets early'),
  capacity: fc.constantFrom(1, 30, 400, Number.POSITIVE_INFINITY),
});

type Behaviour = typeof clients extends fc.Arbitrary<infer Value> ? Value : never;

/** What becomes of one that the service handles. */
interface Exchange {
  readonly sent: Sent;
  answer?: { readonly status: number; readonly body: string; readonly isStream: boolean };
  /** Whether the handler has given all of the answer. */
  isGiven: boolean;
  /** Whether the system has had all of the answer. */
  isSent: boolean;
  hasFailed: boolean;
  room: { readonly bytes: number; readonly isShared: boolean } | undefined;
  body: string;
  ends: boolean[];
  leaves: number;
  openStreams: number;
}

const EMPTY = { status: 200, headers: [] };
const SHARED = new Uint8Array(1);

export const connections = fc.asyncProperty(
  fc.scheduler(),
  fc.array(clients, { minLength: 1, maxLength: 3 }),
  fc.option(fc.constantFrom(0, 300, 14 * SECOND), { freq: 3 }),
  fc.constantFrom(0, 0, 0, 64 * MEBIBYTE),
  (scheduler, behaviours, stopsAfter, others) =>
    Order.run(scheduler, async (order) => {
      order.strides = [1, 400, ...new Array(8).fill(Number.POSITIVE_INFINITY)];
      const service = new Service(order, behaviours, others > 0);
      using waiting = new Share(WAITING);
      waiting.take(others);
      try {
        await service.run(stopsAfter);
        assert.deepEqual([WAITING.taken, BODIES.taken, lacksAnswerRoom()], [others, 0, false]);
        const halves = [64, 64].map((mebibytes) =>
          takeAnswerRoom({ ...EMPTY, length: mebibytes * MEBIBYTE }),
        );
        for (const release of halves) {
          assert.ok(release, 'room for answers is not free again');
          release();
        }
      } finally {
        for (const { socket } of service.clients) socket.destroy();
        await order.atOnce();
      }
    }),
);

class Service {
  readonly order: Order;
  readonly clients: readonly Client[];
  readonly http: HttpServer;
  readonly areRoomsFull: boolean;
  /** When it began to stop. */
  stopped = Number.POSITIVE_INFINITY;
  /** Pauses of the test's own. */
  pauses = 0;
  /** Whether an answer has found no room. */
  lackedRoom = false;
  /** Why handlers have failed. */
  readonly unreported = new Set<unknown>();
  /** Handlers that have not ended. */
  busy = 0;

  constructor(order: Order, behaviours: readonly Behaviour[], areRoomsFull: boolean) {
    this.order = order;
    this.areRoomsFull = areRoomsFull;
    this.clients = behaviours.map((behaviour, index) => new Client(this, index, behaviour));
    const faults = new Set(['it fails', 'a header x cannot be sent']);
    this.http = new HttpServer(
      16 * 1024,
      { ...TIMES.http, ...times },
      async (request) => {
        const [, client] = request.target.split('/');
        this.busy += 1;
        try {
          await (this.clients[Number(client)] as Client).handle(request);
        } catch (error) {
          this.unreported.add(error);
          throw error;
        } finally {
          this.busy -= 1;
        }
      },
      (status) => ({ status, headers: ['x-refused', `${status}`], body: 'refused' }),
      (error) => {
        this.unreported.delete(error);
        order.expect(faults.has((error as Error).message), `a handler fails: ${(error as Error).stack}`);
      },
    );
  }

  async pause(milliseconds: number): Promise<void> {
    if (milliseconds === 0) return;
    this.pauses += 1;
    await this.order.pause(milliseconds);
    this.pauses -= 1;
  }

  async run(stopsAfter: number | null): Promise<void> {
    const { order, clients, http } = this;
    const { server } = http;
    server.emit('listening');
    const ended = Promise.withResolvers<void>();
    // The listener has no port here.
    Object.assign(server, { close: (done: () => void) => ended.promise.then(done) });
    const acts = clients.map((client) => client.act());
    const stop = async () => {
      if (stopsAfter === null) return;
      await this.pause(stopsAfter);
      await order.later('the service stops', () => {
        this.stopped = order.time.now;
        void http.close(LAST_REQUEST, GRACE);
      });
    };
    acts.push(stop());
    let isOver = false;
    void Promise.all(acts).then(() => {
      isOver = true;
    });
    order.onTime = () => {
      for (const client of clients) client.expectOver();
    };
    let last = 0;
    await order.untilQuiet(() => {
      for (const client of clients) client.observe();
      if (!isOver || this.busy > 0) last = order.time.now;
      const areClosed = clients.every(({ isClosed }) => isClosed);
      if (areClosed) ended.resolve();
      order.expect(areClosed || order.time.now <= this.stopped + GRACE, 'a stop takes too long');
      order.expect(areClosed || order.time.now < last + LONGEST, 'a connection does not end');
      return areClosed && isOver && this.busy === 0;
    });
    server.emit('close');
    await order.untilQuiet(() => this.pauses === 0);
    await order.atOnce();
    assert.equal(order.time.pending, 0, 'a timer is left');
    assert.equal(this.unreported.size, 0, 'that a handler has failed is not reported');
    for (const client of clients) client.check();
  }

  /** Bytes of answers for which there is no room. */
  taken(): number {
    const rooms = this.clients.flatMap((client) => client.rooms());
    const shared = rooms.find(({ isShared }) => isShared)?.bytes ?? 0;
    return rooms.reduce((sum, { isShared, bytes }) => sum + (isShared ? 0 : bytes), shared);
  }
}

class Client {
  readonly socket: ServerSocket;
  readonly #service: Service;
  readonly #name: string;
  readonly #behaviour: Behaviour;
  readonly #bytes: Buffer;
  readonly #sent: readonly Sent[];
  readonly #begun: Exchange[] = [];
  readonly #opened: number;
  isClosed = false;
  /** Whether it may wait for `100 Continue`, and send another request instead once it has an answer. */
  #isUnasked = false;
  /** Whether the server has seen its end, or it has gone. */
  #hasLeft = false;
  /** The last answer says that it is the last. */
  #saidLast = false;
  #refused: number | undefined;
  #ended = Number.POSITIVE_INFINITY;
  #lastWrite = 0;
  /** When the bytes came with which the part began that is not whole. */
  #partSince = 0;
  /** When the last answer was done. */
  #idleSince = 0;
  #hasSent = false;
  /** Whether the rest of a request that has its answer is wrong or late, so that nothing more is read. */
  #hasEndedSilently = false;
  /** Whether the handler has asked for the body of the last request. */
  #isTaken = false;

  constructor(service: Service, index: number, behaviour: Behaviour) {
    this.#service = service;
    this.#name = `client ${index}`;
    this.#behaviour = behaviour;
    let begin = 0;
    const parts: string[] = [];
    this.#sent = behaviour.requests.map((spec, number) => {
      const { text, ...sent } = requestOf(spec, `${index}/${number}`, begin);
      parts.push(text);
      begin += text.length;
      return sent;
    });
    this.#bytes = Buffer.from(parts.join(''));
    this.socket = new ServerSocket(behaviour.capacity);
    const { order } = service;
    this.#opened = order.time.now;
    this.socket.onWrite = (text) => this.#noteWrite(text);
    this.socket.onDestroy = () => order.expect(this.#mayDestroy(), `${this.#name} is cut off`);
    this.socket.onEnd = () => {
      this.#ended = order.time.now;
      order.expect(this.#mayEnd(), `the connection of ${this.#name} ends`);
    };
    this.socket.on('end', () => {
      this.#hasLeft = true;
    });
    this.socket.on('close', () => {
      this.isClosed = true;
      this.#hasLeft = true;
    });
  }

  get #now(): number {
    return this.#service.order.time.now;
  }

  get #current(): Exchange | undefined {
    return this.#begun.at(-1);
  }

  /** Bytes up to the end of the last request that it handles. */
  get #end(): number {
    return this.#current?.sent.end ?? 0;
  }

  get #received(): number {
    return this.socket.bytesRead;
  }

  /** Whether the last request that it handles is whole, and the system has its answer. */
  get #isDone(): boolean {
    const exchange = this.#current;
    if (exchange === undefined) return true;
    const isWhole = exchange.sent.fault === 'none' && this.#received >= exchange.sent.end;
    return isWhole && this.#isSent(exchange);
  }

  #isSent(exchange: Exchange): boolean {
    return exchange.isSent || (exchange.isGiven && this.socket.writableLength === 0);
  }

  /** Whether a part of the next request has come. */
  get #hasPart(): boolean {
    return !['', '\r', '\r\n'].includes(this.#bytes.toString('latin1', this.#end, this.#received));
  }

  rooms() {
    return this.#begun.flatMap((exchange) => {
      const { room } = exchange;
      return room === undefined || this.#isSent(exchange) || this.isClosed || exchange !== this.#current
        ? []
        : [room];
    });
  }

  /** Sends, reads and leaves. */
  async act(): Promise<void> {
    const { order, http } = this.#service;
    const { cuts, delays, ends } = this.#behaviour;
    http.server.emit('connection', this.socket as unknown as Socket);
    void this.#read();
    const [how, isEarly] = ends.split(' ');
    const { length } = this.#bytes;
    const last = isEarly ? (cuts[0] ?? 10) % length : length;
    const places = [...new Set(cuts.filter((cut) => cut < last)), last].sort((a, b) => a - b);
    for (const [index, end] of places.entries()) {
      await this.#service.pause(delays[index % delays.length] as number);
      const packet = this.#bytes.subarray(places[index - 1] ?? 0, end);
      await order.later(`${this.#name} sends ${packet.length} bytes`, () => {
        if (packet.length > 0 && !this.socket.destroyed) this.socket.send(packet);
      });
    }
    await order.later(`${this.#name} ${how}`, () => {
      if (how === 'half-closes' && !this.socket.destroyed) this.socket.send(null);
      if (how === 'resets') this.socket.lose();
    });
    this.#hasSent = true;
  }

  async #read(): Promise<void> {
    const { order } = this.#service;
    const { reads } = this.#behaviour;
    if (reads === 'never') return;
    while (!this.isClosed) {
      const mayRead = reads !== 'after sending' || (this.#hasSent && this.socket.waiting === 0);
      if (mayRead && this.socket.readableByClient > 0)
        await order.later(`${this.#name} reads`, () =>
          this.socket.readOut(reads === 'in parts' ? 100 : 100_000),
        );
      else await new Promise<void>((resolve) => this.#readers.push(resolve));
    }
  }
  readonly #readers: (() => void)[] = [];

  /** Called after each event. */
  observe(): void {
    for (const resolve of this.#readers.splice(0)) resolve();
    for (const exchange of this.#begun) exchange.isSent = this.#isSent(exchange);
    if (!this.#isDone) this.#idleSince = this.#now;
    const isPart = this.#isDone ? this.#hasPart : this.#received < this.#end;
    if (!isPart) this.#partSince = this.#now;
    if (this.#current?.isGiven && !this.#isDone) this.#hasEndedSilently ||= this.#isWrong || this.#isLate;
  }

  /** Called when nothing has to be done before time passes. */
  expectOver(): void {
    const { order } = this.#service;
    const isDecided = this.socket.destroyed || this.#saidLast || this.#hasEndedSilently;
    const { ends, isGiven, sent } = this.#current ?? {};
    const isRead = this.#isDone || (this.#isTaken && ends?.length === 0 && !isGiven);
    const wrong = this.#isDone ? this.#sent[this.#begun.length] : sent;
    const isComplete = wrong !== undefined && wrong.fault !== 'none' && this.#received >= wrong.end;
    const isCut = this.#hasLeft && (this.#isDone ? this.#hasPart : this.#received < this.#end);
    order.expect(isDecided || !isRead || !(isComplete || isCut), 'a wrong request is not refused at once');
    const isTaken = this.socket.destroyed || this.socket.waiting === 0 || this.#received >= this.#end;
    order.expect(this.#current?.answer === undefined || isTaken, 'a body is not read beside its answer');
    const isTold = !this.#saidLast || !this.#isTaken || ends?.length === 1;
    order.expect(isTold, 'it is not told that no more of a body comes');
    const areClosed = this.#begun.every(({ openStreams }) => openStreams === 0);
    order.expect(!this.isClosed || areClosed, 'a list stays open whose client has gone');
    const isIdle = this.#isDone && !this.#hasPart && !this.#saidLast && !this.socket.destroyed;
    const idle = this.#now - Math.max(this.#idleSince, this.#service.stopped);
    order.expect(!isIdle || idle <= LAST_REQUEST, 'a stop waits for a client without a request');
    order.expect(this.isClosed || this.#now <= this.#ended + times.linger, 'an end takes long');
  }

  #noteWrite(text: string): void {
    const { order, stopped } = this.#service;
    if (text === '' || this.socket.destroyed) return;
    if (text.startsWith('HTTP/1.1 100 ')) {
      const { sent } = this.#current ?? {};
      const isWaiting = sent?.spec.isExpecting === true && !sent.spec.kind.startsWith('HTTP');
      const isFirst = this.#begun.length === 1; // more may have come than the service has read yet, behind others
      const hasBody = isFirst && this.#received > (sent?.endOfHead ?? 0);
      order.expect(isWaiting && !hasBody, 'a client that does not wait is asked');
      return;
    }
    const isKept = text.includes('\r\nconnection: keep-alive\r\n');
    order.expect(!isKept || !this.#isUnasked, 'a client that may wait with its body is told to go on');
    order.expect(
      !isKept || this.#now < stopped || this.#received > this.#end + 2,
      'the last answer does not say so',
    );
    order.expect(!this.socket.hasEnded, 'something is written after the end');
    this.#lastWrite = this.#now;
    const status = /^x-refused: (\d+)/m.exec(text)?.[1];
    if (status !== undefined) {
      this.#refused = Number(status);
      order.expect(this.#mayRefuse(this.#refused), `${this.#name} is refused with ${status}`);
    }
    if (!text.includes('\r\nconnection: close\r\n')) return;
    this.#saidLast = true;
    const { sent, ends = [] } = this.#current ?? {};
    const isTaken = sent?.body === '' || ends.includes(true);
    const next = this.#sent[this.#begun.length];
    const hasNext = next !== undefined && this.#received >= next.end && isTaken;
    const isOldStream =
      sent?.spec.kind.startsWith('HTTP/1.0') && /stream|breaks|silent/.test(sent.spec.answer);
    const isWrong = status !== undefined || this.#isWrong || this.#isLate;
    order.expect(
      isWrong || sent?.isLast || isOldStream || this.#isUnasked || (this.#now >= stopped && !hasNext),
      `${this.#name} is told that its connection ends`,
    );
  }

  #mayRefuse(status: number): boolean {
    const isInHead = this.#isDone;
    const since = this.#now - this.#partSince;
    if (status === 408) return since >= (isInHead ? times.headers : times.wholeRequest);
    return this.#isWrong;
  }

  /** Whether what has come of the request that arrives is wrong, or its end will not come. */
  get #isWrong(): boolean {
    const request = this.#isDone ? this.#sent[this.#begun.length] : this.#current?.sent;
    if (request === undefined || (this.#isDone && this.#received < request.begin))
      return this.#hasLeft && this.#hasPart;
    const isCut = this.#hasLeft && this.#received < request.end;
    if (request.fault === 'head') return this.#received > request.begin;
    return isCut || (request.fault === 'chunk' && this.#received > request.endOfHead);
  }

  get #isLate(): boolean {
    return this.#now - this.#partSince >= times.wholeRequest;
  }

  /** Whether the server may close its side: the client has been told, or has closed its own, or is wrong. */
  #mayEnd(): boolean {
    if (this.#hasEndedSilently) return true;
    if (this.#saidLast) return this.#refused !== undefined || this.#current?.isGiven === true;
    const next = this.#sent[this.#begun.length];
    const hasNext = next !== undefined && this.#received >= next.end;
    if (this.#isDone) return this.#hasLeft && !hasNext && !this.#hasPart;
    return this.#current?.isGiven === true && (this.#isWrong || this.#isLate);
  }

  #mayDestroy(): boolean {
    const { socket } = this;
    const { stopped, areRoomsFull, lackedRoom } = this.#service;
    const exchange = this.#current;
    const isHalf = exchange?.answer?.isStream === true && !exchange.isGiven;
    if (socket.isReset) return exchange?.hasFailed || (isHalf && (this.#isWrong || this.#isLate));
    if (exchange?.hasFailed && !isHalf) return true;
    if (this.#now >= this.#ended + times.linger || this.#now >= stopped + GRACE) return true;
    if (areRoomsFull && this.#received > this.#end) return true;
    const limit = lackedRoom ? times.readerWithoutRoom : times.reader;
    const isUnread = socket.writableLength > 0 && this.#now - this.#lastWrite >= limit;
    if (isUnread && !this.#isHeldUp) return true;
    if (!this.#isDone || this.#hasPart || this.#saidLast) return false;
    const idle = this.#now - Math.max(this.#opened, this.#idleSince);
    return (
      this.#now >= stopped + LAST_REQUEST || idle >= (this.#received === 0 ? times.headers : times.keepAlive)
    );
  }

  /** Whether it would read if the server took what belongs to a request that has its answer, or dropped what it does not read. */
  get #isHeldUp(): boolean {
    const { reads } = this.#behaviour;
    const isOfAnswered = this.#saidLast || this.#bytes.length <= this.#end;
    return reads === 'after sending' && this.#hasSent && this.socket.waiting > 0 && isOfAnswered;
  }

  /** Carries out a request. */
  async handle(request: Request): Promise<void> {
    const { order } = this.#service;
    const number = this.#begun.length;
    const sent = this.#sent[number] as Sent;
    order.expect(request.target === `/${sent?.name}`, `${request.target} begins instead of ${sent?.name}`);
    order.expect(sent.fault !== 'head', 'a wrong head is read');
    const isKnown =
      number === 0 && sent.fault === 'chunk' && sent.spec.body === 'chunks' && this.#received >= sent.end;
    order.expect(!isKnown, 'a request begins although its body is known to be wrong');
    order.expect(this.#received >= sent.endOfHead, 'a request begins before its head is whole');
    order.expect(this.#isDone, 'a request begins before the one before is done');
    order.expect(
      !this.#saidLast && !this.socket.hasEnded && !this.socket.destroyed,
      'a request begins after the last one',
    );
    const exchange: Exchange = {
      ...{
        sent,
        isGiven: false,
        isSent: false,
        hasFailed: false,
        room: undefined,
        body: '',
        ends: [],
        leaves: 0,
        openStreams: 0,
      },
    };
    this.#begun.push(exchange);
    this.#isTaken = false;
    const { spec } = sent;
    this.#isUnasked = spec.isExpecting && !spec.kind.startsWith('HTTP') && spec.body !== 'none';
    const left = Promise.withResolvers<void>();
    request.onLeave(() => {
      exchange.leaves += 1;
      order.expect(!exchange.isGiven, 'it is told that its client leaves, after its answer');
      order.expect(this.#hasLeft || this.socket.destroyed, 'it is told that its client leaves');
      left.resolve();
    });
    const service = this.#service;
    service.busy += 1;
    const isTaken = this.#takeBody(request, exchange).finally(() => {
      service.busy -= 1;
    });
    isTaken.catch(() => {}); // it is noticed below
    if (spec.answers.startsWith('with')) return await isTaken;
    if (spec.answers === 'later') await order.later(`${sent.name} is answered`, () => {});
    if (spec.answers === 'after the body') await isTaken;
    if (spec.answers === 'when the client leaves')
      await Promise.race([left.promise, this.#service.pause(60 * SECOND)]);
    await this.#service.pause(spec.delay);
    const isTold = !this.#hasLeft || exchange.leaves === 1 || this.#refused !== undefined;
    order.expect(isTold, 'it is not told that its client leaves');
    this.#answer(request, exchange);
  }

  async #takeBody(request: Request, exchange: Exchange): Promise<void> {
    const { order } = this.#service;
    const { spec, name, body } = exchange.sent;
    const { takes } = spec;
    const isInEnd = spec.answers.startsWith('with');
    if (takes === 'never' && !isInEnd) return;
    if (takes === 'later') await order.later(`${name} takes its body`, () => {});
    this.#isTaken ||= exchange === this.#current;
    const isRefused = takes === 'too long' && !isInEnd && !spec.body.endsWith('chunks');
    const isAnswered = exchange.answer !== undefined || this.#refused !== undefined;
    if (!isRefused && !isAnswered) this.#isUnasked = false;
    if (!isInEnd && (takes === 'whole' || takes === 'too long')) {
      try {
        const read = await readBody(request, takes === 'whole' ? MEBIBYTE : 20);
        exchange.ends.push(true);
        order.expect(read.toString() === body, 'a body is read as another one');
        exchange.body = body;
      } catch (error) {
        exchange.ends.push(false);
        order.expect(!(error instanceof NoRoomForBody), 'there is no room for a body');
        order.expect(!(error instanceof BodyTooLarge) || takes === 'too long', 'a body is too large');
      }
      return;
    }
    await new Promise<void>((resolve, reject) => {
      let isAnswered = !isInEnd;
      const answer = () => {
        if (isAnswered) return;
        isAnswered = true;
        try {
          this.#answer(request, exchange);
        } catch (error) {
          reject(error);
        }
      };
      request.takeBody({
        take(bytes) {
          order.expect(exchange.ends.length === 0, 'more comes of a body after its end');
          exchange.body += bytes.toString();
          order.expect(body.startsWith(exchange.body), 'a body is read as another one');
          if (spec.answers === 'with its beginning') answer();
        },
        end: (isWhole) => {
          exchange.ends.push(isWhole);
          order.expect(!isWhole || exchange.body === body, 'a body is not whole');
          answer();
          queueMicrotask(resolve); // the answer that ends the body may fail
        },
      });
    });
  }

  #answer(request: Request, exchange: Exchange): void {
    const { order } = this.#service;
    const { sent } = exchange;
    const { spec, name } = sent;
    const isAccepted = !this.socket.destroyed && this.#refused === undefined;
    const headers = ['x-name', name];
    let answer: Answer = { status: 200, headers, body: `<${name}>` };
    if (spec.answer === 'long') answer = { ...answer, body: `<${name}>é`.repeat(100) };
    if (spec.answer === 'bytes') answer = { ...answer, body: Buffer.from(`<${name}>é`.repeat(20)) };
    if (spec.answer === 'none') answer = { ...answer, status: 304 };
    if (spec.answer === 'wrong') answer = { ...answer, own: ['x', 'a\r\nb'] };
    if (spec.answer === 'fails') {
      exchange.hasFailed = true;
      throw new Error('it fails');
    }
    const isStream = /stream|breaks|silent/.test(spec.answer);
    if (isStream) answer = { ...answer, body: this.#stream(exchange, isAccepted) };
    const room = { bytes: Math.abs(spec.room), isShared: spec.room < 0 };
    const { rooms } = { rooms: this.#service.taken() };
    const sharedBody = room.isShared ? { body: SHARED } : {};
    const hasRoom = request.takeRoom({ status: 200, headers: [], length: room.bytes, ...sharedBody });
    const isKnown =
      room.isShared && this.#service.clients.some((one) => one.rooms().some(({ isShared }) => isShared));
    const isClosing = this.#service.clients.some(({ socket, isClosed }) => socket.destroyed && !isClosed);
    const fits = room.bytes <= 4096 || isKnown || rooms === 0 || rooms + room.bytes <= 128 * MEBIBYTE;
    order.expect(
      hasRoom === (fits || !isAccepted) || isClosing,
      `it ${hasRoom ? 'takes' : 'lacks'} room beside ${rooms} bytes`,
    );
    if (!hasRoom) {
      if (typeof answer.body === 'object' && 'close' in answer.body) answer.body.close();
      this.#service.lackedRoom = true;
      answer = { status: 503, headers, body: 'no room' };
    } else if (room.bytes > 4096 && isAccepted) exchange.room = room;
    if (isAccepted) {
      const { body = '' } = answer;
      const isStream = typeof body === 'object' && 'chunks' in body;
      const text = isStream ? `<${name}>é${name}` : body.toString();
      exchange.answer = {
        status: answer.status,
        body: sent.method === 'HEAD' || answer.status === 304 ? '' : text,
        isStream,
      };
      if (spec.answer === 'wrong' && hasRoom) exchange.hasFailed = true;
      else if (!isStream || sent.method === 'HEAD') exchange.isGiven = true;
    }
    request.answer(answer, '', () => order.expect(spec.answer === 'breaks', 'a stream breaks'));
    request.answer({ status: 200, headers, body: 'a second answer' }, '', () => {});
  }

  #stream(exchange: Exchange, isAccepted: boolean) {
    const { order } = this.#service;
    const { spec, name } = exchange.sent;
    const closed = Promise.withResolvers<void>();
    const service = this.#service;
    exchange.openStreams += 1;
    let isOpen = true;
    const socket = this.socket;
    const chunks = async function* () {
      service.busy += 1;
      try {
        for (const [index, chunk] of [`<${name}>`, '', Buffer.from('é'), name].entries()) {
          order.expect(
            socket.destroyed || socket.writableLength < 64,
            'a stream is read faster than its client reads',
          );
          yield chunk;
          if (index === 1) await order.later(`${name} goes on`, () => {});
          const silence = { 'slow stream': 20 * SECOND, silent: index === 2 ? 50 * SECOND : 0 }[
            spec.answer as string
          ];
          if (silence) await Promise.race([service.pause(silence), closed.promise]);
          if (!isOpen) throw new Error('it is closed');
          if (spec.answer === 'breaks' && index === 2) {
            exchange.hasFailed = true;
            throw new Error('it breaks');
          }
        }
        if (isAccepted) exchange.isGiven = true;
      } finally {
        service.busy -= 1;
      }
    };
    const close = () => {
      if (isOpen) exchange.openStreams -= 1;
      isOpen = false;
      closed.resolve();
    };
    return { chunks: chunks(), close };
  }

  /** Called when all is over. */
  check(): void {
    const bytes = Buffer.concat(this.socket.written);
    const isOver = this.socket.hasEnded;
    const { answers, isCut } = readAnswers(
      bytes,
      this.#begun.map(({ sent }) => sent.method),
      isOver,
    );
    const finals = answers.filter(({ status }) => status !== 100);
    assert.ok(!isCut || !isOver, `half an answer seems whole: ${bytes}`);
    for (const [index, { status, headers, body }] of finals.entries()) {
      const isLast = headers.get('connection') === 'close';
      assert.ok(!isLast || index === finals.length - 1, 'something follows the last answer');
      const exchange = this.#begun[index];
      if (headers.has('x-refused')) {
        assert.deepEqual(
          [status, isLast, body],
          [this.#refused, true, exchange?.sent.method === 'HEAD' ? '' : 'refused'],
        );
        continue;
      }
      assert.deepEqual([status, body], [exchange?.answer?.status, exchange?.answer?.body]);
      assert.equal(headers.get('x-name'), exchange?.sent.name);
      assert.equal(isLast, isLast || exchange?.sent.isLast, 'the last answer does not say so');
    }
    if (isOver && this.#refused === undefined)
      assert.equal(finals.length, this.#begun.length, `an answer is lost: ${bytes}`);
    for (const { sent, ends, leaves, openStreams, isGiven, answer } of this.#begun) {
      assert.equal(openStreams, 0, 'a stream is left open');
      assert.ok(leaves <= 1, 'it is told twice that its client leaves');
      assert.ok(
        isGiven || answer !== undefined || this.#refused !== undefined || leaves === 1,
        'it is not told that its client leaves',
      );
      const isTaken = sent.spec.takes !== 'never' || sent.spec.answers.startsWith('with');
      assert.equal(ends.length, isTaken ? 1 : 0, 'ends of a body that its taker gets');
    }
  }
}
