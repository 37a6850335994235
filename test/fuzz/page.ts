// Owns: what is promised of what a browser and the client package read: the page's address, and the list.

import type { Book } from '../../client/src/book.ts';
import { readList } from '../../client/src/book-list.ts';
import { Deadline } from '../../client/src/deadline.ts';
import { CatalogueError } from '../../client/src/errors.ts';
import { queryOf as searchQueryOf } from '../../client/src/search.ts';
import { queryOf, searchesOf, viewOf } from '../../page/list/view.ts';
import { readQuery } from '../../src/api/query.ts';
import { jsonIn, objectIn } from './meaning.ts';
import { assertSame, inPieces, type Reader } from './reader.ts';

export const addressOfThePage: Reader = ({ text }) => {
  const view = viewOf(new URLSearchParams(text));
  assertSame(viewOf(queryOf(view)), view, 'the view of the address of the view');
  for (const search of searchesOf(view)) {
    const found = readQuery(searchQueryOf(search), true, undefined);
    if ('invalid' in found)
      throw new Error(`the service refuses ${JSON.stringify(search)}: ${found.invalid}`);
  }
};

export const list: Reader = async (input) => {
  const size = input.choice(9);
  const stream = ReadableStream.from(inPieces(input.content, size));
  const deadline = new Deadline(60_000);
  const answer = { status: 200, message: '', data: null, requestId: 'id', mayBeDone: false, stream };
  const books: Book[] = [];
  let isList = true;
  try {
    for await (const some of readList(answer, deadline)) books.push(...some);
  } catch (error) {
    if (!(error instanceof CatalogueError)) throw error;
    isList = false;
  } finally {
    deadline.close();
  }
  const envelope = objectIn(jsonIn(input.content)?.value);
  if (isList) assertSame(books, envelope?.data, 'the books');
  else if (isListOfBooks(envelope) && isPlain(input.content, envelope)) throw new Error('a list is refused');
};

/** Whether a text is written like this value but for white space, so that no name is there twice. */
function isPlain(content: Buffer, value: unknown): boolean {
  return content.toString().replaceAll(/("(?:[^"\\]|\\.)*")|[ \t\n\r]+/g, '$1') === JSON.stringify(value);
}

/** Only objects or arrays are books, and nothing else in the envelope is one. */
function isListOfBooks(envelope: Readonly<Record<string, unknown>> | undefined): boolean {
  if (envelope?.status !== 200 || !Array.isArray(envelope.data)) return false;
  const nested = Object.values(envelope).filter((value) => typeof value === 'object' && value !== null);
  return nested.length === 1 && envelope.data.every((book) => typeof book === 'object' && book !== null);
}
