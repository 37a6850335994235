// Owns: one client's connection: its requests one after the other, each once the system has the whole answer to the one before.
// Clients that are silent, slow, or do not read are cut off. A connection ends without losing its last answer.
// Independent of what a request and an answer say.

import type { Socket } from 'node:net';
import type { Times } from '../times.ts';
import { type Answer, headOf, writeAnswer } from './answer.ts';
import { unreadableStatusOf } from './chunks.ts';
import { CR, emptyLines, readHead, type UnreadableStatus } from './head.ts';
import { type Carrier, Request } from './request.ts';
import { lacksAnswerRoom, Share, WAITING } from './room.ts';
import { awaitTurn } from './turns.ts';

/** Of the head of the last answer. */
const CLOSE = 'connection: close\r\n';

/** What all connections of a server share. */
export interface Listener {
  readonly times: Times['http'];
  /** Bytes of one request's line and headers. */
  readonly headerLimit: number;
  /** Of the head of each answer that is not the last one of its connection. */
  readonly keepAliveLines: string;
  /** Whether each connection has at most one more request. */
  isStopping: boolean;
  /** Answers a request, at any time. */
  begin(request: Request): void;
  /** @returns the answer to a request that cannot be read. */
  refuse(status: UnreadableStatus): Answer;
}

export class Connection implements Carrier {
  readonly socket: Socket;
  readonly #listener: Listener;
  /** Bytes that have not been read yet. */
  #received: Buffer | undefined;
  /** Room for them while they wait behind an answer. */
  readonly #room = new Share(WAITING);
  /** Bytes of a head that is not whole. */
  #partOfHead = 0;
  /** Until its body has been read and its answer sent. */
  #request: Request | undefined;
  /** Requests so far, the one that is arriving included. */
  #count = 0;
  #isReading = false;
  /** Whether more is read in a later turn of the event loop. */
  #awaitsTurn = false;
  /** Whether the client has closed its side. */
  #isOver = false;
  /** Whether the last answer is decided: what still comes is dropped. */
  #isEnding = false;
  /** What the client had to do at the last look, how far it was, and since when. */
  #task: 'send' | 'read' | 'ask' = 'ask';
  #progress = 0;
  #since = performance.now();

  constructor(socket: Socket, listener: Listener) {
    this.socket = socket;
    this.#listener = listener;
    socket.on('data', (bytes: Buffer) => this.#receive(bytes));
    socket.on('end', () => {
      this.#isOver = true;
      this.#read();
      this.#request?.leave();
    });
    socket.on('error', () => {}); // 'close' follows
    socket.on('close', () => {
      this.#stopReading();
      this.#request?.close();
    });
  }

  get hasLeft(): boolean {
    return this.#isOver || this.socket.destroyed;
  }

  get hasBytes(): boolean {
    return this.#received !== undefined;
  }

  /** Whether a request is in progress or arriving, or has been refused. */
  get isInUse(): boolean {
    return this.#partOfHead > 0 || this.#request !== undefined || this.#awaitsTurn;
  }

  /**
   * Ends the connection if its client is silent, or does not read its answer: until then, the answer is kept in memory, and with a
   * list its snapshot. Refuses a request that arrives too slowly. To be called every second.
   */
  endIfSlow(now: number): void {
    const { headers, wholeRequest, keepAlive, reader, readerWithoutRoom } = this.#listener.times;
    if (this.socket.isPaused()) this.#wait(); // more may have come
    const { bytesWritten, writableLength } = this.socket;
    const isInHead = this.#partOfHead > 0;
    const isArriving = !this.#isEnding && (isInHead || this.#request?.readsBody === true);
    const isAnswered = this.#request === undefined || this.#request.progress === 'sent';
    const task = isArriving ? 'send' : isAnswered ? 'ask' : 'read';
    // The next part of an answer is written once the system has taken the one before.
    const progress = task === 'read' ? bytesWritten : this.#count + (this.#request?.portions ?? 0);
    const isServed = task === 'read' && writableLength === 0; // it waits for the store
    if (isServed || task !== this.#task || progress !== this.#progress) this.#since = now;
    this.#task = task;
    this.#progress = progress;
    const limit = {
      send: isInHead ? headers : wholeRequest,
      read: lacksAnswerRoom() ? readerWithoutRoom : reader,
      ask: this.#count === 0 ? headers : keepAlive,
    }[task];
    if (now - this.#since < limit) return;
    if (task === 'send') this.#refuse(408);
    else this.socket.destroy();
  }

  connectionLines(isLast: boolean): string {
    if (isLast || (this.#listener.isStopping && !this.#hasNext)) this.#stopReading();
    return this.#isEnding ? CLOSE : this.#listener.keepAliveLines;
  }

  proceed(): void {
    const isAnswered = this.#request?.progress === 'sent';
    if (isAnswered && this.#isEnding) this.#end();
    else if (isAnswered && this.#request?.isWhole === true) {
      this.#request = undefined;
      if (this.#received !== undefined || this.#isOver) this.#awaitTurn();
    } else this.#read();
  }

  #receive(bytes: Buffer): void {
    if (this.#isEnding) return;
    this.#received = this.#received === undefined ? bytes : Buffer.concat([this.#received, bytes]);
    this.#read();
  }

  /** The next request or chunks wait for a turn of the event loop, so that other clients get theirs. */
  #awaitTurn(): void {
    if (this.#awaitsTurn) return;
    this.#awaitsTurn = true;
    awaitTurn(() => {
      this.#awaitsTurn = false;
      this.#read(true);
    });
  }

  /** Reads what it may of what has arrived: of one request. */
  #read(isItsTurn = false): void {
    if (this.#isReading || this.#isEnding || this.socket.destroyed) return;
    this.#isReading = true;
    if (this.#request === undefined && !this.#awaitsTurn) this.#readHead();
    if (this.#request?.readsBody && !this.#isEnding) this.#readBody(this.#request, isItsTurn);
    this.#isReading = false;
    if (this.#isEnding) return;
    if (this.#received !== undefined || this.socket.isPaused()) this.#wait();
    if (this.#isOver && this.#request === undefined && !this.#awaitsTurn) this.#end();
  }

  #readHead(): void {
    const lines = this.#received === undefined ? 0 : emptyLines(this.#received);
    if (lines > 0) {
      this.#drop(lines);
      this.#partOfHead = 0;
    }
    const bytes = this.#received;
    if (bytes === undefined || (bytes.length === 1 && bytes[0] === CR)) return; // half an empty line begins no request
    const { headerLimit } = this.#listener;
    if (this.#partOfHead === 0) this.#count += 1;
    const head = readHead(bytes, headerLimit, this.#partOfHead) ?? (this.#isOver ? 400 : undefined);
    this.#partOfHead = bytes.length;
    if (head === undefined) return; // more may come
    if (typeof head === 'number') return void this.#refuse(head);
    this.#drop(head.length);
    // A body that is known to be wrong is refused before its request has any effect.
    const isInChunks = head.bodyLength === undefined && this.#received !== undefined;
    const status = isInChunks ? unreadableStatusOf(this.#received as Buffer, headerLimit) : undefined;
    if (status !== undefined) return void this.#refuse(status);
    this.#partOfHead = 0;
    this.#request = new Request(head, headerLimit, this);
    this.#listener.begin(this.#request);
  }

  #readBody(request: Request, isItsTurn: boolean): void {
    if (this.#received === undefined) return void (this.#isOver && this.#refuse(400));
    if (request.chunks !== undefined && !isItsTurn) return void this.#awaitTurn();
    const length = request.readBody(this.#received);
    this.#drop(length);
    if (this.#isEnding) return; // its taker has answered
    if (request.chunks?.status !== undefined) this.#refuse(request.chunks.status);
    else if (request.isWhole) {
      request.endBody();
      this.proceed();
    } else if (this.#received !== undefined && length > 0) this.#awaitTurn();
    else if (this.#isOver) this.#refuse(400);
  }

  /** Ends the connection with an answer to a request that cannot be read, unless it has one already. */
  #refuse(status: UnreadableStatus): void {
    const request = this.#request;
    this.#stopReading();
    if (request === undefined) {
      const answer = this.#listener.refuse(status);
      writeAnswer(this.socket, answer, headOf(answer, '', CLOSE), false);
      this.#end();
    } else if (request.progress === 'unanswered') {
      request.answer(this.#listener.refuse(status), '', () => {});
    } else if (request.progress === 'begun') {
      this.socket.resetAndDestroy(); // half an answer must not seem whole
    } else if (request.progress === 'sent') {
      this.#end();
    }
  }

  /** Whether another request has arrived. One may be followed by an end of a line (RFC 9112 section 2.2). */
  get #hasNext(): boolean {
    const length = (this.#received?.length ?? 0) + this.socket.readableLength;
    return this.#request?.isWhole !== false && length > '\r\n'.length;
  }

  /** Decides whether what has arrived waits, and whether more may come meanwhile. */
  #wait(): void {
    const bytes = this.#received && compact(this.#received);
    this.#received = bytes;
    const kept = (bytes?.buffer.byteLength ?? 0) + this.socket.readableLength;
    if (!this.#room.take(this.#request?.isWhole === true ? kept : 0)) return void this.socket.destroy();
    const isRead = this.#request === undefined || this.#request.readsBody;
    // An end of a line is no request, and whether a client leaves is seen only while its connection is read.
    const mustWait = bytes !== undefined && bytes.length > '\r\n'.length && (this.#awaitsTurn || !isRead);
    if (mustWait !== this.socket.isPaused()) mustWait ? this.socket.pause() : this.socket.resume();
  }

  #drop(length: number): void {
    this.#received = this.#received?.length === length ? undefined : this.#received?.subarray(length);
  }

  /** What has arrived, and what still comes, is dropped: the last answer is decided. */
  #stopReading(): void {
    this.#isEnding = true;
    this.#received = undefined;
    this.#room[Symbol.dispose]();
    this.socket.resume();
    this.#request?.endBody();
  }

  /**
   * Closing a connection with unread bytes resets it, and the last answer may be lost. So incoming bytes are read and dropped for
   * a while (RFC 9112 section 9.6).
   */
  #end(): void {
    this.#stopReading();
    this.socket.end();
    this.socket.once('finish', () => {
      const timer = setTimeout(() => this.socket.destroy(), this.#listener.times.linger).unref();
      this.socket.once('close', () => clearTimeout(timer));
    });
  }
}

/** @returns the bytes, without the rest of their memory if that is more than four times as much. */
function compact(bytes: Buffer): Buffer {
  const { buffer, byteOffset, length } = bytes;
  return 4 * length < buffer.byteLength ? Buffer.from(buffer.slice(byteOffset, byteOffset + length)) : bytes;
}
