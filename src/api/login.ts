// Owns: logging in with a username and a password: POST /token, and the check that starts a session of the page.

import { type BlockList, isIP, isIPv6 } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { LOGIN_LIMIT } from '../auth/credentials.ts';
import type { Answer } from '../http/answer.ts';
import { parseBody, readBody } from '../http/body.ts';
import { asJsonObject } from '../json/parse.ts';
import * as answers from './envelope.ts';
import type { AppParts, Exchange } from './exchange.ts';

/** A login. A missing field is valid but matches nothing; a field that is not text is invalid (rule 15). */
export const LOGIN = {
  type: 'object',
  properties: {
    username: { type: 'string', description: 'The username.', examples: ['admin'] },
    password: { type: 'string', description: 'The password.', examples: ['password'] },
  },
} as const;

export async function logIn(exchange: Exchange, parts: AppParts): Promise<Answer> {
  const refused = await refuseLogin(exchange, parts);
  if (refused !== undefined) return refused;
  try {
    return answers.tokenGenerated(parts.tokens.issue());
  } catch (error) {
    parts.log.error({ reqId: exchange.id, err: error }, 'a token could not be signed');
    return answers.TOKEN_NOT_GENERATED;
  }
}

/** @returns the answer to a login that is not one, is wrong, or comes too soon; undefined if it is right. */
export async function refuseLogin({ request, id }: Exchange, parts: AppParts): Promise<Answer | undefined> {
  const { checkCredentials, guard, log } = parts;
  const login = asJsonObject(parseBody(await readBody(request, LOGIN_LIMIT)));
  if (login === undefined) return answers.INVALID_LOGIN;
  const { username, password } = login;
  if (!isTextIfPresent(username) || !isTextIfPresent(password)) return answers.INVALID_LOGIN;
  const matches = checkCredentials(username, password);
  const forwarded = request.headers['x-forwarded-for'];
  const address = clientAddress(request.remoteAddress ?? '', forwarded, parts.trustedProxies);
  const turn = guard.takeTurn(address, matches);
  if ('retryAfter' in turn) return answers.tooManyAttempts(turn.retryAfter);
  if (turn.delay > 0) {
    log.warn({ reqId: id, address }, 'too many failed logins: the answer is delayed');
    await pause(turn.delay);
  }
  return matches ? undefined : answers.INVALID_CREDENTIALS;
}

function isTextIfPresent(value: unknown): value is string | undefined {
  return value === undefined || typeof value === 'string';
}

/**
 * The client's address, as far as it can be trusted: each trusted proxy names the address before it, and the nearest
 * proxy's entry is the last one (rule 29). If a proxy names no address, its own address counts for its clients.
 */
function clientAddress(peer: string, forwarded: string | undefined, proxies: BlockList): string {
  const named = (forwarded ?? '').split(',').map((text) => text.trim());
  let address = peer;
  // A BlockList also matches IPv4 addresses mapped to IPv6. The address of a closed socket is empty.
  while (isIP(address) !== 0 && proxies.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')) {
    const before = named.pop() ?? '';
    if (isIP(before) === 0) break;
    address = before;
  }
  return address;
}
