// Owns: a service under test as the conformance kit sees it, without limits of speed; and what every answer of this
// project's service has beyond the kit's rules: it is described, among others.

import assert from 'node:assert/strict';
import { type Exchange, Service } from '../../conformance/service.ts';
import { LIMITS } from './client.ts';
import { assertDescribed } from './description.ts';
import { ENVIRONMENT, SECRET } from './service.ts';

/** Characters; reading longer bodies again would take long, and shows nothing that shorter ones do not. */
const LONGEST_READ = 50_000;

/**
 * The account is that of services under test.
 * @param observe gets every exchange.
 */
export function verifiedAt(
  { url }: { readonly url: string },
  observe: (exchange: Exchange) => void = () => {},
): Service {
  const { AUTH_USERNAME: username, AUTH_PASSWORD: password } = ENVIRONMENT;
  return new Service(new URL(url), { username, password, secret: SECRET }, LIMITS, (exchange) => {
    observe(exchange);
    assertRight(exchange);
  });
}

/** Fails unless the exchange is described, and its answer has the headers of rule 24 and its fields in their order. */
function assertRight(exchange: Exchange): void {
  const { method, status, headers, body, requestBody } = exchange;
  // Without a method it is an answer to bytes of any kind.
  if (method !== '' && requestBody.length + body.length < LONGEST_READ) assertDescribed(exchange);
  assert.equal(headers['cache-control'], 'no-store');
  assert.match(headers['x-request-id'] ?? '', /^[\w.:-]+$/);
  if (status === 304) return;
  assert.equal(headers['content-type'], 'application/json; charset=utf-8');
  assert.equal(headers['x-content-type-options'], 'nosniff');
  if (method === 'HEAD') return;
  const envelope = JSON.parse(body);
  assert.deepEqual(Object.keys(envelope), ['status', 'message', 'data']);
  const { data } = envelope;
  if (data?.id !== undefined) assert.deepEqual(Object.keys(data), ['id', 'title', 'author', 'year']);
}
