// Owns: what an undo makes of one book (rule H5). It imports nothing.

/** A row of the log about a book. */
export interface PastChange<State> {
  /** The book before the change. Equal states are one value. */
  readonly state: State;
  /** Whether the undo takes this change back. */
  readonly isSelected: boolean;
}

/**
 * An undo restores the state before the first selected change. Others may have changed the book in between or later: then it is
 * left, unless each run of their changes led back to a state that the selected changes had met. Changes that altered nothing do
 * not count.
 * @param changes in their order.
 * @param present the book after all of them.
 * @returns the change whose state is restored; `same` if the book is in that state, or no change is selected.
 */
export function decide<State, Change extends PastChange<State>>(
  changes: readonly Change[],
  present: State,
): Change | 'same' | 'left' {
  const stateAfter = (at: number) => (at + 1 < changes.length ? changes[at + 1]?.state : present);
  const effective = changes.filter(({ state }, at) => state !== stateAfter(at));
  const begin = effective.findIndex(({ isSelected }) => isSelected);
  const first = effective[begin];
  if (first === undefined || first.state === present) return 'same';
  const met = new Set<State>();
  let isByOthers = false;
  for (const { state, isSelected } of [...effective.slice(begin), { state: present, isSelected: true }]) {
    if (isByOthers && isSelected && !met.has(state)) return 'left';
    if (isSelected || !isByOthers) met.add(state);
    isByOthers = !isSelected;
  }
  return first;
}
