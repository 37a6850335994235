// Owns: the query of `GET /books` (rules F1 to F6): its parameters, and the headers of the page that answers it; the filters of
// `GET /suggestions` (rule F13); and how parameters are read (rule F1).

import { readBookChanges } from '../books/book.ts';
import {
  allOf,
  completed,
  type Filters,
  isRelevance,
  LARGEST_PAGE,
  type Page,
  type Place,
  readFilter,
  readSort,
  relevanceOf,
  type Search,
  type SentFilter,
  SORT_FIELDS,
  type SortBy,
} from '../books/search.ts';
import type { HeaderList } from '../http/answer.ts';

/** Books of a page, unless `limit` says otherwise. */
export const PAGE = 100;

/** Characters of a parameter's name in the answer that refuses it. */
export const SHOWN_NAME = 64;

/** Parameters of one page. */
const OF_PAGE = ['limit', 'cursor', 'offset'];

/** Bytes of all links together; many clients refuse an answer with more than 16 KiB of headers. */
const LONGEST_LINKS = 8 * 1024;

/** A query that was understood. */
export interface Query {
  readonly search: Search;
  /** The parameters as they were sent, by their names, without those of one page. */
  readonly parameters: ReadonlyMap<string, string>;
  /** Undefined without an offset. */
  readonly offset: number | undefined;
}

/** What the parameters say so far. */
interface Parameters {
  filters: Filters[];
  words?: string;
  order?: readonly SortBy[] | undefined;
  limit: number;
  cursor?: string;
  offset?: number | undefined;
}

/**
 * @param query as it was sent, without `?`.
 * @param find whether books can be searched; if not, every parameter is invalid.
 * @param prefer the header `Prefer` (RFC 7240).
 * @param hasPages whether the parameters of one page are valid.
 * @returns the name of the first invalid parameter, if there is one.
 */
export function readQuery(
  query: string,
  find: boolean,
  prefer: string | undefined,
  hasPages = true,
): Query | { readonly invalid: string } {
  if (!find) return invalid(partsOf(query)[0]);
  const found: Parameters = { filters: [], limit: PAGE };
  const parameters = readParameters(query, (name, value) => {
    return (hasPages || !OF_PAGE.includes(name)) && read(name, value, found);
  });
  if ('invalid' in parameters) return parameters;
  const order = found.order ?? (found.words === undefined ? completed([]) : relevanceOf(found.words));
  const after = found.cursor === undefined ? undefined : readCursor(found.cursor, order);
  if (found.cursor !== undefined && after === undefined) return { invalid: 'cursor' };
  parameters.delete('cursor');
  parameters.delete('offset');
  parameters.set('limit', `limit=${found.limit}`); // a link without any parameter would lead to the list
  const search = {
    ...allOf(found.filters),
    order,
    limit: found.limit,
    after,
    offset: found.offset ?? 0,
    isCounted: /(^|,)\s*count\s*=\s*"?exact"?\s*(,|;|$)/i.test(prefer ?? ''),
  };
  return { search, parameters, offset: found.offset };
}

/** @returns the filters of `GET /suggestions`, or the name of the first invalid parameter. @param find as in `readQuery`. */
export function readFiltersOf(
  query: string,
  find: boolean,
): { readonly filters: readonly SentFilter[] } | { readonly invalid: string } {
  const filters: SentFilter[] = [];
  const parameters = readParameters(query, (name, value) => {
    filters.push([name, value]);
    return find && readFilter(name, value) !== undefined;
  });
  return 'invalid' in parameters ? parameters : { filters };
}

/**
 * @param read returns whether a parameter is valid. None is sent twice.
 * @returns the parameters as they were sent, by their names; or the name of the first invalid one.
 */
export function readParameters(
  query: string,
  read: (name: string, value: string) => boolean,
): Map<string, string> | { readonly invalid: string } {
  const parameters = new Map<string, string>();
  for (const part of partsOf(query)) {
    const sent = nameIn(part);
    const name = decode(sent);
    const value = decode(part.slice(sent.length + 1));
    const isValid = name !== undefined && value !== undefined && !parameters.has(name) && read(name, value);
    if (!isValid) return invalid(part);
    parameters.set(name, part);
  }
  return parameters;
}

function partsOf(query: string): string[] {
  return query.split('&').filter((part) => part !== '');
}

/** @param part of the query, or nothing if there is none. */
function invalid(part = ''): { readonly invalid: string } {
  return { invalid: nameIn(part).slice(0, SHOWN_NAME) };
}

function nameIn(part: string): string {
  return part.split('=', 1)[0] as string;
}

/** The headers of a page (rules F4, F6 and F11). */
export function pageHeaders(query: Query, page: Page): HeaderList {
  const { total, unindexed } = page;
  const headers = ['link', linksOf(query, page)];
  if (total !== undefined) headers.push('x-total-count', `${total}`);
  if (total !== undefined && query.search.isCounted) headers.push('preference-applied', 'count=exact');
  return [...headers, ...unindexedHeader(unindexed)];
}

/** @param unindexed about how many books are not searched yet. */
export function unindexedHeader(unindexed: number): HeaderList {
  return unindexed > 0 ? ['x-unindexed-books', `${unindexed}`] : [];
}

/** @returns false if there is no such parameter, or its value is invalid. */
function read(name: string, value: string, found: Parameters): boolean {
  switch (name) {
    case 'sort':
      found.order = readSort(value);
      return found.order !== undefined;
    case 'limit':
      found.limit = readLimit(value);
      return found.limit > 0;
    case 'cursor':
      found.cursor = value;
      return found.offset === undefined;
    case 'offset':
      found.offset = readNumber(value);
      return found.offset !== undefined && found.cursor === undefined;
  }
  const filters = readFilter(name, value);
  if (filters === undefined) return false;
  found.filters.push(filters);
  if (name === 'q' && filters.words.length > 0) found.words = value;
  return true;
}

/** Links to the next, the first and the previous page (RFC 8288), as long as they fit. */
function linksOf({ search, parameters, offset }: Query, { next, passed }: Page): string {
  const links: string[] = [];
  const add = (relation: string, ...place: string[]) => {
    const query = [...parameters.values(), ...place].map(escaped).join('&');
    const link = `</books?${query}>; rel="${relation}"`;
    if (links.length === 0 || links.join(', ').length + link.length < LONGEST_LINKS) links.push(link);
  };
  if (next !== undefined) {
    add(
      'next',
      offset === undefined ? `cursor=${cursorOf(next, search.order)}` : `offset=${offset + passed}`,
    );
  }
  add('first');
  if (offset !== undefined && offset > 0) add('prev', `offset=${Math.max(0, offset - search.limit)}`);
  return links.join(', ');
}

/** A place, with the name of the order that it is in, as opaque text. */
function cursorOf(place: Place, order: Search['order']): string {
  return asCursor([nameOf(order), ...place]);
}

/** An opaque text for some values. */
export function asCursor(content: unknown): string {
  return Buffer.from(JSON.stringify(content)).toString('base64url');
}

/** @returns undefined if the text is none. */
export function contentOf(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString());
  } catch {
    return undefined;
  }
}

/** @returns undefined unless the text is a cursor of this order. */
function readCursor(text: string, order: Search['order']): Place | undefined {
  const content = contentOf(text);
  if (!Array.isArray(content)) return undefined;
  const [, ...place] = content as unknown[];
  const fields = isRelevance(order)
    ? (['group', 'title', 'id'] as const)
    : order.map(({ field }) => SORT_FIELDS[field]);
  const isPlace =
    place.length === fields.length &&
    fields.every((field, position) => {
      const value = place[position];
      if (field === 'group') return value === 0 || value === 1;
      return field === 'id' ? Number.isSafeInteger(value) : readBookChanges({ [field]: value }) !== undefined;
    });
  // A cursor has one spelling, although base64url and JSON have several.
  return isPlace && cursorOf(place as Place, order) === text ? (place as Place) : undefined;
}

function nameOf(order: Search['order']): string {
  if (isRelevance(order)) return 'relevance';
  return order.map(({ field, isDescending }) => `${isDescending ? '-' : ''}${field}`).join();
}

/** @returns 0 if it is none. */
export function readLimit(text: string, most = LARGEST_PAGE): number {
  const limit = readNumber(text) ?? 0;
  return limit <= most ? limit : 0;
}

/** @returns undefined unless the text is a whole number from 0 to 2^53−1. */
function readNumber(text: string): number | undefined {
  const value = Number(text);
  return /^\d{1,16}$/.test(text) && Number.isSafeInteger(value) ? value : undefined;
}

/** @returns undefined if it is not UTF-8, percent-encoded. */
function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

/** Percent-encodes the characters that end a link. */
function escaped(text: string): string {
  return text.replace(/[<>"]/g, (sign) => encodeURIComponent(sign));
}
