// Owns: why a file of JSON is refused as a whole: its books are elsewhere in it.
// Does not: look for the books there.

import { isJsonObject, type JsonObject } from '../json/parse.ts';
import { OperatorError } from '../operator-error.ts';
import { isTitle } from './columns.ts';
import { findEnd } from './json-splitter.ts';

/** Why no record has a title, if it is elsewhere. @param isArray whether the records are in one. */
export function elsewhere(
  [first = {}, ...others]: readonly JsonObject[],
  isArray: boolean,
): OperatorError | undefined {
  const members = Object.entries(first);
  const [list] = members.find(([, value]) => Array.isArray(value) && value.some(isJsonObject)) ?? [];
  if (list !== undefined && others.length === 0 && !isArray)
    return new OperatorError(
      `The records are in the list "${list}" within the file: make a file of that list, from its [ to its ], as jq '${jqOf(list)}' does.`,
    );
  const titled = members.filter(([, value]) => isJsonObject(value) && Object.keys(value).some(isTitle));
  const [[member] = []] = titled;
  if (member === undefined || titled.length > 1) return undefined;
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
