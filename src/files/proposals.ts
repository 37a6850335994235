// Owns: a year in place of a text that is not one: an offer, which a person accepts or not.

const ROMAN = /^M{1,2}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})$/i;
const VALUES: Readonly<Record<string, number>> = { I: 1, V: 5, X: 10, L: 50, C: 100, D: 500, M: 1000 };

/** `1901-1902`, `1901/02`, `1901 or 1902`, `[1901-1902?]`. */
const SEVERAL = /^\W*(\d{4})\s*(?:[-–—/,;]|or|and|to)\s*(?:c|©)?\s*\d{2,4}\W*$/i;

/** @returns the first of several years, or the value of a Roman numeral; undefined if the text has neither. */
export function proposedYear(text: string): number | undefined {
  const trimmed = text.trim();
  const [, first] = SEVERAL.exec(trimmed) ?? [];
  if (first !== undefined) return Number(first);
  if (!ROMAN.test(trimmed)) return undefined;
  const digits = Array.from(trimmed.toUpperCase(), (letter) => VALUES[letter] ?? 0);
  return digits.reduce((sum, value, at) => sum + (value < (digits[at + 1] ?? 0) ? -value : value), 0);
}
