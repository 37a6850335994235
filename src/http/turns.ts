// Owns: turns of the event loop for connections that have more to be read, so that one with many short requests or chunks leaves
// time to all others.

/** Milliseconds in a turn of the event loop for all that waits. */
const TURN = 4;

let waiting: (() => void)[] = [];
let isDue = false;

/** Calls back in a later turn of the event loop, after those that wait already. */
export function awaitTurn(act: () => void): void {
  waiting.push(act);
  if (!isDue) setImmediate(takeTurns);
  isDue = true;
}

function takeTurns(): void {
  const end = performance.now() + TURN;
  const due = waiting;
  waiting = [];
  let taken = 0;
  for (; taken < due.length && performance.now() < end; taken += 1) due[taken]?.();
  if (taken < due.length) waiting = [...due.slice(taken), ...waiting];
  isDue = waiting.length > 0;
  if (isDue) setImmediate(takeTurns);
}
