// Owns: which year a text of another program means.
// Does not: guess: a text that is not an unambiguous year is refused.
//
// The forms are those found in such files: goodbooks-10k (`2008.0`), Goodreads (`2019`, `-600` for 600 BC,
// `2020/10/25`), Calibre (ISO timestamps), Open Library (`July 16, 2019`, `Sep 29th, 2021`, `2006-03`), BookBrainz
// (`+002020`), Kaggle's Goodreads-books (`9/16/2006`), and library catalogues (`c1997`, `[1524?]`, `1776.`).

/** Languages whose names and abbreviations of months are read, as Intl has them. */
const LANGUAGES = ['en', 'de', 'fr', 'es', 'it', 'pt', 'nl', 'sv', 'da', 'pl'];

/** Characters; no date is longer. */
const LONGEST = 64;

/**
 * Texts that mean that there is no year, in lower case: `n.d.` and `s.a.` (no date, sine anno); `xxxx` and `uuuu` of
 * library catalogues and Open Library, whose exports also have `None`; `?` of LibraryThing.
 */
const NO_YEAR = /^(?:|\[?(?:n\. ?d\.|s\. ?a\.)\]?|xxxx|uuuu|none|\?)$/;

const WHOLE_NUMBER = /^[+-]?\d+(?:\.0+)?$/;
const DECIMAL = /^[+-]?\d*[.,]\d+$/;
/**
 * ISO 8601 to the month, to the day, or with the time; dates of Goodreads. A minus sign is not accepted: in ISO 8601,
 * the year -0043 would be 44 BC.
 */
const YEAR_FIRST = /^(\+\d{4,6}|\d{4})(?:-(\d\d)|([-/.])(\d{1,2})\3(\d{1,2}))(?:[t ]\d\d?:.*)?$/;
/** Which of the two is the month depends on the country; the year does not. */
const YEAR_LAST = /^(\d{1,2})([-/.])(\d{1,2})\2(\d{4})(?: \d\d?:.*)?$/;
const MONTH_AND_YEAR = /^(\d{1,2})\/(\d{4})$/;
/** One year with the mark of a catalogue: copyright, approximate, uncertain, supplied. */
const MARKED = /^[[(]?\s*(?:©|℗|\(c\)|copyright|circa|(?:cp|ca|c|p)\.?)?\s*(\d{3,4})\s*\??\s*[\])]?\.?$/;
const ERA =
  /^(?:(?:circa|ca\.?|c\.?)\s*)?(?:(ad)\s*)?(\d{1,6})\s*(ad|a\.d\.|ce|c\.e\.|b\.? ?c\.?|b\.?c\.?e\.?)?$/;
/** `June 26, 1997`, `26. Juni 1997`, `26-Jun-1997`, `16 de julio de 2019`, `January 1999`. */
const IN_WORDS =
  /^(?:(\d{1,2})(?:st|nd|rd|th|er|º|\.)?[\s-]+(?:de |of )?)?(\p{L}+)\.?(?:\s+(\d{1,2})(?:st|nd|rd|th)?)?,?[\s-]+(?:de )?(\d{4})\.?$/u;
/** `1997 June 26`, `1997 June`. */
const YEAR_BEFORE_WORDS = /^(\d{4}),?\s+(\p{L}+)\.?(?:\s+(\d{1,2}))?$/u;

/**
 * The date that Calibre stores for books without one: 1 January 101, UTC (src/calibre/utils/iso8601.py); west of
 * Greenwich it is the day before.
 */
const CALIBRE_UNDEFINED = /^(?:0101-01-01|0100-12-31)/;

let monthNames: ReadonlySet<string> | undefined;

/**
 * Reads a year. Years before the common era are negative: 44 BC is -44, as in Goodreads and goodbooks-10k, and not
 * -43, as astronomers count. A date that may mean several years, such as `1997-1998`, is not a year. A timestamp
 * counts as it is written, even one in UTC that was New Year's Day elsewhere: the text does not show the local date.
 * @returns 0 if the text means that there is no year; the reason if it is not one unambiguous year.
 */
export function readYear(text: string): number | string {
  if (text.length > LONGEST) return 'is too long for a year';
  const trimmed = text.trim();
  if (WHOLE_NUMBER.test(trimmed)) {
    const year = Number(trimmed);
    return Number.isSafeInteger(year) ? year + 0 : 'is beyond ±(2^53−1)'; // -0 is 0 (rule 3)
  }
  const lower = trimmed.toLowerCase();
  if (NO_YEAR.test(lower) || CALIBRE_UNDEFINED.test(lower)) return 0;
  if (DECIMAL.test(trimmed)) return 'is not a whole number';
  return readDate(lower) ?? 'is not an unambiguous year';
}

function readDate(text: string): number | undefined {
  let match = YEAR_FIRST.exec(text);
  if (match !== null) {
    const [, year, onlyMonth, , month = onlyMonth, day = '1'] = match;
    return isDay(month, day) ? Number(year) : undefined;
  }
  match = YEAR_LAST.exec(text);
  if (match !== null) {
    const [, first, , second, year] = match;
    return isDay(first, second) || isDay(second, first) ? Number(year) : undefined;
  }
  match = MONTH_AND_YEAR.exec(text);
  if (match !== null) return isDay(match[1], '1') ? Number(match[2]) : undefined;
  match = MARKED.exec(text);
  if (match !== null) return Number(match[1]);
  match = ERA.exec(text);
  if (match !== null) return readEra(Number(match[2]), match[1], match[3]);
  match = YEAR_BEFORE_WORDS.exec(text);
  if (match !== null) return isDayOf(match[2], match[3]) ? Number(match[1]) : undefined;
  match = IN_WORDS.exec(text);
  if (match === null) return undefined;
  const [, before, word, after, year] = match;
  if (before !== undefined && after !== undefined) return undefined;
  return isDayOf(word, before ?? after) ? Number(year) : undefined;
}

/** Neither era has a year 0. */
function readEra(year: number, before: string | undefined, after: string | undefined): number | undefined {
  if (year === 0 || (before === undefined) === (after === undefined)) return undefined;
  return after?.startsWith('b') ? -year : year;
}

function isDay(month: string | undefined, day: string | undefined): boolean {
  return Number(month) >= 1 && Number(month) <= 12 && Number(day) >= 1 && Number(day) <= 31;
}

function isDayOf(monthName = '', day = '1'): boolean {
  monthNames ??= new Set(LANGUAGES.flatMap(monthsOf));
  return monthNames.has(monthName) && isDay('1', day);
}

function monthsOf(language: string): string[] {
  return (['long', 'short'] as const).flatMap((month) => {
    const inDates = new Intl.DateTimeFormat(language, { month, day: 'numeric', timeZone: 'UTC' });
    const alone = new Intl.DateTimeFormat(language, { month, timeZone: 'UTC' });
    return Array.from({ length: 12 }, (_, index) => new Date(Date.UTC(2000, index, 1))).flatMap((date) => [
      alone.format(date).toLowerCase().replace('.', ''),
      inDates
        .formatToParts(date)
        .find(({ type }) => type === 'month')
        ?.value.toLowerCase()
        .replace('.', '') ?? '',
    ]);
  });
}
