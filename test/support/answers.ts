// Owns: the checks that apply to every answer on the service's port.

import assert from 'node:assert/strict';
import type { RawAnswer } from '../../conformance/answers.ts';
import { readEnvelope } from './client.ts';

/** Fails unless an answer has the form of every answer (rules 20 and 24). Returns its data. */
export function assertEnvelope(
  answer: RawAnswer | undefined,
  status: number,
  message: string,
  name = '',
  // biome-ignore lint/suspicious/noExplicitAny: JSON of any form from the service; each test asserts what it must be
): any {
  assert.ok(answer !== undefined, `no answer: ${name}`);
  const { headers, body } = answer;
  const envelope = readEnvelope(body, answer.status);
  assert.deepEqual([envelope.status, envelope.message], [status, message], name);
  assert.equal(headers['content-type'], 'application/json; charset=utf-8', name);
  assert.equal(headers['x-content-type-options'], 'nosniff', name);
  assert.equal(headers['cache-control'], 'no-store', name);
  assert.match(headers['x-request-id'] ?? '', /^[\w-]+$/, name);
  return envelope.data;
}

export function assertRefusal(
  answer: RawAnswer | undefined,
  status: number,
  message: string,
  name = '',
): void {
  assert.equal(assertEnvelope(answer, status, message, name), null, name);
}
