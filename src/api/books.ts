// Owns: the operations on books. Each makes its checks in the order of the contract; the token has been checked
// before (rule 9).

import { type BookChanges, readBookChanges, readBookId } from '../books/book.ts';
import type { Answer } from '../http/answer.ts';
import { parseJsonObject, readBody } from '../http/body.ts';
import type { AppParts } from './app.ts';
import {
  BOOK_DELETED,
  BOOK_NOT_FOUND,
  bookCreated,
  bookRetrieved,
  bookUpdated,
  INVALID_BOOK,
  invalidParameter,
  listRetrieved,
  pageRetrieved,
} from './envelope.ts';
import type { Exchange } from './exchange.ts';
import { pageHeaders, readQuery } from './query.ts';

export async function createBook(exchange: Exchange, { catalogue, bodyLimit }: AppParts): Promise<Answer> {
  const changes = await readChanges(exchange, bodyLimit);
  return changes === undefined ? INVALID_BOOK : bookCreated(await catalogue.create(changes));
}

/** Lists of one connection are opened one after the other: they are sent that way anyway, and few can be open. */
export async function listBooks(exchange: Exchange, parts: AppParts): Promise<Answer> {
  const { catalogue } = parts;
  if (exchange.path.query !== '') return findBooks(exchange, parts);
  if (exchange.request.method === 'HEAD') {
    await catalogue.find(1); // whether or not the book exists, the store answers
    return listRetrieved();
  }
  await exchange.turn();
  return listRetrieved(await catalogue.list());
}

async function findBooks({ request, path }: Exchange, { catalogue, find }: AppParts): Promise<Answer> {
  const query = readQuery(path.query, find, request.headers.prefer);
  if ('invalid' in query) return invalidParameter(query.invalid);
  const page = await catalogue.search(query.search);
  return pageRetrieved(page.books, pageHeaders(query, page));
}

export async function readBook(exchange: Exchange, { catalogue }: AppParts): Promise<Answer> {
  const id = idOf(exchange);
  const book = id && (await catalogue.find(id));
  return book ? bookRetrieved(book) : BOOK_NOT_FOUND;
}

export async function updateBook(exchange: Exchange, { catalogue, bodyLimit }: AppParts): Promise<Answer> {
  const id = idOf(exchange);
  if (id === undefined) return BOOK_NOT_FOUND;
  let changes: BookChanges | undefined;
  try {
    changes = await readChanges(exchange, bodyLimit);
  } catch (error) {
    if (await catalogue.find(id)) throw error;
    return BOOK_NOT_FOUND;
  }
  if (changes === undefined) return (await catalogue.find(id)) ? INVALID_BOOK : BOOK_NOT_FOUND;
  const book = await catalogue.update(id, changes); // undefined if there is no such book
  return book ? bookUpdated(book) : BOOK_NOT_FOUND;
}

export async function removeBook(exchange: Exchange, { catalogue }: AppParts): Promise<Answer> {
  const id = idOf(exchange);
  return id && (await catalogue.remove(id)) ? BOOK_DELETED : BOOK_NOT_FOUND;
}

/** The id as the path was sent: percent-encoded digits are not canonical decimal (rule 10). */
function idOf({ path }: Exchange): number | undefined {
  return readBookId(path.sent.slice('/book/'.length));
}

async function readChanges({ request }: Exchange, bodyLimit: number): Promise<BookChanges | undefined> {
  const body = parseJsonObject(await readBody(request, bodyLimit));
  return body && readBookChanges(body);
}
