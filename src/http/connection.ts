// Owns: one client's connection. Requests may be pipelined: those that are safe are handled side by side, any other one
// alone, and answers go out in order (RFC 9112 section 9.3.2). How a connection ends without losing its last answer.
// Knows neither paths nor what an answer says.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Requests of one connection at a time: one read brings hundreds, and each answer may have a mebibyte. */
const MAX_CONCURRENT = 32;

/** Milliseconds that a client has to take the next part of an answer, one mebibyte at most. */
const READER_TIMEOUT = 60_000;

/** Milliseconds that a client that is still sending has to read its last answer. */
const LINGER = 1000;

/** Methods that change nothing (RFC 9110 section 9.2.1). */
const SAFE_METHODS: ReadonlySet<string | undefined> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);

/**
 * Begins to handle a request. Must not throw.
 * @param before the answer that goes out before this one, if it has not gone out.
 */
export type Handle = (
  request: IncomingMessage,
  response: ServerResponse,
  before: ServerResponse | undefined,
) => void;

type Exchange = readonly [IncomingMessage, ServerResponse];

export class Connection {
  readonly #socket: Socket;
  readonly #handle: Handle;
  /** Requests that wait until every request before them was answered. */
  #waiting: Exchange[] = [];
  /** Requests begun since everything before them was answered. */
  #begun = 0;
  /** Whether all of those are safe. */
  #onlySafe = true;
  #latest: ServerResponse | undefined;
  #beforeLatest: ServerResponse | undefined;
  /** The last answer is known: requests that Node has already read behind it are not handled. */
  #isEnding = false;
  /** Bytes received when the connection was last looked at. */
  #received = -1;
  /** Bytes sent when an answer last went on, and when that was. */
  #sent = -1;
  #sentAt = 0;

  constructor(socket: Socket, handle: Handle) {
    this.#socket = socket;
    this.#handle = handle;
    socket.destroySoon = () => this.#end(); // Node calls it after the last answer
  }

  /** Handles a request as soon as its turn comes. */
  take(request: IncomingMessage, response: ServerResponse): void {
    if (this.#isEnding) return;
    const before = this.#latest?.writableFinished === false ? this.#latest : undefined;
    this.#beforeLatest = before;
    this.#latest = response;
    if (before === undefined) {
      this.#begun = 0;
      this.#onlySafe = true;
    }
    if (this.#waiting.length === 0 && this.#mayBegin(request)) {
      this.#begin(request, response, before);
      return;
    }
    if (this.#waiting.length === 0) {
      process.nextTick(() => this.#socket.pause()); // Node goes on reading behind each request
      afterwards(before as ServerResponse, () => this.#beginWaiting());
    }
    this.#waiting.push([request, response]);
  }

  /** Refuses what came last, once everything before it has been answered; nothing behind it is handled. */
  refuse(send: () => void): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    const refuse = () => {
      send();
      this.#end();
    };
    const latest = this.#latest;
    if (latest !== undefined && !latest.req.complete && this.#waiting.at(-1)?.[1] === latest) {
      this.#waiting.pop(); // the rest of it will never come
    }
    if (latest === undefined) refuse();
    else if (latest.req.complete) afterwards(latest, refuse);
    else if (latest.headersSent) afterwards(latest, () => this.#end());
    else if (this.#beforeLatest !== undefined) afterwards(this.#beforeLatest, refuse);
    else refuse();
  }

  /** Makes an answer the last one, unless the client has asked for more behind it. */
  endWith(response: ServerResponse): boolean {
    if (this.#latest !== response) return false;
    this.#isEnding = true;
    return true;
  }

  /** Whether an answer is under way, or something has come since this was last asked. */
  isInUse(): boolean {
    const { bytesRead } = this.#socket;
    const hasReceived = bytesRead !== this.#received;
    this.#received = bytesRead;
    return hasReceived || this.#latest?.writableFinished === false;
  }

  /**
   * Ends the connection if its client does not take what it asked for: until then its text is kept, and a list's
   * snapshot with it. A part that is taken byte by byte is not taken, so there is a least pace.
   */
  cutIfStalled(): void {
    const { bytesWritten, writableLength } = this.#socket;
    const now = performance.now();
    // The next part is written once the system has taken the one before.
    if (writableLength === 0 || bytesWritten !== this.#sent) {
      this.#sent = bytesWritten;
      this.#sentAt = now;
    } else if (now - this.#sentAt >= READER_TIMEOUT) {
      this.#socket.destroy();
    }
  }

  #mayBegin({ method }: IncomingMessage): boolean {
    if (this.#begun === 0) return true;
    return this.#onlySafe && this.#begun < MAX_CONCURRENT && SAFE_METHODS.has(method);
  }

  #begin(request: IncomingMessage, response: ServerResponse, before: ServerResponse | undefined): void {
    this.#begun += 1;
    this.#onlySafe &&= SAFE_METHODS.has(request.method);
    this.#handle(request, response, before);
  }

  /** Once everything before them has been answered. */
  #beginWaiting(): void {
    if (this.#socket.destroyed) return;
    this.#begun = 0;
    this.#onlySafe = true;
    let last: ServerResponse | undefined;
    while (this.#waiting.length > 0) {
      const [request, response] = this.#waiting[0] as Exchange;
      if (!this.#mayBegin(request)) break;
      this.#waiting.shift();
      this.#begin(request, response, last);
      last = response;
    }
    if (this.#waiting.length > 0) afterwards(last as ServerResponse, () => this.#beginWaiting());
    else this.#socket.resume();
  }

  /**
   * Closing a connection while bytes are unread would reset it, and the last answer with it, so they are dropped for a
   * while (RFC 9112 section 9.6).
   */
  #end(): void {
    const socket = this.#socket;
    socket.end();
    socket.removeAllListeners('data');
    socket.on('data', () => {});
    socket.resume();
    setTimeout(() => socket.destroy(), LINGER).unref();
  }
}

function afterwards(response: ServerResponse, act: () => void): void {
  if (response.writableFinished) act();
  else response.once('close', act);
}
