// Owns: the five operations on books. The lines of each handler stand in the order of the contract's
// checks; the token was checked before any of them ran (rule 9).

import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type BookChanges, readBookChanges, readBookId } from '../books/book.ts';
import type { Catalogue } from '../books/catalogue.ts';
import type { BookList } from '../books/store.ts';
import { parseJsonObject, readBody } from './body.ts';
import {
  BOOK_DELETED,
  BOOK_NOT_FOUND,
  BOOKS_RETRIEVED,
  bookCreated,
  bookRetrieved,
  bookUpdated,
  COMMON_HEADERS,
  type Envelope,
  INVALID_BOOK,
} from './envelope.ts';
import { announceEnd } from './wire.ts';

/** One book's path; `/book/` is not one, so its id is at least a character. */
export const BOOK_PATH = '/book/:id(.+)';

export function addBookRoutes(app: FastifyInstance, catalogue: Catalogue, bodyLimit: number): void {
  /** The latest list that a connection has asked for. */
  const lists = new WeakMap<Socket, ServerResponse>();

  app.post('/book', async (request, reply): Promise<Envelope> => {
    const changes = await readChanges(request, bodyLimit);
    if (changes === undefined) return INVALID_BOOK;
    const book = await catalogue.create(changes);
    reply.header('location', `/book/${book.id}`);
    return bookCreated(book);
  });

  app.route({
    method: ['GET', 'HEAD'],
    url: '/books',
    async handler(request, reply) {
      await takeListTurn(lists, request.socket, reply.raw);
      const list = await catalogue.list();
      reply.headers(COMMON_HEADERS);
      announceEnd(app.server, reply.raw);
      if (request.method === 'HEAD') {
        list.close();
        return reply.send();
      }
      const body = Readable.from(enveloped(list));
      // A reader that leaves ends the response; the body, waiting for a store that is silent, would not end.
      for (const stream of [body, reply.raw]) stream.once('close', () => list.close());
      return reply.send(body);
    },
  });

  app.route({
    method: ['GET', 'HEAD'],
    url: BOOK_PATH,
    async handler(request): Promise<Envelope> {
      const id = pathId(request);
      const book = id && (await catalogue.find(id));
      return book ? bookRetrieved(book) : BOOK_NOT_FOUND;
    },
  });

  app.put(BOOK_PATH, async (request): Promise<Envelope> => {
    const id = pathId(request);
    if (id === undefined) return BOOK_NOT_FOUND;
    let changes: BookChanges | undefined;
    try {
      changes = await readChanges(request, bodyLimit);
    } catch (error) {
      if (await catalogue.find(id)) throw error;
      return BOOK_NOT_FOUND;
    }
    if (changes === undefined) return (await catalogue.find(id)) ? INVALID_BOOK : BOOK_NOT_FOUND;
    const book = await catalogue.update(id, changes); // knows by itself whether there is such a book
    return book ? bookUpdated(book) : BOOK_NOT_FOUND;
  });

  app.delete(BOOK_PATH, async (request): Promise<Envelope> => {
    const id = pathId(request);
    return id && (await catalogue.remove(id)) ? BOOK_DELETED : BOOK_NOT_FOUND;
  });
}

/** The id as the path spells it: percent-encoded digits are not canonical decimal (rule 10). */
function pathId(request: FastifyRequest): number | undefined {
  if (/^[^?#]*%/.test(request.url)) return undefined;
  return readBookId((request.params as { id: string }).id);
}

/**
 * Lists on one connection wait for each other before they are opened: they are sent one after the other
 * anyway, and there are few for all.
 */
async function takeListTurn(
  lists: WeakMap<Socket, ServerResponse>,
  socket: Socket,
  response: ServerResponse,
): Promise<void> {
  const before = lists.get(socket);
  lists.set(socket, response);
  if (before !== undefined && !before.closed) await once(before, 'close');
}

async function readChanges(request: FastifyRequest, bodyLimit: number): Promise<BookChanges | undefined> {
  const body = parseJsonObject(await readBody(request.raw, bodyLimit));
  return body && readBookChanges(body);
}

async function* enveloped(list: BookList): AsyncGenerator<string | Uint8Array, void, void> {
  const [head, tail] = BOOKS_RETRIEVED;
  yield head;
  yield* list.chunks;
  yield tail;
}
