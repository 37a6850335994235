// Owns: what is promised of what a browser and the client package read: the page's address, and the list.

import type { Book } from '../../client/src/book.ts';
import { readList } from '../../client/src/book-list.ts';
import { Deadline } from '../../client/src/deadline.ts';
import { CatalogueError } from '../../client/src/errors.ts';
import { queryOf as searchQueryOf } from '../../client/src/search.ts';
import { queryOf, searchesOf, viewOf } from '../../page/list/view.ts';
import { readQuery } from '../../src/api/query.ts';
import { assertSame, inPieces, type Reader } from './reader.ts';

export const addressOfPage: Reader = {
  seeds: [
    'q=harr+1997&sort=-year&year=0',
    'q=a b1 c2 d3 e4 f5 g6 h7 i8 j9 k1 l2 m3 n4 o5 same same',
    'q=a b1 c2 d3 e4 f5 g6 h7 i8 j9 k1 l2 m3 n4 o5 p6 q7 r8&sort=title',
    'author=&q=%E7%99%BE%E5%B9%B4',
    "q=a* b'c 1850 J. R.&sort=id&year=-12",
  ],
  words: ['&q=', '&sort=', '&year=', '&author=', '-title', '%20', '*', '1999', '%CC%88', '%F0%9F%99%82', "'"],
  check({ text }) {
    const view = viewOf(new URLSearchParams(text));
    assertSame(viewOf(queryOf(view)), view, 'the view of the address of the view');
    for (const search of searchesOf(view)) {
      const found = readQuery(searchQueryOf(search), true, undefined);
      if ('invalid' in found)
        throw new Error(`the service refuses ${JSON.stringify(search)}: ${found.invalid}`);
    }
  },
};

const START = '{"status":200,"message":"Books retrieved successfully","data":[';

export const list: Reader = {
  seeds: [
    `\0${START}{"id":1,"title":"a]}","author":"\\"\\\\","year":0},{"id":2}]}`,
    `\x01${START}]}`,
    `\x03 {"data":[ {"id":1} , {"x":[{}]} ],"status":200,"message":"\xc3\xa9"}\n`,
    `\x02${START}{"id":1}`,
  ],
  words: [
    START,
    ']}',
    '},{',
    '{"id":7}',
    ',"data":[',
    '"status":200',
    '"message":"x"',
    '\\"',
    '\xc3\xa9',
    '[',
    '{',
  ],
  async check(input) {
    const size = input.choice(9);
    const pieces = inPieces(input.content, size);
    const stream = new ReadableStream<Uint8Array>({
      pull(controller) {
        const { value, done } = pieces.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
    });
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
    const envelope = envelopeIn(input.content);
    if (isList) assertSame(books, envelope?.data, 'the books');
    else if (isListOfBooks(envelope) && isPlain(input.content, envelope))
      throw new Error('a list is refused');
  },
};

interface Envelope {
  readonly status?: unknown;
  readonly message?: unknown;
  readonly data?: unknown;
}

function envelopeIn(content: Buffer): Envelope | undefined {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(content)) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Whether a text is written like this value but for white space, so that no name is there twice. */
function isPlain(content: Buffer, value: unknown): boolean {
  return content.toString().replaceAll(/("(?:[^"\\]|\\.)*")|[ \t\n\r]+/g, '$1') === JSON.stringify(value);
}

/** Only objects or arrays are books, and nothing else in the envelope is one. */
function isListOfBooks(envelope: Envelope | undefined): boolean {
  if (envelope?.status !== 200 || !Array.isArray(envelope.data)) return false;
  const nested = Object.values(envelope).filter((value) => typeof value === 'object' && value !== null);
  return nested.length === 1 && envelope.data.every((book) => typeof book === 'object' && book !== null);
}
