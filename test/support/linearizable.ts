// Owns: whether a history of operations that overlap is linearizable: whether each of them can have taken effect at one
// moment between its begin and its end, so that all answers are as if nothing overlapped. By the search of Wing and Gong
// (Testing and verifying concurrent objects, 1993), which remembers what it has tried (Lowe, 2017).

export interface Operation<State> {
  readonly name: string;
  /** Moments on one clock. */
  readonly begin: number;
  readonly end: number;
  /** Whether it may not have taken effect at all: its answer was lost, or says so. */
  readonly isOptional?: boolean;
  /** @returns the state after it; `impossible` if it would have been answered in another way. */
  readonly apply: (before: State) => State | typeof impossible;
}

export const impossible = Symbol('impossible');

/**
 * @param isLast whether the state is one that was seen after all operations.
 * @returns undefined if the history is linearizable; else the longest part of it that is, as names in their order.
 */
export function longestIfNotLinearizable<State>(
  first: State,
  operations: readonly Operation<State>[],
  isLast: (state: State) => boolean = () => true,
): readonly string[] | undefined {
  const sorted = operations.toSorted((one, other) => one.begin - other.begin);
  const tried = new Set<string>();
  let longest: readonly string[] = [];

  const search = (
    state: State,
    left: readonly Operation<State>[],
    names: readonly string[],
    latestBegin: number,
  ): boolean => {
    if (names.length > longest.length) longest = names;
    const due = left.filter(({ isOptional = false }) => !isOptional);
    if (due.length === 0 && isLast(state)) return true;
    const key = `${JSON.stringify(state)} ${left.map((operation) => sorted.indexOf(operation)).join()}`;
    if (tried.has(key)) return false;
    tried.add(key);
    const firstEnd = Math.min(...due.map(({ end }) => end));
    return left
      .filter(({ begin, end }) => begin <= firstEnd && end >= latestBegin)
      .some((operation) => {
        const after = operation.apply(state);
        if (after === impossible) return false;
        const others = left.filter((other) => other !== operation);
        return search(after, others, [...names, operation.name], Math.max(latestBegin, operation.begin));
      });
  };
  return search(first, sorted, [], Number.NEGATIVE_INFINITY) ? undefined : longest;
}
