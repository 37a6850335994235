// Owns: the HTTP application. Its routes, the gate before them, and the way of every answer out: whatever
// happens on the way, a client reads an envelope.
// Refuses: to know what a book is, or where it is kept.

import { randomBytes } from 'node:crypto';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type HTTPMethods,
  LogController,
} from 'fastify';
import type { CheckCredentials } from '../auth/credentials.ts';
import type { TakeTurn } from '../auth/login-guard.ts';
import type { Tokens } from '../auth/tokens.ts';
import type { Catalogue } from '../books/catalogue.ts';
import { StoreUnavailable } from '../books/store.ts';
import type { Log } from '../log.ts';
import { BodyIncomplete, BodyTooLarge, NoRoomForBody } from './body.ts';
import { addBookRoutes, BOOK_PATH } from './book-routes.ts';
import { allowOrigins, isPreflight, permit } from './cors.ts';
import {
  BAD_REQUEST,
  COMMON_HEADERS,
  type Envelope,
  INTERNAL_ERROR,
  INVALID_TOKEN,
  METHOD_NOT_ALLOWED,
  NOT_FOUND,
  PAYLOAD_TOO_LARGE,
  REQUEST_ID,
  SERVICE_UNAVAILABLE,
  STATUS_HEADERS,
  TOKEN_REQUIRED,
} from './envelope.ts';
import type { RequestCounts } from './request-counts.ts';
import { addTokenRoutes } from './token-routes.ts';
import { announceEnd, createHttpServer, HTTP_METHODS } from './wire.ts';

/** Milliseconds between two lines of the log about one fault, however many requests meet it. */
const FAULT_LINES_APART = 1000;

/** What there is for any path. */
const ALL_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'];

export interface AppParts {
  readonly catalogue: Catalogue;
  readonly tokens: Tokens;
  readonly checkCredentials: CheckCredentials;
  readonly takeTurn: TakeTurn;
  /** Addresses and networks whose X-Forwarded-For is believed. */
  readonly trustedProxies: readonly string[];
  /** Origins whose pages may call from a browser. */
  readonly corsOrigins: readonly string[];
  /** Port of the operations listener, whose own page calls from a browser. */
  readonly docsPort: number | undefined;
  readonly log: Log;
  readonly requests: RequestCounts;
  /** Bytes. */
  readonly bodyLimit: number;
  /** Bytes. */
  readonly headerLimit: number;
}

/** The routes are open once `app.ready()` has resolved; listening is the caller's. */
export function buildApp(parts: AppParts): FastifyInstance {
  const newRequestId = requestIds();
  const faults = new Faults(parts);
  const allowOrigin = allowOrigins(parts.corsOrigins, parts.docsPort);
  const app = Fastify({
    loggerInstance: parts.log as FastifyBaseLogger,
    childLoggerFactory: (log) => log, // one of its own for each request would cost 4 % of a read
    logController: new BrokenListLog(faults),
    serverFactory: (handle) =>
      createHttpServer(handle, parts.headerLimit, newRequestId, (status, reqId) => {
        parts.requests.addUnreadable(status);
        parts.log.info({ reqId, status }, 'request'); // nothing else of it is known
      }),
    trustProxy: parts.trustedProxies.length > 0 && [...parts.trustedProxies],
    return503OnClosing: false, // requests on open connections are still answered while shutting down
    exposeHeadRoutes: false, // HEAD stands beside GET where there is one
    routerOptions: { maxParamLength: parts.headerLimit }, // an id too long names no book (rule 10)
    genReqId: (request) => {
      const sent = request.headers['x-request-id'];
      return typeof sent === 'string' && REQUEST_ID.test(sent) ? sent : newRequestId();
    },
    clientErrorHandler: () => {}, // the server has its own
    // The path has a bad escape: no route and no hook will see the request.
    frameworkErrors: (_error, request, reply: FastifyReply) => {
      reply.header('x-request-id', request.id);
      allowOrigin(request, reply);
      setHead(app, reply, BAD_REQUEST);
      parts.requests.addUnreadable(BAD_REQUEST.status);
      parts.log.request(request.id, request.method, request.url, BAD_REQUEST.status, 0);
      reply.send(BAD_REQUEST);
    },
  });

  // Bodies are read by the handlers, after the checks that come before them, and whatever their type.
  for (const method of HTTP_METHODS) app.addHttpMethod(method, { overrideExisting: true });

  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id);
    allowOrigin(request, reply);
    done();
  });
  app.addHook('preSerialization', (_request, reply, envelope, done) => {
    setHead(app, reply, envelope as Envelope);
    done(null, envelope);
  });
  app.setReplySerializer((envelope) => JSON.stringify(envelope));
  // Every answer passes here, also one whose client has left or takes its time to read.
  app.addHook('onSend', (request, reply, _body, done) => {
    const { method } = request;
    const { statusCode: status, elapsedTime: milliseconds } = reply;
    parts.requests.add(request.routeOptions.url, method, status, milliseconds);
    parts.log.request(request.id, method, request.url, status, milliseconds);
    done();
  });
  app.setErrorHandler((error, request, reply) => reply.send(envelopeFor(error, request, faults)));
  // A page that asks for a path that is none shall read so, not that it may not ask.
  app.setNotFoundHandler((request, reply) =>
    isPreflight(request, reply) ? permit(app, reply, ALL_METHODS) : NOT_FOUND,
  );

  addTokenRoutes(app, parts.tokens, parts.checkCredentials, parts.takeTurn, parts.bodyLimit);
  app.register(async (guarded) => {
    guarded.addHook('onRequest', (request, reply, done) => {
      const refusal = refuse(request, parts.tokens);
      if (refusal === undefined) done();
      else reply.send(refusal);
    });
    addBookRoutes(guarded, parts.catalogue, parts.bodyLimit);
  });
  refuseOtherMethods(app, '/token', ['POST']);
  refuseOtherMethods(app, '/book', ['POST']);
  refuseOtherMethods(app, '/books', ['GET', 'HEAD']);
  refuseOtherMethods(app, BOOK_PATH, ['GET', 'HEAD', 'PUT', 'DELETE']);
  return app;
}

/** The gate of the catalogue: before its routes run, and before a body is read (rules 9 and 17). */
function refuse(request: FastifyRequest, tokens: Tokens): Envelope | undefined {
  const token = request.headers.authorization;
  if (!token) return TOKEN_REQUIRED;
  return tokens.isValid(token) ? undefined : INVALID_TOKEN;
}

/** Status and headers that follow from the envelope. */
function setHead(app: FastifyInstance, reply: FastifyReply, { status }: Envelope): void {
  reply.code(status).headers(COMMON_HEADERS);
  const more = STATUS_HEADERS[status];
  if (more !== undefined) reply.headers(more);
  announceEnd(app.server, reply.raw);
}

function envelopeFor(error: unknown, request: FastifyRequest, faults: Faults): Envelope {
  if (error instanceof BodyTooLarge) return PAYLOAD_TOO_LARGE;
  if (error instanceof BodyIncomplete) return BAD_REQUEST; // nobody will read it
  if (error instanceof NoRoomForBody) {
    faults.ofBody(request.id);
    return SERVICE_UNAVAILABLE;
  }
  if (error instanceof StoreUnavailable) {
    faults.ofStore(error, request.id);
    return SERVICE_UNAVAILABLE;
  }
  request.log.error({ reqId: request.id, err: error }, 'a request failed');
  return INTERNAL_ERROR;
}

/** Requests that met a fault which is not theirs, counted and told of. */
class Faults {
  readonly #requests: RequestCounts;
  readonly #logStore: (reqId: string, reason: string) => void;
  readonly #logBody: (reqId: string, reason: string) => void;

  constructor({ log, requests }: Pick<AppParts, 'log' | 'requests'>) {
    this.#requests = requests;
    this.#logStore = faultLog(log, 'the store is unavailable');
    this.#logBody = faultLog(log, 'a body was refused');
  }

  ofStore({ kind, message }: StoreUnavailable, reqId: string): void {
    this.#requests.storeFaults[kind] += 1;
    this.#logStore(reqId, message);
  }

  ofBody(reqId: string): void {
    this.#logBody(reqId, 'other large bodies take all the room there is');
  }
}

/**
 * One line at once; then, a second apart, one for each reason that counts the requests which met it: a flood would
 * drown the rest.
 */
function faultLog(log: Log, message: string): (reqId: string, reason: string) => void {
  const waiting = new Map<string, { readonly reqId: string; requests: number }>();
  let isQuiet = true;
  const tell = () => {
    isQuiet = waiting.size === 0;
    for (const [reason, { reqId, requests }] of waiting) log.error({ reqId, reason, requests }, message);
    waiting.clear();
    if (!isQuiet) setTimeout(tell, FAULT_LINES_APART).unref();
  };
  return (reqId, reason) => {
    const known = waiting.get(reason);
    if (known === undefined) waiting.set(reason, { reqId, requests: 1 });
    else known.requests += 1;
    if (isQuiet) tell();
  };
}

/** Of the framework's own lines only one is of use: a list broke off, and its client cannot be told why. */
class BrokenListLog extends LogController {
  readonly #faults: Faults;

  constructor(faults: Faults) {
    super({ disableRequestLogging: true });
    this.#faults = faults;
  }

  override streamError(error: NodeJS.ErrnoException, { id }: FastifyRequest): void {
    if (error.code === 'ERR_STREAM_PREMATURE_CLOSE') return; // its client has left
    this.#faults.ofStore(error instanceof StoreUnavailable ? error : new StoreUnavailable(error), id);
  }
}

function refuseOtherMethods(app: FastifyInstance, url: string, allowed: readonly string[]): void {
  app.route({
    method: [...HTTP_METHODS].filter((method) => !allowed.includes(method)) as HTTPMethods[],
    url,
    async handler(request, reply) {
      if (isPreflight(request, reply)) return permit(app, reply, allowed);
      reply.header('allow', allowed.join(', '));
      return METHOD_NOT_ALLOWED;
    },
  });
}

/** Unique among processes by its random beginning, within one by its count. */
function requestIds(): () => string {
  const beginning = randomBytes(6).toString('base64url');
  let count = 0;
  return () => {
    count += 1;
    return `${beginning}-${count.toString(36)}`;
  };
}
