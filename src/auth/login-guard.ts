// Owns: the rate limit on the failed logins of an address (rule 29). Independent of HTTP and of the password.

import { isIPv4, isIPv6 } from 'node:net';
import type { Times } from '../times.ts';
import { BoundedMemory } from './bounded-memory.ts';

/** Failed logins of an address without a delay. */
const FREE_FAILURES = 10;

/** Delayed answers that an address may wait for. */
const MOST_DELAYED = 5;

/** Addresses that are kept: about 5 MiB. */
const MAX_ADDRESSES = 20_000;

/** Either when to answer a login, or that it is refused whether it is right or wrong. */
export type LoginTurn =
  | { readonly kind: 'answer' /** Milliseconds from now. */; readonly delay: number }
  | {
      readonly kind: 'refuse' /** Seconds until the next login may be answered. */;
      readonly retryAfter: number;
    };

/** Decides when to answer a login from an IP address, whose credentials were right or wrong. */
export type TakeTurn = (address: string, succeeded: boolean) => LoginTurn | Promise<LoginTurn>;

/** Logins by outcome. Delayed ones failed and were answered late; refused ones may have been right or wrong. */
export type LoginOutcomes = Readonly<Record<'succeeded' | 'failed' | 'delayed' | 'refused', number>>;

interface Suspect {
  /** The times of the latest failures, FREE_FAILURES at most. */
  readonly failures: number[];
  /** The time of the last delayed answer, whether or not its client still waits for it. */
  lastTurn: number;
}

export class LoginGuard {
  readonly #outcomes = { succeeded: 0, failed: 0, delayed: 0, refused: 0 };
  readonly #suspects = new BoundedMemory<Suspect>(MAX_ADDRESSES);
  readonly #times: Times['auth'];

  constructor(times: Times['auth']) {
    this.#times = times;
  }

  get outcomes(): LoginOutcomes {
    return this.#outcomes;
  }

  /** A right password is never delayed; while too many wrong ones wait, it is refused like them. */
  takeTurn(address: string, succeeded: boolean): LoginTurn {
    const key = networkOf(address);
    const { failureWindow, failurePace } = this.#times;
    const now = performance.now();
    const suspect = this.#suspects.get(key) ?? { failures: [], lastTurn: now };
    const turn = Math.max(now, suspect.lastTurn) + failurePace;
    const tooLong = turn - now - MOST_DELAYED * failurePace;
    if (tooLong > 0) {
      this.#outcomes.refused += 1;
      return { kind: 'refuse', retryAfter: Math.ceil(tooLong / 1000) };
    }
    if (succeeded) {
      this.#outcomes.succeeded += 1;
      return { kind: 'answer', delay: 0 };
    }

    const { failures } = suspect;
    const oldest =
      failures.length === FREE_FAILURES ? (failures.shift() as number) : Number.NEGATIVE_INFINITY;
    failures.push(now);
    this.#suspects.set(key, suspect);
    if (now - oldest > failureWindow) {
      this.#outcomes.failed += 1;
      return { kind: 'answer', delay: 0 };
    }
    this.#outcomes.delayed += 1;
    suspect.lastTurn = turn;
    return { kind: 'answer', delay: turn - now };
  }
}

/** An IPv4 address counts by itself, an IPv6 address as its /64: one customer has all addresses of that. */
function networkOf(address: string): string {
  const mapped = address.replace(/^::ffff:/i, '');
  if (isIPv4(mapped)) return mapped;
  if (!isIPv6(address)) return address;
  const [head = [], tail = []] = address.split('::').map((half) => half.split(':').filter(Boolean));
  const zeros = new Array<string>(Math.max(0, 8 - head.length - tail.length)).fill('0');
  const groups = [...head, ...zeros, ...tail].slice(0, 4);
  return groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':');
}
