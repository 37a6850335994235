// Owns: parsing the text of a JSON object, without rounding any number to an integer (rule 3).
// Refuses: any other JSON, and text that is not JSON (rule 6).

export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Reads a JSON object. Of duplicate keys the last one wins. A fraction that JSON.parse rounds to an integer becomes
 * NaN, which nothing accepts.
 * @returns undefined if the text is anything else.
 */
export function parseJsonText(text: string): JsonObject | undefined {
  try {
    // Only a fraction or an exponent can be rounded to a safe integer; most objects have neither.
    const value: unknown = /\d[.eE]/.test(text) ? JSON.parse(text, exactIntegers) : JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as JsonObject)
      : undefined;
  } catch {
    return undefined; // malformed, or nested too deeply to be walked
  }
}

function exactIntegers(_key: string, value: unknown, context?: { source?: string }): unknown {
  if (!Number.isInteger(value) || context?.source === undefined) return value;
  return isIntegerText(context.source) ? value : Number.NaN;
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
