// Owns: which author and which year a JSON value of another program means: of CSL JSON (Zotero and others), Zotero's own
// JSON, LibraryThing, Open Library, BibJSON, Crossref and schema.org.
// Does not: convert numbers and texts into one another, or take an editor or a translator for the author.

import { isJsonObject, type JsonObject } from '../json/parse.ts';
import type { ReasonCode } from './reasons.ts';
import { readYear } from './years.ts';

/** Names of members, by the field that each is; the first that is a text counts. */
const WHOLE = ['literal', 'name', 'fl']; // `fl`, first name first, of LibraryThing
const GIVEN = ['given', 'givenName', 'firstName', 'firstname', 'first_name', 'first'];
const FAMILY = ['family', 'familyName', 'lastName', 'lastname', 'last_name', 'last'];

/** Names in these scripts have the family name first, without a blank; as citeproc-js writes them. */
const EAST_ASIAN = /^[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}々ー]+$/u;

/**
 * The roles of an author, also in other languages. Zotero and LibraryThing have editors, translators and illustrators
 * there too, and libraries the author of an introduction.
 */
const AUTHOR = /^$|\b(?:co-?)?aut(?!hor of)|writer|verfasser|f[oö]rfatt|автор/i;

/** The end of a name after which no blank follows: `d’`, `al-`. */
const PARTICLE = /(?:^|\s)\p{Ll}{1,3}['’-]$/u;

/** @returns the authors, with commas between them; undefined if the value names none. */
export function readAuthors(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (!Array.isArray(value)) return isJsonObject(value) ? readAuthors([value]) : undefined;
  const names = value
    .filter((author) => author !== null && AUTHOR.test(author.creatorType ?? author.role ?? ''))
    .filter((author) => !Array.isArray(author) || author.length > 0) // of LibraryThing, without an author
    .map((author) => (isJsonObject(author) ? nameOf(author) : author));
  return names.every((name) => typeof name === 'string') ? names.filter(Boolean).join(', ') : undefined;
}

function nameOf(author: JsonObject): string | undefined {
  const textOf = (...keys: readonly string[]) =>
    keys
      .map((key) => author[key])
      .find((value): value is string => typeof value === 'string' && value !== '');
  const known = [...WHOLE, ...GIVEN, ...FAMILY].map((key) => author[key]);
  if (!known.some((value) => value === null || typeof value === 'string')) return undefined; // null counts as none
  const [whole, given, family] = [textOf(...WHOLE), textOf(...GIVEN), textOf(...FAMILY)];
  if (whole !== undefined) return whole;
  if (given !== undefined && family !== undefined && EAST_ASIAN.test(family + given)) return family + given;
  const particles = [textOf('dropping-particle'), textOf('non-dropping-particle')];
  return [given, ...particles, family, textOf('suffix')]
    .filter((part) => part !== undefined)
    .reduce((name, part) => (name === '' || PARTICLE.test(name) ? name + part : `${name} ${part}`), '');
}

/**
 * @returns 0 if the value means that there is no year; a text says why it is not one year; undefined if it is of a kind
 *   that has no year.
 */
export function readYearIn(value: unknown): number | ReasonCode | undefined {
  if (value === undefined || value === null) return 0;
  if (typeof value === 'string') return readYear(value);
  if (typeof value === 'number') return value;
  if (Array.isArray(value)) return onlyYear(value);
  if (!isJsonObject(value)) return undefined;
  const parts = value['date-parts'];
  if (Array.isArray(parts)) {
    // A range has two dates, each of year, month and day.
    const year = onlyYear(parts.some(Array.isArray) ? parts.map((date) => date?.[0]) : [parts[0]]);
    if (year !== 0) return year;
  }
  if (Object.keys(value).length === 0) return 0;
  const text = value.raw ?? value.literal ?? value.year;
  return text === undefined && parts === undefined ? undefined : readYearIn(text);
}

/** The year that all dates have, but for those without one. */
function onlyYear(dates: readonly unknown[]): number | ReasonCode | undefined {
  const years = new Set(dates.map(readYearIn).filter((year) => year !== 0));
  if (years.size === 0) return 0;
  return years.size > 1 ? 'year-unclear' : [...years][0];
}
