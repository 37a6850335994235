// Owns: the times of a service under test that waits shorter or longer than the product does.

import { TIMES, type Times } from '../../src/times.ts';

/** The times of the product with these in their places. */
export function timesWith(others: { readonly [Area in keyof Times]?: Partial<Times[Area]> }): Times {
  const areas = Object.entries(TIMES).map(([area, times]) => {
    return [area, { ...times, ...others[area as keyof Times] }];
  });
  return Object.fromEntries(areas);
}
