// Owns: checking a service for rules, one after the other, and removing the books that a rule has stored.

import { Complaint, shown, Unanswered } from './complaint.ts';
import type { Level, Part, Rule } from './rule.ts';
import { RULES } from './rules.ts';
import type { Service } from './service.ts';
import { NOT_FOUND } from './words.ts';

/** What became of a rule. */
export type Verdict = { readonly rule: Rule } & (
  | { readonly result: 'passed' }
  | { readonly result: 'failed'; readonly complaint: Complaint }
  | { readonly result: 'not checked'; readonly reason: NotChecked }
);

/** Why a rule was not checked: what the service lacks, the option that the rule needs, or the end of the run. */
export type NotChecked = `no ${Part}` | '--store-may-be-written' | '--secret' | 'stopped' | 'no answer';

/** A request for each part that a service may lack. */
const PARTS: Readonly<Record<Part, readonly [method: string, path: string]>> = {
  'log of changes': ['GET', '/changes'],
  imports: ['POST', '/import'],
  sessions: ['DELETE', '/session'],
};

/** So many rules in a row whose requests are not answered in time end the run: each takes half a minute. */
const MOST_UNANSWERED = 3;

export interface Scope {
  readonly level: Level;
  readonly mayWrite: boolean;
  /** Asked before each rule. */
  isStopped(): boolean;
}

/** Checks the rules of a level; all of them are there, in their order. */
export async function* verdictsOf(
  service: Service,
  { level, mayWrite, isStopped }: Scope,
): AsyncGenerator<Verdict> {
  let unanswered = 0;
  const lacked = new Map<Part, Promise<boolean>>();
  const lackOf = async ({ needs }: Rule): Promise<NotChecked | undefined> => {
    for (const part of needs) {
      const isLacked = lacked.get(part) ?? lacks(service, part);
      lacked.set(part, isLacked);
      if (await isLacked) return `no ${part}`;
    }
    return undefined;
  };
  for (const rule of RULES) {
    if (level === 'core' && rule.level === 'full') continue;
    const reason = isStopped()
      ? 'stopped'
      : unanswered === MOST_UNANSWERED
        ? 'no answer'
        : ((await lackOf(rule)) ??
          (rule.writes && !mayWrite
            ? '--store-may-be-written'
            : rule.needsSecret && service.account.secret === undefined
              ? '--secret'
              : undefined));
    if (reason !== undefined) {
      yield { rule, result: 'not checked', reason };
      continue;
    }
    const verdict = await verdictOf(rule, service, level === 'full');
    const isUnanswered = verdict.result === 'failed' && verdict.complaint instanceof Unanswered;
    unanswered = isUnanswered ? unanswered + 1 : 0;
    yield verdict;
  }
}

/** Whether a path of the part does not exist. A service that does not answer has it: its rules then complain. */
async function lacks(service: Service, part: Part): Promise<boolean> {
  const answer = await service.request(...PARTS[part], { token: null }).catch(() => undefined);
  return answer?.status === NOT_FOUND.status;
}

async function verdictOf(rule: Rule, service: Service, isFull: boolean): Promise<Verdict> {
  try {
    await perform(rule, service, isFull);
    return { rule, result: 'passed' };
  } catch (error) {
    return { rule, result: 'failed', complaint: error as Complaint };
  }
}

/**
 * Checks one rule, and removes the books that it has stored.
 * @throws Complaint if the service breaks the rule.
 */
export async function perform(rule: Rule, service: Service, isFull = true): Promise<void> {
  try {
    await service.logIn();
    await service.findNoBook();
    await rule.check(service, isFull);
  } catch (error) {
    throw asComplaint(error as Error, service);
  } finally {
    await service.removeStored();
  }
}

/** A complaint with the latest request, if it has none itself. Any other error comes from the form of an answer. */
function asComplaint(error: Error, { latest }: Service): Complaint {
  if (error instanceof Complaint && error.request !== '') return error;
  const expected =
    error instanceof Complaint
      ? error.message
      : `The answer has the form that the rule reads: ${shown(error.message)}.`;
  return new Complaint(expected, latest ?? { request: '', received: '' });
}
