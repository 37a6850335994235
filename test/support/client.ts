// Owns: the client side of the tests: the kit's, without limits of speed, and quick where tests send many requests; and
// the checks that apply to every answer on the service's port.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { type Answer, AnswerReader, type RawAnswer } from '../../conformance/answers.ts';
import { Complaint } from '../../conformance/complaint.ts';
import { Connection as KitConnection } from '../../conformance/connection.ts';
import { type Book, type RequestOptions, Service } from '../../conformance/service.ts';
import { compose } from './raw-requests.ts';

export interface Target {
  readonly url: string;
  readonly port: number;
}

/** Sends requests to a service, or to several as if they were one. */
export interface Requester {
  request(method: string, path: string, options?: RequestOptions): Promise<Answer>;
  /** All books. */
  list(): Promise<Book[]>;
}

/** The time limit of a test file ends sooner. */
export const LIMITS = { time: 20 * 60_000, size: 1024 * 1024 * 1024 };

const ACCOUNT = { username: 'librarian', password: 'correct horse', secret: undefined };

/** A client that is logged in. */
export class Client extends Service implements Requester {
  readonly #token: string;

  constructor({ url }: Target, token: string) {
    super(new URL(url), ACCOUNT, LIMITS);
    this.#token = token;
  }

  /** @param body the account; that of tests if left out. */
  static async logIn(target: Target, body: object = ACCOUNT): Promise<Client> {
    const { status, data } = await request(target, 'POST', '/token', { body });
    assert.equal(status, 200);
    return new Client(target, data.token);
  }

  override get token(): string {
    return this.#token;
  }

  /** @throws TypeError when the connection breaks, as fetch does. */
  override async request(method: string, path: string, options?: RequestOptions): Promise<Answer> {
    try {
      return await super.request(method, path, options);
    } catch (error) {
      if (error instanceof Complaint && error.message === 'The request is answered.')
        throw new TypeError(error.received, { cause: error });
      throw error;
    }
  }
}

const strangers = new Map<string, Client>();

/**
 * Sends one request and reads its answer, which must be an envelope, whatever its status, except 304.
 * @throws TypeError when the connection breaks, as fetch does.
 */
export function request(
  target: Target,
  method: string,
  path: string,
  options?: RequestOptions,
): Promise<Answer> {
  const stranger = strangers.get(target.url) ?? new Client(target, '');
  strangers.set(target.url, stranger);
  return stranger.request(method, path, { token: null, ...options });
}

/** What an answer says, without its headers. */
export function bare({ status, message, data }: Answer): Pick<Answer, 'status' | 'message' | 'data'> {
  return { status, message, data };
}

/** Parses a body, which must be an envelope: exactly its three fields, with the status of its response. */
export function readEnvelope(body: string, httpStatus: number): ReturnType<typeof bare> {
  const envelope = JSON.parse(body);
  assert.deepEqual(Object.keys(envelope), ['status', 'message', 'data']);
  assert.equal(envelope.status, httpStatus);
  assert.equal(typeof envelope.message, 'string');
  return envelope;
}

/** A connection whose answers may be of any form. */
export class Connection extends KitConnection<RawAnswer> {
  constructor({ port }: Target) {
    super(connect({ port, host: '127.0.0.1', noDelay: true }), LIMITS, (raw) => raw);
  }
}

/** A connection that the service has accepted, which an answer shows: others are dropped by a service that stops. */
export async function accepted(
  context: { after(work: () => void): void },
  target: Pick<Target, 'port'>,
): Promise<Connection> {
  const connection = new Connection({ url: '', ...target });
  context.after(() => connection.socket.destroy());
  await connection.send(compose('GET', '/nowhere'));
  await connection.answers(1);
  return connection;
}

/**
 * Sends bytes as they are and reads answers until the service closes the connection or `answers` of them have arrived.
 */
export async function exchange(
  target: Target,
  bytes: string | Uint8Array,
  answers = 1,
): Promise<RawAnswer[]> {
  const connection = new Connection(target);
  try {
    connection.send(bytes).catch(() => {}); // the answers show it
    return await connection.answersUntilClosed(answers);
  } finally {
    connection.close();
  }
}

/** Whether a program listens there. */
export async function accepts(host: string, port: number): Promise<boolean> {
  const socket = connect(port, host);
  const isOpen = await once(socket, 'connect').catch(() => undefined);
  socket.destroy();
  return isOpen !== undefined;
}

/** The complete answers at the beginning of a stream. */
export function parseAnswers(stream: string): RawAnswer[] {
  const reader = new AnswerReader();
  reader.add(stream);
  return reader.answers;
}

/** Fails unless an answer has the form of every answer (rules 20 and 24), and refuses in this way. */
export function assertRefusal(
  answer: RawAnswer | undefined,
  status: number,
  message: string,
  name = '',
): void {
  assert.ok(answer !== undefined, `no answer: ${name}`);
  const { headers, body } = answer;
  assert.deepEqual(readEnvelope(body, answer.status), { status, message, data: null }, name);
  assert.equal(headers['content-type'], 'application/json; charset=utf-8', name);
  assert.equal(headers['x-content-type-options'], 'nosniff', name);
  assert.equal(headers['cache-control'], 'no-store', name);
  assert.match(headers['x-request-id'] ?? '', /^[\w-]+$/, name);
}

/** The path of the next page. */
export function nextOf({ headers }: Answer): string {
  const [, path = ''] = /^<([^>]+)>; rel="next"$/.exec(headers.get('link') ?? '') ?? [];
  return path;
}
