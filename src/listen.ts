// Owns: opening a port, and the sentence for the operator if that fails (rule 27).

import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { OperatorError } from './operator-error.ts';

/** Another process has the port, or this user may not open it. */
export class PortRefused extends OperatorError {}

/**
 * @param host undefined: every interface.
 * @param ofPort name of the variable that sets the port.
 * @param ofHost of the one that sets the host.
 * @returns `http://host:port` as a client on this machine would write it.
 * @throws OperatorError if listening fails; PortRefused if the port is the reason.
 */
export async function listen(
  server: Server,
  port: number,
  host: string | undefined,
  ofPort: string,
  ofHost = 'HOST',
): Promise<string> {
  try {
    server.listen(port, host);
    await once(server, 'listening');
    return urlOf(server.address() as AddressInfo);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = {
      EADDRINUSE: 'is in use by another process: stop that process or choose another port',
      EACCES: 'cannot be opened by this user: choose a port above 1023',
    }[`${code}`];
    if (reason !== undefined) throw new PortRefused(`${ofPort} ${port} ${reason}.`);
    throw new OperatorError(`${ofHost} ${host} cannot be listened on: ${message}.`);
  }
}

/** @returns why not, if the operator has not set the port. */
export async function listenIfFree(
  isSet: boolean,
  ...place: Parameters<typeof listen>
): Promise<string | PortRefused> {
  return listen(...place).catch((error) => {
    if (isSet || !(error instanceof PortRefused)) throw error;
    return error;
  });
}

function urlOf({ address, family, port }: AddressInfo): string {
  const isEverywhere = address === '::' || address === '0.0.0.0';
  const host = isEverywhere ? 'localhost' : family === 'IPv6' ? `[${address}]` : address;
  return `http://${host}:${port}`;
}
