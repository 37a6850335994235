// Owns: parsing JSON without rounding a fraction or a large number to an integer (rule 3).
// Does not: accept anything that JSON.parse refuses.

const [QUOTE, BACKSLASH, ZERO, NINE] = [0x22, 0x5c, 0x30, 0x39];

export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Most values in a text, nested ones included. JSON.parse takes up to 100 bytes and up to a microsecond for each, so a body of
 * nothing else could take gigabytes and hold up all other requests.
 */
const MOST_VALUES = 250_000;

/**
 * JSON.parse rounds a number to an integer only if it has 16 digits or more (2^53 has 16), or is so close to 0 or so great that its
 * exponent has three digits.
 */
const MAY_BE_ROUNDED = /[\d.]{16}|[eE][+-]?\d{3}/;

/** A number of JSON, without its sign. */
const NUMBER = /(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/**
 * A number that JSON.parse rounds to an integer, or to infinity, becomes a list with its text, which no field accepts.
 * @returns undefined if the text is not JSON.
 */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(MAY_BE_ROUNDED.test(text) ? withoutRounded(text) : text);
  } catch {
    return undefined; // malformed
  }
}

/** @returns undefined if the text is anything but a JSON object. */
export function parseJsonObject(text: string): JsonObject | undefined {
  return asJsonObject(parseJson(text));
}

/** @returns undefined if a JSON value is anything but an object. */
export function asJsonObject(value: unknown): JsonObject | undefined {
  return isJsonObject(value) ? value : undefined;
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A reviver, which also has the text of a number, is called for each value, which takes fifty times as long. */
function withoutRounded(text: string): string {
  const parts: string[] = [];
  let end = 0;
  let isInText = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) isInText = !isInText;
    else if (code === BACKSLASH)
      at += 1; // it escapes the next one
    else if (!isInText && code >= ZERO && code <= NINE) {
      NUMBER.lastIndex = at;
      const number = NUMBER.exec(text)?.[0] ?? '';
      if (isRounded(number)) {
        const start = text[at - 1] === '-' ? at - 1 : at;
        if (end === 0 && text.slice(0, start).trim() === '') return text; // a number alone, and no list
        parts.push(text.slice(end, start), `["${text.slice(start, at + number.length)}"]`);
        end = at + number.length;
      }
      at += number.length - 1;
    }
  }
  return parts.join('') + text.slice(end);
}

function isRounded(number: string): boolean {
  const value = Number(number);
  if (!Number.isInteger(value)) return !Number.isFinite(value);
  return !Number.isSafeInteger(value) || !isIntegerText(number);
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

/** Each value but the first one of all follows a comma or an opening bracket that is not part of a string. */
export function hasTooManyValues(text: Uint8Array): boolean {
  if (text.length <= MOST_VALUES) return false;
  let values = 0;
  let isInString = false;
  for (let at = 0; at < text.length; at += 1) {
    const byte = text[at];
    if (byte === QUOTE) isInString = !isInString;
    else if (byte === BACKSLASH)
      at += 1; // it escapes the next one
    else if (!isInString && (byte === 0x2c || byte === 0x5b || byte === 0x7b)) values += 1;
  }
  return values > MOST_VALUES;
}
