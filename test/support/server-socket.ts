// Owns: the end of a connection that a server has, as its system shows it: bytes come in packets, and leave when the client reads.

import { Duplex } from 'node:stream';

/** Bytes after which a stream waits. */
const FULL = 64;

export class ServerSocket extends Duplex {
  readonly remoteAddress = '';
  bytesRead = 0;
  bytesWritten = 0;
  isReset = false;
  hasEnded = false;
  /** What the system has taken or will take, in this order. */
  readonly written: Buffer[] = [];
  onWrite: (text: string) => void = () => {};
  onEnd: () => void = () => {};
  /** Called when the server, not the client, ends the connection at once. */
  onDestroy: () => void = () => {};
  /** Bytes that the system takes although the client has not read them. */
  readonly #capacity: number;
  #unread = 0;
  /** Bytes of a write for which the system has no room. */
  #left = 0;
  #done: (() => void) | undefined;
  readonly #packets: (Buffer | null)[] = [];
  #wantsMore = false;
  #isLostToClient = false;

  constructor(capacity: number) {
    super({ allowHalfOpen: true, highWaterMark: FULL });
    this.#capacity = capacity;
  }

  /** Bytes that the client could read. */
  get readableByClient(): number {
    return this.destroyed && !this.hasEnded ? 0 : this.#unread + this.#left;
  }

  /** Packets that the server does not take. */
  get waiting(): number {
    return this.#packets.length;
  }

  /** @param packet null when the client ends its side. */
  send(packet: Buffer | null): void {
    this.#packets.push(packet);
    this.#deliver();
  }

  /** The client reads. */
  readOut(bytes: number): void {
    const room = Math.max(0, bytes - this.#unread);
    this.#unread = Math.max(0, this.#unread - bytes);
    this.#left = Math.max(0, this.#left - room);
    this.#flow();
  }

  /** The client has gone. */
  lose(): void {
    this.#isLostToClient = true;
    this.destroy(new Error('read ECONNRESET'));
  }

  resetAndDestroy(): this {
    this.isReset = true;
    return this.destroy();
  }

  // biome-ignore lint/suspicious/noExplicitAny: all forms of the method.
  override write(chunk: any, ...rest: any[]): boolean {
    this.bytesWritten += chunk.length;
    this.onWrite(String(chunk));
    return super.write(chunk, ...rest);
  }

  override _read(): void {
    this.#wantsMore = true;
    this.#deliver();
  }

  override _write(bytes: Buffer, _: string, done: () => void): void {
    this.written.push(bytes);
    this.#left += bytes.length;
    this.#done = done;
    this.#flow();
  }

  override _writev(pieces: { chunk: Buffer }[], done: () => void): void {
    this._write(Buffer.concat(pieces.map(({ chunk }) => chunk)), '', done);
  }

  override _final(done: () => void): void {
    this.hasEnded = true;
    this.onEnd();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const isByStream = this.hasEnded && this.readableEnded;
    if (!this.#isLostToClient && !isByStream) this.onDestroy();
    setImmediate(() => done(error));
  }

  #deliver(): void {
    while (this.#wantsMore && !this.destroyed && this.#packets.length > 0) {
      const packet = this.#packets.shift() as Buffer | null;
      this.bytesRead += packet?.length ?? 0;
      this.#wantsMore = false; // until the stream has room, and asks again
      this.push(packet);
    }
  }

  #flow(): void {
    const taken = Math.min(this.#left, this.#capacity - this.#unread);
    this.#left -= taken;
    this.#unread += taken;
    if (this.#left > 0) return;
    const done = this.#done;
    this.#done = undefined;
    done?.();
  }
}
