// Owns: the address of a command's operations listener, read from its log.

import type { Target } from './client.ts';

export function operationsOf({ log }: { readonly log: readonly string[] }): Target {
  const { operations } = log.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'listening');
  return { url: operations, port: Number(new URL(operations).port) };
}
