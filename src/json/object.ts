// Owns: parsing the text of a JSON object, without rounding any number of it to an integer (rule 3). Nested values may be.
// Does not: accept any other JSON, or text that is not JSON (rule 6).

import { findEnd, skipSpace, stringEnd } from './splitter.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Reads a JSON object. Of duplicate keys the last one wins. A fraction that JSON.parse rounds to an integer becomes
 * NaN, which nothing accepts; only in a nested value it stays rounded. (A reviver would also be called for
 * nested values, and takes ten times as long as all the rest.)
 * @returns undefined if the text is anything else.
 */
export function parseJsonText(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    // Only a fraction or an exponent can be rounded to a safe integer; most objects have neither.
    if (!/\d[.eE]/.test(text)) return value as JsonObject;
    const rounded = roundedKeys(text).map((key) => [key, Number.NaN]);
    return { ...value, ...Object.fromEntries(rounded) };
  } catch {
    return undefined; // malformed, or nested too deeply to be parsed
  }
}

/** The keys whose last value is a number that JSON.parse rounds to an integer. */
function roundedKeys(object: string): string[] {
  const rounded = new Set<string>();
  let at = skipSpace(object, skipSpace(object, 0) + 1);
  while (object[at] === '"') {
    const keyEnd = stringEnd(object, at);
    const start = skipSpace(object, skipSpace(object, keyEnd) + 1);
    const { end } = findEnd(object, start);
    const value = object.slice(start, end);
    const isRounded = /^[-\d]/.test(value) && Number.isInteger(Number(value)) && !isIntegerText(value);
    if (isRounded) rounded.add(JSON.parse(object.slice(at, keyEnd)));
    else if (rounded.size > 0) rounded.delete(JSON.parse(object.slice(at, keyEnd)));
    at = skipSpace(object, skipSpace(object, end) + 1);
  }
  return [...rounded];
}

/** Whether the text of a JSON number is a mathematical integer: `2020.0` and `1e3` are, `1e-400` is not. */
function isIntegerText(text: string): boolean {
  const [, whole = '', fraction = '', exponent = '0'] = /^-?(\d+)(?:\.(\d+))?(?:[eE](.+))?$/.exec(text) ?? [];
  const digits = whole + fraction;
  let significant = digits.length;
  while (significant > 0 && digits[significant - 1] === '0') significant -= 1;
  // The value is the significant digits, shifted by as many places as the zeros and the exponent say.
  return significant === 0 || digits.length - significant + Number(exponent) - fraction.length >= 0;
}
