// Owns: one request, from its head to the last byte of its answer: who takes its body, and how far the answer is.
// Does not: know what came before it or comes behind it on its connection.

import type { Socket } from 'node:net';
import { type Answer, type BodyStream, headOf, isStream, writeAnswer, writeStream } from './answer.ts';
import type { BodyTaker, IncomingStream } from './body.ts';
import { Chunks } from './chunks.ts';
import type { Head, RequestHeaders } from './head.ts';
import { takeAnswerRoom } from './room.ts';

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';

/** What a request needs of its connection. */
export interface Carrier {
  readonly socket: Socket;
  /** Whether the client has closed its side, or has gone. */
  readonly hasLeft: boolean;
  /** Whether bytes have arrived behind the head. */
  readonly hasBytes: boolean;
  /** To be called when the request takes its body, and when its answer has ended or the system has all of it. */
  proceed(): void;
  /**
   * Decides whether the answer is the last one of its connection.
   * @param isLast whether it has to be.
   * @returns the lines of its head that say so.
   */
  connectionLines(isLast: boolean): string;
}

export class Request implements IncomingStream {
  readonly method: string;
  readonly target: string;
  readonly headers: RequestHeaders;
  readonly bodyLength: number | undefined;
  readonly #head: Head;
  readonly #carrier: Carrier;
  /** Of a body whose length is not known. */
  readonly chunks: Chunks | undefined;
  /** Bytes of the body that are to come, if its length is known. */
  #bodyLeft: number;
  #bodyRead = 0;
  #taker: BodyTaker | undefined;
  /** Whether all of the body has been read. */
  isWhole: boolean;
  /** How far the answer is: `ended` when all of it is written, `sent` when the system has it. */
  progress: 'unanswered' | 'begun' | 'ended' | 'sent' = 'unanswered';
  #stream: BodyStream | undefined;
  #releaseRoom: (() => void) | undefined;
  #onLeave: (() => void) | undefined;

  /** @param headerLimit bytes of trailers. */
  constructor(head: Head, headerLimit: number, carrier: Carrier) {
    this.method = head.method;
    this.target = head.target;
    this.headers = head.headers;
    this.bodyLength = head.bodyLength;
    this.#head = head;
    this.#carrier = carrier;
    this.#bodyLeft = head.bodyLength ?? 0;
    this.chunks = head.bodyLength === undefined ? new Chunks(headerLimit) : undefined;
    this.isWhole = head.bodyLength === 0;
  }

  get remoteAddress(): string | undefined {
    return this.#carrier.socket.remoteAddress;
  }

  /** Whether it has no answer, and its client is there. */
  get #isAnswerable(): boolean {
    return this.progress === 'unanswered' && !this.#carrier.socket.destroyed;
  }

  takeBody(taker: BodyTaker): void {
    const { socket, hasBytes } = this.#carrier;
    if (this.isWhole || !this.#isAnswerable) {
      taker.end(this.bodyLength === 0); // of any other, a part has been dropped
      return;
    }
    this.#taker = taker;
    if (this.#head.isExpecting && !hasBytes) socket.write(CONTINUE, 'latin1');
    this.#carrier.proceed();
  }

  resumeBody(): void {
    this.#carrier.proceed();
  }

  /** How often the least of the body has arrived that must in the time of a whole request. */
  get portions(): number {
    return Math.floor(this.#bodyRead / (this.#taker?.least ?? Number.POSITIVE_INFINITY));
  }

  /** Calls back once the client has closed its side, or has gone, unless the answer ends before. */
  onLeave(act: () => void): void {
    if (this.#carrier.hasLeft) act();
    else this.#onLeave = act;
  }

  /** Takes room for an answer until the system has all of it. @returns whether there is room. */
  takeRoom(answer: Answer): boolean {
    if (!this.#isAnswerable) return true;
    this.#releaseRoom = takeAnswerRoom(answer);
    return this.#releaseRoom !== undefined;
  }

  /**
   * Sends the answer; of one to HEAD, only the head. A second answer has no effect.
   * @param more lines of headers, before the others.
   * @param onBroken called with the reason if a stream fails half way. Its connection is reset, so that no client takes a part
   * for the whole.
   */
  answer(answer: Answer, more: string, onBroken: (reason: unknown) => void): void {
    const { body } = answer;
    const stream = isStream(body) ? body : undefined;
    const { socket } = this.#carrier;
    if (!this.#isAnswerable) {
      stream?.close(); // the client left while it was being opened
      return;
    }
    this.progress = 'begun';
    this.#stream = stream;
    const isToHead = this.method === 'HEAD';
    const { isOld, isExpecting } = this.#head;
    // What such a client sends now is the body or, from proxies with CVE-2024-24791, the next request.
    const isUncertain = isExpecting && !this.isWhole && this.#taker === undefined;
    // In HTTP/1.0, a stream ends with the connection.
    const isLast = this.#head.isLast || isUncertain || (isOld && stream !== undefined);
    const head = headOf(answer, more, this.#carrier.connectionLines(isLast));
    if (stream !== undefined && !isToHead) {
      void this.#send(stream, head, onBroken);
      this.#carrier.proceed(); // the rest of the body is dropped
      return;
    }
    stream?.close();
    writeAnswer(socket, answer, head, isToHead);
    this.#endAnswer();
  }

  async #send(stream: BodyStream, head: string, onBroken: (reason: unknown) => void): Promise<void> {
    const { socket } = this.#carrier;
    try {
      await writeStream(socket, stream, head, !this.#head.isOld);
      if (!socket.destroyed) this.#endAnswer();
    } catch (error) {
      if (socket.destroyed) return; // the client has left
      socket.resetAndDestroy();
      onBroken(error);
    } finally {
      stream.close();
    }
  }

  /** The answer has been written. What follows waits until the system has all of it. */
  #endAnswer(): void {
    const { socket } = this.#carrier;
    this.progress = 'ended';
    this.#onLeave = undefined;
    if (socket.writableLength === 0) {
      this.#endSending();
    } else {
      socket.write('', () => this.#endSending());
      this.#carrier.proceed();
    }
  }

  #endSending(): void {
    if (this.#carrier.socket.destroyed) return;
    this.progress = 'sent';
    this.#releaseRoom?.();
    this.#releaseRoom = undefined;
    this.#carrier.proceed();
  }

  /** Ends the connection without an answer. */
  abandon(): void {
    this.#carrier.socket.destroy();
  }

  /** Whether more of the body is taken, or dropped since the answer began. */
  get readsBody(): boolean {
    if (this.isWhole || this.progress !== 'unanswered') return !this.isWhole;
    return this.#taker !== undefined && !this.#taker.isFull;
  }

  /** Reads on in the body. @returns how many of the bytes it has read; those that it has not are to come again. */
  readBody(bytes: Buffer): number {
    let length: number;
    if (this.chunks !== undefined) {
      length = this.chunks.read(bytes, (data) => this.#taker?.take(data));
      this.isWhole = this.chunks.isWhole;
    } else {
      length = Math.min(this.#bodyLeft, bytes.length);
      this.#bodyLeft -= length;
      this.#taker?.take(length === bytes.length ? bytes : bytes.subarray(0, length));
      this.isWhole = this.#bodyLeft === 0;
    }
    this.#bodyRead += length;
    return length;
  }

  /** Tells who takes the body that no more of it comes. */
  endBody(): void {
    const taker = this.#taker;
    this.#taker = undefined;
    taker?.end(this.isWhole);
  }

  /** Tells all who wait that the client has closed its side. */
  leave(): void {
    this.#onLeave?.();
    this.#onLeave = undefined;
  }

  /** The connection has closed. */
  close(): void {
    this.endBody();
    this.leave();
    this.#stream?.close();
    this.#releaseRoom?.();
  }
}
