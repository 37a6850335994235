// Owns: the columns of a book, as SQL for both stores. They are derived from `BOOK_FIELDS`.

import { BOOK_FIELDS, type BookFields, FIELD_NAMES } from '../books/book.ts';

/** A column other than the id. */
export interface Column {
  readonly name: keyof BookFields;
  readonly isText: boolean;
  /** SQL for the value of a book that lacks one. */
  readonly absent: string;
}

export const COLUMNS: readonly Column[] = FIELD_NAMES.map((name) => {
  const { type, default: absent } = BOOK_FIELDS[name];
  return type === 'string'
    ? { name, isText: true, absent: `'${absent}'` }
    : { name, isText: false, absent: String(absent) };
});

/** @param integer the store's type for 64-bit integers. */
export function withTypes(integer: string): readonly (Column & { type: string; definition: string })[] {
  return COLUMNS.map((column) => {
    const type = column.isText ? 'text' : integer;
    return { ...column, type, definition: `${column.name} ${type} not null default ${column.absent}` };
  });
}

/** SQL for integers that are exact for every reader of JSON. */
export const inRange = (name: string) =>
  `${name} between -${Number.MAX_SAFE_INTEGER} and ${Number.MAX_SAFE_INTEGER}`;

/** All columns without the id, and with it. */
export const FIELDS = FIELD_NAMES.join(', ');
export const ID_AND_FIELDS = `id, ${FIELDS}`;

/** The values of these columns. A table of an older version may have NULL, which the first start replaces by the same. */
export const ID_AND_VALUES = [
  'id',
  ...COLUMNS.map(({ name, absent }) => `coalesce(${name}, ${absent}) as ${name}`),
].join(', ');

/** Counts rows: all of them as `books`, and under each column's name those that lack a value. */
export const COUNTS = [
  'count(*) as books',
  ...COLUMNS.map(({ name, absent }) => `count(*) filter (where ${name} = ${absent}) as ${name}`),
].join(', ');

/** The bytes of a book's texts, which the store has without reading them. */
export const TEXT_BYTES = COLUMNS.filter(({ isText }) => isText)
  .map(({ name }) => `coalesce(octet_length(${name}), 0)`)
  .join(' + ');
