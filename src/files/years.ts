// Owns: which year a text of another program means.
// Does not: guess: a text that is not an unambiguous year is refused. It converts no year of another calendar: the new years of
// two calendars differ, so that one year is parts of two.
//
// The forms are those found in such files: goodbooks-10k (`2008.0`), Goodreads (`2019`, `-600` for 600 BC,
// `2020/10/25`), Calibre (ISO timestamps), Open Library (`July 16, 2019`, `Sep 29th, 2021`, `2006-03`), BookBrainz
// (`+002020`), Kaggle's Goodreads-books (`9/16/2006`), and library catalogues (`c1997`, `[1524?]`, `1776.`, `1937.6`,
// `2010年3月`, `1999 г.`).

import { fold } from '../books/folding.ts';
import type { ReasonCode } from './reasons.ts';

/** Languages whose names and abbreviations of months are read, as Intl has them. */
const LANGUAGES =
  'en de de-AT fr es it pt ca ro nl sv da nb fi pl cs sk hr hu tr et lv lt el ru uk bg sr ar hi'.split(' ');

/** Characters; no date is longer. */
const LONGEST = 64;

/**
 * Texts that mean that there is no year, in lower case: no date or sine anno in the languages of catalogues (`n.d.`,
 * `s.a.`, `s.d.`, `o.J.`, `z.j.`, `u.å.`, `b.r.`, `б.г.`); `xxxx` and `uuuu` of library catalogues and Open Library,
 * whose exports also have `None`; `?` of LibraryThing; `NULL`, `\N`, `NaN`, `#N/A` and their kind of databases and programs.
 */
const NO_YEAR =
  /^(?:|[[(]?(?:(?:[ns]\.? ?d|n\. ?a|s[./] ?f|[ns]\/[ad]|б\/г|s\. ?a|[oz]\. ?j|u\. ?å|b\. ?r|б\. ?г)\.?|no date|undated|unknown|bez daty|ohne jahr|sans date|sin fecha|senza data|sem data|zonder jaar|utan år|bez roku|без года|(?:出版|刊)年不明)[\])]?|xxxx|uuuu|[<(]?(?:none|null|nil|na)[>)]?|\\n|-?nan|nat|undefined|invalid date|#n\/a|[-–—?])$/;

const WHOLE_NUMBER = /^[+-]?\d+(?:\.0+)?$/;
const COMMA_ZERO = /(?<=\d{4}),0{1,2}$/;
/** Signs for minus other than that of ASCII. A dash before four digits may be the end of a range. */
const OTHER_MINUS = /^(?:[−﹣－]|–(?=\d{1,3}$))/;
/** A catalogue replaces the last digit of a year that it does not know. */
const DECADE = /(?<!\d)\d{3}\?/;

const MONTH = '(?:0?[1-9]|1[0-2])';
const DAY = '(?:0?[1-9]|[12]\\d|3[01])';
const TIME = '(?:[t ]\\d\\d?:.*)?';
/** `十二`. */
const NUMERAL = '[一二三四五六七八九十]{1,3}';

/** Before or after the year of a printing or an edition: `2004 printing`, `2nd ed. 2004`, `Nachdr. 1997`. */
const PRINTING =
  '(?:\\d\\d?(?:st|nd|rd|th|[.ªº]) )?(?:(?:re)?print(?:ed|ing)?|repr|impression|(?:re)?pub(?:l|lished)?|[eé]d(?:ition)?|' +
  '(?:nach)?dr(?:uck)?|nachdr|ausg(?:abe)?|aufl(?:age)?|tirage|r[eé]impr?|ristampa)\\.?';

/** `昭和12年`, `昭12`, `S12`, `Showa 12`, `民國99`: a year of an era of East Asia has three digits at most. */
const ERA_OF_EAST_ASIA =
  '(?:(?!公元|西元|西[暦历曆]|[紀纪]元)\\p{sc=Han}{2,4}|[明大昭平令民mtshr㍻-㍾㋿]|meiji|taish?[oō]|sh[oō]wa|heisei|reiwa|roc)\\.?\\s?(?:\\d{1,3}|元)年?';

/** Forms whose group `year` is the year. Brackets, and signs of doubt and full stops at the end, are removed before. */
const FORMS: readonly RegExp[] = [
  // One year with the mark of a catalogue (copyright, approximate, printing), or the word for a year. `年` and its kind may be
  // followed by month and day, or by the word for a publication.
  new RegExp(
    `^(?:[©℗~≈?]|copyright|(?:about|approx|environ|etwa|copr?|cp|ca?|p|circa|d\\.?l|impr?|um|vers|hacia|verso|ongeveer|omkring|około|ok|около|ок|anno|an|año|ano|năm)\\.?|${PRINTING})?\\s*(?<year>\\d{3,4})\\s*(?:г|год|года|р|рік|року|r|rok|roku|copyright|${PRINTING})?$`,
  ),
  new RegExp(
    `^(?<year>\\d{3,4})\\s?[年년](?:\\s?(?:${MONTH}|${NUMERAL})\\s?[月월](?:\\s?(?:${DAY}|${NUMERAL})\\s?[日일])?)?(?:[春夏秋冬]|初?版|刊行?|出版|[発發发]行)?$`,
  ),
  // ISO 8601 to the month, to the day, or with the time; dates of Goodreads, Japan, Korea. A minus sign is not accepted:
  // in ISO 8601, the year -0043 would be 44 BC. Before 1800, `1700/1` is 1700 or 1701, by the start of the year.
  new RegExp(
    `^(?<year>\\+\\d{4,6}|\\d{4})(?:[-/](?:0[1-9]|1[0-2])|(?<=1[89]\\d\\d|20\\d\\d)/[1-9]|\\.\\s?${MONTH}|([-/.])\\s?${MONTH}\\2\\s?${DAY})${TIME}$`,
  ),
  // Wikidata, of a year or a month; and databases.
  new RegExp(`^(?<year>\\+?\\d{4})-(?:00|0[1-9]|1[0-2])-00${TIME}$`),
  // Which of the two is the month depends on the country; the year does not.
  new RegExp(
    `^(?:${DAY}([-/.])\\s?${MONTH}|${MONTH}([-/.])\\s?${DAY})(?:\\1|\\2)\\s?(?<year>\\d{4})${TIME}$`,
  ),
  new RegExp(`^${MONTH}[-/.]\\s?(?<year>\\d{4})$`),
  // Beside the year of an era, that of the Gregorian calendar; alone, the former is refused.
  new RegExp(`^${ERA_OF_EAST_ASIA}\\s?[[(](?<year>\\d{4})年?$`, 'u'),
  new RegExp(`^(?<year>\\d{4})年?\\s?[[(]${ERA_OF_EAST_ASIA}(?:[\\])]年)?$`, 'u'),
];

/** Of the common era, and before it, without blanks and full stops: `79 n. Chr.`, `公元前44年`, `44 до н. э.`. */
const AD =
  /^(?:circa|ca?)?(?:(?:ad|ms|公元|西元|西[暦历曆]|서기|คศ)(\d{1,6})[年년]?|(\d{1,6})[年년]?(?:ad|ce|jaa|nchr|apj-?c|dc|нэ|ne|nl|م|ميلادية?|میلادی))$/;
const BC =
  /^(?:circa|ca?)?(?:(?:bc|mö|公元前|西元前|[紀纪]元前|前|기원전)(\d{1,6})[年년]?|(\d{1,6})[年년]?(?:bce?|eaa|vchr|avj-?c|ac|донэ|pne|přnl|fkr|قم))$/;

/** Words of dates other than months. */
const DATE_WORDS = new Set(
  (
    'spring summer autumn fall winter frühjahr frühling sommer herbst printemps été automne hiver primavera verano ' +
    'otoño invierno estate autunno inverno verão outono lente zomer herfst wiosna lato jesień zima vår sommar höst ' +
    'vinter весна лето осень зима quarter quartal quartaal trim trimestre trimester kwartał kvartal квартал кв q1 q2 q3 q4'
  ).split(' '),
);
const BETWEEN_WORDS = new Set('de del of the le den di г год года r roku'.split(' '));
/** At the beginning of dates in HTTP and mails, and of JavaScript. */
const WEEKDAY = /^(?:mon|tue|wed|thu|fri|sat|sun)(?:[a-z]*day)?[, .]\s*/;
/** Of a day or a quarter. */
const ORDINAL = /^(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th|er|re|[eoaºª])?$|^(?:i{1,3}|iv)$/;

/**
 * The dates that programs store for books without one. Of Calibre, 1 January 101, UTC (src/calibre/utils/iso8601.py), and
 * west of Greenwich the day before; of .NET, the first day of year 1, perhaps in UTC; of MySQL, 0000-00-00.
 */
const UNDEFINED = /^(?:0101-01-01|0100-12-31|0001-01-01|0000-(?:00-00|12-31)|0?1([-/.])0?1\1 ?0001(?!\d))/;

/** 31 December, as ISO 8601, databases and HTTP write it, and a time in UTC, from which fractions of 0 were removed. */
const NEW_YEARS_EVE =
  /^(?:\+?(?<year>\d+)([-/])12\2\s?31|(?:\D+ )?31 dec (?<last>\d{4}))[t ](?<time>\d\d:\d\d(?::\d\d)?)(?:[.,]0+)?\s?(?:z|utc|gmt|[+-]00(?::?00)?)(?:\[(?:etc\/)?utc\])?$/;

/**
 * The times in UTC at which a day begins in some time zone east of Greenwich, with summer time: UTC+14 to +1, half hours from
 * +12:30 to +3:30, and +13:45, +12:45, +9:45, +8:45, +5:45. A time of day between them is one. Until 1941, zones had odd
 * minutes and seconds; but nobody notes the time of day of a book so old.
 */
const BEGINNING_OF_DAY = /^(?:(?:1\d|2[0-3]):00|(?:1[1-9]|20):30|1[01458]:15)(?::00)?$/;
const FIRST_WITHOUT_ODD_ZONES = 1942;

/** One year may stand twice, as that of the book and of its copyright: `[1815], ©1815`. */
const BETWEEN_YEARS = /[,;]\s*|\s+(?=[[(])/;

const OTHER_DIGITS = /(?![0-9\uff10-\uff19])\p{Nd}/u;

let monthNames: ReadonlySet<string> | undefined;

/**
 * Reads a year of the Gregorian or Julian calendar. Years before the common era are negative: 44 BC is -44, as in
 * Goodreads and goodbooks-10k, and not -43, as astronomers count. A date that may mean several years, such as
 * `1997-1998` or `2004, c1999`, is not a year.
 * @returns 0 if the text means that there is no year; the reason if it is not one unambiguous year.
 */
export function readYear(text: string): number | ReasonCode {
  if (text.length > LONGEST) return 'year-unclear';
  const trimmed = text.trim();
  if (WHOLE_NUMBER.test(trimmed)) {
    const year = Number(trimmed);
    return Number.isSafeInteger(year) ? year + 0 : 'year-range'; // -0 is 0 (rule 3)
  }
  const number = trimmed.replace(OTHER_MINUS, '-').replace(COMMA_ZERO, '');
  if (number !== trimmed && WHOLE_NUMBER.test(number)) return readYear(number);
  const simple = simplified(number);
  if (NO_YEAR.test(simple) || UNDEFINED.test(simple)) return 0;
  const newYear = newYearIn(simple);
  if (newYear !== undefined) return newYear;
  const year = DECADE.test(simple) ? undefined : (readDate(simple) ?? readTwice(simple));
  return year === undefined || (OTHER_DIGITS.test(trimmed) && !isLikely(year)) ? 'year-unclear' : year;
}

/** In digits of other scripts, a number beyond these years is more often one of another calendar, though unmarked. */
function isLikely(year: number): boolean {
  return year >= 1500 && year <= new Date().getFullYear() + 5;
}

/**
 * Whether a text is the beginning of a year somewhere, but written in UTC, where that is the evening before: Calibre in Berlin
 * writes 1 January 2000 as `1999-12-31T23:00:00+00:00`. Its year is the new one.
 */
export function isNewYear(text: string): boolean {
  if (!text.includes('31') || text.length > LONGEST) return false;
  const simple = simplified(text.trim());
  return !UNDEFINED.test(simple) && newYearIn(simple) !== undefined;
}

function newYearIn(simple: string): number | undefined {
  const { year, last = year, time = '' } = NEW_YEARS_EVE.exec(simple)?.groups ?? {};
  const isOdd = Number(last) < FIRST_WITHOUT_ODD_ZONES && time >= '10:00' && time < '24';
  return BEGINNING_OF_DAY.test(time) || isOdd ? Number(last) + 1 : undefined;
}

/** In lower case, with the digits 0 to 9, the signs of ASCII instead of full-width ones, and no invisible ones. */
function simplified(text: string): string {
  return text
    .normalize('NFC')
    .toLowerCase()
    .replaceAll(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '') // the direction of a text
    .replaceAll(/[\uff01-\uff5e]/g, (sign) => String.fromCharCode(sign.charCodeAt(0) - 0xfee0))
    .replaceAll(/(?![0-9])\p{Nd}+/gu, (digits) => fold(digits))
    .replaceAll(/[〇零○一二三四五六七八九]{4}/g, (year) =>
      Array.from(year, (sign) => Math.max(0, '〇一二三四五六七八九'.indexOf(sign))).join(''),
    );
}

function readTwice(text: string): number | undefined {
  const [one, other, ...others] = text.split(BETWEEN_YEARS).map(readDate);
  return one === other && others.length === 0 ? one : undefined;
}

function readDate(text: string): number | undefined {
  const date = text
    .replace('(c)', '©')
    .replace(/^[[(〔]\s*/, '')
    .replace(/[\s.,;?~\])〕]+$/, '');
  for (const form of FORMS) {
    const year = form.exec(date)?.groups?.year;
    if (year !== undefined) return Number(year);
  }
  const compact = date.replaceAll(/(?<=\d)[\s.]+(?=\d)/g, '|').replaceAll(/[\s.]+/g, '');
  const [, adBefore, adAfter] = AD.exec(compact) ?? [];
  const [, bcBefore, bcAfter] = BC.exec(compact) ?? [];
  // Neither era has a year 0.
  return Number(adBefore ?? adAfter) || -Number(bcBefore ?? bcAfter) || readWords(date);
}

/** `June 26, 1997`, `26-Jun-1997`, `16 de julio de 2019`, `1997 Juni`, `Spring 1999`, `1er trim. 1999`: one year, one day at most. */
function readWords(text: string): number | undefined {
  const date = text.replace(WEEKDAY, '').replace(/ \d\d?:\d\d.*$/, '');
  const parts = date.split(/[\s,.()[\]]+|(?<=\p{L})[-–/]|[-–/](?=\p{L})/u).filter(Boolean);
  const [year, ...otherYears] = parts.filter((part) => /^\d{4}$/.test(part));
  const ordinals = parts.filter((part) => ORDINAL.test(part));
  const isKnown = (part: string) =>
    part === year || ORDINAL.test(part) || BETWEEN_WORDS.has(part) || isDateWord(part);
  const isOne = otherYears.length === 0 && ordinals.length <= 1;
  return year !== undefined && isOne && parts.some(isDateWord) && parts.every(isKnown)
    ? Number(year)
    : undefined;
}

function isDateWord(word: string): boolean {
  monthNames ??= new Set(LANGUAGES.flatMap(monthsOf));
  return DATE_WORDS.has(word) || monthNames.has(withoutAccents(word));
}

/** Many programs lack them: `aout 1999`. */
function withoutAccents(word: string): string {
  return word.normalize('NFD').replaceAll(/\p{Mn}/gu, '');
}

function monthsOf(language: string): string[] {
  const locale = `${language}-u-ca-gregory-nu-latn`;
  const alone = { timeZone: 'UTC' } as const;
  const shapes = [alone, { ...alone, day: 'numeric' }, { ...alone, year: 'numeric' }] as const;
  return (['long', 'short'] as const).flatMap((month) => {
    const formats = shapes.map((shape) => new Intl.DateTimeFormat(locale, { ...shape, month }));
    return Array.from({ length: 12 }, (_, index) => new Date(Date.UTC(2000, index, 1)))
      .flatMap((date) => formats.map((format) => format.formatToParts(date)))
      .map((parts) => parts.find(({ type }) => type === 'month')?.value ?? '')
      .map((name) => withoutAccents(name.toLowerCase().replaceAll('.', '')))
      .filter((name) => /\p{L}/u.test(name)); // Czech abbreviates May as 5
  });
}
