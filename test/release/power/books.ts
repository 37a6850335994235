// Owns: the books that are written before a power failure, and whether the books that are found after it agree with them: of
// each book the last acknowledged write or the one after it, arrays whole or not at all, and keys as their books.

import assert from 'node:assert/strict';
import type { Requester } from '../../support/client.ts';

/** The number in all fields of a book; undefined if it is removed. */
type Version = number | undefined;

/** A write, in the order of those of its books. */
interface Write {
  /** The `x-request-id` of its answer. */
  readonly request: string;
  readonly key: string | undefined;
  /** Each book, by its number, and its version from then on. JSON has null for a book that is removed. */
  readonly books: readonly (readonly [book: number, version: Version | null])[];
  /** Of books that are created, if they were answered. */
  ids?: readonly number[];
}

/** What is found in a store. */
export interface Found {
  readonly books: readonly (readonly [id: number, book: number, version: number])[];
  readonly keys: Readonly<Record<string, readonly number[]>>;
  /** The highest id ever given. */
  readonly lastId: number;
}

export type History = readonly Write[];

/** Every tenth version takes more than a page of a file; multiples of this take many. */
const HUGE = 10_000;

export function fieldsOf(book: number, version: number) {
  const length = version % HUGE === 0 ? 900_000 : version % 10 === 0 ? 5000 : 0;
  return {
    title: `title ${version}`.padEnd(length, 'o'),
    author: `author ${book}`,
    year: version,
  };
}

/** Books with these numbers that nobody has written yet, each in its first version. */
export function booksFrom(first: number, count: number): { title: string; author: string; year: number }[] {
  return Array.from({ length: count }, (_, number) => fieldsOf(first + number, first + number));
}

/** Writes books, and notes what it writes. */
export class Scribe {
  readonly history: Write[] = [];
  readonly #name: string;
  #requests = 0;

  /** @param name the beginning of the ids of its requests. */
  constructor(name = 'request') {
    this.#name = name;
  }

  async create(client: Requester, book: number, key?: string): Promise<number> {
    const write = this.#note([[book, book]], key);
    const { data } = await this.#send(client, 'POST', '/book', write, fieldsOf(book, book), 201);
    write.ids = [data.id];
    return data.id;
  }

  async createMany(
    client: Requester,
    first: number,
    count: number,
    key?: string,
  ): Promise<readonly number[]> {
    const numbers = Array.from({ length: count }, (_, number) => first + number);
    const write = this.#note(
      numbers.map((book) => [book, book]),
      key,
    );
    const { data } = await this.#send(client, 'POST', '/books', write, booksFrom(first, count), 201);
    write.ids = data;
    return data;
  }

  async change(client: Requester, id: number, book: number, version: number): Promise<void> {
    const write = this.#note([[book, version]]);
    await this.#send(client, 'PUT', `/book/${id}`, write, fieldsOf(book, version), 200);
  }

  async remove(client: Requester, id: number, book: number): Promise<void> {
    await this.#send(client, 'DELETE', `/book/${id}`, this.#note([[book, null]]), undefined, 200);
  }

  #note(books: Write['books'], key?: string): Write {
    this.#requests += 1;
    const write = { request: `${this.#name}-${this.#requests}`, key, books };
    this.history.push(write);
    return write;
  }

  async #send(client: Requester, method: string, path: string, write: Write, body: unknown, status: number) {
    const { request, key } = write;
    const headers = { 'x-request-id': request, ...(key !== undefined && { 'idempotency-key': key }) };
    const answer = await client.request(method, path, { body, headers });
    assert.equal(answer.status, status, answer.message);
    return answer;
  }
}

/** The ids of the requests that had been answered with success. */
export function acknowledgedIn(said: readonly string[]): ReadonlySet<string> {
  const answers = said.filter((text) => /^HTTP\/1\.1 2/.test(text));
  return new Set(answers.map((text) => /^x-request-id: (.*)\r$/im.exec(text)?.[1] ?? ''));
}

/** @param acknowledged of the ids of the requests. */
export function assertKept(found: Found, history: History, acknowledged: ReadonlySet<string>): void {
  const left = new Map(found.books.map(([id, book, version]) => [book, { id, version }]));
  assert.equal(left.size, found.books.length, 'a book is there twice');
  for (const [book, writes] of Map.groupBy(
    history.flatMap((write) =>
      write.books.map(([book, version], place) => ({ book, version, write, place })),
    ),
    ({ book }) => book,
  )) {
    const last = writes.findLastIndex(({ write }) => acknowledged.has(write.request));
    const versions = [writes[last]?.version, writes[Math.min(last + 1, writes.length - 1)]?.version];
    if (last === -1) versions[0] = undefined;
    const is = left.get(book);
    assert.ok(
      versions.some((version) => (version ?? undefined) === is?.version),
      `book ${book} is ${is?.version}, not one of ${versions}`,
    );
    const { ids } = writes[0]?.write ?? {};
    if (is !== undefined && ids !== undefined)
      assert.equal(is.id, ids[writes[0]?.place ?? 0], `the id of book ${book}`);
    left.delete(book);
  }
  assert.deepEqual([...left.keys()], [], 'nobody has written these books');
  for (const { request, key, books, ids = [] } of history) {
    if (acknowledged.has(request))
      assert.ok(found.lastId >= Math.max(0, ...ids), 'an id will be given again');
    if (books.length === 1 && key === undefined) continue;
    const there = found.books
      .filter(([, book]) => books.some(([number]) => number === book))
      .map(([id]) => id);
    assert.ok(
      there.length === 0 || there.length === books.length,
      `${there.length} books of ${books.length}`,
    );
    if (key !== undefined) assert.deepEqual(found.keys[key] ?? [], there, `the books of key ${key}`);
  }
}
