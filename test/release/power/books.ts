// Owns: the books that are written before a power failure, and whether the books that are found after it agree with them: of
// each book the last acknowledged write or the one after it, arrays whole or not at all, and keys as their books.

import assert from 'node:assert/strict';
import type { Requester } from '../../support/client.ts';

/** A write, in the order of those of its books. */
interface Write {
  /** The `x-request-id` of its answer. */
  readonly request: string;
  readonly key: string | undefined;
  /** Each book, by its number, and the number in all of its fields from then on; null if it is removed. */
  readonly books: readonly (readonly [book: number, version: number | null])[];
  /** Of books that are created, if they were answered. */
  ids?: readonly number[];
}

export type History = readonly Write[];

/** What is found in a store. */
export interface Found {
  readonly books: readonly (readonly [id: number, book: number, version: number])[];
  readonly keys: Readonly<Record<string, readonly number[]>>;
  /** The highest id ever given. */
  readonly lastId: number;
}

/** Every tenth version takes more than a page of a file; multiples of this take many. */
export const HUGE = 10_000;

export function fieldsOf(book: number, version: number) {
  const length = version % HUGE === 0 ? 900_000 : version % 10 === 0 ? 5000 : 0;
  return { title: `title ${version}`.padEnd(length, 'o'), author: `author ${book}`, year: version };
}

/** Books with these numbers that nobody has written yet, each in its first version. */
export function booksFrom(first: number, count: number): ReturnType<typeof fieldsOf>[] {
  return numbersFrom(first, count).map((number) => fieldsOf(number, number));
}

export function numbersFrom(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, number) => first + number);
}

/** Writes books, and notes what it writes. */
export class Scribe {
  readonly history: Write[] = [];
  readonly #name: string;

  /** @param name the beginning of the ids of its requests. */
  constructor(name = 'request') {
    this.#name = name;
  }

  /** @returns the id of the first one. */
  async create(client: Requester, first: number, key?: string, count = 1): Promise<number> {
    const write = this.#note(
      numbersFrom(first, count).map((book) => [book, book]),
      key,
    );
    const one = count === 1;
    const books = booksFrom(first, count);
    const data = await this.#send(client, 'POST', one ? '/book' : '/books', write, one ? books[0] : books);
    write.ids = one ? [data.id] : data;
    return write.ids?.[0] as number;
  }

  async change(client: Requester, id: number, book: number, version: number): Promise<void> {
    await this.#send(client, 'PUT', `/book/${id}`, this.#note([[book, version]]), fieldsOf(book, version));
  }

  async remove(client: Requester, id: number, book: number): Promise<void> {
    await this.#send(client, 'DELETE', `/book/${id}`, this.#note([[book, null]]));
  }

  #note(books: Write['books'], key?: string): Write {
    const write = { request: `${this.#name}-${this.history.length}`, key, books };
    this.history.push(write);
    return write;
  }

  async #send(client: Requester, method: string, path: string, { request, key }: Write, body?: unknown) {
    const headers = { 'x-request-id': request, ...(key !== undefined && { 'idempotency-key': key }) };
    const answer = await client.request(method, path, { body, headers });
    assert.equal(answer.status, method === 'POST' ? 201 : 200, answer.message);
    return answer.data;
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
  const all = history.flatMap((write) =>
    write.books.map(([book, version], place) => ({ book, version, write, id: write.ids?.[place] })),
  );
  for (const [book, writes] of Map.groupBy(all, (one) => one.book)) {
    const last = writes.findLastIndex(({ write }) => acknowledged.has(write.request));
    const possible = [last, Math.min(last + 1, writes.length - 1)].map((at) => writes[at]?.version ?? null);
    const { id, version = null } = left.get(book) ?? {};
    assert.ok(possible.includes(version), `book ${book} is ${version}, not one of ${possible}`);
    const given = writes[0]?.id;
    if (id !== undefined && given !== undefined) assert.equal(id, given, `the id of book ${book}`);
    left.delete(book);
  }
  assert.deepEqual([...left.keys()], [], 'nobody has written these books');
  for (const { request, key, books, ids = [] } of history) {
    if (acknowledged.has(request))
      assert.ok(found.lastId >= Math.max(0, ...ids), 'an id will be given again');
    if (books.length === 1 && key === undefined) continue;
    const numbers = books.map(([book]) => book);
    const there = found.books.filter(([, book]) => numbers.includes(book)).map(([id]) => id);
    const isWhole = there.length === 0 || there.length === books.length;
    assert.ok(isWhole, `${there.length} books of ${books.length}`);
    if (key !== undefined) assert.deepEqual(found.keys[key] ?? [], there, `the books of key ${key}`);
  }
}
