// Owns: POST /token, the one endpoint that needs no token.

import type { FastifyInstance } from 'fastify';
import type { CheckCredentials } from '../auth/credentials.ts';
import type { Tokens } from '../auth/tokens.ts';
import { type JsonObject, parseJsonObject, readBody } from './body.ts';
import {
  type Envelope,
  INVALID_CREDENTIALS,
  INVALID_LOGIN,
  TOKEN_NOT_GENERATED,
  tokenGenerated,
} from './envelope.ts';

export function addTokenRoutes(
  app: FastifyInstance,
  tokens: Tokens,
  checkCredentials: CheckCredentials,
  bodyLimit: number,
): void {
  app.post('/token', async (request): Promise<Envelope> => {
    const login = readLogin(parseJsonObject(await readBody(request.raw, bodyLimit)));
    if (login === undefined) return INVALID_LOGIN;
    if (!checkCredentials(login.username, login.password)) return INVALID_CREDENTIALS;
    try {
      return tokenGenerated(tokens.issue());
    } catch (error) {
      request.log.error({ reqId: request.id, err: error }, 'a token could not be signed');
      return TOKEN_NOT_GENERATED;
    }
  });
}

/** A missing field is fine, it just differs from the pair; one of the wrong type is not (rule 15). */
function readLogin(body: JsonObject | undefined): { username?: string; password?: string } | undefined {
  if (body === undefined) return undefined;
  const { username, password } = body;
  if (username !== undefined && typeof username !== 'string') return undefined;
  if (password !== undefined && typeof password !== 'string') return undefined;
  return { ...(username !== undefined && { username }), ...(password !== undefined && { password }) };
}
