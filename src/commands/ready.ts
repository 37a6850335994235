// Owns: `ready`: a health check that asks the operations listener whether the service is ready, or alive.

import { get } from 'node:http';
import { readConfig } from '../config.ts';
import { TIMES } from '../times.ts';
import type { Arguments, CommandContext } from './command.ts';

export const HELP = `Usage: book-catalogue ready [--alive]

Asks the service on this machine, at ADMIN_HOST and ADMIN_PORT, whether it is ready, and prints the answer.
Exits with code 0 if it is ready, with 1 if it is not or does not answer.

  --alive  asks only whether the process answers, whatever the state of its store: if it does not, restart it
`;

export const OPTIONS = { alive: { type: 'boolean' } } as const;

export async function run({ env, stdout, stderr }: CommandContext, { options }: Arguments): Promise<number> {
  const { admin, adminHost: host } = readConfig(env);
  const { port } = admin;
  try {
    const { status, text } = await ask(host, port, options.alive ? '/livez' : '/readyz');
    (status === 200 ? stdout : stderr).write(text);
    return status === 200 ? 0 : 1;
  } catch (error) {
    stderr.write(`No answer at ADMIN_HOST ${host}, ADMIN_PORT ${port}: ${(error as Error).message}.\n`);
    return 1;
  }
}

/** @param host an address; one that means every interface leads to this machine. */
function ask(
  host: string,
  port: number,
  path: string,
): Promise<{ status: number | undefined; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { host: 'localhost' }; // whatever the address, the request goes to this machine
    const options = { host, port, path, headers, signal: AbortSignal.timeout(TIMES.commands.ready) };
    const request = get(options, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.once('end', () => resolve({ status: response.statusCode, text }));
      response.once('error', reject);
    });
    request.once('error', reject);
  });
}
