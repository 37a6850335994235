// Owns: what a rule is that a running service can be checked for, and how one is written.

import type { Service } from './service.ts';

/** core: the part of the contract that every implementation has. full: all of docs/contract.md. */
export type Level = 'core' | 'full';

/** What a service may lack: the log of changes (rule H6); imports, which came with version 1.1; sessions, which only the page's port has. */
export type Part = 'log of changes' | 'imports' | 'sessions';

/**
 * @param isFull also checks what only the level full demands.
 * @throws Complaint if the service breaks the rule.
 */
type Check = (service: Service, isFull: boolean) => Promise<unknown>;

export interface Rule {
  /** The rules of docs/contract.md that it checks, such as `C1, rules 2, 3, 4 and 6`. */
  readonly numbers: string;
  /** What holds for a right service. */
  readonly name: string;
  /** The lowest one that has the rule. */
  readonly level: Level;
  /** Whether it stores, changes or removes books, or would if the service were wrong. */
  readonly writes: boolean;
  /** Whether it signs tokens. */
  readonly needsSecret: boolean;
  /** What it is about. */
  readonly needs: readonly Part[];
  readonly check: Check;
}

/** How the rules of a level are written: `core('T1', 'a body that is not JSON gets 400', async (service) => {…})`. */
function rulesOf(level: Level, ...needs: readonly Part[]) {
  const marked = (writes: boolean, needsSecret: boolean) => {
    return (numbers: string, name: string, check: Check): Rule => {
      return { numbers, name, level, writes, needsSecret, needs, check };
    };
  };
  return Object.assign(marked(false, false), { writing: marked(true, false), signing: marked(false, true) });
}

export const core = rulesOf('core');
export const full = rulesOf('full');
/** Those of the level full that are about the log of changes, about imports, about both, or about sessions. */
export const ofLog = rulesOf('full', 'log of changes');
export const ofImports = rulesOf('full', 'imports');
export const ofBoth = rulesOf('full', 'imports', 'log of changes');
export const ofSessions = rulesOf('full', 'sessions');

/** Such as `D1: removes the book, and a later GET returns 404`. */
export function titleOf({ numbers, name }: Rule): string {
  return `${numbers}: ${name}`;
}
