// Owns: whether a history of operations that overlap is linearizable: whether each of them can have taken effect at one
// moment between its begin and its end, so that all answers are as if nothing overlapped. By the search of Wing and Gong
// (Testing and verifying concurrent objects, 1993), just in time (Lowe, Testing for linearizability, 2017): the history is
// followed moment by moment, with every state that is possible then, so that its past need not be kept.

import { isDeepStrictEqual } from 'node:util';

export interface Operation<State> {
  readonly name: string;
  /** Moments on one clock. An operation that ends at the moment at which another begins overlaps it. */
  readonly begin: number;
  /** Infinity if it may still take effect at any time. */
  readonly end: number;
  /** Whether it may not have taken effect at all: its answer was lost, or says so. */
  readonly isOptional?: boolean;
  /** Of those with the same one, all of which have the same effect and never end, the earliest takes effect first. */
  readonly twins?: string;
  /**
   * Without side effects.
   * @returns the state after it; `impossible` if it would have been answered in another way. An operation that returns the
   * very object that it was given changes nothing in any other state either.
   */
  readonly apply: (before: State) => State | typeof impossible;
}

export const impossible = Symbol('impossible');

/** A state that is possible at a moment, and how it came to be. */
interface Possibility<State> {
  readonly state: State;
  /** Operations in progress that have taken effect. */
  readonly taken: ReadonlySet<Operation<State>>;
  /** The latest of all operations that have. */
  readonly latest: readonly Operation<State>[];
}

/** Operations that a fault shows. */
const SHOWN = 12;

export class Linearization<State> {
  #possibilities: readonly Possibility<State>[];
  /** Started before the moment up to which the history was followed, and not ended by then. */
  #inProgress: readonly Operation<State>[] = [];
  #coming: Operation<State>[] = [];

  constructor(first: State) {
    this.#possibilities = [{ state: first, taken: new Set(), latest: [] }];
  }

  copy(): Linearization<State> {
    const copy = new Linearization(undefined as State);
    copy.#possibilities = this.#possibilities;
    copy.#inProgress = this.#inProgress;
    copy.#coming = [...this.#coming];
    return copy;
  }

  /** Adds an operation that begins no earlier than the moment up to which the history was followed. */
  add(operation: Operation<State>): void {
    this.#coming.push(operation);
  }

  /** Whether all operations have ended, and no other state is possible. */
  isCertainly(state: State): boolean {
    const [first, ...others] = this.#possibilities;
    return this.isQuiet && others.length === 0 && isDeepStrictEqual(first?.state, state);
  }

  get isQuiet(): boolean {
    return this.#coming.length === 0 && this.#inProgress.length === 0;
  }

  /** The moments of a range between which operations begin or end, in their order. */
  moments(begin: number, end: number): number[] {
    const all = [...this.#inProgress, ...this.#coming].flatMap((one) => [one.begin, one.end]);
    return [...new Set(all)].filter((moment) => moment > begin && moment < end).toSorted((a, b) => a - b);
  }

  /**
   * Follows the history up to a moment, before which all operations must have been added.
   * @returns undefined if it is linearizable; else the names of the latest operations of a longest part that is, and of the
   * one that cannot follow.
   */
  follow(until: number): readonly string[] | undefined {
    const coming = this.#coming.toSorted((one, other) => one.begin - other.begin);
    while (coming.length > 0 || this.#inProgress.length > 0) {
      const begin = coming[0]?.begin ?? Number.POSITIVE_INFINITY;
      const end = Math.min(...this.#inProgress.map((one) => one.end));
      if (Math.min(begin, end) >= until) break;
      if (begin <= end) this.#begin(coming.shift() as Operation<State>);
      else {
        const fault = this.#end(this.#inProgress.find((one) => one.end === end) as Operation<State>);
        if (fault !== undefined) return fault;
      }
    }
    this.#coming = coming;
    return undefined;
  }

  /** Nothing that is in progress takes effect any more. */
  forget(): void {
    this.#keep(this.#possibilities.map(({ state, latest }) => ({ state, latest, taken: new Set() })));
    this.#inProgress = [];
    this.#coming = [];
  }

  #begin(operation: Operation<State>): void {
    this.#inProgress = [...this.#inProgress, operation];
    this.#keep(this.#possibilities.map((one) => this.#withReads(one)));
  }

  #end(operation: Operation<State>): readonly string[] | undefined {
    const after = this.#afterTaking(operation);
    if (after.length === 0 && operation.isOptional !== true) {
      const all = this.#possibilities.map(({ latest }) => latest);
      const [longest = []] = all.toSorted((one, other) => other.length - one.length);
      return [...longest, operation].map(({ name }) => name);
    }
    const without = operation.isOptional === true ? this.#possibilities : [];
    this.#drop(operation, [...after, ...without]);
    for (const one of this.#inProgress) {
      if (one.isOptional === true && this.#possibilities.every(({ taken }) => taken.has(one)))
        this.#drop(one, this.#possibilities);
    }
    return undefined;
  }

  #drop(operation: Operation<State>, possibilities: readonly Possibility<State>[]): void {
    this.#inProgress = this.#inProgress.filter((one) => one !== operation);
    const others = (taken: Possibility<State>['taken']) =>
      new Set([...taken].filter((one) => one !== operation));
    this.#keep(possibilities.map((one) => ({ ...one, taken: others(one.taken) })));
  }

  /** What is possible once this operation in progress has taken effect, after any others in progress. */
  #afterTaking(operation: Operation<State>): readonly Possibility<State>[] {
    const done = this.#possibilities.filter(({ taken }) => taken.has(operation));
    let open = this.#possibilities.filter(({ taken }) => !taken.has(operation));
    const tried = [...open];
    while (open.length > 0) {
      const next: Possibility<State>[] = [];
      for (const one of open) {
        const passed = new Set<string>();
        for (const candidate of this.#inProgress) {
          if (one.taken.has(candidate) || passed.has(candidate.twins ?? '')) continue;
          if (candidate.twins !== undefined) passed.add(candidate.twins);
          const after = candidate.apply(one.state);
          if (after === impossible) continue;
          const taking = this.#withReads(took(one, after, candidate));
          if (taking.taken.has(operation)) addUnlessWorse(done, taking);
          else if (addUnlessWorse(tried, taking)) next.push(taking);
        }
      }
      open = next;
    }
    return done;
  }

  /** What never changes anything may as well take effect as soon as its answer fits, whatever comes later. */
  #withReads(before: Possibility<State>): Possibility<State> {
    return this.#inProgress.reduce((one, operation) => {
      if (operation.isOptional === true || one.taken.has(operation)) return one;
      return operation.apply(one.state) === one.state ? took(one, one.state, operation) : one;
    }, before);
  }

  #keep(possibilities: readonly Possibility<State>[]): void {
    const kept: Possibility<State>[] = [];
    for (const one of possibilities) addUnlessWorse(kept, one);
    this.#possibilities = kept;
  }
}

function took<State>(
  { taken, latest }: Possibility<State>,
  state: State,
  operation: Operation<State>,
): Possibility<State> {
  return { state, taken: new Set(taken).add(operation), latest: [...latest, operation].slice(-SHOWN) };
}

/** Adds a possibility, and removes those than which it is better. @returns whether none was better or as good. */
function addUnlessWorse<State>(all: Possibility<State>[], one: Possibility<State>): boolean {
  if (all.some((other) => isAsGood(other, one))) return false;
  const left = all.filter((other) => !isAsGood(one, other));
  all.splice(0, all.length, ...left, one);
  return true;
}

/** Whether all that may follow the other one may follow this one: operations that only the other has taken need not be taken. */
function isAsGood<State>(one: Possibility<State>, other: Possibility<State>): boolean {
  if (one.taken.size > other.taken.size) return false;
  if (![...one.taken].every((operation) => other.taken.has(operation))) return false;
  if (![...other.taken].every((operation) => operation.isOptional === true || one.taken.has(operation)))
    return false;
  return one.state === other.state || isDeepStrictEqual(one.state, other.state);
}

/**
 * @param isLast whether the state is one that was seen after all operations.
 * @returns undefined if the history is linearizable; else as `follow`.
 */
export function faultOf<State>(
  first: State,
  operations: readonly Operation<State>[],
  isLast: (state: State) => boolean = () => true,
): readonly string[] | undefined {
  const history = new Linearization(first);
  for (const operation of operations) history.add(operation);
  const end = Number.MAX_SAFE_INTEGER;
  const apply = (state: State) => (isLast(state) ? state : impossible);
  history.add({ name: 'the last look', begin: end, end, apply });
  return history.follow(Number.POSITIVE_INFINITY);
}
