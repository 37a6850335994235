// Owns: the complaint about a service that breaks a rule (the expectation, the request, the answer), and the
// comparisons that lead to one.

import { isDeepStrictEqual } from 'node:util';

/** Characters of a request or an answer that a complaint shows. */
const SHOWN = 400;

/** An answer that was read, or one that could not be. */
interface Evidence {
  readonly request: string;
  readonly status?: number;
  readonly message?: string;
  readonly data?: unknown;
  /** In place of an answer. */
  readonly received?: string;
}

/** What an answer must be; what it leaves out does not count. */
export interface Expected {
  readonly status: number;
  readonly message?: string;
  readonly data?: unknown;
}

/** A rule does not hold. The message is the expectation. */
export class Complaint extends Error {
  readonly request: string;
  readonly received: string;

  /** @param expected a sentence that holds for a right service. */
  constructor(expected: string, { request, received, status, message, data }: Evidence) {
    super(expected);
    void this.stack; // until it is read for the first time, it keeps all that its functions hold, such as a large answer
    this.request = withoutSecrets(request);
    const content = data === undefined ? '' : `, data ${shown(JSON.stringify(data))}`;
    this.received = withoutSecrets(received ?? `${status} ${shown(message ?? '')}${content}`);
  }
}

/** The time limit of an answer has passed. */
export class Unanswered extends Complaint {}

/** Fails unless the answer has this status, message and data. */
export function expectAnswer(answer: Evidence | undefined, expected: Expected, about = ''): void {
  if (answer === undefined) throw new Complaint(expectedOf(expected, about), NOTHING);
  const { status, message, data } = answer;
  // The answer to HEAD has neither message nor data.
  const isRight =
    status === expected.status &&
    (expected.message === undefined || data === undefined || message === expected.message) &&
    (expected.data === undefined || data === undefined || isDeepStrictEqual(data, expected.data));
  if (!isRight) throw new Complaint(expectedOf(expected, about), answer);
}

/** Fails unless both are equal; `actual` is what the service has answered. */
export function expectEqual(
  actual: unknown,
  expected: unknown,
  what: string,
  answer: Evidence = NOTHING,
): void {
  if (isDeepStrictEqual(actual, expected)) return;
  throw new Complaint(
    `${what}: ${shown(String(JSON.stringify(expected)))}, not ${shown(String(JSON.stringify(actual)))}.`,
    answer,
  );
}

/** Fails unless the sentence holds. */
export function expect(holds: boolean, sentence: string, answer: Evidence = NOTHING): asserts holds {
  if (!holds) throw new Complaint(sentence, answer);
}

/** A request or an answer without tokens and the password: a report may be read by others. */
function withoutSecrets(text: string): string {
  return text
    .replace(/\beyJ[\w-]{9,}\.[\w-]*(?:\.[\w-]*)?/g, (token) => `${token.slice(0, 12)}…`)
    .replace(/^((?:authorization|session-key|cookie): *.{0,12}).*$/gim, '$1…')
    .replace(/("(?:password|key)" *: *)"(?:[^"\\]|\\.)*"?/g, '$1"…"');
}

const NOTHING: Evidence = { request: '', received: '' };

function expectedOf({ status, message, data }: Expected, about: string): string {
  const parts = [message === undefined ? String(status) : `${status} ${message}`];
  if (data !== undefined) parts.push(`data ${shown(JSON.stringify(data))}`);
  return `${about === '' ? '' : `${about}: `}${parts.join(', ')}`;
}

/** The beginning of a text or of bytes, on lines that cannot control a terminal. */
export function shown(value: string | Uint8Array): string {
  const bytes =
    typeof value === 'string' ? value.slice(0, SHOWN + 1) : Buffer.from(value.subarray(0, SHOWN + 1));
  const text = bytes.toString();
  const safe = text.slice(0, SHOWN).replace(/[^\P{C}\n]|[\u2028\u2029]/gu, (character) => {
    return character === '\r' ? '' : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
  return value.length > SHOWN
    ? `${safe}… (${value.length} ${typeof value === 'string' ? 'characters' : 'bytes'})`
    : safe;
}
