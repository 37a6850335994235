// Owns: which hosts in a request name this machine.

/**
 * Whether a Host header names this machine: `localhost`, an address of 127.0.0.0/8 or `[::1]`, with or without a port.
 * A page under another name that resolves to this machine is foreign (DNS rebinding). Every browser sends a Host.
 */
export function namesThisMachine(host: string | undefined): boolean {
  return host === undefined || /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d*)?$/i.test(host);
}
