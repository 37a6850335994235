// Owns: the operations on books. Each makes its checks in the order of the contract; the token has been checked
// before (rule 9).

import { type BookChanges, readBookChanges, readBookId } from '../books/book.ts';
import { meets } from '../books/condition.ts';
import type { Answer } from '../http/answer.ts';
import { NoRoomForBody, parseBody, readBody, skipBody } from '../http/body.ts';
import { BODIES, Share } from '../http/room.ts';
import { asJsonObject } from '../json/parse.ts';
import { readBookArray } from './book-array.ts';
import { conditionOf, INVALID, idempotencyKeyOf } from './conditions.ts';
import * as answers from './envelope.ts';
import type { AppParts, Exchange } from './exchange.ts';
import { pageHeaders, readFiltersOf, readQuery, unindexedHeader } from './query.ts';

/** Memory for an array of books until it is stored, in lengths of its body. */
const ARRAY_ROOM = 4;

export async function createBook(exchange: Exchange, { catalogue, config }: AppParts): Promise<Answer> {
  const key = idempotencyKeyOf(exchange);
  if (key === INVALID) return answers.INVALID_KEY;
  const changes = await readChanges(exchange, config.bodyLimit);
  if (changes === undefined) return answers.INVALID_BOOK;
  const outcome = await catalogue.create(changes, key);
  if (outcome === 'conflict') return answers.KEY_USED;
  const answer = answers.bookCreated(outcome.book);
  return outcome.isReplay ? answers.replayOf(answer) : answer;
}

export async function createBooks(exchange: Exchange, parts: AppParts): Promise<Answer> {
  const { catalogue, config } = parts;
  const key = idempotencyKeyOf(exchange);
  if (key === INVALID) return answers.INVALID_KEY;
  using room = new Share(BODIES, ARRAY_ROOM);
  const body = await readBody(exchange.request, config.bulkLimit, room);
  if (!room.take(body.length)) throw new NoRoomForBody();
  const books = readBookArray(body, config.bodyLimit);
  if (typeof books === 'number') return books === 0 ? answers.INVALID_BOOK : answers.invalidBook(books);
  const outcome = await catalogue.createAll(books, key);
  if (outcome === 'conflict') return answers.KEY_USED;
  const answer = answers.booksCreated(outcome.ids);
  return outcome.isReplay ? answers.replayOf(answer) : answer;
}

export async function listBooks(exchange: Exchange, parts: AppParts): Promise<Answer> {
  const { catalogue } = parts;
  if (exchange.path.query !== '') return findBooks(exchange, parts);
  if (exchange.request.method === 'HEAD') {
    await catalogue.find(1); // whether or not the book exists, the store answers
    return answers.listRetrieved();
  }
  return answers.listRetrieved(await catalogue.list());
}

async function findBooks({ request, path }: Exchange, { catalogue, config }: AppParts): Promise<Answer> {
  const query = readQuery(path.query, config.find, request.headers.prefer);
  if ('invalid' in query) return answers.invalidParameter(query.invalid);
  const page = await catalogue.search(query.search);
  return answers.pageRetrieved(page.books, pageHeaders(query, page));
}

/** Without a filter there is nothing to correct, also with `FIND=off`. */
export async function suggest({ path }: Exchange, { catalogue, config }: AppParts): Promise<Answer> {
  const query = readFiltersOf(path.query, config.find);
  if ('invalid' in query) return answers.invalidParameter(query.invalid);
  if (query.filters.length === 0) return answers.suggestionsRetrieved([]);
  const { suggestions, unindexed } = await catalogue.suggest(query.filters);
  return answers.suggestionsRetrieved(suggestions, unindexedHeader(unindexed));
}

export async function readBook(exchange: Exchange, { catalogue }: AppParts): Promise<Answer> {
  const id = idOf(exchange);
  const book = id && (await catalogue.find(id));
  if (!book) return answers.BOOK_NOT_FOUND;
  const condition = conditionOf(exchange.request.headers);
  if (condition === undefined || meets(book, condition)) return answers.bookRetrieved(book);
  return meets(book, { match: condition.match }) ? answers.notModified(book) : answers.PRECONDITION_FAILED;
}

export async function updateBook(exchange: Exchange, parts: AppParts): Promise<Answer> {
  const { catalogue, config } = parts;
  const id = idOf(exchange);
  if (id === undefined) return answers.BOOK_NOT_FOUND;
  let changes: BookChanges | undefined;
  try {
    changes = await readChanges(exchange, config.bodyLimit);
  } catch (error) {
    if (await catalogue.find(id)) throw error;
    return answers.BOOK_NOT_FOUND;
  }
  if (changes === undefined)
    return (await catalogue.find(id)) ? answers.INVALID_BOOK : answers.BOOK_NOT_FOUND;
  const condition = conditionOf(exchange.request.headers);
  if (config.requireIfMatch && condition?.match === undefined) return requireCondition(id, parts);
  const book = await catalogue.update(id, changes, condition);
  if (book === undefined) return answers.BOOK_NOT_FOUND;
  return book === 'unmet' ? answers.PRECONDITION_FAILED : answers.bookUpdated(book);
}

export async function removeBook(exchange: Exchange, parts: AppParts): Promise<Answer> {
  const { catalogue, config } = parts;
  const id = idOf(exchange);
  if (id === undefined) return answers.BOOK_NOT_FOUND;
  const condition = conditionOf(exchange.request.headers);
  if (config.requireIfMatch && condition?.match === undefined) return requireCondition(id, parts);
  await skipBody(exchange.request);
  const removed = await catalogue.remove(id, condition);
  if (!removed) return answers.BOOK_NOT_FOUND;
  return removed === 'unmet' ? answers.PRECONDITION_FAILED : answers.BOOK_DELETED;
}

async function requireCondition(id: number, { catalogue }: AppParts): Promise<Answer> {
  return (await catalogue.find(id)) ? answers.PRECONDITION_REQUIRED : answers.BOOK_NOT_FOUND;
}

/** The id as the path was sent: percent-encoded digits are not canonical decimal (rule 10). */
function idOf({ path }: Exchange): number | undefined {
  return readBookId(path.sent.slice('/book/'.length));
}

async function readChanges({ request }: Exchange, bodyLimit: number): Promise<BookChanges | undefined> {
  const object = asJsonObject(parseBody(await readBody(request, bodyLimit)));
  return object && readBookChanges(object);
}
