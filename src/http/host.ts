// Owns: which hosts in a request name this machine.

const BYTE = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
const THIS_MACHINE = new RegExp(`^(?:localhost|\\[::1\\]|127(?:\\.${BYTE}){3})(?::\\d*)?$`, 'i');

/**
 * Whether a Host header names this machine: `localhost`, an address of 127.0.0.0/8 or `[::1]`, with or without a port.
 * A page under another name that resolves to this machine is foreign (DNS rebinding). Every browser sends a Host.
 */
export function namesThisMachine(host: string | undefined): boolean {
  return host === undefined || THIS_MACHINE.test(host);
}
