// Owns: the HTTP application: its routes in one table, the gate before them, and the one way out of every answer.
// Whatever fails, a client gets an envelope.
// Independent of what a book is and where it is stored.

import { randomBytes } from 'node:crypto';
import { type Answer, type HeaderList, linesOf } from '../http/answer.ts';
import type { UnreadableStatus } from '../http/head.ts';
import { namesThisMachine } from '../http/host.ts';
import { pathOf } from '../http/path.ts';
import type { Request } from '../http/request.ts';
import { HttpServer } from '../http/server.ts';
import { isForPage, PageFiles } from '../page/files.ts';
import { createBook, createBooks, listBooks, readBook, removeBook, suggest, updateBook } from './books.ts';
import { allowOrigins, isOfOtherOrigin, isPreflight, permission } from './cors.ts';
import { DOWNLOADS, linkKeyIn } from './downloads.ts';
import * as answers from './envelope.ts';
import { type AppParts, type Exchange, isCompressed, type Route } from './exchange.ts';
import { faultAnswers } from './faults.ts';
import { readBooksOfEvent, readChanges, readEvent, readEvents, readHistory, undoChanges } from './history.ts';
import { continueImport, importFile, listImports, readImportOf } from './import.ts';
import { logIn } from './login.ts';
import { refuseSession, SESSION_ROUTE } from './session.ts';

const ROUTES: readonly Route[] = [
  { path: '/token', needsToken: false, handlers: { POST: logIn } },
  { path: '/book', needsToken: true, handlers: { POST: createBook } },
  { path: '/books', needsToken: true, handlers: { GET: listBooks, HEAD: listBooks, POST: createBooks } },
  { path: '/suggestions', needsToken: true, handlers: { GET: suggest, HEAD: suggest } },
  {
    path: '/book/:id',
    needsToken: true,
    handlers: { GET: readBook, HEAD: readBook, PUT: updateBook, DELETE: removeBook },
  },
  {
    path: '/import',
    needsToken: true,
    handlers: { GET: listImports, HEAD: listImports, POST: importFile },
  },
  {
    path: '/import/:id',
    needsToken: true,
    handlers: { GET: readImportOf, HEAD: readImportOf, POST: continueImport },
  },
];

/** Of the log of changes; not with HISTORY=off. */
const HISTORY_ROUTES: readonly Route[] = [
  { path: '/changes', needsToken: true, handlers: { GET: readChanges, HEAD: readChanges } },
  { path: '/undo', needsToken: true, handlers: { POST: undoChanges } },
  { path: '/events', needsToken: true, handlers: { GET: readEvents, HEAD: readEvents } },
  {
    path: '/event/:id/books',
    needsToken: true,
    handlers: { GET: readBooksOfEvent, HEAD: readBooksOfEvent },
  },
  { path: '/event/:id', needsToken: true, handlers: { GET: readEvent, HEAD: readEvent, POST: readEvent } },
  { path: '/book/:id/history', needsToken: true, handlers: { GET: readHistory, HEAD: readHistory } },
];

/** With what precedes it. */
const SECOND_SEGMENT = /^(\/[^/]+\/)[^/]+/;

const ALL_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'];

const UNREADABLE = {
  400: answers.BAD_REQUEST,
  408: answers.REQUEST_TIMEOUT,
  431: answers.HEADERS_TOO_LARGE,
} as const;

/** The servers of one application; the caller makes them listen. */
export interface App {
  readonly service: HttpServer;
  /** The same service, and the librarians' page (rule 34). */
  readonly page: HttpServer;
}

export function buildApp(parts: AppParts): App {
  const { config, log, requests, times } = parts;
  const newRequestId = requestIds();
  const faults = faultAnswers(log, requests, times.api);
  const allowOrigin = allowOrigins(config.corsOrigins, parts.docsPort);
  const routes = config.history !== undefined ? [...ROUTES, ...HISTORY_ROUTES] : ROUTES;
  const byPath: ReadonlyMap<string, Route> = new Map(routes.map((route) => [route.path, route]));
  const byPathOfPage: typeof byPath = new Map([
    ...byPath,
    ...[SESSION_ROUTE, ...DOWNLOADS].map((route) => [route.path, route] as const),
  ]);
  return {
    service: newServer(undefined),
    page: newServer(new PageFiles(config.knownLogin, config.libraryName)),
  };

  function newServer(page: PageFiles | undefined): HttpServer {
    return new HttpServer(
      config.headerLimit,
      times.http,
      (request) => handle(page, request),
      refuse,
      (error) => log.error({ err: error }, 'an answer could not be sent'),
    );
  }

  async function handle(page: PageFiles | undefined, request: Request): Promise<void> {
    const began = performance.now();
    const { method, target, headers } = request;
    const sentId = headers['x-request-id'];
    const id = sentId !== undefined && answers.REQUEST_ID.test(sentId) ? sentId : newRequestId();
    const isMisdirected = config.knownLogin !== undefined && !namesThisMachine(headers.host);
    const path = pathOf(target);
    const files = page !== undefined && path && isForPage(method, path.decoded) ? page : undefined;
    const paths = page === undefined ? byPath : byPathOfPage;
    const route =
      path && (paths.get(path.decoded.replace(SECOND_SEGMENT, '$1:id')) ?? paths.get(path.decoded));
    const cors = isMisdirected || route === SESSION_ROUTE ? undefined : allowOrigin(headers);
    let answer: Answer;
    try {
      if (path === undefined) answer = answers.BAD_REQUEST;
      else if (isMisdirected) answer = answers.MISDIRECTED_REQUEST;
      else if (files !== undefined)
        answer = (await files.answer(path.decoded, headers, path.query)) ?? answers.NOT_FOUND;
      else answer = await answerTo(route, { request, id, path }, cors, page !== undefined);
      const isUnread = answer === answers.INVALID_BOOK || answer === answers.INVALID_LOGIN;
      if (isUnread && isCompressed(request)) answer = answers.BODY_COMPRESSED;
      // Bodies without a length are shared by all their answers, or produced while they are read.
      if (!request.takeRoom(answer)) answer = faults.answerWithoutRoom(id);
    } catch (error) {
      answer = faults.answer(error, id);
    }
    const milliseconds = performance.now() - began - (answer.waited ?? 0);
    if (path === undefined) requests.addUnreadable(answer.status);
    else requests.add(files === undefined ? route?.path : 'page', method, answer.status, milliseconds);
    log.request(id, method, target, answer.status, milliseconds);
    const lines = `x-request-id: ${id}\r\n${cors === undefined ? '' : linesOf(cors)}`;
    request.answer(answer, lines, (reason) => faults.listBroke(reason, id));
  }

  /** The gate, in the order of rule 9: path, method, token, session or origin. Then the handler. */
  function answerTo(
    route: Route | undefined,
    exchange: Exchange,
    cors: HeaderList | undefined,
    hasSessions: boolean,
  ): Answer | Promise<Answer> {
    const { request } = exchange;
    if (cors !== undefined && isPreflight(request))
      return permission(route === undefined ? ALL_METHODS : methodsOf(route));
    if (route === undefined) return answers.NOT_FOUND;
    const handler = route.handlers[request.method];
    if (handler === undefined) return answers.methodNotAllowed(methodsOf(route));
    // A login counts for the address of the browser, also one that another page makes it send (rule 32).
    if (route.needsToken) return refuseToken(exchange, route, hasSessions) ?? handler(exchange, parts);
    const isAllowed = cors !== undefined || !isOfOtherOrigin(request.headers);
    return isAllowed ? handler(exchange, parts) : answers.ORIGIN_NOT_ALLOWED;
  }

  function refuseToken(
    { request: { headers }, path }: Exchange,
    { hasLinks = false }: Route,
    hasSessions: boolean,
  ): Answer | undefined {
    const key = hasSessions && headers['session-key'];
    if (key) return refuseSession(headers, key, 'key', parts);
    const linkKey = hasLinks && linkKeyIn(path.query);
    if (linkKey) return refuseSession(headers, linkKey, 'link', parts);
    const token = headers.authorization;
    if (!token) return answers.TOKEN_REQUIRED;
    return parts.tokens.isValid(token) ? undefined : answers.INVALID_TOKEN;
  }

  function refuse(status: UnreadableStatus): Answer {
    const id = newRequestId();
    requests.addUnreadable(status);
    log.info({ reqId: id, status }, 'request'); // nothing else could be read
    return { ...UNREADABLE[status], own: ['x-request-id', id] };
  }
}

function methodsOf({ handlers }: Route): string[] {
  return Object.keys(handlers);
}

/** Unique among processes by a random prefix, and within a process by a count. */
function requestIds(): () => string {
  const beginning = randomBytes(6).toString('base64url');
  let count = 0;
  return () => {
    count += 1;
    return `${beginning}-${count.toString(36)}`;
  };
}
