// Owns: the files of books that the port of the page has (rules X1 to X3): all books, or those that a search finds, as the command
// `export` writes them. They are sent while they are read, so a file may be larger than the memory.

import type { Book } from '../books/book.ts';
import type { Catalogue } from '../books/catalogue.ts';
import { parseBooks } from '../books/line.ts';
import { isOfAllById, LARGEST_PAGE, type Page, type Search } from '../books/search.ts';
import { StoreUnavailable } from '../books/store.ts';
import { type FileWriter, WRITERS } from '../files/writing.ts';
import type { Answer } from '../http/answer.ts';
import * as answers from './envelope.ts';
import type { AppParts, Exchange, Route } from './exchange.ts';
import { readQuery } from './query.ts';

/** The key of a link in its query, with what separates it from the other parameters. */
const LINK_KEY = /(?:^|&)link-key=([^&]*)/;

/** One for each format: `/books.csv`. */
export const DOWNLOADS: readonly Route[] = [...WRITERS].map(([format, writer]) => {
  const handle = (exchange: Exchange, parts: AppParts) => download(exchange, writer, parts);
  return {
    path: `/books.${format}`,
    needsToken: true,
    hasLinks: true,
    handlers: { GET: handle, HEAD: handle },
  };
});

/** The key that a link of the page has sent; undefined without one. */
export function linkKeyIn(query: string): string | undefined {
  return LINK_KEY.exec(query)?.[1];
}

async function download({ path }: Exchange, writer: FileWriter, { catalogue }: AppParts): Promise<Answer> {
  const isSearched = true; // with FIND=off, there is no port of the page
  const read = readQuery(path.query.replace(LINK_KEY, ''), isSearched, undefined, false);
  if ('invalid' in read) return answers.invalidParameter(read.invalid);
  if (isOfAllById(read.search)) {
    const { chunks, close } = await catalogue.list();
    return fileOf(writer, parseBooks(chunks, ','), close);
  }
  const search = { ...read.search, limit: LARGEST_PAGE };
  const first = await catalogue.search(search); // before the answer begins
  // A file has no room for a remark on books that cannot be found yet.
  if (first.unindexed > 0) throw new StoreUnavailable('not all books are indexed', 'indexing');
  return fileOf(writer, booksFrom(first, catalogue, search), () => {});
}

/** Without a name: a browser takes that of the link, other programs the end of the URL. */
function fileOf(writer: FileWriter, books: AsyncIterable<readonly Book[]>, close: () => void): Answer {
  const headers = [
    ...['content-type', writer.type],
    ...['content-disposition', 'attachment'],
    ...['x-content-type-options', 'nosniff'],
    ...['cache-control', 'no-store'],
  ];
  return { status: 200, headers, body: { chunks: writer.write(books), close } };
}

/** The books of a page and of all that follow it. */
async function* booksFrom(
  first: Page,
  catalogue: Catalogue,
  search: Search,
): AsyncGenerator<readonly Book[], void, void> {
  for (let page = first; ; page = await catalogue.search({ ...search, after: page.next })) {
    yield page.books;
    if (page.next === undefined) return;
  }
}
