// Owns: the rate limit on failed logins (rule 29). Independent of HTTP and of the password.

import { isIPv4, isIPv6 } from 'node:net';
import type { Times } from '../times.ts';

/** Failed logins in a window that are answered at once: of an address, and of the IPv6 networks around it. */
const FREE_OF_ADDRESS = 10;
const FREE_OF_56 = 50;
const FREE_OF_48 = 250;

/**
 * Those of all new addresses together. The first three of a network have room for longer, so that a hundred guessing
 * addresses do not keep out a person at another new one, who may mistype.
 */
const FREE_OF_ALL = 1000;
const FREE_OF_ALL_FOR_FIRST = 10_000;
const FIRST_FAILURES = 3;

/** Delayed answers that may wait in one queue. */
const MOST_DELAYED = 5;

/** Addresses that have logged in and are kept, in about 1 MiB. */
const MAX_KNOWN = 10_000;

/**
 * Either the milliseconds until a login is answered; or, if it is refused whether it is right or wrong, the seconds until the
 * next one may be answered.
 */
export type LoginTurn = { readonly delay: number } | { readonly retryAfter: number };

/** The failed logins of an address, of a network around it, or of all new addresses. */
interface Tally {
  readonly name: string;
  readonly free: number;
  /** In this window, without those that were delayed. */
  failures: number;
  /** The time of the last delayed answer, whether or not its client still waits for it. */
  lastTurn: number;
}

export class LoginGuard {
  /** Logins by outcome. Delayed ones failed and were answered late; refused ones may have been right or wrong. */
  readonly outcomes = { succeeded: 0, failed: 0, delayed: 0, refused: 0 };
  /**
   * Addresses that have logged in, the last one last. All others are new. Guesses add none, so they make the guard forget
   * none.
   */
  readonly #known = new Set<string>();
  /**
   * Those of one window. Only a failure that is answered at once adds some: at most 10,000 of those at new addresses, and
   * ten at each known one. So the end of the window is the only bound that this map needs.
   */
  readonly #tallies = new Map<string, Tally>();
  /** The time of the first failure in this window. */
  #began = Number.NEGATIVE_INFINITY;
  readonly #times: Times['auth'];

  constructor(times: Times['auth']) {
    this.#times = times;
  }

  /**
   * Decides when to answer a login from an IP address, whose credentials were right or wrong. Right ones are never delayed;
   * while too many wrong ones wait, they are refused like them.
   */
  takeTurn(address: string, succeeded: boolean): LoginTurn {
    const { failureWindow, failurePace } = this.#times;
    const now = performance.now();
    if (now - this.#began > failureWindow) this.#tallies.clear();
    const latest = (tally: Tally) => this.#tallies.get(tally.name) ?? tally;
    const networks = networksOf(address).map(latest);
    const { name } = networks[0] as Tally;
    const isKnown = this.#known.has(name);
    if (isKnown) networks.length = 1;
    const all = isKnown ? undefined : latest(newTally('all', FREE_OF_ALL));

    const queues = queuesOf(networks, all);
    const turn = Math.max(now, ...queues.map(({ lastTurn }) => lastTurn)) + failurePace;
    const tooLong = turn - now - MOST_DELAYED * failurePace;
    if (tooLong > 0) {
      this.outcomes.refused += 1;
      return { retryAfter: Math.ceil(tooLong / 1000) };
    }
    if (succeeded) {
      this.#remember(name);
      this.outcomes.succeeded += 1;
      return { delay: 0 };
    }
    if (queues.length > 0) {
      for (const queue of queues) queue.lastTurn = turn;
      this.outcomes.delayed += 1;
      return { delay: turn - now };
    }
    if (this.#tallies.size === 0) this.#began = now;
    for (const tally of all === undefined ? networks : [...networks, all]) {
      tally.failures += 1;
      this.#tallies.set(tally.name, tally);
    }
    this.outcomes.failed += 1;
    return { delay: 0 };
  }

  #remember(address: string): void {
    this.#known.delete(address);
    this.#known.add(address);
    const [oldest] = this.#known;
    if (this.#known.size > MAX_KNOWN) this.#known.delete(oldest as string);
  }
}

/**
 * The tallies in whose queues a failed login waits; none if it is answered at once. The narrowest network without free
 * failures delays it, and so do the wider ones: a network gets one answer a second, not one for each address in it.
 * All new addresses have a queue only once their own failures are used up: otherwise one that guesses would delay others.
 * @param networks from the narrowest to the widest.
 * @param all undefined for an address that is not new.
 */
function queuesOf(networks: readonly Tally[], all: Tally | undefined): Tally[] {
  const spent = networks.findIndex(({ failures, free }) => failures >= free);
  const queues = spent === -1 ? [] : networks.slice(spent);
  const isFirst = (networks.at(-1) as Tally).failures < FIRST_FAILURES;
  if (all !== undefined && all.failures >= (isFirst ? FREE_OF_ALL_FOR_FIRST : all.free)) queues.push(all);
  return queues;
}

function newTally(name: string, free: number): Tally {
  return { name, free, failures: 0, lastTurn: 0 };
}

/**
 * An IPv4 address counts by itself. An IPv6 address counts as its /64, all of which one customer has, and as the /56 and
 * the /48, which are what providers give to a customer (RFC 6177).
 */
function networksOf(address: string): Tally[] {
  const mapped = address.replace(/^::ffff:/i, '');
  if (isIPv4(mapped) || !isIPv6(address)) return [newTally(mapped, FREE_OF_ADDRESS)];
  const [head = [], tail = []] = address.split('::').map((half) => half.split(':').filter(Boolean));
  const zeros = new Array<string>(Math.max(0, 8 - head.length - tail.length)).fill('');
  const groups = [...head, ...zeros, ...tail].map((group) => group.toLowerCase().padStart(4, '0'));
  const digits = groups.join('');
  return [
    newTally(digits.slice(0, 16), FREE_OF_ADDRESS),
    newTally(digits.slice(0, 14), FREE_OF_56),
    newTally(digits.slice(0, 12), FREE_OF_48),
  ];
}
