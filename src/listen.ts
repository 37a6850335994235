// Owns: opening a port, and the sentence the operator reads when it cannot be had (rule 27).

import type { AddressInfo, Server } from 'node:net';
import { OperatorError } from './operator-error.ts';

export interface ListenAddress {
  readonly port: number;
  /** Undefined is every interface. */
  readonly host: string | undefined;
  /** Whether the system deals connections out among all processes that listen there like this. */
  readonly shared: boolean;
  /** The variables that the operator set the port and the host by. */
  readonly variables: { readonly port: string; readonly host: string };
}

/** The port belongs to another process, or is for other users. */
export class PortRefused extends OperatorError {}

/**
 * @returns `http://host:port` as a client on this machine would write it.
 * @throws OperatorError when there is no listening there; PortRefused, when that is for the port alone.
 */
export async function listen(server: Server, place: ListenAddress): Promise<string> {
  const { port, host, shared } = place;
  await new Promise<void>((resolve, reject) => {
    const refuse = (error: NodeJS.ErrnoException) => reject(refusal(error, place));
    server.once('error', refuse);
    server.listen({ port, ...(host !== undefined && { host }), exclusive: true, reusePort: shared }, () => {
      server.off('error', refuse);
      resolve();
    });
  });
  return urlOf(server.address() as AddressInfo);
}

export function portTaken({ port, variables }: ListenAddress): PortRefused {
  return new PortRefused(
    `${variables.port} ${port} is taken by another process: stop it or choose another port.`,
  );
}

function refusal(error: NodeJS.ErrnoException, place: ListenAddress): OperatorError {
  const { port, host, variables } = place;
  switch (error.code) {
    case 'EADDRINUSE':
      return portTaken(place);
    case 'EACCES':
      return new PortRefused(
        `${variables.port} ${port} may not be opened by this user: choose one above 1023.`,
      );
    case 'ENOTSUP':
      return new OperatorError('WORKERS must be 1 on this system, where processes cannot share a port.');
    default:
      return new OperatorError(`${variables.host} ${host} cannot be listened on: ${error.message}.`);
  }
}

function urlOf({ address, family, port }: AddressInfo): string {
  const isEverywhere = address === '::' || address === '0.0.0.0';
  const host = isEverywhere ? 'localhost' : family === 'IPv6' ? `[${address}]` : address;
  return `http://${host}:${port}`;
}
