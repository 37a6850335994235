// Histories that no correct service has, made up by hand, each beside one that differs in a single answer and is correct:
// the check of the runs with faults refuses the first, and accepts the second.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Answer } from '../../conformance/answers.ts';
import { History } from '../support/history.ts';

/**
 * What happens; then not one answer, but another one. `NAME: REQUEST` begins a request, and `NAME = ANSWER`
 * ends it. Books have an id and a title, such as `1 old`. A request may be made `if` the title is this one. A list returns all.
 */
const HISTORIES = `
  a stale read
    a: POST 1 old; a = 201; b: PUT 1 new; b = 200; c: GET 1
    not c = 200 1 old, but c = 200 1 new
  a read that goes back in time
    a: POST 1 old; a = 201; b: PUT 1 new; c: GET 1; c = 200 1 new; d: GET 1
    not d = 200 1 old, but d = 200 1 new
  a lost update
    a: POST 1 old; a = 201; b: PUT 1 one if old; c: PUT 1 two if old; b = 200
    not c = 200, but c = 412
  two removals of one book
    a: POST 1 old; a = 201; b: DELETE 1; c: DELETE 1; b = 200
    not c = 200, but c = 404
  a removed book that is back
    a: POST 1 old; a = 201; b: DELETE 1; b = 200; c: GET 1
    not c = 200 1 old, but c = 404
  an id that is given out again
    a: POST 1 old; a = 201; b: DELETE 1; b = 200; c: POST 1 new
    not c = 201, but c = 503
  a change without an answer that takes effect twice
    a: POST 1 old; a = 201; b: PUT 1 new; b = 503; c: PUT 1 newer; c = 200; d: GET 1; d = 200 1 new; e: PUT 1 newest; e = 200; f: GET 1
    not f = 200 1 new, but f = 200 1 newest
  a torn list: the second change, without the first
    a: POST 1 old; a = 201; b: POST 2 old; b = 201; l: LIST; c: PUT 1 new; c = 200; d: PUT 2 new; d = 200
    not l = 200 1 old, 2 new, but l = 200 1 new, 2 old
  a torn list: a removal, and a book that was changed before
    a: POST 1 old; a = 201; b: POST 2 old; b = 201; c: PUT 1 new; l: LIST; d: GET 1; d = 200 1 new; e: DELETE 2; e = 200; c = 200
    not l = 200 1 old, but l = 200 1 old, 2 old
  a list with a book that no client created
    a: POST 1 old; a = 201; b: POST 2 new; b = 503; l: LIST
    not l = 200 1 old, 2 newer, but l = 200 1 old, 2 new`;

const ROWS = /^ {2}(\S.*)\n(.*)\n +not (.*), but (.*)$/gm;

describe('in a made-up history is found', () => {
  for (const [, what = '', lines, wrong, right] of HISTORIES.matchAll(ROWS))
    test(what, async () => {
      await check(`${lines}; ${right}`);
      await assert.rejects(check(`${lines}; ${wrong}`), { name: 'AssertionError' });
    });
});

async function check(lines: string): Promise<void> {
  const history = new History();
  const inProgress = new Map<string, { id: string; title: string; end(answer: Answer): void }>();
  for (const line of lines.trim().split('; ')) {
    const [, name = '', sign, text = ''] = /^(\w)(:| =) (.*)$/.exec(line) ?? [];
    if (sign === ':') {
      const [method = '', id = '', title = '', , condition] = text.split(' ');
      const { promise, resolve } = Promise.withResolvers<Answer>();
      inProgress.set(name, { id, title, end: resolve });
      const client = history.of({ request: () => promise, list: async () => [] });
      const path = { LIST: '/books', POST: '/book' }[method] ?? `/book/${id}`;
      const headers: Record<string, string> = condition ? { 'if-match': tagOf(id, condition) } : {};
      void client.request(method === 'LIST' ? 'GET' : method, path, { body: { title }, headers });
    } else {
      const { id = '', title = '', end } = inProgress.get(name) ?? assert.fail(line);
      const [, status, books = `${id} ${title}`] = /^(\d+) ?(.+)?$/.exec(text) ?? [];
      const all = books.split(', ').map((book) => book.split(' ') as [string, string]);
      const [first] = all as [[string, string]];
      const data = all.map(([id, title]) => ({ id: Number(id), title, author: '', year: 0 }));
      const headers = new Headers({ etag: tagOf(...first) });
      end({ status: Number(status), message: '', data: id === '' ? data : data[0], headers, request: '' });
      await new Promise((resolve) => setImmediate(resolve)); // it is noted
    }
  }
  const headers = new Headers();
  for (const { end } of inProgress.values())
    end({ status: 503, message: '', data: null, headers, request: '' });
  await new Promise((resolve) => setImmediate(resolve));
  history.check();
}

/** Quotation marks are left out. */
function tagOf(id: string, title: string): string {
  return `${id}-${title}`;
}
