// Owns: which books of a file are so unusual that a mistake is more likely: in the file, or in the choice of a column.

import type { FileBook } from './calls.ts';

/** An earlier year, or a year AD of one or two digits, is more often a mistake than a year. */
const EARLIEST = -3000;
const SHORTEST = 100;

/** Years for which a book may be announced. */
const ANNOUNCED = 5;

/** @returns why a person must look at a book before it is stored; undefined if nobody must. */
export function doubtOf({ title, year }: FileBook): string | undefined {
  if (title === '') return 'has no title';
  if (year > new Date().getFullYear() + ANNOUNCED) return 'this year is yet to come';
  if (year < EARLIEST) return 'in this year, there were no books';
  if (year > 0 && year < SHORTEST) return 'the year may be short for another one';
  return undefined;
}
