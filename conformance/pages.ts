// Owns: what the pages of books, changes, states and events have in common: times, links, the queries that are refused, and HEAD.

import { type Answer, linksOf } from './answers.ts';
import { expect, expectAnswer, expectEqual } from './complaint.ts';
import type { Service } from './service.ts';
import { invalidParameter } from './words.ts';

export const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Queries that each of these paths refuses. */
const REFUSED = [
  ...'limit= limit=0 limit=1001 limit=-1 limit=1.0 limit=1.5 limit=1e1 limit=ten limit=1&limit=1'.split(' '),
  ...['cursor=', 'cursor=abc', '__proto__=1', '=1', `${'n'.repeat(100)}=1`],
];

/** @param others queries that are refused as well; the refusal names the first parameter of each. */
export async function expectRefused(
  service: Service,
  path: string,
  others: readonly string[],
): Promise<void> {
  const refuse = async (query: string, name: string) => {
    expectAnswer(await service.request('GET', `${path}?${query}`), invalidParameter(name));
  };
  for (const query of [...REFUSED, ...others]) await refuse(query, query.replace(/=.*/, '').slice(0, 64));
  await refuse('limit=1&nope=1&limit=x', 'nope');
}

/** Fails unless HEAD is answered like GET, without a body. */
export async function expectHead(service: Service, path: string): Promise<void> {
  const head = await service.search(path, {}, 'HEAD');
  const got = await service.search(path);
  expectAnswer(head, { status: got.status });
  for (const name of ['link', 'x-total-count', 'content-length', 'content-type']) {
    expectEqual(head.headers.get(name), got.headers.get(name), name, head);
  }
}

/** @param usual elements of a page without `limit`. */
export const limitOf = (path: string, usual = 100) => Number(/[?&]limit=(\d+)/.exec(path)?.[1] ?? usual);

/** The path to which the one link of an answer leads: the same page with its limit, and a cursor. */
export function nextOf(answer: Answer, path: string, usual?: number): string {
  const { next = '', ...others } = linksOf(answer);
  expectEqual(Object.keys(others), [], 'The other links', answer);
  const [plain = ''] = path.split('?');
  const beginning = `${plain}?limit=${limitOf(path, usual)}&cursor=`;
  expect(
    next.startsWith(beginning) && /^[^&<>"\s]+$/.test(next.slice(beginning.length)),
    `The link to the next page is ${beginning}…, not "${next}".`,
    answer,
  );
  return next;
}
