// Owns: the end of a connection that a server has, as its system shows it: bytes come in packets, and leave when the client reads.
// Also: reading what a server has written as strictly as HTTP/1.1 says, without any code of the service.

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

export interface ReadAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/**
 * Reads answers.
 * @param methods of the requests.
 * @param hasEnded whether the server has closed its side, which may be the end of a body.
 * @returns the whole ones, and whether bytes are left.
 * @throws if they are not answers.
 */
export function readAnswers(bytes: Buffer, methods: readonly string[], hasEnded: boolean) {
  const answers: ReadAnswer[] = [];
  let text = bytes.toString('latin1');
  let count = 0;
  while (text !== '') {
    const [whole, statusText, lines = ''] = HEAD.exec(text) ?? [];
    if (whole === undefined) {
      if (text.includes('\r\n\r\n')) throw new Error(`no head: ${text}`);
      return { answers, isCut: true };
    }
    const status = Number(statusText);
    const headers = new Map<string, string>();
    for (const line of lines.split('\r\n').slice(0, -1)) {
      const [name = '', value = ''] = line.split(': ', 2);
      if (headers.has(name)) throw new Error(`two headers ${name}`);
      headers.set(name, value);
    }
    const method = methods[count];
    if (status !== 100) count += 1;
    const after = text.slice(whole.length);
    const isBare = status === 100 || status === 204 || status === 304 || method === 'HEAD';
    const body = isBare ? { end: 0, body: '' } : bodyOf(after, headers, hasEnded);
    if (body === undefined) return { answers, isCut: true };
    answers.push({ status, headers, body: Buffer.from(body.body, 'latin1').toString() });
    text = after.slice(body.end);
  }
  return { answers, isCut: false };
}

const HEAD = /^HTTP\/1\.1 (\d{3}) [A-Z][A-Za-z -]*\r\n((?:[a-z-]+: [ -~]+\r\n)*)\r\n/;

function bodyOf(text: string, headers: ReadonlyMap<string, string>, hasEnded: boolean) {
  const length = headers.get('content-length');
  const coding = headers.get('transfer-encoding');
  if (length !== undefined && coding !== undefined) throw new Error('two lengths');
  if (length !== undefined) {
    const end = Number(length);
    return text.length < end ? undefined : { end, body: text.slice(0, end) };
  }
  if (coding === undefined) return hasEnded ? { end: text.length, body: text } : undefined;
  if (coding !== 'chunked') throw new Error(`coding ${coding}`);
  let body = '';
  for (let at = 0; ; ) {
    const [line, digits = ''] = /^([0-9a-f]+)\r\n/.exec(text.slice(at)) ?? [];
    if (line === undefined) {
      if (!/^[0-9a-f]*\r?$/.test(text.slice(at))) throw new Error(`no chunk: ${text.slice(at)}`);
      return undefined;
    }
    const begin = at + line.length;
    const end = begin + Number.parseInt(digits, 16);
    if (text.length < end + 2) return undefined;
    if (text.slice(end, end + 2) !== '\r\n') throw new Error(`no end of a chunk: ${text.slice(end)}`);
    body += text.slice(begin, end);
    at = end + 2;
    if (begin === end) return { end: at, body };
  }
}
