// Owns: what a rule is that a running service can be checked for.

import type { Service } from './service.ts';

/** core: the part of the contract that every implementation has. full: all of docs/contract.md. */
export type Level = 'core' | 'full';

export interface Rule {
  /** The rules of docs/contract.md that it checks, such as `C1, rules 2, 3, 4 and 6`. */
  readonly numbers: string;
  /** What holds for a right service. */
  readonly name: string;
  readonly level: Level;
  /** Whether it stores, changes or removes books, or would if the service were wrong. */
  readonly writes: boolean;
  /** Whether it signs tokens. */
  readonly needsSecret?: true;
  /** @throws Complaint if the service breaks the rule. */
  check(service: Service): Promise<unknown>;
}

/** Such as `D1: removes the book, and a later GET is 404`. */
export function titleOf({ numbers, name }: Rule): string {
  return `${numbers}: ${name}`;
}
