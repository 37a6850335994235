// Owns: how English writes numbers, years and several of a thing.

/** Of the words of the page. */
export const LANGUAGE = 'en-GB';

const NUMBERS = new Intl.NumberFormat(LANGUAGE);

/** `10,000`. */
export function numberText(value: number): string {
  return NUMBERS.format(value);
}

/** `1 book`, `2 books`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${numberText(count)} ${count === 1 ? one : many}`;
}

/** A year as people write it: `1605`, `750 BC`; '' if it is unknown. */
export function yearText(year: number): string {
  if (year === 0) return '';
  return year < 0 ? `${-year} BC` : String(year);
}
