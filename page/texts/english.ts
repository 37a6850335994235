// Owns: how English writes numbers, years, days, times, and several of a thing.

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

const TIME = new Intl.DateTimeFormat(LANGUAGE, { timeStyle: 'short' });
const DAY = new Intl.DateTimeFormat(LANGUAGE, { dateStyle: 'full' });
const AGO = new Intl.RelativeTimeFormat(LANGUAGE);

/** `Today`, `Yesterday`, `Monday 23 November 2026`. */
export function dayText(at: string): string {
  const yesterday = new Date();
  yesterday.setDate(yesterday.getDate() - 1);
  const day = new Date(at).toDateString();
  if (day === new Date().toDateString()) return 'Today';
  return day === yesterday.toDateString() ? 'Yesterday' : DAY.format(new Date(at));
}

/** `14:30`. */
export const timeText = (at: string) => TIME.format(new Date(at));

/** `Monday 23 November 2026, 14:30`. */
export const momentText = (at: Date | string) => `${DAY.format(new Date(at))}, ${TIME.format(new Date(at))}`;

/** `2 hours ago`. */
export function agoText(at: Date): string {
  const minutes = (Date.now() - at.getTime()) / 60_000;
  const [unit, length] = Object.entries({ day: 1440, hour: 60 }).find((one) => minutes >= one[1]) ?? [
    'minute',
    1,
  ];
  return AGO.format(-Math.floor(minutes / length), unit as Intl.RelativeTimeFormatUnit);
}

/** A year as people write it: `1605`, `750 BC`; '' if it is unknown. */
export function yearText(year: number): string {
  if (year === 0) return '';
  return year < 0 ? `${-year} BC` : String(year);
}
