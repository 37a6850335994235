// Owns: the username and password that both pages fill in for a person, if everybody knows them anyway.
// Refuses: the pair of an operator.

import type { Config } from '../config.ts';
import type { Answer } from '../http/answer.ts';

/** @returns an answer with the built-in pair, or with an empty object if it does not log in. */
export function knownLogin({ builtInCredentials, username, password }: Config): Answer {
  return {
    status: 200,
    headers: ['content-type', 'application/json; charset=utf-8', 'cache-control', 'no-store'],
    body: JSON.stringify(builtInCredentials ? { username, password } : {}),
  };
}
