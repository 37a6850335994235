// Owns: one client's connection, between its socket and Node's HTTP server. The server gets one request at a time, since
// its parser makes two kilobytes of objects of each request that it gets, however short. Clients that are silent, slow, or
// do not read are cut off. A connection ends without losing its last answer.
// Independent of paths and of what an answer says.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { Times } from '../times.ts';
import type { Answer } from './answer.ts';

/** After the headers of a request, and after a body in chunks. */
const END = Buffer.from('\r\n\r\n');

/** Bytes of unread answers of the process. An answer beyond them is refused. */
const ROOM = 128 * 1024 * 1024;

/** Largest answer, in bytes, that needs no room: its request took as much. So it is sent even if there is none. */
const TINY = 4096;

/**
 * Bytes of the process that wait behind answers to the requests before them. A connection that exceeds them is closed: without
 * a token, clients that do not read could take any memory.
 */
const WAITING = 64 * 1024 * 1024;

/** Milliseconds in a turn of the event loop for what has waited behind other pieces of its connection. */
const TURN = 4;

/**
 * Pieces of headers or chunks that the server gets at once, and bytes of one. Short chunks cost its parser a microsecond each, so
 * clients without a token could take all the time: chunks always wait for a turn.
 */
const PIECES = 4;
const PIECE = 1024;

const room = { taken: 0, isRefused: false };
/** How many answers have each body that several share, which takes its room once. */
const shared = new Map<Uint8Array, number>();
/** Those that wait for room. */
const waitingForRoom: (() => void)[] = [];
const waiting = { bytes: 0 };

/** Connections that have more for the server, in the order in which they get a turn of the event loop. */
const turns: Connection[] = [];
/** Whether an immediate will give them theirs. */
let areTurnsDue = false;

/** Resolves once half of the room is free. Meanwhile, clients that do not read have less time. */
export async function roomForMore(): Promise<void> {
  while (room.taken > ROOM / 2) {
    room.isRefused = true;
    await new Promise<void>((resolve) => waitingForRoom.push(resolve));
  }
}

/** Its event when the client has closed its side: it sends nothing more, and may have left. */
export const CLIENT_END = 'clientEnd';

type Done = (error?: Error | null) => void;

export class Connection extends Duplex {
  readonly #socket: Socket;
  readonly #times: Times['http'];
  /** Bytes that the server has not got yet. */
  #received: Buffer | undefined;
  /** Those among `waiting`. */
  #waiting = 0;
  /** Whether the server takes at once what it is given: a body may be read more slowly than it arrives. */
  #isRead = false;
  #isGiving = false;
  /** Whether the client has closed its side. */
  #isOver = false;
  /** Whether the last answer is decided: what still comes is dropped. */
  #isEnding = false;
  /** Requests so far, the one that is arriving included. */
  #count = 0;
  /** Whether the server has some of the headers of a request. */
  #isInHeaders = false;
  /** The latest request whose headers have arrived. */
  #request: IncomingMessage | undefined;
  /** Bytes of its body that are to come, if its length is known. */
  #bodyLeft = 0;
  #response: ServerResponse | undefined;
  /** Whether the end of the answer to it is awaited, for what comes next. */
  #isAwaited = false;
  /** Whether it is among `turns`. */
  #hasTurn = false;
  /** What the client had to do at the last look, how far it was, and since when. */
  #task: 'send' | 'read' | 'ask' = 'ask';
  #progress = 0;
  #since = performance.now();
  /** Bytes received at the last call of `isInUse`. */
  #seen = -1;

  constructor(socket: Socket, times: Times['http']) {
    // A request takes over this mark: its body waits in one piece, however many chunks that has, unless it is read.
    super({ decodeStrings: false, readableHighWaterMark: 1 });
    this.#socket = socket;
    this.#times = times;
    socket.on('data', (bytes: Buffer) => {
      if (this.#isEnding) return;
      this.#received = this.#received === undefined ? bytes : Buffer.concat([this.#received, bytes]);
      this.#give();
    });
    socket.on('end', () => {
      this.#isOver = true;
      this.#give();
      this.emit(CLIENT_END);
    });
    // 'close' follows. Node listens to neither once a client has asked for a tunnel.
    for (const stream of [socket, this]) stream.on('error', () => {});
    socket.on('close', () => this.destroy());
    this.on('pause', () => {
      this.#isRead = false;
    });
    this.on('resume', () => {
      this.#isRead = true;
      this.#give();
    });
  }

  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress;
  }

  /** Notes a request whose headers have arrived. */
  begin(request: IncomingMessage, response: ServerResponse): void {
    this.#isInHeaders = false;
    this.#request = request;
    this.#bodyLeft = Number(request.headers['content-length'] ?? 0);
    this.#response = response;
  }

  /** The next piece waits for a turn of the event loop, so that other clients get theirs. */
  #awaitTurn(): void {
    if (this.#hasTurn) return;
    this.#hasTurn = true;
    turns.push(this);
    if (!areTurnsDue) setImmediate(Connection.#takeTurns);
    areTurnsDue = true;
  }

  static #takeTurns(): void {
    const end = performance.now() + TURN;
    for (let count = turns.length; count > 0 && performance.now() < end; count -= 1) {
      const connection = turns.shift() as Connection;
      connection.#hasTurn = false;
      connection.#give(true);
    }
    areTurnsDue = turns.length > 0;
    if (areTurnsDue) setImmediate(Connection.#takeTurns);
  }

  /**
   * Takes room for an answer until the system has all of it; for a body that several answers share, once.
   * @param isAwaited whether it has waited for `roomForMore`: then it is never refused.
   * @returns whether there is room.
   */
  takeRoom(response: ServerResponse, bytes: number, body: Answer['body'], isAwaited: boolean): boolean {
    if (bytes <= TINY || this.destroyed) return true;
    const sharers = body instanceof Uint8Array ? shared.get(body) : undefined;
    // One answer alone may exceed ROOM.
    const isRefused = sharers === undefined && room.taken + bytes > Math.max(ROOM, bytes);
    if (isRefused && !isAwaited) {
      room.isRefused = true;
      return false;
    }
    if (sharers === undefined) room.taken += bytes;
    if (body instanceof Uint8Array) shared.set(body, (sharers ?? 0) + 1);
    response.once('close', () => {
      const others = body instanceof Uint8Array ? (shared.get(body) ?? 1) - 1 : 0;
      if (others > 0) return void shared.set(body as Uint8Array, others);
      if (body instanceof Uint8Array) shared.delete(body);
      room.taken -= bytes;
      if (room.taken <= ROOM / 2) for (const resolve of waitingForRoom.splice(0)) resolve();
    });
    return true;
  }

  /** Makes the answer in progress the last one, unless another request has arrived. @returns whether it is. */
  endWithAnswer(): boolean {
    this.#isEnding ||= !this.#hasNext;
    return this.#isEnding;
  }

  /** Ends the connection with an answer to a request that cannot be read, unless it has one already. */
  refuse(send: () => void): void {
    if (this.#isEnding) return;
    const isAnswered = this.#request?.complete === false && this.#response?.headersSent === true;
    this.#giveNothingMore();
    if (!isAnswered) send();
    if (isAnswered && this.#response?.writableEnded === false)
      this.resetAndDestroy(); // half an answer must not seem whole
    else this.end();
  }

  /** Whether a request is in progress or arriving, or bytes have arrived since the last call. */
  isInUse(): boolean {
    const { bytesRead } = this.#socket;
    const hasReceived = bytesRead > 0 && bytesRead !== this.#seen;
    this.#seen = bytesRead;
    return hasReceived || this.#hasNext || this.#isInHeaders || !this.#isAnswered;
  }

  /**
   * Destroys the connection if its client is silent, or does not read its answer: until then, the answer is kept in memory,
   * and with a list its snapshot. To be called every second.
   * @returns whether a request arrives too slowly.
   */
  isTooSlow(now: number): boolean {
    const { headers, wholeRequest, keepAlive, reader, readerWithoutRoom } = this.#times;
    const { bytesWritten, writableLength } = this.#socket;
    const isArriving = !this.#isEnding && (this.#isInHeaders || this.#request?.complete === false);
    const task = isArriving ? 'send' : this.#isAnswered ? 'ask' : 'read';
    // The next part of an answer is written once the system has taken the one before.
    const progress = task === 'read' ? bytesWritten : this.#count;
    const isServed = task === 'read' && writableLength === 0; // it waits for the store
    if (isServed || task !== this.#task || progress !== this.#progress) this.#since = now;
    this.#task = task;
    this.#progress = progress;
    room.isRefused &&= room.taken > ROOM / 2;
    const limit = {
      send: this.#isInHeaders ? headers : wholeRequest,
      read: room.isRefused ? readerWithoutRoom : reader,
      ask: this.#count === 0 ? headers : keepAlive,
    }[task];
    const isLate = now - this.#since >= limit;
    if (isLate && task !== 'send') this.destroy();
    return isLate && task === 'send';
  }

  resetAndDestroy(): void {
    this.#socket.resetAndDestroy();
  }

  /** Gives the server what it may have: of one request, and a few pieces of it. */
  #give(isItsTurn = false): void {
    if (this.#isGiving) return;
    this.#isGiving = true;
    let pieces = 0;
    while (this.#received !== undefined && pieces < PIECES && this.#mayGive) {
      if (this.#isInChunks && !isItsTurn) {
        this.#awaitTurn();
        break;
      }
      const length = this.#lengthOfNext(this.#received);
      if (length === 0) break;
      this.#giveNext(this.#received, length);
      pieces += 1;
    }
    this.#isGiving = false;
    if (this.#received !== undefined) this.#received = compact(this.#received);
    const isAllGiven = this.#received === undefined;
    if (this.#mayGive) {
      if (!isAllGiven && pieces === PIECES) this.#awaitTurn();
      if (isAllGiven && this.#isOver) this.push(null);
    } else if ((!isAllGiven || this.#isOver) && !this.#isAnswered && !this.#isAwaited) {
      this.#isAwaited = true;
      this.#response?.once('close', () => {
        this.#isAwaited = false;
        this.#awaitTurn();
      });
    }
    const isBehind = this.#request?.complete !== false && !this.#isAnswered;
    if (!this.#takeWaiting(isBehind ? (this.#received?.length ?? 0) : 0)) return void this.destroy();
    const mustWait = !isAllGiven && (this.#hasTurn || !this.#mayGive);
    if (mustWait !== this.#socket.isPaused()) mustWait ? this.#socket.pause() : this.#socket.resume();
  }

  #giveNothingMore(): void {
    this.#isEnding = true;
    this.#received = undefined;
    this.#takeWaiting(0);
  }

  /** @returns whether there is room. */
  #takeWaiting(bytes: number): boolean {
    waiting.bytes += bytes - this.#waiting;
    this.#waiting = bytes;
    return bytes === 0 || waiting.bytes <= WAITING;
  }

  #giveNext(bytes: Buffer, length: number): void {
    this.#received = length === bytes.length ? undefined : bytes.subarray(length);
    if (this.#bodyLeft > 0) this.#bodyLeft -= length;
    else if (this.#request?.complete !== false && !this.#isInHeaders) {
      this.#isInHeaders = true;
      this.#count += 1;
    }
    this.push(length === bytes.length ? bytes : bytes.subarray(0, length));
  }

  /** Whether another request has arrived. One may be followed by an end of a line (RFC 9112 section 2.2). */
  get #hasNext(): boolean {
    return (this.#received?.length ?? 0) >= END.length;
  }

  get #isAnswered(): boolean {
    return this.#response === undefined || this.#response.writableFinished;
  }

  /** Whether the server has the headers of a request, and not all of its body, whose length is not known. */
  get #isInChunks(): boolean {
    return this.#request?.complete === false && !this.#isInHeaders && this.#bodyLeft === 0;
  }

  get #mayGive(): boolean {
    const isNext = this.#isAnswered || this.#request?.complete === false;
    return isNext && this.#isRead && !this.#isEnding;
  }

  /** Bytes up to the end of the headers of a request, or of its body; or some of them. */
  #lengthOfNext(bytes: Buffer): number {
    if (this.#bodyLeft > 0) return Math.min(this.#bodyLeft, bytes.length);
    const piece = bytes.length > PIECE ? bytes.subarray(0, PIECE) : bytes;
    const end = piece.indexOf(END);
    if (end !== -1) return end + END.length;
    if (this.#isOver && piece === bytes) return bytes.length;
    // What may be the beginning of END waits for the rest of it: it would bring the next request along.
    let kept = Math.min(END.length - 1, piece.length);
    while (kept > 0 && !piece.subarray(piece.length - kept).equals(END.subarray(0, kept))) kept -= 1;
    return piece.length - kept;
  }

  /** Nothing is kept here for the server: `give` says what it gets, and when. */
  override _read(): void {}

  override _write(chunk: string | Uint8Array, encoding: BufferEncoding, done: Done): void {
    this.#socket.write(chunk, encoding, done);
  }

  override _writev(chunks: { chunk: string | Uint8Array; encoding: BufferEncoding }[], done: Done): void {
    this.#socket.cork();
    for (const [position, { chunk, encoding }] of chunks.entries())
      this.#socket.write(chunk, encoding, position === chunks.length - 1 ? done : undefined);
    this.#socket.uncork();
  }

  /**
   * Closing a connection with unread bytes resets it, and the last answer may be lost. So incoming bytes are read and
   * dropped for a while (RFC 9112 section 9.6).
   */
  override _final(done: Done): void {
    this.#giveNothingMore();
    this.#socket.end(done);
    this.#socket.resume();
    const timer = setTimeout(() => this.destroy(), this.#times.linger).unref();
    this.once('close', () => clearTimeout(timer));
  }

  override _destroy(error: Error | null, done: Done): void {
    this.#giveNothingMore();
    this.#socket.destroy();
    done(error);
  }
}

/** @returns the bytes, without the rest of their memory if that is more than four times as much. */
function compact(bytes: Buffer): Buffer {
  const { buffer, byteOffset, length } = bytes;
  return 4 * length < buffer.byteLength ? Buffer.from(buffer.slice(byteOffset, byteOffset + length)) : bytes;
}
