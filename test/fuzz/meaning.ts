// Owns: what JSON means as a book by rules 1 to 6, in another way than the service finds it: JSON.parse gives the text of
// each number, and integers are calculated exactly.

import type { BookChanges } from '../../src/books/book.ts';

/** The text of each number in a value of JSON, by the object or array that has it, and its key there. */
type Numbers = ReadonlyMap<unknown, ReadonlyMap<string, string>>;

type Reviver = (this: unknown, key: string, value: unknown, context: { source: string }) => unknown;

const LARGEST = 2n ** 53n - 1n;

/** @returns undefined if the bytes are not JSON in UTF-8. */
export function jsonIn(bytes: Buffer): { readonly value: unknown; readonly numbers: Numbers } | undefined {
  const numbers = new Map<unknown, Map<string, string>>();
  const keep: Reviver = function (key, value, { source }) {
    if (typeof value !== 'number') return value;
    const ofHolder = numbers.get(this) ?? new Map<string, string>();
    numbers.set(this, ofHolder.set(key, source));
    return value;
  };
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return { value: JSON.parse(text, keep as Parameters<typeof JSON.parse>[1]), numbers };
  } catch {
    return undefined;
  }
}

/** @returns undefined if the value is not an object. */
export function objectIn(value: unknown): Readonly<Record<string, unknown>> | undefined {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? (value as Record<string, unknown>) : undefined;
}

/** @returns the fields of a book; undefined if the value is not one. */
export function bookIn(value: unknown, numbers: Numbers): BookChanges | undefined {
  const object = objectIn(value);
  if (object === undefined) return undefined;
  const fields: { title?: string; author?: string; year?: number } = {};
  for (const name of ['title', 'author'] as const) {
    if (!Object.hasOwn(object, name)) continue;
    const text = object[name];
    if (typeof text !== 'string' || /\0|\p{Surrogate}/u.test(text)) return undefined;
    fields[name] = text;
  }
  if (!Object.hasOwn(object, 'year')) return fields;
  const source = numbers.get(object)?.get('year');
  const year = source === undefined ? undefined : integerIn(source);
  return year === undefined ? undefined : { ...fields, year };
}

/** @returns undefined unless the text of a number is an integer within ±(2^53−1). */
function integerIn(source: string): number | undefined {
  const [, minus, whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE](.+))?$/.exec(source) ?? [];
  const digits = BigInt(whole + fraction);
  if (digits === 0n) return 0;
  const places = Number(exponent) - fraction.length;
  if (Math.abs(places) > source.length + 16) return undefined; // too large, or a fraction
  const scale = 10n ** BigInt(Math.abs(places));
  if (places < 0 && digits % scale !== 0n) return undefined;
  const value = places < 0 ? digits / scale : digits * scale;
  return value > LARGEST ? undefined : Number(minus === '-' ? -value : value);
}
