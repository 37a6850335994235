// Owns: servers that speak as much of PostgreSQL's protocol as the driver needs, without a network: so the driver, its pools
// and what is built on them run in every order. What a server answers, and when, is the order's to say.
// https://www.postgresql.org/docs/current/protocol-message-formats.html

import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import { Duplex } from 'node:stream';
import type { Order } from './order.ts';

export type Row = Readonly<Record<string, string | number | boolean>>;

/** An answer with an error, by its SQLSTATE. */
export class ServerError extends Error {
  readonly code: string;

  constructor(code: string) {
    super(`error ${code}`);
    this.code = code;
  }
}

export interface Statement {
  readonly text: string;
  readonly values: readonly string[];
}

/** `down` refuses connections; `silent` answers nothing until it is up again. */
export type Condition = 'up' | 'down' | 'silent';

const OF_CONNECTION = "set_config('statement_timeout', $1";
const OF_TRANSACTION = /^begin[^;]*; set local statement_timeout = (\d+)/;
const CANCELED = '57014';

/** Types of columns, by those of their values. */
const TYPES = { string: 25, number: 23, boolean: 16 } as const;

export abstract class Server {
  readonly port: number;
  readonly #order: Order;
  readonly #sessions = new Set<Session>();
  #condition: Condition = 'up';
  #up = Promise.withResolvers<void>();
  /** Whether it answers at once. */
  isPrompt = false;

  constructor(order: Order, port: number) {
    this.#order = order;
    this.port = port;
    this.#up.resolve();
  }

  /** @throws ServerError */
  abstract answer(statement: Statement, session: Session): readonly Row[] | Promise<readonly Row[]>;

  get condition(): Condition {
    return this.#condition;
  }

  set condition(condition: Condition) {
    if (condition === 'down') this.endSessions();
    if (condition !== 'silent') this.#up.resolve();
    else if (this.#condition !== 'silent') this.#up = Promise.withResolvers();
    this.#condition = condition;
  }

  endSessions(): void {
    for (const session of this.#sessions) session.endByServer();
  }

  /** Called with a connection that is attempted. */
  async accept(session: Session): Promise<void> {
    await this.#when('connects');
    if (session.destroyed) return;
    if (this.#condition === 'down') return void session.destroy(new Error('connect ECONNREFUSED'));
    this.#sessions.add(session);
    session.once('close', () => this.#sessions.delete(session));
    session.emit('connect');
  }

  /**
   * Called with a statement when it is sent.
   * @param limit milliseconds until the server ends it.
   */
  onSent(_statement: Statement, _limit: number): void {}

  /** @returns the messages of the answer. */
  async carryOut(statement: Statement, session: Session, limit: number): Promise<Buffer> {
    const end = this.#order.time.now + limit;
    await this.#when(`answers ${statement.text.trim().slice(0, 24).replace(/\s+/g, ' ')}`);
    try {
      if (this.#order.time.now > end) throw new ServerError(CANCELED);
      return rowsMessages(await this.answer(statement, session));
    } catch (error) {
      if (!(error instanceof ServerError)) throw error;
      return message('E', text('SERROR'), text(`C${error.code}`), text(`M${error.message}`), Buffer.alloc(1));
    }
  }

  async #when(what: string): Promise<void> {
    if (!this.isPrompt) await this.#order.later(`${this.port} ${what}`, () => {});
    await this.#up.promise;
  }
}

/** The driver's end of a connection, instead of a socket, with the server's behind it. */
export class Session extends Duplex {
  readonly #find: (port: number) => Server;
  #server: Server | undefined;
  /** Milliseconds of a statement at most, and of one in the transaction. */
  #limit = Number.POSITIVE_INFINITY;
  #limitInTransaction: number | undefined;
  #received: Buffer = Buffer.alloc(0);
  #isStarted = false;
  #isEnded = false;
  readonly setNoDelay = () => this;
  readonly setKeepAlive = () => this;
  readonly ref = () => this;
  readonly unref = () => this;
  readonly resetAndDestroy = () => this.destroy();
  /** Received, but not to be carried out before the packet is complete. */
  #statement: Statement = { text: '', values: [] };
  #answered: Promise<unknown> = Promise.resolve();

  constructor(find: (port: number) => Server) {
    super({ allowHalfOpen: false });
    this.#find = find;
  }

  connect(port: number): this {
    this.#server = this.#find(Number(port));
    void this.#server.accept(this);
    return this;
  }

  /** What the server does at its end. */
  endByServer(): void {
    if (!this.#isEnded && !this.destroyed) this.push(null);
    this.#isEnded = true;
  }

  override _read(): void {}

  override _write(bytes: Buffer, _: string, done: () => void): void {
    this.#received = Buffer.concat([this.#received, bytes]);
    for (;;) {
      const head = this.#isStarted ? 1 : 0;
      const end =
        this.#received.length < head + 4 ? Number.POSITIVE_INFINITY : head + this.#received.readInt32BE(head);
      if (this.#received.length < end) break;
      const type = this.#isStarted ? this.#received.toString('latin1', 0, 1) : 'startup';
      const body = this.#received.subarray(head + 4, end);
      this.#received = this.#received.subarray(end);
      this.#receive(type, body);
    }
    done();
  }

  override _final(done: () => void): void {
    this.endByServer();
    done();
  }

  #receive(type: string, body: Buffer): void {
    if (type === 'startup') {
      this.#isStarted = true;
      const key = message('K', int32(this.#server?.port ?? 0), int32(0));
      this.#answer(async () => Buffer.concat([message('R', int32(0)), key]));
    } else if (type === 'P') {
      this.#statement = { text: body.toString().split('\0')[1] as string, values: [] };
    } else if (type === 'B') {
      this.#statement = { text: this.#statement.text, values: valuesOf(body) };
    } else if (type === 'Q' || type === 'S') {
      const simple = { text: body.toString('utf8', 0, body.length - 1), values: [] };
      const statement = type === 'Q' ? simple : this.#statement;
      const server = this.#server as Server;
      const limit = this.#limitOf(statement);
      server.onSent(statement, limit);
      this.#answer(() => server.carryOut(statement, this, limit));
    }
  }

  #limitOf({ text, values: [limit] }: Statement): number {
    const [, ofTransaction] = OF_TRANSACTION.exec(text) ?? [];
    if (ofTransaction !== undefined) this.#limitInTransaction = Number(ofTransaction);
    const before = this.#limitInTransaction ?? this.#limit;
    if (text.includes(OF_CONNECTION)) this.#limit = Number(limit);
    if (text === 'commit' || text === 'rollback') this.#limitInTransaction = undefined;
    return before;
  }

  /** Gives one answer after the other. */
  #answer(answer: () => Promise<Buffer>): void {
    this.#answered = this.#answered.then(async () => {
      if (this.#isEnded) return;
      const bytes = await answer();
      if (!this.#isEnded && !this.destroyed) this.push(Buffer.concat([bytes, READY]));
    });
  }
}

/** Carries out work with these servers in place of the network. */
export async function withServers<Result>(
  servers: readonly Server[],
  work: () => Promise<Result>,
): Promise<Result> {
  const { Socket } = net;
  const find = (port: number) => servers.find((server) => server.port === port) as Server;
  const Replaced = class extends Session {
    constructor() {
      super(find);
    }
  };
  Object.assign(net, { Socket: Replaced });
  syncBuiltinESMExports();
  try {
    return await work();
  } finally {
    Object.assign(net, { Socket });
    syncBuiltinESMExports();
  }
}

const READY = message('Z', Buffer.from('I'));

function message(type: string, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.from(type), int32(body.length + 4), body]);
}

function int16(value: number): Buffer {
  return int32(value).subarray(2);
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function text(value: string): Buffer {
  return Buffer.from(`${value}\0`);
}

/** The values of a message that binds them: after two names and the formats. */
function valuesOf(body: Buffer): readonly string[] {
  let at = body.indexOf(0, body.indexOf(0) + 1) + 1;
  at += 2 + 2 * body.readInt16BE(at);
  const values: string[] = [];
  for (let left = body.readInt16BE(at); left > 0; left -= 1) {
    const length = Math.max(0, body.readInt32BE(at + 2)); // -1 is null
    values.push(body.toString('utf8', at + 6, at + 6 + length));
    at += 4 + length;
  }
  return values;
}

function rowsMessages(rows: readonly Row[]): Buffer {
  const columns = Object.entries(rows[0] ?? {}).map(([name, value]) => {
    const type = TYPES[typeof value as keyof typeof TYPES];
    return Buffer.concat([text(name), int32(0), int16(0), int32(type), int16(-1), int32(-1), int16(0)]);
  });
  const described = columns.length === 0 ? [] : [message('T', int16(columns.length), ...columns)];
  const data = rows.map((row) => {
    const values = Object.values(row).map((value) =>
      Buffer.from(typeof value === 'boolean' ? `${value}`.slice(0, 1) : `${value}`),
    );
    return message('D', int16(values.length), ...values.flatMap((value) => [int32(value.length), value]));
  });
  return Buffer.concat([...described, ...data, message('C', text(`SELECT ${rows.length}`))]);
}
