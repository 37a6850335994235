// Owns: `verify`: the conformance kit, with the account and the secret of this service's variables.

import { helpOf, Refusal, verify } from '../../conformance/command.ts';
import { Given } from '../environment.ts';
import { OperatorError } from '../operator-error.ts';
import { type Arguments, type CommandContext, UsageError } from './command.ts';

export { OPTIONS } from '../../conformance/command.ts';
export const HELP = helpOf('book-catalogue verify');
export const OPERANDS = ['URL'] as const;

export async function run(
  { env, stdout, stop }: CommandContext,
  { options, operands }: Arguments,
): Promise<number> {
  const given = new Given(env);
  const known = {
    username: given.text('AUTH_USERNAME'),
    password: given.secret('AUTH_PASSWORD'),
    secret: given.secret('SECRET_TOKEN'),
  };
  try {
    return await verify(operands[0] as string, options, { stdout, stop, known });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw new (error.exitCode === 2 ? UsageError : OperatorError)(error.message);
  }
}
