// Owns: POST /token, the one endpoint that needs no token.

import { isIP } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { CheckCredentials } from '../auth/credentials.ts';
import type { TakeTurn } from '../auth/login-guard.ts';
import type { Tokens } from '../auth/tokens.ts';
import { checkOf } from '../schema.ts';
import { parseJsonObject, readBody } from './body.ts';
import {
  type Envelope,
  INVALID_CREDENTIALS,
  INVALID_LOGIN,
  TOKEN_NOT_GENERATED,
  TOO_MANY_ATTEMPTS,
  tokenGenerated,
} from './envelope.ts';

/** A login. A missing field is fine, it just differs from the pair; one that is no text is not (rule 15). */
export const LOGIN = {
  type: 'object',
  properties: {
    username: { type: 'string', description: 'The name that logs in.', examples: ['admin'] },
    password: { type: 'string', description: 'Its password.', examples: ['password'] },
  },
} as const;

const isLogin = checkOf<{ readonly username?: string; readonly password?: string }>(LOGIN);

export function addTokenRoutes(
  app: FastifyInstance,
  tokens: Tokens,
  checkCredentials: CheckCredentials,
  takeTurn: TakeTurn,
  bodyLimit: number,
): void {
  app.post('/token', async (request, reply): Promise<Envelope> => {
    const login = parseJsonObject(await readBody(request.raw, bodyLimit));
    if (!isLogin(login)) return INVALID_LOGIN;
    const matches = checkCredentials(login.username, login.password);
    const address = addressOf(request);
    const turn = await takeTurn(address, matches);
    if (turn.kind === 'refuse') {
      reply.header('retry-after', turn.retryAfter);
      return TOO_MANY_ATTEMPTS;
    }
    if (turn.delay > 0) {
      request.log.warn({ reqId: request.id, address }, 'too many logins failed: the answer comes late');
      await pause(turn.delay);
    }
    if (!matches) return INVALID_CREDENTIALS;
    try {
      return tokenGenerated(tokens.issue());
    } catch (error) {
      request.log.error({ reqId: request.id, err: error }, 'a token could not be signed');
      return TOKEN_NOT_GENERATED;
    }
  });
}

/** The client's own address as far as it can be believed (TRUST_PROXY); a proxy may say what is none. */
function addressOf({ ip, socket }: FastifyRequest): string {
  return isIP(ip) === 0 ? (socket.remoteAddress ?? '') : ip;
}
