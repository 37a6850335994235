// Owns: which hosts in a request name this machine.

import { isIPv4 } from 'node:net';

/**
 * Whether a Host header names this machine: `localhost`, an address of 127.0.0.0/8 or `[::1]`, with or without a port.
 * A page under another name that resolves to this machine is foreign (DNS rebinding). Every browser sends a Host.
 */
export function namesThisMachine(host: string | undefined): boolean {
  if (host === undefined) return true;
  const name = host.replace(/:\d*$/, '').toLowerCase();
  return name === 'localhost' || name === '[::1]' || (name.startsWith('127.') && isIPv4(name));
}
