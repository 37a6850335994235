// Owns: `ready`: a health check that asks the operations listener whether the service is ready, or alive.
// Does not: use `fetch`, which refuses some ports, such as 6666.

import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { readConfig } from '../config.ts';
import { writeLine } from '../terminal/printable.ts';
import type { Arguments, CommandContext } from './command.ts';

export const HELP = `Usage: book-catalogue ready [--alive]

Asks the service on this machine, at ADMIN_HOST and ADMIN_PORT, whether it is ready, and prints the answer.
Exits with code 0 if it is ready, with 1 if it is not or does not answer.

  --alive  asks only whether the process answers, whatever the state of its store: if it does not, restart it
`;

export const OPTIONS = { alive: { type: 'boolean' } } as const;

export async function run(
  { env, stdout, stderr, times }: CommandContext,
  { options }: Arguments,
): Promise<number> {
  const { admin, adminHost: host } = readConfig(env);
  const { port } = admin;
  try {
    const request = get({
      host, // an address; one that means every interface leads to this machine
      port,
      path: options.alive ? '/livez' : '/readyz',
      headers: { host: 'localhost' },
      signal: AbortSignal.timeout(times.commands.ready),
    });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    request.on('error', () => {}); // the response has it as well
    const isReady = response.statusCode === 200;
    for await (const text of response) (isReady ? stdout : stderr).write(text);
    return isReady ? 0 : 1;
  } catch (error) {
    writeLine(stderr, `No answer at ADMIN_HOST ${host}, ADMIN_PORT ${port}: ${(error as Error).message}.`);
    return 1;
  }
}
