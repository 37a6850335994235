// Owns: opening a port, and the sentence for the operator if that fails (rule 27).

import type { AddressInfo, Server } from 'node:net';
import { OperatorError } from './operator-error.ts';

export interface ListenAddress {
  readonly port: number;
  /** Undefined is every interface. */
  readonly host: string | undefined;
  /** Names of the variables that set the port and the host. */
  readonly variables: { readonly port: string; readonly host: string };
}

/** Another process has the port, or this user may not open it. */
export class PortRefused extends OperatorError {}

/**
 * @returns `http://host:port` as a client on this machine would write it.
 * @throws OperatorError if listening fails; PortRefused if the port is the reason.
 */
export async function listen(server: Server, place: ListenAddress): Promise<string> {
  const { port, host } = place;
  await new Promise<void>((resolve, reject) => {
    const refuse = (error: NodeJS.ErrnoException) => reject(refusal(error, place));
    server.once('error', refuse);
    server.listen(port, host, () => {
      server.off('error', refuse);
      resolve();
    });
  });
  return urlOf(server.address() as AddressInfo);
}

function refusal(error: NodeJS.ErrnoException, place: ListenAddress): OperatorError {
  const { port, host, variables } = place;
  switch (error.code) {
    case 'EADDRINUSE':
      return new PortRefused(
        `${variables.port} ${port} is in use by another process: stop that process or choose another port.`,
      );
    case 'EACCES':
      return new PortRefused(
        `${variables.port} ${port} cannot be opened by this user: choose a port above 1023.`,
      );
    default:
      return new OperatorError(`${variables.host} ${host} cannot be listened on: ${error.message}.`);
  }
}

function urlOf({ address, family, port }: AddressInfo): string {
  const isEverywhere = address === '::' || address === '0.0.0.0';
  const host = isEverywhere ? 'localhost' : family === 'IPv6' ? `[${address}]` : address;
  return `http://${host}:${port}`;
}
