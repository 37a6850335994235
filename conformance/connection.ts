// Owns: a connection to the service that is checked, written and read piece by piece.
// Does not: accept an answer that does not come in time, or an end that must not be.

import type { Socket } from 'node:net';
import { type Answer, AnswerReader, Held, type Limits, type RawAnswer } from './answers.ts';
import { Complaint, shown, Unanswered } from './complaint.ts';

/** @typeParam Read what an answer is read as. */
export class Connection<Read = Answer> {
  readonly socket: Socket;
  /** Resolves once the connection is closed, with the error that broke it, if any. */
  readonly closed: Promise<Error | undefined>;
  /** Everything received so far, one character for each byte. */
  received = '';
  #reader = new AnswerReader();
  readonly #limits: Limits;
  readonly #read: (raw: RawAnswer, request: string) => Read;
  /** The beginning of the bytes that were sent. */
  #sent = '';
  /** Set when this side has ended the connection, and dropped what it received. */
  #excess: Complaint | undefined;

  constructor(
    socket: Socket,
    limits: Limits,
    read: (raw: RawAnswer, request: string) => Read,
    held = new Held(limits.size),
  ) {
    this.socket = socket;
    this.#limits = limits;
    this.#read = read;
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      if (held.take(text.length)) {
        this.received += text;
        this.#reader.add(text);
        return;
      }
      socket.destroy();
      this.#reader = new AnswerReader();
      this.#excess = this.#complaint(held.excess);
      held.release(this.received.length);
      this.received = '';
    });
    let failure: Error | undefined;
    socket.on('error', (error) => {
      failure = error;
    });
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        held.release(this.received.length);
        resolve(failure);
      });
    });
  }

  /** Resolves once the system has taken the bytes. */
  send(bytes: string | Uint8Array): Promise<void> {
    this.#sent += shown(bytes);
    const { time } = this.#limits;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(
      () => reject(this.#complaint(`the request is not taken within ${time} ms`, Unanswered)),
      time,
    );
    this.socket.write(bytes, (error) => {
      clearTimeout(timer);
      if (error)
        reject(this.#complaint(`the connection broke before the whole request was taken: ${error.message}`));
      else resolve();
    });
    return promise;
  }

  /** Sends the last bytes and closes this side. */
  end(bytes: string | Uint8Array): void {
    this.#sent += shown(bytes);
    this.socket.end(bytes);
  }

  /** The answers received on this connection, once there are at least `count`. */
  async answers(count: number): Promise<Read[]> {
    return (await this.rawAnswers(count)).map((raw) => this.#read(raw, this.#sent));
  }

  /** Like `answers`; there are fewer if the service closes the connection. */
  async answersUntilClosed(count: number): Promise<Read[]> {
    await this.#until(() => this.#reader.answers.length >= count, true);
    return this.#reader.answers.slice(0, count).map((raw) => this.#read(raw, this.#sent));
  }

  async rawAnswers(count: number): Promise<readonly RawAnswer[]> {
    await this.#until(() => this.#reader.answers.length >= count, false);
    return this.#reader.answers;
  }

  /** Resolves once the received bytes contain the text. */
  async untilReceived(text: string): Promise<void> {
    await this.#until(() => this.received.includes(text), false);
  }

  /** Resolves once the service has closed the connection without an error. */
  async untilClosed(): Promise<void> {
    await this.#until(() => false, true);
    const failure = await this.closed;
    if (failure !== undefined) throw this.#complaint(`the connection broke: ${failure.message}`);
  }

  close(): void {
    this.socket.destroy();
  }

  /** Waits for a state of the received bytes; complains when the limits are reached, or on an end that must not be. */
  async #until(holds: () => boolean, mayEnd: boolean): Promise<void> {
    const { time } = this.#limits;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const look = () => {
      if (holds()) resolve();
    };
    const timer = setTimeout(
      () => reject(this.#complaint(`no whole answer within ${time} ms`, Unanswered)),
      time,
    );
    timer.unref();
    this.socket.on('data', look);
    void this.closed.then((failure) => {
      if (this.#excess !== undefined) reject(this.#excess);
      else if (mayEnd) resolve();
      else reject(this.#complaint(`the connection was closed${failure ? `: ${failure.message}` : ''}`));
    });
    look();
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      this.socket.off('data', look);
    }
  }

  #complaint(reason: string, Reason = Complaint): Complaint {
    const received = this.received === '' ? reason : `${shown(this.received)}\nand then: ${reason}`;
    return new Reason('The request is answered.', { request: this.#sent, received });
  }
}
