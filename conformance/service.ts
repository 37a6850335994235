// Owns: the service that is checked, as its client sees it: requests, connections, and the books that were stored.
// Does not: accept an answer that is no envelope, that does not come, or that does not end. Each is a complaint that
// shows the request and what came back.

import {
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions as NodeRequest,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { connect as connectPlain } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { type Answer, Held, type Limits, type RawAnswer } from './answers.ts';
import type { EMPTY } from './cases.ts';
import { Complaint, shown, Unanswered } from './complaint.ts';
import { Connection } from './connection.ts';

/** Milliseconds after which an idle connection is not used again: the service may be about to close it. */
const IDLE = 1500;

/** Milliseconds after which another token is asked for: a token lasts three times as long. */
const RENEWAL = 300_000;

/** Connections on which books are removed at the same time. */
const REMOVALS = 64;

/** Ids, from the largest one down, of which one names no book. */
const LARGEST_IDS = 1000;

/** Milliseconds until a service that is busy is asked again. */
const BUSY_PAUSE = 500;

export interface Account {
  readonly username: string;
  readonly password: string;
  /** The secret that the service signs with; undefined if it is not known. */
  readonly secret: string | undefined;
}

/** A request and its answer. */
export interface Exchange {
  readonly method: string;
  readonly path: string;
  /** Headers that a rule has set, names in lower case. */
  readonly requestHeaders: Readonly<Record<string, string>>;
  readonly requestBody: Uint8Array;
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

type Received = Pick<Exchange, 'status' | 'headers' | 'body'>;

interface Sent extends Omit<Exchange, keyof Received> {
  readonly hasBody: boolean;
  /** As complaints show it. */
  readonly shownAs: string;
}

export interface RequestOptions {
  /** Text and bytes are sent as they are, anything else as JSON. */
  readonly body?: unknown;
  /** The whole Authorization header; null sends none. If it is left out, the token of the service's account is sent. */
  readonly token?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A book as the service returns it. */
export type Book = Readonly<{ id: number } & typeof EMPTY>;

export class Service {
  readonly url: URL;
  readonly account: Account;
  readonly #limits: Limits;
  readonly #held: Held;
  readonly #observe: (exchange: Exchange) => void;
  readonly #agent: HttpAgent | HttpsAgent;
  readonly #connections = new Set<Connection>();
  /** Ids of books that were stored, since the last removal. */
  readonly #stored = new Set<number>();
  readonly #left: number[] = [];
  #noBook: string | undefined;
  #token = '';
  #tokenTime = Number.NEGATIVE_INFINITY;
  #latest: Answer | undefined;

  /**
   * @param url without a path.
   * @param observe gets every answer.
   */
  constructor(url: URL, account: Account, limits: Limits, observe: (exchange: Exchange) => void = () => {}) {
    this.url = url;
    this.account = account;
    this.#limits = limits;
    this.#held = new Held(limits.size);
    this.#observe = observe;
    const options = { keepAlive: true, timeout: IDLE };
    this.#agent = this.#isTls ? new HttpsAgent(options) : new HttpAgent(options);
  }

  /** A valid token, once `logIn` has succeeded. */
  get token(): string {
    return this.#token;
  }

  /** The path of a book that does not exist: a request that a rule expects to be refused changes no book of a right service. */
  get noBook(): string {
    return this.#noBook ?? `/book/${Number.MAX_SAFE_INTEGER}`;
  }

  /** The ids of the books that could not be removed. */
  get left(): readonly number[] {
    return this.#left;
  }

  /** The answer that was read last. */
  get latest(): Answer | undefined {
    return this.#latest;
  }

  /** The `Host` of every request. */
  get host(): string {
    return this.url.host;
  }

  get #isTls(): boolean {
    return this.url.protocol === 'https:';
  }

  /**
   * Gets a token, unless there is one that lasts.
   * @throws Complaint if the service gives none.
   */
  async logIn(): Promise<void> {
    if (performance.now() - this.#tokenTime < RENEWAL) return;
    const { username, password } = this.account;
    const answer = await this.request('POST', '/token', { body: { username, password }, token: null });
    const token = answer.data?.token;
    if (answer.status !== 200 || typeof token !== 'string') {
      throw new Complaint('The login returns 200 and a token.', answer);
    }
    this.#token = token;
    this.#tokenTime = performance.now();
  }

  /** Looks once for the largest id without a book. Whether its answers are right is for the rules to judge. */
  async findNoBook(): Promise<void> {
    for (let below = 0; this.#noBook === undefined; below += 1) {
      const path = `/book/${Number.MAX_SAFE_INTEGER - below}`;
      const status = await this.request('GET', path).then(
        (answer) => answer.status,
        () => undefined,
      );
      if (status !== 200 || below === LARGEST_IDS) this.#noBook = path;
    }
  }

  /** Sends one request and reads its answer, which must be an envelope, whatever its status, except 304. */
  async request(
    method: string,
    path: string,
    { body, token = this.token, headers }: RequestOptions = {},
  ): Promise<Answer> {
    const sent = sentOf(method, path, body, { ...(token !== null && { authorization: token }), ...headers });
    return this.#answer(sent, await this.#send(sent));
  }

  /**
   * Sends a search. While the service says that it has not indexed all books yet (rule F11), it is asked again, for as long
   * as an answer may take.
   */
  async search(
    path: string,
    headers: Readonly<Record<string, string>> = {},
    method = 'GET',
  ): Promise<Answer> {
    const end = performance.now() + this.#limits.time;
    let answer = await this.request(method, path, { headers });
    while (answer.headers.get('x-unindexed-books') !== null && performance.now() < end) {
      await pause(BUSY_PAUSE);
      answer = await this.request(method, path, { headers });
    }
    return answer;
  }

  /** Stores a book; the answer must be 201. */
  async create(body: unknown): Promise<Book> {
    const answer = await this.request('POST', '/book', { body });
    if (answer.status !== 201) throw new Complaint('The book is stored: 201.', answer);
    return answer.data;
  }

  /** All books; the answer must be 200. */
  async list(): Promise<Book[]> {
    const answer = await this.request('GET', '/books');
    if (answer.status !== 200 || !Array.isArray(answer.data)) {
      throw new Complaint('The list returns 200 and an array.', answer);
    }
    return answer.data;
  }

  /** The books of the list that have the text in a field. */
  async listed(mark: string): Promise<Book[]> {
    return (await this.list()).filter((book) => Object.values(book).join('\n').includes(mark));
  }

  /** Has the books removed later that have the text in a field: those of an import. @returns them. */
  async adopt(mark: string): Promise<Book[]> {
    const books = await this.listed(mark);
    for (const { id } of books) this.#stored.add(id);
    return books;
  }

  /** The bytes of a request that asks for its connection to stay open. */
  bytes(method: string, path: string, { body, token = this.token, headers }: RequestOptions = {}): Buffer {
    const sent = bytesOf(body);
    const lines = Object.entries({
      host: this.host,
      ...(token !== null && { authorization: token }),
      ...(sent !== undefined && { 'content-length': String(sent.length) }),
      ...headers,
    }).map(([name, value]) => `${name}: ${value}\r\n`);
    const head = Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1');
    return sent === undefined ? head : Buffer.concat([head, sent]);
  }

  /** Pipelines requests on one connection, which is the cheapest way to send many; `HEAD` is not supported. */
  async requestAll(
    requests: readonly (readonly [method: string, path: string, options?: RequestOptions])[],
  ): Promise<Answer[]> {
    const connection = this.connect();
    try {
      // A service that reads no further before its answers are taken would otherwise wait forever.
      const sending = connection.send(Buffer.concat(requests.map((parts) => this.bytes(...parts))));
      sending.catch(() => {}); // the answers show it
      const answers = await connection.rawAnswers(requests.length);
      return answers.map((raw, position) => {
        const [method, path, { body, headers } = {}] = requests[position] as (typeof requests)[number];
        return this.#rawAnswer(raw, sentOf(method, path, body, headers));
      });
    } finally {
      connection.close();
    }
  }

  /** Sends bytes as they are and reads answers until there are enough, or the service closes the connection. */
  async exchange(bytes: string | Uint8Array, answers = 1): Promise<Answer[]> {
    const connection = this.connect();
    try {
      connection.send(bytes).catch(() => {}); // the answers show it
      return await connection.answersUntilClosed(answers);
    } finally {
      connection.close();
    }
  }

  connect(): Connection {
    const { hostname, port } = this.url;
    const host = hostname.replace(/^\[|\]$/g, '');
    const socket = this.#isTls
      ? connectTls({ host, port: Number(port || 443), ...(/[a-z]/i.test(host) && { servername: host }) })
      : connectPlain({ host, port: Number(port || 80), noDelay: true });
    const connection = new Connection(
      socket,
      this.#limits,
      (raw, shownAs) => this.#rawAnswer(raw, { ...sentOf('', ''), shownAs }),
      this.#held,
    );
    this.#connections.add(connection);
    void connection.closed.then(() => this.#connections.delete(connection));
    return connection;
  }

  /**
   * Removes the books that were stored through this object; `left` has those that cannot be removed. A service that is
   * unavailable for a moment, as after a rule with many requests, is asked again.
   */
  async removeStored(): Promise<void> {
    const ids = [...this.#stored];
    this.#stored.clear();
    const end = performance.now() + this.#limits.time;
    const remove = async (some: readonly number[]) => {
      const answers = await this.requestAll(some.map((id) => ['DELETE', `/book/${id}`])).catch(() => []);
      for (const [position, id] of some.entries()) {
        let status = answers[position]?.status;
        if (status === undefined || status === 428) status = await this.#remove(id);
        while (status === 503 && performance.now() < end) {
          await pause(BUSY_PAUSE);
          status = await this.#remove(id);
        }
        if (status !== 200 && status !== 404) this.#left.push(id);
      }
    };
    const groups = Map.groupBy(ids, (id) => id % REMOVALS);
    await Promise.all([...groups.values()].map(remove));
  }

  /** Removes a book in any state (E4). @returns the status; undefined without an answer. */
  async #remove(id: number): Promise<number | undefined> {
    const request = (headers: Record<string, string>) => this.request('DELETE', `/book/${id}`, { headers });
    try {
      const { status } = await request({});
      return status === 428 ? (await request({ 'if-match': '*' })).status : status;
    } catch {
      return undefined;
    }
  }

  /** Ends every connection. */
  close(): void {
    this.#agent.destroy();
    for (const connection of this.#connections) connection.close();
  }

  #send({ method, path, requestHeaders, requestBody, hasBody, shownAs }: Sent): Promise<Received> {
    const { hostname, port } = this.url;
    const length = hasBody ? { 'content-length': String(requestBody.length) } : {};
    const options: NodeRequest = {
      agent: this.#agent,
      host: hostname.replace(/^\[|\]$/g, ''),
      ...(port !== '' && { port }),
      method,
      path,
      headers: { host: this.host, ...length, ...requestHeaders },
    };
    const { time } = this.#limits;
    let received = '';
    return new Promise<Received>((resolve, reject) => {
      const request = this.#isTls ? httpsRequest(options) : httpRequest(options);
      const fail = (reason: string, Reason = Complaint) => {
        clearTimeout(timer);
        request.destroy();
        reject(new Reason('The request is answered.', { request: shownAs, received: reason }));
      };
      const timer = setTimeout(() => fail(`no whole answer within ${time} ms`, Unanswered), time);
      timer.unref();
      request.on('error', (error) => fail(`no answer: ${reasonOf(error)}`));
      request.on('response', (response: IncomingMessage) => {
        response.setEncoding('utf8').on('data', (more: string) => {
          if (this.#held.take(more.length)) received += more;
          else fail(this.#held.excess);
        });
        response.on('error', (error) => {
          fail(`${response.statusCode} ${shown(received)}, and then the connection broke: ${error.message}`);
        });
        response.on('end', () => {
          clearTimeout(timer);
          resolve({
            status: response.statusCode as number,
            headers: Object.fromEntries(new Headers(response.headers as Record<string, string>)),
            body: received,
          });
        });
      });
      request.end(hasBody ? requestBody : undefined);
    }).finally(() => this.#held.release(received.length));
  }

  #rawAnswer(raw: RawAnswer, sent: Sent): Answer {
    return this.#answer(sent, { ...raw, body: Buffer.from(raw.body, 'latin1').toString() });
  }

  #answer({ shownAs: request, hasBody: _, ...sent }: Sent, response: Received): Answer {
    const { status, body } = response;
    const headers = new Headers(response.headers);
    const isBare = sent.method === 'HEAD' || status === 304;
    if (isBare && body !== '')
      throw new Complaint('The answer has no body.', { request, received: `${status} ${shown(body)}` });
    const content = isBare ? { message: '', data: undefined } : readEnvelope(response, request);
    const answer = { status, ...content, headers, request };
    this.#observe({ ...sent, ...response });
    this.#latest = answer;
    this.#note(answer);
    return answer;
  }

  /** Notes which books are stored, so that they can be removed. Those of a replayed answer may be another client's. */
  #note({ status, data, headers }: Answer): void {
    if (status !== 201 || headers.has('idempotent-replayed')) return;
    for (const id of Array.isArray(data) ? data : [data?.id]) {
      if (Number.isSafeInteger(id)) this.#stored.add(id);
    }
  }
}

/** OpenSSL's errors name its own functions, numbers and files, with the fault between them. */
function reasonOf({ message, code }: NodeJS.ErrnoException): string {
  const [, fault] = /:SSL routines:[^:]*:([^:]+):/.exec(message) ?? [];
  if (fault === 'wrong version number') return 'the port does not use TLS: the URL must begin with http://';
  return fault === undefined ? message || String(code) : `TLS fails: ${fault}`;
}

/** @returns undefined for a request without a body. */
function bytesOf(body: unknown): Buffer | undefined {
  if (body === undefined) return undefined;
  if (body instanceof Uint8Array) return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

function sentOf(
  method: string,
  path: string,
  body?: unknown,
  requestHeaders: Sent['requestHeaders'] = {},
): Sent {
  const bytes = bytesOf(body);
  const lines = Object.entries(requestHeaders).map(([name, value]) => `\n${name}: ${shown(value)}`);
  const shownAs = `${method} ${shown(path)}${lines.join('')}${bytes === undefined ? '' : `\n\n${shown(bytes)}`}`;
  const requestBody = bytes ?? Buffer.alloc(0);
  return { method, path, requestHeaders, requestBody, hasBody: bytes !== undefined, shownAs };
}

/** Every response body is a JSON object with exactly three fields; `status` is that of the response. */
function readEnvelope({ status, body }: Received, request: string): { message: string; data: unknown } {
  const received = { request, received: `${status} ${shown(body)}` };
  let envelope: unknown;
  try {
    envelope = JSON.parse(body);
  } catch {
    throw new Complaint('The body of the answer is JSON.', received);
  }
  const fields = Object(envelope) as Record<string, unknown>;
  if (Object.keys(fields).toSorted().join() !== 'data,message,status') {
    throw new Complaint('The answer is an envelope: exactly status, message and data.', received);
  }
  if (fields.status !== status) throw new Complaint(`The envelope has the status ${status}.`, received);
  if (typeof fields.message !== 'string')
    throw new Complaint('The message of the envelope is a text.', received);
  return { message: fields.message, data: fields.data };
}
