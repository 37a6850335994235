// Owns: `token`: prints a token for scripts, without a login.

import { Tokens } from '../auth/tokens.ts';
import { readConfig } from '../config.ts';
import { OperatorError } from '../operator-error.ts';
import type { CommandContext } from './command.ts';

export const HELP = `Usage: book-catalogue token

Prints a token, signed with SECRET_TOKEN, that is valid for 15 minutes:

  curl localhost:8080/books -H "Authorization: $(./book-catalogue token)"
`;

export async function run({ env, stdout, times }: CommandContext): Promise<number> {
  const { signingSecret, randomSecret } = readConfig(env);
  if (randomSecret) {
    throw new OperatorError(
      'SECRET_TOKEN must be set to that of the service: otherwise the service does not accept the token.',
    );
  }
  stdout.write(`${new Tokens(signingSecret, times.auth).issue()}\n`);
  return 0;
}
