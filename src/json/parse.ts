// Owns: parsing JSON without rounding a fraction to an integer (rule 3).
// Does not: accept anything that JSON.parse refuses.

export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * JSON.parse rounds a fraction to a safe integer only if it has 16 digits or more (2^53 has 16), or is so close to 0 that its
 * exponent has three digits.
 */
const MAY_BE_ROUNDED = /[\d.]{16}|[eE]-\d{3}/;

/** TypeScript does not know the third parameter (ECMAScript 2026, `JSON.parse` source text access). */
type Reviver = (key: string, value: unknown, context: { source: string }) => unknown;

/**
 * A fraction that JSON.parse rounds to an integer becomes NaN, which nothing accepts.
 * @returns undefined if the text is not JSON.
 */
export function parseJson(text: string): unknown {
  try {
    // With a reviver, parsing takes ten times as long.
    return MAY_BE_ROUNDED.test(text)
      ? JSON.parse(text, refuseRounded as Parameters<typeof JSON.parse>[1])
      : JSON.parse(text);
  } catch {
    return undefined; // malformed, or nested too deeply to be revived
  }
}

/** @returns undefined if the text is anything but a JSON object. */
export function parseJsonObject(text: string): JsonObject | undefined {
  return asJsonObject(parseJson(text));
}

/** @returns undefined if a JSON value is anything but an object. */
export function asJsonObject(value: unknown): JsonObject | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as JsonObject)
    : undefined;
}

const refuseRounded: Reviver = (_key, value, { source }) => {
  return Number.isInteger(value) && !isIntegerText(source) ? Number.NaN : value;
};

/** Whether the text of a JSON number is a mathematical integer: `2020.0` and `1e3` are, `1e-400` is not. */
function isIntegerText(text: string): boolean {
  const [, whole = '', fraction = '', exponent = '0'] = /^-?(\d+)(?:\.(\d+))?(?:[eE](.+))?$/.exec(text) ?? [];
  const digits = whole + fraction;
  let significant = digits.length;
  while (significant > 0 && digits[significant - 1] === '0') significant -= 1;
  // The value is the significant digits, shifted by as many places as the zeros and the exponent say.
  return significant === 0 || digits.length - significant + Number(exponent) - fraction.length >= 0;
}
