// Owns: where the operations listener of a running command is.

import type { Target } from './client.ts';
import type { CommandProcess } from './service.ts';

export function operationsOf({ log }: CommandProcess): Target {
  const { operations } = log.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'listening');
  return { url: operations, port: Number(new URL(operations).port) };
}
