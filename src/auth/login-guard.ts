// Owns: how fast one address may guess the password (rule 29). Knows no HTTP and no password.

import { isIPv4, isIPv6 } from 'node:net';
import { BoundedMemory } from './bounded-memory.ts';

/** Failures that cost an address nothing, and the milliseconds in which they are counted. */
const FREE_FAILURES = 10;
const WINDOW = 15 * 60 * 1000;

/** Milliseconds between two late answers to one address, and the longest that one is kept waiting. */
const PACE = 1000;
const LONGEST_DELAY = 5 * PACE;

/** Addresses remembered at most: about 5 MiB. */
const MAX_ADDRESSES = 20_000;

/** When a login is answered, or that it is not judged now. */
export type LoginTurn =
  | { readonly kind: 'answer' /** Milliseconds from now. */; readonly delay: number }
  | { readonly kind: 'refuse' /** Seconds until there may be room. */; readonly retryAfter: number };

/** Gives a login its turn: of an IP address, and whether the credentials were right. */
export type TakeTurn = (address: string, succeeded: boolean) => LoginTurn | Promise<LoginTurn>;

/** Logins by how they ended. What was delayed had failed, and was answered late; what was refused was not judged. */
export type LoginOutcomes = Readonly<Record<'succeeded' | 'failed' | 'delayed' | 'refused', number>>;

interface Suspect {
  /** The latest failures, at most so many as are free. */
  readonly failures: number[];
  /** When the last late answer goes out, whether or not anybody still waits for it. */
  lastTurn: number;
}

export class LoginGuard {
  readonly #outcomes = { succeeded: 0, failed: 0, delayed: 0, refused: 0 };
  readonly #suspects = new BoundedMemory<Suspect>(MAX_ADDRESSES);
  readonly #now: () => number;

  /** @param now milliseconds on a clock that never steps back. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Of all logins so far. */
  get outcomes(): LoginOutcomes {
    return this.#outcomes;
  }

  /** A right password is never late; where too many wrong ones wait, it is not told from them. */
  takeTurn(address: string, succeeded: boolean): LoginTurn {
    const key = networkOf(address);
    const now = this.#now();
    const suspect = this.#suspects.get(key) ?? { failures: [], lastTurn: now };
    const turn = Math.max(now, suspect.lastTurn) + PACE;
    if (turn - now > LONGEST_DELAY) {
      this.#outcomes.refused += 1;
      return { kind: 'refuse', retryAfter: Math.ceil((turn - now - LONGEST_DELAY) / 1000) };
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
    if (now - oldest > WINDOW) {
      this.#outcomes.failed += 1;
      return { kind: 'answer', delay: 0 };
    }
    this.#outcomes.delayed += 1;
    suspect.lastTurn = turn;
    return { kind: 'answer', delay: turn - now };
  }
}

/** An IPv4 address stands for itself, an IPv6 address for its /64: one customer has all of that. */
function networkOf(address: string): string {
  const mapped = address.replace(/^::ffff:/i, '');
  if (isIPv4(mapped)) return mapped;
  if (!isIPv6(address)) return address;
  const [head = [], tail = []] = address.split('::').map((half) => half.split(':').filter(Boolean));
  const zeros = new Array<string>(Math.max(0, 8 - head.length - tail.length)).fill('0');
  const groups = [...head, ...zeros, ...tail].slice(0, 4);
  return groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':');
}
