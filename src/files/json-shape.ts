// Owns: why a file of JSON is refused as a whole: its books are elsewhere in it, or the first ones have no value that can be
// read.
// Does not: look for the books there.

import type { JsonObject } from '../json/parse.ts';
import { OperatorError } from '../operator-error.ts';
import { type Columns, isTitle } from './columns.ts';
import { findEnd } from './json-splitter.ts';
import { isMembers, readAuthors, readYearIn } from './json-values.ts';
import { shorten } from './rows.ts';

/** One record may be wrong by itself, and so may a few that have a value where most have none. */
const FEWEST = 2;
const FEWEST_PART = 0.5;

const NEEDED = {
  title: 'a title must be a string',
  author: 'an author must be a string, or have "name", "literal", or "given" and "family"',
  year: 'a year must be a whole number, a string, or a date of CSL JSON',
};

/** @throws OperatorError if no value of a field, in several records, can be read. */
export function assertReadable(records: readonly JsonObject[], columns: Columns): void {
  const isWrong = {
    title: (value: unknown) => typeof value !== 'string',
    author: (value: unknown) => readAuthors(value) === undefined,
    year: (value: unknown) => readYearIn(value) === undefined,
  };
  for (const field of ['title', 'author', 'year'] as const) {
    const name = columns[field];
    if (name === undefined) continue;
    const own = records.filter((record) => Object.hasOwn(record, name)).map((record) => record[name]);
    const values = own.filter((value) => value !== null);
    if (values.length < Math.max(FEWEST, records.length * FEWEST_PART)) continue;
    if (!values.every(isWrong[field])) continue;
    const [value] = values;
    const kind = Array.isArray(value) ? 'an array' : isMembers(value) ? 'an object' : `a ${typeof value}`;
    throw new OperatorError(
      `In the first ${values.length} records, "${name}" is ${kind}, such as ${shorten(JSON.stringify(value))}: ${NEEDED[field]}.`,
    );
  }
}

/** Why no record has a title, if it is elsewhere. @param isArray whether the records are in one. */
export function elsewhere(
  [first = {}, ...others]: readonly JsonObject[],
  isArray: boolean,
): OperatorError | undefined {
  const members = Object.entries(first);
  const [list] = members.find(([, value]) => Array.isArray(value) && value.some(isMembers)) ?? [];
  if (list !== undefined && others.length === 0 && !isArray)
    return new OperatorError(
      `The records are in the list "${list}" within the file: make a file of that list, from its [ to its ], as jq '${jqOf(list)}' does.`,
    );
  const [member] = members.find(([, value]) => isMembers(value) && Object.keys(value).some(isTitle)) ?? [];
  if (member === undefined) return undefined;
  return new OperatorError(
    `The title is within "${member}" of each record: make that object the record, as jq -c '${isArray ? '.[]' : ''}${jqOf(member)}' does.`,
  );
}

/** Why the first line of a file of JSON Lines is no record, if the following ones are not either. */
export function unfinished(line: string, number: number): OperatorError | undefined {
  const { end } = findEnd(line, 0);
  if (end !== -1 && line.startsWith('{') && /^\s*,\s*$/.test(line.slice(end)))
    return new OperatorError(
      `Line ${number} has a comma after its object: remove the commas, or put the lines between [ and ].`,
    );
  if (end !== -1 || !/^\{(?:.*[[{,:])?\s*$/s.test(line)) return undefined;
  return new OperatorError(
    `Line ${number} has only the beginning of an object: make the file an array of the books, or put each book on one line, as jq -c does.`,
  );
}

/** How jq finds a member. */
function jqOf(key: string): string {
  return /^[a-z_]\w*$/i.test(key) ? `.${key}` : `.${JSON.stringify(key)}`;
}
