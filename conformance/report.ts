// Owns: how verdicts are reported: for a reader, or as JSON.

import type { NotChecked, Verdict } from './checking.ts';
import type { Complaint } from './complaint.ts';
import { titleOf } from './rule.ts';

const REASONS: Readonly<Record<NotChecked, string>> = {
  'no log of changes': 'because the service has no log of changes',
  'no imports': 'because the service has no imports',
  'no sessions': 'because sessions are of the port of the page',
  '--store-may-be-written': 'without --store-may-be-written',
  '--secret': 'without --secret',
  stopped: 'after the stop',
  'no answer': 'because the service does not answer',
};

/** Ids of books that the summary shows. */
const SHOWN_BOOKS = 20;

export interface Report {
  /** The text before the first verdict. */
  begin(): string;
  /** The text of a verdict. */
  add(verdict: Verdict): string;
  /** The text after the last verdict. */
  end(verdicts: readonly Verdict[], left: readonly number[]): string;
  /** The text in place of all verdicts, if the service cannot be checked at all. */
  fail(complaint: Complaint): string;
}

/** By the name of the format. @param url of the service. */
export const REPORTS: ReadonlyMap<unknown, (url: string, level: string) => Report> = new Map([
  ['text', textReport],
  ['json', jsonReport],
]);

function textReport(url: string, level: string): Report {
  return {
    begin: () => `${url}, level ${level}\n\n`,
    add(verdict) {
      const word = verdict.result === 'failed' ? 'FAILED' : verdict.result;
      const line = `  ${word.padEnd(12)} ${titleOf(verdict.rule)}\n`;
      return verdict.result === 'failed' ? `${line}${explained(verdict.complaint)}` : line;
    },
    end: (verdicts, left) => `\n${summary(verdicts, left)}\n`,
    fail: (complaint) =>
      `  FAILED       the login, without which nothing can be checked\n${explained(complaint)}`,
  };
}

/** A complaint as every format has it. */
function partsOf({ message, request, received }: Complaint): Readonly<Record<string, string>> {
  return { expected: message, request, answer: received };
}

function explained(complaint: Complaint): string {
  const parts = Object.entries(partsOf(complaint)).filter(([, text]) => text !== '');
  const indented = (text: string) => text.trimEnd().replaceAll(/\n(?=.)/g, `\n${' '.repeat(16)}`);
  return parts.map(([name, text]) => `      ${name.padEnd(10)}${indented(text)}\n`).join('');
}

function jsonReport(url: string, level: string): Report {
  const text = (value: object) => `${JSON.stringify({ url, level, ...value }, null, 2)}\n`;
  return {
    begin: () => '',
    add: () => '',
    end(verdicts, left) {
      const rules = verdicts.map((verdict) => ({
        rules: verdict.rule.numbers,
        name: verdict.rule.name,
        level: verdict.rule.level,
        result: verdict.result,
        ...(verdict.result === 'failed' && partsOf(verdict.complaint)),
        ...(verdict.result === 'not checked' && { reason: verdict.reason }),
      }));
      const [passed, failed, notChecked] = counts(verdicts);
      return text({ passed, failed, notChecked, booksLeft: left, rules });
    },
    fail: (complaint) =>
      text({
        passed: 0,
        failed: 1,
        notChecked: 0,
        booksLeft: [],
        rules: [],
        failure: partsOf(complaint),
      }),
  };
}

function summary(verdicts: readonly Verdict[], left: readonly number[]): string {
  const [passed, failed, notChecked] = counts(verdicts);
  const skipped = verdicts.filter((verdict) => verdict.result === 'not checked');
  const reasons = [...Map.groupBy(skipped, ({ reason }) => reason)].map(
    ([reason, { length }]) => `${length} ${REASONS[reason]}`,
  );
  const lines = [
    `${passed} passed, ${failed} failed, ${notChecked} not checked${reasons.length > 0 ? `: ${reasons.join(', ')}` : ''}.`,
  ];
  if (left.length > 0) {
    const more = left.length > SHOWN_BOOKS ? ', …' : '';
    const shown = left.slice(0, SHOWN_BOOKS).join(', ');
    lines.push(`${left.length} books could not be removed: ${shown}${more}`);
  }
  return lines.join('\n');
}

function counts(verdicts: readonly Verdict[]): [passed: number, failed: number, notChecked: number] {
  const count = (wanted: Verdict['result']) => verdicts.filter(({ result }) => result === wanted).length;
  return [count('passed'), count('failed'), count('not checked')];
}
