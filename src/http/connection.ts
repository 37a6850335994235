// Owns: one client's connection. Requests may be pipelined: safe ones are handled concurrently, any other one alone,
// and answers go out in order (RFC 9112 section 9.3.2). The connection ends without losing its last answer.
// Independent of paths and of what an answer says.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Times } from '../times.ts';

/** Concurrent requests of one connection: one read brings hundreds. */
const MAX_CONCURRENT = 32;

/**
 * Requests of all connections that are handled before an earlier one of their connection has its answer. Each may
 * bring a mebibyte that nobody reads.
 */
const MAX_AHEAD = 64;

/** Bytes of answers of one connection that the system has not taken; beyond them no request begins. */
const MAX_UNREAD = 1024 * 1024;

/** Bytes of all such answers of the process. An answer beyond them is refused. */
const ROOM = 128 * 1024 * 1024;

/** Largest answer, in bytes, that needs no room: its request took as much. So it is sent even if there is none. */
const TINY = 4096;

/**
 * Waiting requests of all connections. Beyond them, a connection is destroyed that has more than its share of them, and
 * more than MAX_CONCURRENT: Node makes up to 2,500 requests of one read, and each takes five kilobytes.
 */
const MAX_WAITING = 16_384;

/** Methods that change nothing (RFC 9110 section 9.2.1). */
const SAFE_METHODS: ReadonlySet<string | undefined> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);

/** Bytes for the answers of all connections. */
const room = { taken: 0, isRefused: false };

/** Requests that are being handled before an earlier one of their connection has its answer. */
let ahead = 0;

/** Waiting requests of all connections. */
let waiting = 0;

/** Connections. */
let open = 0;

/** Connections whose waiting requests may begin. */
const turns: Connection[] = [];

/**
 * Handles a request; resolves when its answer is on its way. Must not fail.
 * @param before the answer that goes out before this one; undefined if that has been sent.
 */
export type Handle = (
  request: IncomingMessage,
  response: ServerResponse,
  before: ServerResponse | undefined,
) => Promise<void>;

type Exchange = readonly [IncomingMessage, ServerResponse];

export class Connection {
  readonly #socket: Socket;
  readonly #handle: Handle;
  readonly #times: Times['http'];
  /** Requests that wait until all earlier ones have been answered. */
  #waiting: Exchange[] = [];
  /** Requests started since all earlier ones were answered. */
  #begun = 0;
  /** Whether all of those are safe. */
  #onlySafe = true;
  /** Requests taken so far. */
  #taken = 0;
  #latest: ServerResponse | undefined;
  #beforeLatest: ServerResponse | undefined;
  /** Bytes of the answers that the system has not taken. */
  #unread = 0;
  /** The last answer is decided: requests that Node has already read after it are not handled. */
  #isEnding = false;
  /**
   * A request that arrives slowly: its number, and the time since which no earlier one is unanswered. Until then the
   * service does not read the rest of it.
   */
  #slow: { readonly number: number; since: number | undefined } | undefined;
  /** Bytes received at the last call of `isInUse`. */
  #received = -1;
  /** Bytes sent when an answer last made progress, and the time of that. */
  #sent = -1;
  #sentAt = 0;

  /** Resumes reading, whatever waits. */
  readonly #resume: () => Socket;

  /** Of Node, for the end of the socket, and for its answers once there is room for more of them. */
  readonly #listeners: readonly (readonly [string, (...values: unknown[]) => void])[];

  constructor(socket: Socket, handle: Handle, times: Times['http']) {
    this.#socket = socket;
    this.#listeners = ['close', 'drain'].flatMap((event) =>
      socket.listeners(event).map((listener) => [event, listener as () => void] as const),
    );
    this.#handle = handle;
    this.#times = times;
    open += 1;
    socket.destroySoon = () => this.#end(); // Node calls it after the last answer
    // Node calls it after each request, and for each part of a body that arrives.
    this.#resume = socket.resume.bind(socket);
    socket.resume = () => (this.#waiting.length > 0 ? socket : this.#resume());
    // Answers that are not being sent yet do not notice it.
    socket.once('close', () => {
      open -= 1;
      this.#release(this.#unread);
      this.#forget(this.#waiting.length);
    });
  }

  /** Handles a request as soon as its turn comes. */
  take(request: IncomingMessage, response: ServerResponse): void {
    if (this.#isEnding || this.#socket.destroyed) return;
    const before = this.#latest?.writableFinished === false ? this.#latest : undefined;
    this.#beforeLatest = before;
    this.#latest = response;
    this.#taken += 1;
    if (before === undefined) {
      this.#begun = 0;
      this.#onlySafe = true;
    }
    if (this.#waiting.length === 0 && this.#mayBegin(request)) {
      this.#begin(request, response, before);
      return;
    }
    if (this.#waiting.length === 0) {
      process.nextTick(() => this.#socket.pause()); // Node may be about to resume reading
      afterwards(before as ServerResponse, () => this.#awaitTurn());
    }
    this.#waiting.push([request, response]);
    waiting += 1;
    if (waiting > MAX_WAITING && this.#waiting.length > Math.max(MAX_CONCURRENT, MAX_WAITING / open)) {
      this.#socket.destroy();
    }
  }

  /** Forgets the last of the waiting requests. */
  #forget(count: number): void {
    this.#waiting.length -= count;
    waiting -= count;
  }

  /** Takes room for an answer until the system has taken its last byte. @returns whether there is room. */
  takeRoom(response: ServerResponse, bytes: number): boolean {
    if (bytes <= TINY || this.#socket.destroyed) return true;
    // One answer alone may exceed ROOM.
    if (room.taken + bytes > Math.max(ROOM, bytes)) {
      room.isRefused = true;
      return false;
    }
    room.taken += bytes;
    this.#unread += bytes;
    response.once('close', () => this.#release(Math.min(bytes, this.#unread)));
    return true;
  }

  /** Refuses the latest request once everything before it has been answered; nothing after it is handled. */
  refuse(send: () => void): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    const refuse = () => {
      send();
      this.#end();
    };
    const latest = this.#latest;
    if (latest !== undefined && !latest.req.complete && this.#waiting.at(-1)?.[1] === latest) {
      this.#forget(1); // the rest of it will never come
    }
    if (latest === undefined) refuse();
    else if (latest.req.complete) afterwards(latest, refuse);
    else if (latest.headersSent) afterwards(latest, () => this.#end());
    else if (this.#beforeLatest !== undefined) afterwards(this.#beforeLatest, refuse);
    else refuse();
  }

  /** Notes that the time of the request that is arriving is over: Node says so once. */
  noteSlow(): void {
    const number = this.#latest?.req.complete === false ? this.#taken : this.#taken + 1;
    this.#slow = { number, since: Number.NEGATIVE_INFINITY };
  }

  /**
   * Whether such a request may be refused: to be called every second.
   * @param timeout milliseconds that it has once earlier ones are answered, if its time was over before.
   */
  isTooSlow(timeout: number): boolean {
    const slow = this.#slow;
    if (slow === undefined) return false;
    const isLatest = this.#taken === slow.number;
    if (this.#taken > slow.number || (isLatest && this.#latest?.req.complete === true)) {
      this.#slow = undefined;
      return false;
    }
    const earlier = isLatest ? this.#beforeLatest : this.#latest;
    const now = performance.now();
    if (earlier?.writableFinished === false) slow.since = undefined;
    else slow.since ??= now;
    return slow.since !== undefined && now - slow.since >= timeout;
  }

  /** Makes an answer the last one, unless another request has arrived after it. */
  endWith(response: ServerResponse): boolean {
    if (this.#latest !== response) return false;
    this.#isEnding = true;
    return true;
  }

  /** Call it after Node has removed its listeners: earlier answers would neither continue nor end. */
  keepAnswering(): void {
    for (const [event, listener] of this.#listeners) this.#socket.on(event, listener);
  }

  /** Whether an answer is in progress, or bytes have arrived since the last call. */
  isInUse(): boolean {
    const { bytesRead } = this.#socket;
    const hasReceived = bytesRead !== this.#received;
    this.#received = bytesRead;
    return hasReceived || this.#latest?.writableFinished === false;
  }

  /**
   * Destroys the connection if its client does not read an answer: until it is read, its text is kept in memory, and
   * with a list its snapshot. Reading a part byte by byte does not count, so there is a minimum speed.
   * @param timeout milliseconds.
   */
  #cutIfStalled(timeout: number): void {
    const { bytesWritten, writableLength } = this.#socket;
    const now = performance.now();
    // Node writes the next part once the system has taken the one before.
    if (writableLength === 0 || bytesWritten !== this.#sent) {
      this.#sent = bytesWritten;
      this.#sentAt = now;
    } else if (now - this.#sentAt >= timeout) {
      this.#socket.destroy();
    }
  }

  /** Destroys those of the connections whose clients do not read: to be called every second. */
  static cutStalled(connections: Iterable<Connection>, times: Times['http']): void {
    const timeout = room.isRefused ? times.readerWithoutRoom : times.reader;
    room.isRefused &&= room.taken > ROOM / 2;
    for (const connection of connections) connection.#cutIfStalled(timeout);
  }

  #release(bytes: number): void {
    this.#unread -= bytes;
    room.taken -= bytes;
  }

  #mayBegin({ method }: IncomingMessage): boolean {
    if (this.#begun === 0) return true;
    return (
      this.#onlySafe &&
      SAFE_METHODS.has(method) &&
      this.#begun < MAX_CONCURRENT &&
      ahead < MAX_AHEAD &&
      this.#unread < MAX_UNREAD
    );
  }

  #begin(request: IncomingMessage, response: ServerResponse, before: ServerResponse | undefined): void {
    this.#begun += 1;
    this.#onlySafe &&= SAFE_METHODS.has(request.method);
    const handled = this.#handle(request, response, before);
    if (before === undefined) return;
    ahead += 1;
    void handled.then(() => {
      ahead -= 1;
    });
  }

  /**
   * Called once everything before the waiting requests has been answered. A turn of the event loop begins those of one
   * connection, so that other clients are answered in between.
   */
  #awaitTurn(): void {
    if (turns.push(this) === 1) setImmediate(Connection.#takeTurn);
  }

  static #takeTurn(): void {
    (turns[0] as Connection).#beginWaiting();
    turns.shift();
    if (turns.length > 0) setImmediate(Connection.#takeTurn);
  }

  #beginWaiting(): void {
    if (this.#socket.destroyed) return;
    this.#begun = 0;
    this.#onlySafe = true;
    let last: ServerResponse | undefined;
    while (this.#waiting.length > 0) {
      const [request, response] = this.#waiting[0] as Exchange;
      if (!this.#mayBegin(request)) break;
      this.#waiting.shift();
      waiting -= 1;
      this.#begin(request, response, last);
      last = response;
    }
    if (this.#waiting.length > 0) afterwards(last as ServerResponse, () => this.#awaitTurn());
    else this.#resume();
  }

  /**
   * Closing a connection with unread bytes resets it, and the last answer may be lost. So incoming bytes are read and
   * dropped for a while (RFC 9112 section 9.6).
   */
  #end(): void {
    const socket = this.#socket;
    socket.end();
    socket.removeAllListeners('data');
    socket.on('data', () => {});
    this.#resume();
    setTimeout(() => socket.destroy(), this.#times.linger).unref();
  }
}

function afterwards(response: ServerResponse, act: () => void): void {
  if (response.writableFinished) act();
  else response.once('close', act);
}
