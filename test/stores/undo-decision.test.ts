// What an undo makes of one book (rule H5), by the changes that it has: a table, and random ones beside the rule in other words.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { decide } from '../../src/books/undo-decision.ts';

/**
 * States of a book in their order, with `.` for a book that is gone. The sign between two of them is the change: `>` is taken back, `-`
 * is by others.
 */
const CASES: readonly (readonly [changes: string, becomes: string])[] = [
  ['A', 'same'],
  ['A-B', 'same'],
  ['A>B', 'A'],
  ['.>A', '.'],
  ['A>.', 'A'],
  ['A-B>C', 'B'],
  ['A>B>C', 'A'],
  ['A>B>A', 'same'],
  ['A>B-A', 'same'],
  ['A>B-C', 'left'],
  ['A>B-.', 'left'],
  ['.>A-.', 'same'],
  ['A>.-B', 'left'],
  ['A>B-C>D', 'left'],
  ['A>B-C-D', 'left'],
  ['A>B-C-B', 'A'],
  ['A>B-C-B>D', 'A'],
  ['A>B-A>C', 'A'],
  ['A>B-A>C-B', 'A'],
  ['A>B-C-B>D-C', 'left'],
  ['A>B>C-B', 'A'],
  ['A>B-C>C-B', 'A'],
  ['A>B-B', 'A'],
  ['A>A-B', 'same'],
  ['A>A>B', 'A'],
  ['A-B>B-C>D', 'C'],
  ['A>B-B-C>C', 'left'],
  ['A>B-C>A', 'same'],
];

/** Each change with the state before it, and the present state. */
function read(text: string): { changes: { state: string; isSelected: boolean }[]; present: string } {
  const changes = [...text.matchAll(/(.)([>-])/g)].map(([, state = '', by]) => ({
    state,
    isSelected: by === '>',
  }));
  return { changes, present: text.at(-1) as string };
}

function decided(text: string): string {
  const { changes, present } = read(text);
  const decision = decide(changes, present);
  return typeof decision === 'string' ? decision : decision.state;
}

describe('what becomes of a book', () => {
  for (const [changes, becomes] of CASES)
    test(`rule H5: ${changes} becomes ${becomes}`, () => assert.equal(decided(changes), becomes));

  test('rule H5: no change by others is lost, and only the state before the first change comes back', () => {
    const state = fc.constantFrom('A', 'B', 'C', '.');
    const steps = fc.array(fc.tuple(state, fc.constantFrom('>', '-')), { maxLength: 9 });
    fc.assert(
      fc.property(steps, state, (before, present) => {
        const text = before.map(([one, by]) => one + by).join('') + present;
        const effective = text.replaceAll(/(.)[>-](?=\1)/g, ''); // without changes that alter nothing
        const [, wanted] = /^(?:.-)*(.)>/.exec(effective) ?? [];
        const becomes = decided(text);
        if (wanted === undefined || wanted === present) return assert.equal(becomes, 'same');
        // Of each run of others, the state that it led to was met when a selected change began or had ended.
        const rest = effective.slice(effective.indexOf('>') - 1);
        const isFree = [...rest.matchAll(/-(.)(?=>|$)/g)].every(({ index, 1: state }) =>
          [...rest.slice(0, index + 1).matchAll(/(?<=^|>)(.)|(.)(?=>)/g)].some(([met]) => met === state),
        );
        assert.equal(becomes, isFree ? wanted : 'left', text);
      }),
      { numRuns: 5000 },
    );
  });
});
