// Owns: `ready`. Whether the service is ready, or alive, asked of its operations listener; for health checks.

import { get } from 'node:http';
import { readConfig } from '../config.ts';
import { readSecretFile } from '../secret-file.ts';
import type { Arguments, CommandContext } from './command.ts';

export const HELP = `Usage: book-catalogue ready [--alive]

Asks the service of this machine, at ADMIN_HOST and ADMIN_PORT, whether it is ready. Prints the answer;
ends with 0 when it is, with 1 when it is not or nobody answers.

  --alive  asks whether the process answers, whatever its store does: a restart helps only if it does not
`;

export const OPTIONS = { alive: { type: 'boolean' } } as const;

/** Milliseconds; the service has made up its mind before. */
const TIMEOUT = 4000;

export async function run({ env, stdout, stderr }: CommandContext, { options }: Arguments): Promise<number> {
  const { port, host } = readConfig(env, readSecretFile).admin;
  try {
    const { status, text } = await ask(host, port, options.alive ? '/livez' : '/readyz');
    (status === 200 ? stdout : stderr).write(text);
    return status === 200 ? 0 : 1;
  } catch (error) {
    stderr.write(`Nobody answers at ADMIN_HOST ${host}, ADMIN_PORT ${port}: ${(error as Error).message}.\n`);
    return 1;
  }
}

/** @param host an address that stands for every interface leads to this machine. */
function ask(
  host: string,
  port: number,
  path: string,
): Promise<{ status: number | undefined; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { host: 'localhost' }; // whatever the address, it is this machine that is asked
    const options = { host, port, path, headers, signal: AbortSignal.timeout(TIMEOUT) };
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
